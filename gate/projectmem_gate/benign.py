"""Exit codes that are an answer, not a failure: a search without a match, a comparison with differences."""

from __future__ import annotations

from projectmem_gate.lines import command_words, is_own_path, program, subcommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.model import Action

# Exit codes that are an answer, not a failure: (program, subcommand or "") -> codes.
_BENIGN: dict[tuple[str, str], tuple[int, ...]] = {
    **{(p, ""): (1,) for p in (
        "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "diff", "colordiff", "cmp", "comm", "test", "[", "[[", "which",
        "type", "command", "pgrep", "pidof", "pkill", "killall", "lsof", "ps", "expr", "false", "fuser",
    )},
    ("jq", ""): (1, 4),  # with -e: the last value is false or null, or there is none; what it cannot do is 2, 3 and 5
    ("git", "grep"): (1,),
    ("git", "ls-files"): (1,),
    ("git", "diff"): (1,),
    ("git", "diff-index"): (1,),
    ("git", "diff-files"): (1,),
    ("git", "merge-base"): (1,),
    ("git", "check-ignore"): (1,),
    ("git", "ls-remote"): (2,),
    ("git", "show-ref"): (1,),
    ("git", "config"): (1,),
    ("npm", "outdated"): (1,),
    ("pnpm", "outdated"): (1,),
    ("yarn", "outdated"): (1,),
    ("systemctl", "is-active"): (3, 1),
    ("systemctl", "status"): (3,),
    ("terraform", "plan"): (2,),
}  # fmt: skip


def last_group(action: Action) -> list[int]:
    """Indexes of the parts that can have given the exit code: the trailing `&&` chain; after `||` only what follows it."""
    first = 0
    for i, join in enumerate(action.joins):
        if join != "&&":
            first = i + 1
    return list(range(min(first, len(action.parts) - 1), len(action.parts)))


def is_benign(action: Action, index: int, exit_code: int) -> bool:
    part = action.parts[index]
    name = program(part)
    if is_own_path((command_words(part) or [""])[0]):
        return False
    if exit_code == 123 and "xargs" in part.text.partition("  # ")[2].split(", "):
        exit_code = 1  # one of its runs gave a code between 1 and 125
    if name == "gh" and part.text.split()[1:3] == ["pr", "checks"]:
        return exit_code in (1, 8)  # some check failed, or is pending
    return exit_code in _BENIGN.get((name, ""), ()) or exit_code in _BENIGN.get((name, subcommand(part)), ())

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
    ("git", "rev-parse"): (1,),  # with --verify -q; what it cannot do is 128
    ("pip", "show"): (1,),
    ("uv", "show"): (1,),
    ("brew", "list"): (1,),
    ("snap", "list"): (1,),
    ("dpkg", ""): (1,),
    ("dpkg-query", ""): (1,),
    ("rpm", ""): (1,),
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


_ASKS_PACKAGES = frozenset("-s --status -l --list -L --listfiles -S --search -q -qa -qi -ql -qf --query".split())
_CONTAINERS = ("docker", "podman", "nerdctl")
_FOLLOWERS = ("tail", "journalctl", "docker", "podman", "kubectl", "stern", "dmesg")
_ENDLESS = ("watch", "top", "htop", "ping", "tcpdump", "vmstat", "iostat", "strace")
_SERVES = ("dev", "start", "serve", "watch", "preview")


def _goes_on(name: str, words: list[str]) -> bool:
    """Does it run until it is ended, so that a limit (`timeout 5 tail -f log`) is how it is meant to end?"""
    if name in _ENDLESS:
        return True
    if name in _FOLLOWERS:
        return any(w in ("-f", "-F", "--follow", "-w", "--watch") for w in words[1:])
    task = words[2:3] if words[1:2] == ["run"] else words[1:2]
    return name in ("npm", "pnpm", "yarn", "bun") and bool(task) and task[0] in _SERVES


def is_benign(action: Action, index: int, exit_code: int) -> bool:
    part = action.parts[index]
    name = program(part)
    if is_own_path((command_words(part) or [""])[0]):
        return False
    if exit_code == 123 and "xargs" in part.text.partition("  # ")[2].split(", "):
        exit_code = 1  # one of its runs gave a code between 1 and 125
    words = command_words(part)
    if name == "gh" and words[1:3] == ["pr", "checks"]:
        return exit_code in (1, 8)  # some check failed, or is pending
    if name in ("dpkg", "rpm") and not _ASKS_PACKAGES.intersection(words):
        return False  # it installs
    if exit_code == 124:
        return _goes_on(name, words)
    if exit_code == 1 and ((name == "kill" and "-0" in words) or (name in _CONTAINERS and "inspect" in words[1:3])):
        return True
    return exit_code in _BENIGN.get((name, ""), ()) or exit_code in _BENIGN.get((name, subcommand(part)), ())

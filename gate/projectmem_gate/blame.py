"""Which part of a shell command failed, as far as its output shows, and which failures an exit code hides."""

from __future__ import annotations

from projectmem_gate import benign, failures
from projectmem_gate.lines import basename, lines_with, names, program, rx, subcommand, tail_lines
from projectmem_gate.telling import PYTHONS, ends_in_traceback, groups, quotes, tells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.model import Action


def shell_error(text: str) -> str:
    """The name a shell could not run, "" when there is no such complaint."""
    if "not found" not in text and "o such file" not in text:
        return ""
    last = _last[0]
    if last[0] != text:
        last = _last[0] = text, _shell_error(text)
    return last[1]


_last: list[tuple[str, str]] = [("", "")]  # several questions about one output ask for it


def _shell_error(text: str) -> str:
    if "\n" in text:  # a complaint is one line: only such lines are worth these patterns
        text = "\n".join(lines_with(text, ("not found", "o such file")))
    m = rx(
        r"^(?:\S*sh: |\(eval\):|\S+: )?(?:line )?(?:\d+: )?"
        r"(?:(\S+): command not found|command not found: (\S+)|no such file or directory: (\S+))$"
    ).search(text)
    m = m or rx(r"^\S*sh:\d+: (?:command not found|no such file or directory): (\S+)").search(text)
    m = m or rx(r"^\S*sh: (?:line )?\d+: (\S+): (?:command )?not found").search(text)
    return next((g for g in m.groups() if g), "") if m else ""


def blamed(action: Action, text: str) -> int:
    """Index of the only part that the output names as failing, -1 when none or several could be."""
    named = shell_error(text)
    parts = [(i, p, program(p)) for i, p in enumerate(action.parts) if not p.trivial]
    if named:
        hits = [i for i, p, name in parts if name == basename(named).lower() or p.text.split()[:1] == [named]]
        if len(hits) == 1:
            return hits[0]
    hits = [i for i, _, name in parts if name and _speaks(name, text)]
    if len(hits) == 1:
        return hits[0]
    hits = [i for i, p, _ in parts if len(p.family) > 3 and f"`{p.family}`" in text]
    if len(hits) == 1:
        return hits[0]
    hits = [i for i, p, name in parts if not quotes(name, subcommand(p)) and tells(groups(name), text)]
    if len(hits) != 1:
        own = [i for i in hits if tells(groups(program(action.parts[i]))[:1], text)]
        hits = own if len(own) == 1 else hits
    if len(hits) > 1:
        task = _task_named(text)
        own = [i for i in hits if task and task in action.parts[i].text.split()]
        hits = own if len(own) == 1 else hits
    if len(hits) == 1:
        return hits[0]
    if ends_in_traceback(text):
        hits = [i for i, p, name in parts if name in PYTHONS or p.text.split()[:1] == ["python"]]
        if len(hits) == 1:
            return hits[0]
    return -1


def _speaks(name: str, text: str) -> bool:
    """Does a line begin with the program's name and a colon?"""
    return f"{name}: " in text and rx(r"^(?:\S*/)?" + _escape(name) + r": \S").search(text) is not None


def _task_named(text: str) -> str:
    """The task or script that a runner says has failed, "" when it names none."""
    m = rx(
        r"^\[([\w-]+)[^\]]*\] ERROR task failed|^error: script \"([^\"]+)\" exited|Lifecycle script `([^`]+)` failed"
        r"|^g?make(?:\[\d+\])?: \*\*\* \[(?:[^\]]*: )?([^\]\s]+)\] Error|^error: Recipe `([^`]+)` failed"
    ).search(text)
    return next((g for g in m.groups() if g), "") if m else ""


def _escape(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "\\" + c for c in name)


def _unparsable(text: str) -> bool:
    """Did the shell refuse the line as it was written? Then none of its parts ran."""
    head = text[:600]
    if not any(
        m in head for m in ("parse error near", "syntax error near", "unexpected EOF while", "no matches found", "unmatched")
    ):
        return False
    return bool(rx(r"^(?:\(eval\)|\S*sh)(?::| -c:| line)").search(head))


def shell_refused(text: str) -> bool:
    """Did the shell itself refuse the line, whatever its programs would have answered?"""
    if not any(m in text for m in _REFUSALS):
        return False
    return bool(
        rx(
            r"^(?:\(eval\)|(?:\S*/)?(?:ba|z|da|k)?sh)(?:: -c)?(?::? line \d+|:\d+)?: "
            r"(?:parse error|syntax error|unmatched|unexpected EOF|bad substitution|no matches found|bad pattern"
            r"|event not found)"
        ).search(text)
    )


_REFUSALS = (
    "parse error", "syntax error", "unmatched", "unexpected EOF", "bad substitution", "no matches found", "bad pattern",
    "event not found",
)  # fmt: skip


def told_codes(action: Action, text: str) -> list[tuple[int, int]]:
    """(index of the part it speaks of, exit code) where the command prints the code itself: `make; echo "exit: $?"`."""
    for part in action.parts:
        if "$" in part.text and ("$?" in part.text or "PIPESTATUS" in part.text):
            break
    else:
        return []
    found: list[tuple[int, int]] = []
    for i, part in enumerate(action.parts):
        words = part.text.split(" ", 1)
        if not part.trivial or words[0] not in ("echo", "printf") or len(words) < 2:
            continue
        template = words[1].replace("\\n", "").replace("'", "").replace('"', "").strip()
        for mark in ("$?", "${PIPESTATUS[0]}", "$PIPESTATUS", "${PIPESTATUS[1]}", "${pipestatus[1]}"):
            if template.count(mark) == 1 and "$" not in template.replace(mark, ""):
                before, after = (" ".join(side.split()) for side in template.split(mark))
                m = rx("^" + _spaced(before) + r"\s*(\d{1,3})\s*" + _spaced(after) + r"\s*$").search(text)
                said = max((j for j in range(i) if not action.parts[j].trivial), default=-1)
                if m and said >= 0:
                    found.append((said, int(m.group(1))))
    return found


def _spaced(text: str) -> str:
    return r"\s+".join(_escape(word) for word in text.split())


def culprit(action: Action, exit_code: int | None, text: str) -> int:
    """Index of the part that failed, -1 when it cannot be told."""
    real = [i for i, p in enumerate(action.parts) if not p.trivial]
    if len(action.parts) == 1:
        return 0
    if _unparsable(text):
        return -1
    if len(real) == 1:
        return real[0]
    if exit_code not in (None, 0):
        group = [i for i in benign.last_group(action) if not action.parts[i].trivial]
        if len(group) == 1:
            return group[0]
        named = blamed(action, text)
        # In `a && b` a blamed part outside the group that gave the exit code only made noise.
        if named in group:
            return named
        rest = [i for i in group if not benign.is_benign(action, i, exit_code or 0)]
        return rest[0] if len(rest) == 1 and exit_code == 1 else -1
    return blamed(action, text)


def hidden(action: Action, text: str) -> int | None:
    """Index of the part whose failure the exit code hides (-1: some part), None when the output tells of none."""
    if not text.strip():
        return None
    for index, code in told_codes(action, text):
        if code and not benign.is_benign(action, index, code) and code != 141:
            return index
    if not action.parsed:
        return 0 if tells(_groups_in(action.text), "\n".join(tail_lines(text, 15))) else None
    real = [i for i, p in enumerate(action.parts) if not p.trivial]
    telling = [i for i in real if not quotes(program(action.parts[i]), subcommand(action.parts[i]))]
    named = shell_error(text)
    if named:
        for i in real:
            words = action.parts[i].text.split()
            if program(action.parts[i]) == basename(named).lower() and (len(real) == 1 or _mostly_errors(text)) and words:
                return i
    if len(real) == 1 and _only_complaint(action, real[0], text):
        return real[0]
    if not telling:
        return None
    if telling[-1] == real[-1] and "sage" in text and any(failures.misused(line) for line in tail_lines(text, 3)):
        return telling[-1]  # a usage text, and a complaint below it
    if len(telling) < len(real) and not all(_lists(action, i) for i in real if i not in telling):
        # Something else printed too: only what the last part says at the end is its own.
        if telling[-1] != real[-1]:
            return None
        telling, text = telling[-1:], "\n".join(tail_lines(text, 15))
    hits = [i for i in telling if tells(groups(program(action.parts[i])), text)]
    if not hits and ends_in_traceback(text):
        hits = [i for i in telling if program(action.parts[i]) in PYTHONS or action.parts[i].text.split()[:1] == ["python"]]
    if not hits:
        return None
    if len(hits) == 1:
        return hits[0]
    return blamed(action, text)


def _lists(action: Action, index: int) -> bool:
    """Does this part print names, sizes or dates alone, which nobody takes for a failure?"""
    return program(action.parts[index]) in _LISTERS


_LISTERS = ("ls", "pwd", "date", "wc", "du", "df", "mkdir", "touch", "sleep", "whoami", "uname", "which", "basename")


def _groups_in(command: str) -> list[str]:
    """Rule groups of the programs that a command names which could not be parsed."""
    words = {w.strip("()'\"") for w in command.replace(";", " ").replace("|", " ").split()}
    return [g for w in sorted(words) for g in groups(w)]


_FILTERS = names(
    "cat grep egrep rg head tail sort uniq wc cut tr awk sed jq yq tee column od xxd xargs less more base64 nl rev fold"
)


def filter_failed(action: Action, text: str) -> bool:
    """Is a filter behind the action all that failed (`... | cat -A`)? It is no part of the action's identity."""
    head = text[:300].lstrip()
    name, colon, _ = head.partition(": ")
    if not colon or name not in _FILTERS:
        return False
    programs = [program(p) for p in action.parts if not p.trivial]
    return name not in programs and not any(groups(p) for p in programs) and len(text.strip().split("\n")) <= 8


def wrapper_missing(action: Action, text: str) -> bool:
    """Is all that failed no part of the action's identity: a neutral wrapper that is not installed (`timeout 60 make`)?"""
    if "= not found" in text and rx(r"^(?:\(eval\)|\S*sh):\d+: =+ not found$").search("\n".join(tail_lines(text, 1))):
        return True  # zsh, of `echo ===`: a part of no weight
    named = shell_error(text)
    return bool(named) and named in _WRAPPERS and named not in [program(p) for p in action.parts]


_WRAPPERS = names("timeout gtimeout nice ionice nohup setsid stdbuf unbuffer caffeinate chronic")


def _mostly_errors(text: str) -> bool:
    return len([line for line in text.split("\n") if line.strip()]) <= 3


def _only_complaint(action: Action, index: int, text: str) -> bool:
    """Is all that was printed one short complaint in the program's own name, as after `| head` or `|| true`?"""
    lines = []
    for line in text.split("\n") if text.count("\n") < 64 else text.split("\n", 64):  # most of what is long has more lines
        if line.strip():
            lines.append(line)
            if len(lines) > 6:
                return False
    if not lines:
        return False
    first = lines[0]
    name = program(action.parts[index])
    asked = subcommand(action.parts[index])
    if name in ("docker", "podman", "kubectl") and asked != "logs" and len(lines) <= 3 and tells(groups(name), first):
        return True  # `docker ps`, `kubectl get`: nothing but the client's own complaint
    if name and all(line.startswith(f"{name}: ") for line in lines):
        return bool(
            rx(r"[Nn]o such|not found|cannot|can't|[Uu]nknown|[Uu]nrecognized|invalid|denied|failed|not a ").search(first)
        )
    return (first.startswith("fatal: ") and name == "git") or (failures.misused(first) and not quotes(name, ""))

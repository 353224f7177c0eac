"""What became of a tool call: decided by outcome, not by exit code alone.

Refusals, interrupts and cancelled siblings are not failures; neither is the exit 1 of a search that found nothing. A failure
that a pipe, `|| true` or a later command hides is one, where the program's own output says so.
"""

from __future__ import annotations

from projectmem_gate import failures, signature
from projectmem_gate.lines import basename, clean, command_words, is_own_path, program, rx, subcommand, tail_lines
from projectmem_gate.model import CANCELLED, FAILED, INTERRUPTED, OK, REJECTED, UNKNOWN, Outcome
from projectmem_gate.telling import PYTHONS, ends_in_traceback, groups, quotes, tells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.model import Action

_NOT_FAILURES = {
    "rejected": REJECTED,
    "denied": REJECTED,
    "hook": REJECTED,
    "interrupted": INTERRUPTED,
    "cancelled": CANCELLED,
}
# How harnesses begin a result that is a refusal, not a failure.
_STARTS: tuple[tuple[str, str], ...] = (
    ("The user doesn't want to", REJECTED),
    ("User rejected", REJECTED),
    ("The tool use was rejected", REJECTED),
    ("Permission to use ", REJECTED),
    ("Claude requested permissions to", REJECTED),
    ("This command requires approval", REJECTED),
    ("Command blocked by PreToolUse hook", REJECTED),
    ("Tool execution blocked", REJECTED),
    ("Denied by preToolUse hook", REJECTED),
    ("Action rejected:", REJECTED),
    ("exec_command failed: rejected by user", REJECTED),
    ("exec command rejected by user", REJECTED),
    ("[Request interrupted", INTERRUPTED),
    ("aborted by user", INTERRUPTED),
    ("Sibling tool call errored", CANCELLED),
    ("Cancelled: parallel tool call", CANCELLED),
    ("Cancelled", CANCELLED),
)
_EDIT_FAILED = (
    "String to replace not found", "apply_patch verification failed", "File has not been read yet", "File has been modified",
    "File has been unexpectedly modified", "Your proposed edit has introduced", "Error: ", "error: ", "InputValidationError",
    "File does not exist", "Path does not exist", "No changes to make", "Script failed", "No replacement was performed",
)  # fmt: skip

# Exit codes that are an answer, not a failure: (program, subcommand or "") -> codes.
_BENIGN: dict[tuple[str, str], tuple[int, ...]] = {
    **{(p, ""): (1,) for p in (
        "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "diff", "colordiff", "cmp", "comm", "test", "[", "[[", "which",
        "type", "command", "pgrep", "pidof", "pkill", "killall", "lsof", "ps", "expr", "false", "fuser",
    )},
    ("git", "grep"): (1,),
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
_SIGPIPE = 141


def judge(
    action: Action,
    *,
    exit_code: int | None,
    output: str,
    is_error: bool | None,
    error_kind: str = "",
    interrupted: bool = False,
    timed_out: bool = False,
) -> Outcome:
    """The outcome of a finished call. Total: any output and any combination of marks gives an answer.

    is_error    the harness's own mark, None where it has none
    error_kind  "" | exit | tool | rejected | denied | hook | interrupted | cancelled | timeout, where the harness says so
    """
    text = clean(output)
    refused = _refused(text, is_error, error_kind, interrupted)
    if refused:
        return Outcome(refused, exit_code)
    exit_code, text = _exit_code(exit_code, text, is_error)
    if exit_code == 130:  # SIGINT
        return Outcome(INTERRUPTED, exit_code)
    if timed_out or error_kind == "timeout" or _says_timeout(text, exit_code, is_error):
        return _failed(action, exit_code, text, _culprit(action, exit_code, text), "timeout")
    if action.kind != "sh":
        bad = is_error if is_error is not None else _tool_failed(action, text)
        if not bad and is_error is False and action.kind in ("edit", "patch"):
            bad = text.startswith(("apply_patch verification failed", "Script failed"))
        return (
            _failed(action, exit_code, text, 0 if len(action.parts) == 1 else -1, error_kind) if bad else Outcome(OK, exit_code)
        )
    if exit_code in (None, 0):
        if is_error and exit_code is None:
            return _failed(action, exit_code, text, _culprit(action, exit_code, text), error_kind)
        hidden = _hidden(action, text)
        if hidden is None:
            return Outcome(OK if exit_code == 0 or is_error is False or text.strip() else UNKNOWN, exit_code)
        return _failed(action, exit_code, text, hidden, error_kind)
    if exit_code == _SIGPIPE or _benign(action, exit_code, text):
        return Outcome(OK, exit_code)
    return _failed(action, exit_code, text, _culprit(action, exit_code, text), error_kind)


def _failed(action: Action, exit_code: int | None, text: str, culprit: int, error_kind: str) -> Outcome:
    part = action.parts[culprit] if 0 <= culprit < len(action.parts) else None
    cls = failures.classify(action, text, exit_code, part, error_kind)
    return Outcome(FAILED, exit_code, cls, signature.signature(cls, text), signature.excerpt(text), culprit)


def _refused(text: str, is_error: bool | None, error_kind: str, interrupted: bool) -> str:
    if error_kind in _NOT_FAILURES:
        return _NOT_FAILURES[error_kind]
    if interrupted:
        return INTERRUPTED
    if is_error is False:
        return ""
    start = text[:400].lstrip().removeprefix("<tool_use_error>")
    for mark, outcome in _STARTS:
        if start.startswith(mark):
            return outcome if mark != "Cancelled" or len(text) < 80 else ""
    if start.startswith("PreToolUse:") and "hook error" in start:
        return REJECTED
    return ""


def _exit_code(exit_code: int | None, text: str, is_error: bool | None) -> tuple[int | None, str]:
    """Read the exit code that some harnesses write into the text, and take it off."""
    if text.startswith("Exit code "):
        head, _, rest = text.partition("\n")
        number = head[10:].strip()
        if number.isdigit() and len(number) < 6 and is_error is not False:
            return (int(number) if exit_code is None else exit_code), rest
    if text.startswith("<returncode>") and "</returncode>" in text[:40]:
        number = text[12 : text.index("</returncode>")]
        if number.isdigit():
            return (int(number) if exit_code is None else exit_code), text[text.index("</returncode>") + 13 :].lstrip("\n")
    return exit_code, text


def _says_timeout(text: str, exit_code: int | None, is_error: bool | None) -> bool:
    if exit_code == 0 or is_error is False or ("imed out" not in text and "TIMED OUT" not in text):
        return False
    if exit_code in (None, 124, 137, 143):
        ends = "\n".join([text[:200], *tail_lines(text, 2)])
        return bool(rx(r"[Cc]ommand timed out after|EXECUTION TIMED OUT|timed out after \d").search(ends))
    return False


def _tool_failed(action: Action, text: str) -> bool:
    """Without any mark of the harness: does the result of a tool say that it failed?"""
    if text.lstrip().startswith("<tool_use_error>"):
        return True
    return action.kind in ("edit", "write", "patch") and text.lstrip().startswith(_EDIT_FAILED)


# --- shells ----------------------------------------------------------------------------------------------------------


def _last_group(action: Action) -> list[int]:
    """Indexes of the parts that can have given the exit code: the trailing `&&` chain; after `||` only what follows it."""
    first = 0
    for i, join in enumerate(action.joins):
        if join != "&&":
            first = i + 1
    return list(range(min(first, len(action.parts) - 1), len(action.parts)))


def _is_benign(action: Action, index: int, exit_code: int) -> bool:
    part = action.parts[index]
    name = program(part)
    if is_own_path((command_words(part) or [""])[0]):
        return False
    if name == "gh" and part.text.split()[1:3] == ["pr", "checks"]:
        return exit_code in (1, 8)  # some check failed, or is pending
    return exit_code in _BENIGN.get((name, ""), ()) or exit_code in _BENIGN.get((name, subcommand(part)), ())


def _only_shows(action: Action, index: int) -> bool:
    return quotes(program(action.parts[index]), subcommand(action.parts[index]))


def _benign(action: Action, exit_code: int, text: str) -> bool:
    """Is the exit code an answer of a search or a comparison?"""
    candidates = [i for i in _last_group(action) if not action.parts[i].trivial]
    if not candidates:
        return False
    if exit_code == 1 and not text.strip() and all(_only_shows(action, i) for i in candidates):
        return True  # a dropped filter found nothing, or the complaint was silenced: it was only a question
    answering = [i for i in candidates if _is_benign(action, i, exit_code)]
    if not answering:
        return False
    if len(answering) == len(candidates):
        return not _own_errors(action, answering, text)
    # Others of the chain could have failed: then they would have said so.
    others = [i for i in candidates if i not in answering]
    said = _blamed(action, text)
    return said not in others and not _looks_failed(text)


def _own_errors(action: Action, indexes: list[int], text: str) -> bool:
    """Did one of these programs complain in its own name (`grep: x: No such file`), and print nothing else?"""
    lines = [line for line in text.split("\n") if line.strip()]
    names = tuple(f"{program(action.parts[i])}: " for i in indexes)
    return (bool(lines) and all(line.startswith(names) for line in lines)) or _shell_error(text) != ""


def _looks_failed(text: str) -> bool:
    last = " ".join(tail_lines(text, 3)).lower()
    return any(
        m in last for m in ("error", "fail", "fatal", "not found", "no such", "cannot", "denied", "traceback", "***", "panic")
    )


def _shell_error(text: str) -> str:
    """The name a shell could not run, "" when there is no such complaint."""
    if "not found" not in text and "o such file" not in text:
        return ""
    m = rx(
        r"^(?:\S*sh: |\(eval\):|\S+: )?(?:line )?(?:\d+: )?"
        r"(?:(\S+): command not found|command not found: (\S+)|no such file or directory: (\S+))$"
    ).search(text)
    m = m or rx(r"^\S*sh:\d+: (?:command not found|no such file or directory): (\S+)").search(text)
    m = m or rx(r"^\S*sh: (?:line )?\d+: (\S+): (?:command )?not found").search(text)
    return next((g for g in m.groups() if g), "") if m else ""


def _blamed(action: Action, text: str) -> int:
    """Index of the only part that the output names as failing, -1 when none or several could be."""
    named = _shell_error(text)
    parts = [(i, p, program(p)) for i, p in enumerate(action.parts) if not p.trivial]
    if named:
        hits = [i for i, p, name in parts if name == basename(named).lower() or p.text.split()[:1] == [named]]
        if len(hits) == 1:
            return hits[0]
    hits = [i for i, _, name in parts if name and rx(r"^(?:\S*/)?" + _escape(name) + r": \S").search(text)] if text else []
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


def _task_named(text: str) -> str:
    """The task or script that a runner says has failed, "" when it names none."""
    m = rx(
        r"^\[([\w-]+)[^\]]*\] ERROR task failed|^error: script \"([^\"]+)\" exited|Lifecycle script `([^`]+)` failed"
        r"|^g?make(?:\[\d+\])?: \*\*\* \[(?:[^\]]*: )?([^\]\s]+)\] Error|^error: Recipe `([^`]+)` failed"
    ).search(text)
    return next((g for g in m.groups() if g), "") if m else ""


def _escape(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "\\" + c for c in name)


def _culprit(action: Action, exit_code: int | None, text: str) -> int:
    """Index of the part that failed, -1 when it cannot be told."""
    real = [i for i, p in enumerate(action.parts) if not p.trivial]
    if len(action.parts) == 1:
        return 0
    if len(real) == 1:
        return real[0]
    if exit_code not in (None, 0):
        group = [i for i in _last_group(action) if not action.parts[i].trivial]
        if len(group) == 1:
            return group[0]
        blamed = _blamed(action, text)
        # In `a && b` a blamed part outside the group that gave the exit code only made noise.
        if blamed in group:
            return blamed
        rest = [i for i in group if not _is_benign(action, i, exit_code or 0)]
        return rest[0] if len(rest) == 1 and exit_code == 1 else -1
    return _blamed(action, text)


def _hidden(action: Action, text: str) -> int | None:
    """Index of the part whose failure the exit code hides (-1: some part), None when the output tells of none."""
    if not text.strip():
        return None
    real = [i for i, p in enumerate(action.parts) if not p.trivial]
    telling = [i for i in real if not quotes(program(action.parts[i]), subcommand(action.parts[i]))]
    named = _shell_error(text)
    if named:
        for i in real:
            words = action.parts[i].text.split()
            if program(action.parts[i]) == basename(named).lower() and (len(real) == 1 or _mostly_errors(text)) and words:
                return i
    if len(real) == 1 and _only_complaint(action, real[0], text):
        return real[0]
    if not telling:
        return None
    if len(telling) < len(real):
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
    return _blamed(action, text)


def _mostly_errors(text: str) -> bool:
    return len([line for line in text.split("\n") if line.strip()]) <= 3


def _only_complaint(action: Action, index: int, text: str) -> bool:
    """Is all that was printed one short complaint in the program's own name, as after `| head` or `|| true`?"""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or len(lines) > 6:
        return False
    first = lines[0]
    name = program(action.parts[index])
    if name and all(line.startswith(f"{name}: ") for line in lines):
        return bool(
            rx(r"[Nn]o such|not found|cannot|can't|[Uu]nknown|[Uu]nrecognized|invalid|denied|failed|not a ").search(first)
        )
    return (first.startswith("fatal: ") and name == "git") or (failures.misused(first) and not quotes(name, ""))

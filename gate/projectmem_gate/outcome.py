"""What became of a tool call: decided by outcome, not by exit code alone.

Refusals, interrupts and cancelled siblings are not failures; neither is the exit 1 of a search that found nothing. A failure
that a pipe, `|| true` or a later command hides is one, where the program's own output says so.
"""

from __future__ import annotations

from projectmem_gate import failures, history, signature
from projectmem_gate.benign import is_benign, last_group
from projectmem_gate.blame import blamed, culprit, filter_failed, hidden, shell_error, shell_refused, wrapper_missing
from projectmem_gate.lines import clean, names, program, rx, subcommand, tail_lines
from projectmem_gate.model import CANCELLED, FAILED, INTERRUPTED, OK, REJECTED, UNKNOWN, Outcome
from projectmem_gate.telling import quotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

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
_MARKS = tuple(mark for mark, _ in _STARTS)
_EDIT_FAILED = (
    "String to replace not found", "apply_patch verification failed", "File has not been read yet", "File has been modified",
    "File has been unexpectedly modified", "Your proposed edit has introduced", "Error: ", "error: ", "InputValidationError",
    "File does not exist", "Path does not exist", "No changes to make", "Script failed", "No replacement was performed",
    "Failed to edit", "oldString not found", "Found multiple matches", "You must read", "Could not find oldString",
    "No changes to apply", "Multiple occurrences", "The SEARCH block", "Failed to apply", "<error>",
)  # fmt: skip

_SIGPIPE = 141
EDITS = ("edit", "write", "patch")
# Tools that wait for or read from a command started earlier: its end is not theirs.
_LOOKS_ON = names("write_stdin read_bash stop_bash BashOutput KillShell KillBash TaskOutput TaskStop wait_agent read_terminal")


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
        return _failed(action, exit_code, text, culprit(action, exit_code, text), "timeout")
    if action.kind != "sh":
        if action.tool in _LOOKS_ON:
            return Outcome(UNKNOWN if is_error else OK, exit_code)
        bad = is_error if is_error is not None else _tool_failed(action, text)
        if not bad and is_error is False and action.kind in ("edit", "patch"):
            bad = text.startswith(("apply_patch verification failed", "Script failed"))
        if not bad:
            return Outcome(OK, exit_code)
        # An edit that does not fit fails as it was worded, not as a change: no part of it is to blame.
        return _failed(action, exit_code, text, -1 if action.kind in EDITS or len(action.parts) > 1 else 0, error_kind)
    if filter_failed(action, text) or wrapper_missing(action, text):
        return Outcome(UNKNOWN, exit_code)
    if exit_code == 1 and _only_asked(action):
        exit_code = 0  # `make > log 2>&1; grep FAIL log`: it says nothing about the command before it
    if exit_code in (None, 0):
        if is_error and exit_code is None:
            return _failed(action, exit_code, text, culprit(action, exit_code, text), error_kind)
        masked = hidden(action, text)
        if masked is None:
            return Outcome(OK if exit_code == 0 or is_error is False or text.strip() else UNKNOWN, exit_code)
        return _failed(action, exit_code, text, masked, error_kind)
    if not shell_refused(text) and (exit_code == _SIGPIPE or _answered(action, exit_code, text)):
        return Outcome(OK, exit_code)
    return _failed(action, exit_code, text, culprit(action, exit_code, text), error_kind)


def covers_exit(action: Action, index: int = -1) -> bool:
    """Is the exit code of a part (of any, for -1) not the call's: behind a filter, or before `;`, `||`, `|` or `&`?"""
    if action.kind != "sh":
        return False
    indexes = range(len(action.parts)) if index < 0 else (index,)
    return any("|" in action.parts[i].variant or any(join != "&&" for join in action.joins[i:]) for i in indexes)


def may_hide(action: Action, outcome: Outcome, output: str) -> bool:
    """Is there anything for which a failure on record should be looked for (`again`)?"""
    if outcome.outcome != OK or not covers_exit(action):
        return False
    text = clean(output)
    return _looks_failed(text, len(text))


def again(action: Action, outcome: Outcome, output: str, entries: Mapping[str, Sequence[Mapping[str, Any]]]) -> Outcome:
    """`outcome`, or the failure it hides: a part whose exit code is covered printed the very error that is on record for it.

    entries  key -> history entries of the action's keys. Without this a failing build behind `| tail` would clear its record.
    """
    if not entries or not may_hide(action, outcome, output):
        return outcome
    text = clean(output)
    for key in action.keys:
        last = max((e for e in entries.get(key, ()) if e.get("t") in ("fail", "ok")), key=history.order, default={})
        index = next((i for i, part in enumerate(action.parts) if part.key == key), -1)
        if last.get("t") != "fail" or not covers_exit(action, index) or (index >= 0 and _only_shows(action, index)):
            continue
        known = last.get("sig") or ""
        if _looks_failed(known) and signature.signature(last.get("cls") or "", text) == known:
            return Outcome(FAILED, outcome.exit_code, last.get("cls") or "unknown", known, signature.excerpt(text), index)
    return outcome


def _failed(action: Action, exit_code: int | None, text: str, index: int, error_kind: str) -> Outcome:
    part = action.parts[index] if 0 <= index < len(action.parts) else None
    cls = failures.classify(action, text, exit_code, part, error_kind)
    return Outcome(FAILED, exit_code, cls, signature.signature(cls, text), signature.excerpt(text), index)


def _refused(text: str, is_error: bool | None, error_kind: str, interrupted: bool) -> str:
    if error_kind in _NOT_FAILURES:
        return _NOT_FAILURES[error_kind]
    if interrupted:
        return INTERRUPTED
    if is_error is False:
        return ""
    start = text[:400].lstrip().removeprefix("<tool_use_error>")
    if start.startswith(_MARKS):
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
    if exit_code is None and is_error is not False:
        said = _said_code(text)
        if said is not None:
            return said, text
    return exit_code, text


def _said_code(text: str) -> int | None:
    """The exit code that a harness writes around the output: Gemini and Qwen, Codex, OpenHands, Copilot, Droid, Cline."""
    if "xit code" not in text and "xit Code" not in text and "exited with code" not in text:
        return None
    edges = "\n".join([*text[:400].split("\n")[:6], *tail_lines(text[-600:], 5)])
    m = rx(
        r"^(?:Exit [Cc]ode: (\d{1,3})"
        r"|(?:\[|<|\()?(?:The command completed with|Command (?:finished|exited|failed) with|exited with)"
        r" exit code:? (\d{1,3})\b.*|\[?Process exited with code (\d{1,3})\b.*)$"
    ).search(edges)
    return int(next(g for g in m.groups() if g)) if m else None


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
    return action.kind in EDITS and text.lstrip().startswith(_EDIT_FAILED)


def _only_asked(action: Action) -> bool:
    """Did a question of no weight give the exit code, while something of weight ran before it?"""
    group = last_group(action)
    if not all(action.parts[i].trivial and is_benign(action, i, 1) for i in group):
        return False
    return any(not part.trivial for part in action.parts)


def _only_shows(action: Action, index: int) -> bool:
    return quotes(program(action.parts[index]), subcommand(action.parts[index]))


def _answered(action: Action, exit_code: int, text: str) -> bool:
    """Is the exit code an answer of a search or a comparison?"""
    candidates = [i for i in last_group(action) if not action.parts[i].trivial]
    if not candidates and all(part.trivial for part in action.parts):
        candidates = last_group(action)  # a bare `test -f x`
    if not candidates:
        return False
    if exit_code in (1, 2) and not text.strip() and all(_only_shows(action, i) for i in candidates):
        return True  # a dropped filter found nothing, or the complaint was silenced: it was only a question
    if exit_code == 1 and text.startswith("no pull requests found for branch") and len(candidates) == 1:
        return True  # `gh pr view` was asked whether there is one
    if exit_code == 123 and not text.strip() and any(" xargs" in action.parts[i].text.partition("  #")[2] for i in candidates):
        return True  # `rg -l x | xargs ls`: nothing was found, and nobody complained
    answering = [i for i in candidates if is_benign(action, i, exit_code)]
    if not answering:
        return False
    if len(answering) == len(candidates):
        return not _own_errors(action, answering, text)
    # Others of the chain could have failed: then they would have said so.
    others = [i for i in candidates if i not in answering]
    said = blamed(action, text)
    return said not in others and not _looks_failed(text) and not _complains(action, others, text)


def _complains(action: Action, indexes: list[int], text: str) -> bool:
    """Does one of these programs complain in its own name, in the way of its kind (`sed: 1: "x": command expected`)?"""
    return any(
        name and (text.startswith(f"{name}: ") or f"\n{name}: " in text) for name in (program(action.parts[i]) for i in indexes)
    )


def _own_errors(action: Action, indexes: list[int], text: str) -> bool:
    """Did one of these programs complain in its own name (`grep: x: No such file`), and print nothing else?"""
    lines = [line for line in text.split("\n") if line.strip()]
    own = tuple(f"{program(action.parts[i])}: " for i in indexes)
    unreached = "Cannot connect to the Docker daemon" in text or "Cannot connect to Podman" in text
    return (bool(lines) and all(line.startswith(own) for line in lines)) or shell_error(text) != "" or unreached


def _looks_failed(text: str, lines: int = 3) -> bool:
    if lines >= len(text):  # all of them: a word is looked for as the text stands
        low = text.lower()
        if any(map(low.__contains__, _WORDS_OF_FAILURE)):
            return True
        if "found" not in low and "such" not in low:
            return False
    last = " ".join(tail_lines(text, lines)).lower()
    return any(map(last.__contains__, (*_WORDS_OF_FAILURE, "not found", "no such")))


_WORDS_OF_FAILURE = ("error", "fail", "fatal", "cannot", "denied", "traceback", "***", "panic")

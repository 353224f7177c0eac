"""What the agent reads: at most about 120 tokens, everything recorded fenced as data, never as instruction."""

from __future__ import annotations

from projectmem_gate.history import KEEP
from projectmem_gate.spans import ago, count, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from projectmem_gate.decide import Finding
    from projectmem_gate.history import Record

MAX_CHARS = 580
# Characters of the action, the signature, the remedy and each actor: what they get where all fits, and where it does not.
_ROOMY, _TIGHT = (70, 130, 80, 24), (44, 64, 44, 16)
_PATTERN, _HUMAN = 70, 160
ID_CHARS = 18  # of a UUIDv7: the millisecond and 12 bits more; the first 8 alone are shared by all events of a minute

REFUSED_ONCE = "Refused once; repeat the call unchanged if you mean it."
PERSON_ASKED = "A person is asked whether it may run."
DENIED = "Denied: the call was not run, and the same call will be denied again."


def render(finding: Finding, by: str, remedy: Mapping[str, str], now: int) -> str:
    """The text for one objection. `by` answers an ask; `remedy` is {"id", "text"} or {}; with "how": "after" it came first."""
    record = finding.record
    text = ""
    for room in (_ROOMY, _TIGHT):
        lines = _human(finding) if record is None else _recorded(finding, record, remedy, now, room)
        if finding.verdict == "ask":
            lines.append(REFUSED_ONCE if by == "agent" else PERSON_ASKED)
        elif finding.verdict == "deny":
            lines.append(DENIED)
        text = "\n".join(lines)
        if len(text) <= MAX_CHARS:
            break
    return text[:MAX_CHARS]


def told_afterwards(text: str) -> str:
    """A reason that is read after the call: the gate stopped nothing, so it says nothing of that."""
    return text.removesuffix(REFUSED_ONCE).removesuffix(PERSON_ASKED).removesuffix(DENIED).rstrip("\n")


def _human(finding: Finding) -> list[str]:
    """Of a rule, a label or a decision: what it covers and why, what to do instead, how strongly it stands, and its id."""
    human = finding.human or {}
    why = fence(str(human.get("reason") or ""), _HUMAN)
    origin = human.get("origin", "human")
    decided = human.get("label") == "rule" and why
    if decided:
        who = {"human": "a person decided", "elsewhere": "decided on another machine"}.get(str(origin), "an agent noted")
        lines = [f"projectmem: {who}: {why}"]
    else:
        what = "a decision" if human.get("label") == "rule" else finding.rule.replace(".", " ", 1)
        text = f"projectmem: {what} covers `{fence(str(human.get('pattern') or ''), _PATTERN)}`"
        lines = [f"{text}: {why}" if why else f"{text}."]
    instead = human.get("instead")
    if isinstance(instead, str) and instead:
        lines.append(f"Use `{fence(instead, _PATTERN)}` instead.")
    held = fence(str(human.get("held") or ""), _HUMAN)
    if origin == "elsewhere":
        stands = f"A rule, {held}."
    elif origin != "human":
        stands = "It only warns until a person confirms it." if decided else "Noted by an agent: it only warns."
    elif held:
        stands = f"A person's rule, {held}."
    else:
        stands = "" if decided else "A person's rule: it stands until they clear it."
    more = f"`projectmem explain {short(str(human['id']))}`" if human.get("id") else ""
    lines.append(f"{stands} {more}".strip())
    return [line for line in lines if line]


def _recorded(
    finding: Finding, record: Record, remedy: Mapping[str, str], now: int, room: tuple[int, int, int, int]
) -> list[str]:
    if record.fix:
        return _unmended(finding, record, now, room)
    action, signature, remedied, actor = room
    more = " or more" * (finding.identical >= KEEP)  # that many outcomes are kept of an action
    times = f", {count(finding.identical, 'time')}{more} in a row" if finding.identical > 1 else ""
    code = [f"exit {record.exit}" if record.exit else "exit 0 hides it"] if record.exit is not None else []
    silent = record.sig == f"{record.cls} without output"  # the signature of what printed nothing
    code += [record.cls] if record.cls != "unknown" or not code else []
    who = _who(record, actor)
    when = f"{ago(now - record.at)}{f' ({who})' if who else ''}{times}"
    lines = [
        f"projectmem: `{fence(said(record.text), action)}` failed {when}: {', '.join(code)}{'; it printed nothing' * silent}."
    ]
    if record.sig and not silent:
        lines.append(f"Error, quoted as data: <<{fence(readable(record.sig), signature)}>>")
    lines.append(_changed(finding))
    if remedy:
        how = "It worked before, after" if remedy.get("how") == "after" else "What worked instead:"
        lines.append(f"{how} `{fence(remedy['text'], remedied)}` ({short(remedy['id'])}).")
    end = (
        f"Lapses {within(finding.expires_at - now)} or when it succeeds."
        if finding.expires_at
        else "Pinned: stands until it succeeds."
    )
    lines.append(f"{end} Wrong? `projectmem dispute {short(record.id)}`")
    return lines


def _unmended(finding: Finding, record: Record, now: int, room: tuple[int, int, int, int]) -> list[str]:
    """Of a failed fix: which failure it did not mend, how often and when, by which verifier, and the events that show it."""
    action, signature, _, _ = room
    fix = record.fix
    edit, run = fence(fix["path"], action), fence(said(record.text), action)
    when, error = ago(now - record.at), f"Error, quoted as data: <<{fence(readable(record.sig), signature)}>>"
    if fix["times"]:
        often = "" if fix["times"] == 1 else f" {fix['times']} times, last"
        shown = ", ".join(short(id) for id in fix["runs"][-2:])
        lines = [f"projectmem: this fix was tried and failed: this edit of `{edit}` did not mend `{run}`{often} {when}.", error]
        lines.append(f"Verifier: {fence(fix['verifier'], 24)} failed the same after it ({shown}){_taken_back(fix)}.")
    else:
        lines = [
            f"projectmem: this fix was tried: this edit of `{edit}` was made and taken back {when}, and `{run}` still fails.",
            error,
        ]
        lines.append("Verifier: none ran between.")
    if finding.state == "unknown":
        lines.append(f"Not known whether that still holds ({finding.why}).")
    lines.append(f"Lapses {within(finding.expires_at - now)} or when it passes. Wrong? `projectmem dispute {short(record.id)}`")
    return lines


def said(text: str) -> str:
    """A recorded action as one would type it: without the files that it writes first, and `xargs` in front."""
    parts = text.split("; ")
    kept = [p for p in parts if not (p.startswith("cat > ") and _is_digest(p.rpartition(" <")[2].lstrip("<")))]
    text = "; ".join(kept) if kept else text
    plain, mark, notes = text.partition("  # ")
    if not mark or "  # " in notes:
        return text
    return _placed(plain, notes.split(", ")) if not any(join in plain for join in _JOINS) else f"{plain} ({notes})"


_JOINS = (" && ", " || ", "; ", " | ", " & ")


def _placed(plain: str, notes: list[str]) -> str:
    """A command with where and in what it runs, as one would type that: `cd web && npm test`, `ssh host 'make'`."""
    folder = notes[0][3:] if notes[0][:3] == "in " and "?" not in notes[0] else ""
    rest = [note for note in notes if note[:3] != "in "]
    if rest == ["xargs"]:
        plain, rest = f"xargs {plain}", []
    if folder == "~" and any(note[:4] == "ssh " for note in rest):
        folder = ""  # where one is after `ssh`
    if folder:
        plain = f"cd {folder} && {plain}"
    if len(rest) == 1 and rest[0][:4] == "ssh " and "'" not in plain:
        return f"{rest[0]} '{plain}'"
    return f"{plain} ({', '.join(rest)})" if rest else plain


def bare(signature: str) -> str:
    """A signature without the digest that keeps it apart from others of the same words: it says nothing to a reader."""
    text, mark, digest = signature.rpartition(" #")
    return text if mark and _is_digest(digest) else signature


def readable(signature: str) -> str:
    """A signature as one would read it: what stands for a number, a time or a temporary name looks like no tag and no fence."""
    text = bare(signature)
    if "<" in text:
        for mark, word in _SHOWN:
            text = text.replace(mark, word)
    return text


_SHOWN = (("<n>", "N"), ("<t>", "N"), *((f"<{what}>", f"[{what}]") for what in ("tmp", "time", "hex", "id", "pod")))


def _is_digest(word: str) -> bool:
    return len(word) == 8 and all(c in "0123456789abcdef" for c in word)


def _taken_back(fix: Mapping[str, Any]) -> str:
    return "; it was taken back since" if fix["undone"] else ""


def _changed(finding: Finding) -> str:
    if finding.state == "unknown":
        return f"Not known whether that still holds ({finding.why})."
    note = {
        "repeat.elsewhere": " Seen by another machine, not by this one.",
        "repeat.flaky": " It fails now and then: a re-run may pass.",
        "repeat.claimed": " Reported, not observed here.",
    }
    why = finding.why[:1].upper() + finding.why[1:]
    return why + "." + note.get(finding.rule, "")


def _who(record: Record, limit: int) -> str:
    names = list(dict.fromkeys(b[1] or b[0] for b in record.by if b[1] or b[0]))
    return ", ".join(fence(n, limit) for n in names[:2])


def short(id: str) -> str:
    """A prefix of an event id that names one event."""
    return fence(id, ID_CHARS + 3)[:ID_CHARS]


def fence(text: str, limit: int) -> str:
    """One line of at most `limit` characters that cannot end its fence, nor the tags that a harness wraps it in: no control
    characters, backticks, `>>` or `</`."""
    flat = text[: limit * 4]
    if not flat.isprintable():
        flat = "".join(c if c.isprintable() else " " for c in flat)
    while ">>" in flat or "<<" in flat:
        flat = flat.replace("<<", "<").replace(">>", ">")
    flat = flat.replace("</", "< /").replace("<system-", "< system-")
    flat = " ".join(flat.replace("`", "'").split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."

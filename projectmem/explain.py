"""Explains one event to somebody who has never seen the code: what failed, the evidence, what the gate makes of it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from projectmem import logview, output
from projectmem.failures import Standing, disk_of, standing
from projectmem.lookup import data_of, find_one, is_failure, lines_with, order
from projectmem.replay import action_of

if TYPE_CHECKING:
    from projectmem.place import Place

Event = dict[str, Any]
RELATED_MAX = 8

MEANING = {
    "allow": "says nothing: the call goes through",
    "warn": "lets the call run and tells the agent about the failure along with the result",
    "ask": "refuses the call once, with the reason; the same call repeated on purpose passes",
    "deny": "refuses the call until the record is cleared",
}
RULES = {
    "repeat": "the same action failed, and nothing that could mend it has changed",
    "repeat.identical": "the same action failed in the same way several times in a row with nothing changed",
    "repeat.costly": "the same action failed, and another failure would cost far more than one turn",
    "repeat.denied": "the same action failed in the same way so often that the policy denies it",
    "repeat.unknown": "the same action failed; whether what caused it has changed cannot be told",
    "repeat.flaky": "the same action fails now and then with nothing changed",
    "repeat.claimed": "the failure was reported or imported, not seen by the hook",
    "related": "the same work failed under another launcher, because something was missing",
    "fix.failed": "this edit was made before, and the verifier failed the same after it",
    "fix.undone": "this edit was made before and taken back, and the failure it was for still stands",
    "override": "the agent was asked, and repeated the call on purpose",
    "repair": "the command repairs projectmem itself, and is never stood in the way of",
    "human.deny": "a person labelled it as denied",
}
RETRY = {
    "command-not-found": "an install, or a change of the PATH",
    "missing-dependency": "an install, or a changed lock file or manifest",
    "usage": "a change of a file that it names; nothing else: the command itself is wrong",
    "auth": "a login or changed credentials",
    "protected-resource": "a login or another branch",
    "network": "some time: it counts only for a short cool-down",
    "lock": "some time, or the removal of the lock",
    "edit-mismatch": "a change of the file, or reading it again",
}
CHANGES = {
    "any": "ran",
    "edit": "changed",
    "read": "read",
    "install": "installed with",
    "login": "logged in with",
    "checkout": "checked out",
    "env": "environment",
    "service": "service",
}
RETRY_DEFAULT = "any relevant change: of the files involved, HEAD, the dependencies or the environment"


def explain(place: Place, id: str, now: int) -> str:
    """The explanation as plain text, escaped for a terminal. `id` is a whole id or enough of one; now in microseconds.

    Raises NotFoundError, BadInputError, LogError, ProjectionError.
    """
    return "\n".join(_explained(place, find_one(place, id), now))


def explain_data(place: Place, id: str, now: int) -> dict[str, Any]:
    """The same as JSON data: the event, and for a failure what the gate makes of it now and what is related."""
    event = find_one(place, id)
    if not is_failure(event):
        return {"event": event}
    row = _standing(place, event, now)
    return {"event": event, "now": row.to_data() if row else None, "related": _related(place, event)}


def _explained(place: Place, event: Event, now: int) -> list[str]:
    if is_failure(event):
        return _failure(place, event, now)
    if event["kind"] == "action.proposed" and data_of(event):
        return _decision(event)
    if event["kind"] == "action.finished" and data_of(event):
        return [f"Call {event['id']}: {event['data'].get('outcome')}", "", *logview.full(event)]
    if "tombstone" in event:
        return [f"Event {event['id']} ({output.safe(event['kind'])}) was erased on request; nothing of it is kept but its place."]
    return [f"Event {event['id']}: {output.safe(logview.about(event), limit=300)}", "", *logview.full(event)]


def _standing(place: Place, event: Event, now: int) -> Standing | None:
    from projectmem_gate import history

    from projectmem.state import policy_of, reading

    data = event["data"]
    try:
        action, key = action_of(data), data.get("failed_key") or data["key"]
    except (KeyError, TypeError):  # not written by this program: nothing can be asked about it
        return None
    with reading(place) as state:
        record = history.fold(key, state.entries([key]).get(key, []), now)
        if record is None:
            return None
        return standing(state, record, action, disk_of(place), policy_of(state), now)


def _failure(place: Place, event: Event, now: int) -> list[str]:
    row = _standing(place, event, now)
    lines = [f"Failure {event['id']}", "", *_what(event, now)]
    if row is not None:
        lines += ["", *_now(row, now), "", *_fresh(row, now), "", *_history(row, event, now)]
    related = _related(place, event)
    if related:
        lines += ["", "Related"] + [f"  {logview.line(other, output.Paint(False))}" for other in related]
    return [*lines, "", *_hints(row, event)]


def _what(event: Event, now: int) -> list[str]:
    data, actor = event["data"], event.get("actor") or {}
    who = ", ".join(output.safe(actor[n]) for n in ("harness", "model", "agent") if actor.get(n)) or "unknown"
    took = f", after {output.span(data['duration_ms'] * 1000)}" if data.get("duration_ms") else ""
    code = f"exit {data['exit_code']}" if data.get("exit_code") is not None else "no exit code"
    seen = {"observed": "seen by the hook", "import": "imported", "human": "recorded by a person"}
    origin = seen.get(actor.get("origin", ""), "reported by an agent")
    lines = [
        "What failed",
        f"  {output.safe(data.get('text', ''), limit=400)}",
        f"  in {output.safe(data.get('cwd', '.'))} with the tool {output.safe(data.get('tool', '?'))}, {code}{took}",
        f"  {output.when(event['at'])} ({output.ago(event['at'], now)}), by {who}, "
        f"session {output.safe(actor.get('session') or '?')}",
    ]
    culprit = next((p for p in data.get("parts") or [] if p.get("key") == data.get("failed_key")), None)
    if culprit and len(data["parts"]) > 1:
        lines.append(f"  the part that failed: {output.safe(culprit.get('text', ''), limit=200)}")
    lines += ["", f"Evidence ({origin})", f"  class       {data.get('class') or 'unknown'}"]
    lines.append(f"  signature   {output.safe(data.get('signature') or 'none')}")
    lines += [f"  | {output.safe(text, limit=160)}" for text in _shown(data.get("excerpt", ""))[:10]]
    facts = data.get("facts") or {}
    if facts.get("head"):
        lines.append(
            f"  recorded with it: HEAD {output.safe(str(facts['head'])[:12])}, {_count(facts, 'files')}, {_count(facts, 'deps')}"
        )
    return lines


def _count(facts: dict[str, Any], name: str) -> str:
    paths = facts.get(name) or {}
    shown = ", ".join(output.safe(path) for path in list(paths)[:3])
    what = "files" if name == "files" else "manifests and lock files"
    return f"{len(paths)} {what}" + (f" ({shown}{', ...' if len(paths) > 3 else ''})" if paths else "")


def _chance(row: Standing, now: int) -> str:
    """What the chance is made of, "" for a failed fix, whose chance has another source."""
    if row.record.fix:
        return ""
    from projectmem_gate import odds

    retried = row.facts.get("retried")
    return f" ({odds.line(row.record, row.fresh, now, identical=row.record.identical, retried=retried)})"


def _now(row: Standing, now: int) -> list[str]:
    decision = row.decision
    lines = ["What the gate says now"]
    verdict = decision.verdict
    if verdict == "allow":
        lines.append(f"  nothing ({output.safe(row.silence(now))}): the call goes through")
    else:
        lines.append(f"  {verdict}: it {MEANING[verdict]}")
        lines.append(_rule(decision.rule))
    if decision.odds >= 0:
        lines.append(f"  chance that it fails again: {decision.odds // 10} %{_chance(row, now)}")
    if decision.expires_at:
        lines.append(
            f"  lapses {output.when(decision.expires_at)} ({output.ago(decision.expires_at, now)}), or as soon as it succeeds"
        )
    elif verdict != "allow":
        lines.append("  does not lapse by itself")
    if decision.reason:
        lines += ["  the agent reads:"] + [f"    > {output.safe(text)}" for text in _shown(decision.reason)]
    return lines


def _rule(name: str) -> str:
    if not name:
        return "  no rule objected"
    return f"  rule {output.safe(name)}: {RULES.get(name.removeprefix('observe.'), 'a rule that a person made')}"


def _fresh(row: Standing, now: int) -> list[str]:
    facts = row.facts
    words = {"same": "no: ", "changed": "it may have been mended: ", "unknown": "cannot be told: "}
    lines = ["Has anything changed since?", f"  {words.get(row.fresh, '')}{output.safe(row.why)}"]
    compared = [f"{name} {facts[name]}" for name in ("head", "deps", "files", "tools", "env") if facts.get(name)]
    lines.append(f"  compared with the recorded state: {output.safe(', '.join(compared) or 'nothing')}")
    if facts.get("changed_files"):
        lines.append(f"  changed files: {output.safe(', '.join(facts['changed_files']))}")
    # Those from before it are facts too: they say whether earlier failures were alike.
    for kind, subject, at in [change for change in facts.get("changes") or [] if change[2] > row.record.at][:6]:
        lines.append(f"  on record since: {CHANGES.get(kind, output.safe(kind))} {output.safe(subject)} ({output.ago(at, now)})")
    lines.append(f"  what makes a failure of this class worth trying again: {RETRY.get(row.record.cls, RETRY_DEFAULT)}")
    return lines


def _history(row: Standing, event: Event, now: int) -> list[str]:
    record = row.record
    lines = ["History of this action"]
    if record.state == "cleared":
        lines.append(f"  failed last {output.ago(record.at, now)}, and worked after that")
    else:
        times = f"{record.streak} time{'s' if record.streak != 1 else ''}"
        first = output.ago(record.first_at, now)
        lines.append(f"  failed {times} since it last worked, {record.identical} alike in a row; first {first}")
    if record.last_ok_at:
        lines.append(f"  last worked {output.ago(record.last_ok_at, now)} ({record.last_ok_id})")
    state = f"{record.state}{': ' + output.safe(record.state_why) if record.state_why else ''}"
    lines.append(f"  state: {state}{', by ' + output.safe(record.state_id) if record.state_id else ''}")
    if record.pinned:
        lines.append(f"  pinned by a person, to be reviewed {output.when(record.review_at)}")
    if record.flaky:
        lines.append("  it fails now and then with nothing changed")
    if record.id != event["id"]:
        lines.append(f"  a later failure of the same action speaks for it: {record.id}")
    remedy = row.facts.get("remedy")
    if isinstance(remedy, dict) and remedy.get("text"):
        lines.append(f"  what worked instead: {output.safe(remedy['text'])} ({output.safe(remedy.get('id', ''))})")
    return lines


def _related(place: Place, event: Event) -> list[Event]:
    """Decisions made because of the failure and everything recorded about it, oldest first, the newest RELATED_MAX."""
    id, found = event["id"], []
    for other in lines_with(place.home, id):
        data = data_of(other)
        decided = data.get("decision")
        decision = decided if isinstance(decided, dict) else {}
        names = [data.get("record"), data.get("target"), data.get("by_event"), *(decision.get("records") or ())]
        if id in names or id in (other.get("causes") or ()):
            found.append(other)
    return sorted(found, key=order)[-RELATED_MAX:]


def _hints(row: Standing | None, event: Event) -> list[str]:
    id = logview.short(event["id"])
    if row is not None and row.record.state == "open":
        return [f"Wrong, or no longer true? `projectmem dispute {id}`. Not now? `projectmem snooze {id} --for 2h`."]
    return [f"The gate does not object because of it. `projectmem log --kind action` shows what came after {id}."]


def _decision(event: Event) -> list[str]:
    data = event["data"]
    decision = data.get("decision") or {}
    verdict = decision.get("verdict", "?")
    lines = [
        f"Decision {event['id']} of {output.when(event['at'])}",
        "",
        "What was proposed",
        f"  {output.safe(data.get('text', ''), limit=400)}",
        f"  in {output.safe(data.get('cwd', '.'))} with the tool {output.safe(data.get('tool', '?'))}, "
        f"session {output.safe((data.get('session') or {}).get('session', '?'))}",
        "",
        "What the gate said",
        f"  {output.safe(verdict)}: it {MEANING.get(verdict, 'gave no verdict that is known here')}",
        _rule(str(decision.get("rule") or "")),
    ]
    if isinstance(decision.get("odds"), int) and decision["odds"] >= 0:
        lines.append(f"  chance that it fails again: {decision['odds'] // 10} %")
    if decision.get("expires_at"):
        lines.append(f"  to lapse {output.when(decision['expires_at'])}")
    if decision.get("reason"):
        lines += ["  the agent read:"] + [f"    > {output.safe(text)}" for text in _shown(decision["reason"])]
    lines += [
        "",
        "What it went by",
        f"  engine {output.safe(decision.get('engine', ''))}, policy {output.safe(str(data.get('policy'))[:16])}",
    ]
    lines.append(f"  the log as of {output.safe(output.to_json(data.get('as_of'), indent=None))}")
    for record, facts in (data.get("facts") or {}).items():
        known = {k: v for k, v in facts.items() if k not in ("changes", "remedy")}
        lines.append(f"  failure {output.safe(record)}: {output.safe(output.to_json(known, indent=None), limit=300)}")
    lines += ["", f"`projectmem explain {output.safe(decision.get('record', '') or 'ID')}` explains the failure behind it;"]
    return [*lines, "`projectmem replay --verify` recomputes this decision from what was recorded."]


def _shown(text: object) -> list[str]:
    """The lines of a text; secrets go before it is cut into lines (a private key is one only as a whole)."""
    return output.hide_secrets(str(text)).splitlines()

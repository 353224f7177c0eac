"""Explains one event to somebody who has never seen the code: what failed, the evidence, what the gate makes of it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from projectmem_gate.history import KEEP

from projectmem import explain_events, logview, moment, output, units
from projectmem.failures import Standing, disk_of, standing
from projectmem.lookup import SHORTEST, data_of, edit_keys, find_one, is_failure, lines_with, order
from projectmem.moment import CHANGES, MEANING, RETRY, RETRY_DEFAULT
from projectmem.moment import rule as _rule
from projectmem.moment import shown as _shown
from projectmem.recorded import action_of

if TYPE_CHECKING:
    from projectmem.place import Place

Event = dict[str, Any]
RELATED_MAX = 8


def explain(place: Place, id: str, now: int) -> str:
    """The explanation as plain text, escaped for a terminal. `id` is a whole id or enough of one; now in microseconds.

    Raises NotFoundError, BadInputError, LogError, ProjectionError.
    """
    return of_event(place, find_one(place, id), now)


def of_event(place: Place, event: Event, now: int) -> str:
    """The same of an event that was found already. Raises LogError, ProjectionError."""
    return "\n".join(_explained(place, event, now))


def explain_data(place: Place, id: str, now: int) -> dict[str, Any]:
    """The same as JSON data: the event, and for a failure what the gate makes of it now and what is related."""
    event = find_one(place, id)
    if not is_failure(event):
        return {"event": event}
    row, _ = _standing(place, event, now)
    return {"event": event, "now": row.to_data() if row else None, "related": _related(place, event)}


def _explained(place: Place, event: Event, now: int) -> list[str]:
    if is_failure(event):
        return _failure(place, event, now)
    if event["kind"] == "action.proposed" and data_of(event):
        return _decision(place, event)
    if event["kind"] == "label.set" and data_of(event):
        return _ruled(place, event, now)
    if event["kind"] == "action.finished" and data_of(event):
        return _call(place, event, now)
    if "tombstone" in event:
        by = str((event.get("tombstone") or {}).get("by") or "")
        request = next((e for e in lines_with(place.home, by) if e["id"] == by), None) if by else None
        return explain_events.erased(event, request, now)
    if event["kind"] == "erasure.requested" and data_of(event).get("ids"):
        gone = {str(id) for id in data_of(event)["ids"]}
        found = [e for e in lines_with(place.home, event["id"], *gone) if e["id"] in gone]
        return explain_events.told(event, [], now, erased=sorted(found, key=order))
    if event["kind"] == "recall.decided" and data_of(event):
        return explain_events.told(event, _related(place, event), now, listed=_recalled(place, data_of(event)))
    return explain_events.told(event, _related(place, event), now)


def _recalled(place: Place, data: dict[str, Any]) -> list[tuple[str, list[Event]]]:
    """What a recall showed and what it held back, as the events themselves, in its order. A session's start kept short ids."""
    named = [[str(one.get("id")) for one in data.get(name) or () if isinstance(one, dict)] for name in ("items", "below_floor")]
    named[0] += [str(id) for id in data.get("profile") or ()]
    wanted = [id for ids in named for id in ids if len(id) >= SHORTEST]
    found = {e["id"]: e for e in lines_with(place.home, *wanted)} if wanted else {}
    listed = [[next((e for e in found.values() if e["id"].endswith(id)), None) for id in ids] for ids in named]
    titles = ("Shown", "Looked at closely and held back")
    return [(title, [e for e in events if e is not None]) for title, events in zip(titles, listed, strict=True)]


def _call(place: Place, event: Event, now: int) -> list[str]:
    """A call that did not fail: what it was, by whom, and what names it; for an edit, what was said because of it."""
    data, actor = event["data"], event.get("actor") or {}
    who = ", ".join(output.safe(actor[n]) for n in ("harness", "model", "agent") if actor.get(n)) or "unknown"
    ended = {"ok": "went well"}.get(str(data.get("outcome")), f"ended as {output.safe(data.get('outcome'))}")
    lines = [
        f"Call {event['id']}",
        "",
        f"  {output.safe(data.get('text', ''), limit=400)}",
        f"  in {moment.folder(data.get('cwd'))} with the tool {output.safe(data.get('tool', '?'))}: it {ended}",
        f"  {output.when(event['at'])} ({output.ago(event['at'], now)}), by {who}, "
        f"session {output.safe(actor.get('session') or '?')}",
    ]
    related = _related(place, event)
    lines += ["", "Related", *(f"  {logview.line(other, output.Paint(False))}" for other in related)] if related else []
    id = logview.short(event["id"])
    if edit_keys(event):
        lines += [
            "",
            f"Named as a fix that failed, and wrong? `projectmem dispute {id}`.",
        ]
    return [*lines, "", f"The whole record: `projectmem explain {id} --json`."]


def _ruled(place: Place, event: Event, now: int) -> list[str]:
    """A label or a decision's clause: what it says and does, what it was made from, and how often it spoke."""
    from projectmem_projections.fold import fold_event

    from projectmem import rules
    from projectmem.hook.facts import Disk
    from projectmem.policies import in_force

    policy, _ = in_force(place)
    ((_, id, label),) = fold_event(event)
    if label.get("origin") == "human" and not Disk(place).own(event["stream"]):
        label = {**label, "origin": "elsewhere"}
    row = next((row for row in rules.rows(place, now, every=True) if row.event["id"] == id), None)
    lines = [f"Rule {id} of {output.when(event['at'])}", "", *moment.ruled(label, policy, now)]
    lines.append(f"State: {'in force' if row is None or row.state == 'in force' else output.safe(row.why)}")
    for made in event["data"].get("examples") or []:
        does = "covers" if made.get("covers") else "does not cover"
        source = f" ({output.safe(made['id'])})" if made.get("id") else ""
        lines.append(f"  made from: it {does} `{output.safe(made.get('text'), limit=120)}`{source}")
    past = event["data"].get("replay")
    if isinstance(past, dict):
        ids = ", ".join(output.safe(str(i)[:18]) for i in (past.get("ids") or [])[:5])
        since = output.when(past["since"]) if isinstance(past.get("since"), int) else "?"
        seen = units.count(past["seen"], "call") if isinstance(past.get("seen"), int) else "calls"
        lines.append(f"  tried on {seen} since {since}: {past.get('ok')} went well{f' ({ids})' if ids else ''}")
    spoken = [e for e in lines_with(place.home, id) if e["kind"] == "action.proposed"]
    own = [e for e in spoken if (data_of(e).get("decision") or {}).get("record") == id]
    lines += ["", f"It spoke {units.count(len(own), 'time')}"]
    lines += [f"  {logview.line(e, output.Paint(False))}" for e in own[-RELATED_MAX:]]
    return [
        *lines,
        "",
        f"`projectmem rule clear {logview.short(id)}` ends it, `projectmem rule confirm` renews it (both people only).",
    ]


def _standing(place: Place, event: Event, now: int) -> tuple[Standing | None, list[str]]:
    """(what the gate makes of a failure now, a line on why it does no more)."""
    from projectmem_gate import history
    from projectmem_gate.model import Session

    from projectmem.state import policy_of, reading
    from projectmem.why import stronger

    data = event["data"]
    try:
        action, key = action_of(data), data.get("failed_key") or data["key"]
    except (KeyError, TypeError):  # not written by this program: nothing can be asked about it
        return None, []
    with reading(place) as state:
        record = history.fold(key, state.entries([key]).get(key, []), now)
        if record is None:
            return None, []
        policy = policy_of(state)
        row = standing(state, record, action, disk_of(place, state), policy, now)
    more = ""
    if record.state == "open" and row.decision.record in ("", record.id) and row.decision.verdict != "deny":
        more = stronger(row.decision, action, record, row.facts, Session(""), policy, now)
    return row, [f"  not more: {more}"] * bool(more)


def _failure(place: Place, event: Event, now: int) -> list[str]:
    row, more = _standing(place, event, now)
    lines = [f"Failure {event['id']}", "", *_what(event, now)]
    if row is not None:
        lines += ["", *_now(row, now), *more, "", *_fresh(row, now), "", *_history(row, event, now)]
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
        f"  in {moment.folder(data.get('cwd'))} with the tool {output.safe(data.get('tool', '?'))}, {code}{took}",
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
    what = ("file", "files") if name == "files" else ("manifest or lock file", "manifests and lock files")
    return units.count(len(paths), what[0], what[1]) + (f" ({shown}{', ...' if len(paths) > 3 else ''})" if paths else "")


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
        lines.append(f"  how likely it is to fail again: {decision.odds // 10} %{_chance(row, now)}")
    if decision.expires_at:
        lines.append(
            f"  lapses {output.when(decision.expires_at)} ({output.ago(decision.expires_at, now)}), or as soon as it succeeds"
        )
    elif verdict != "allow":
        lines.append("  does not lapse by itself")
    if decision.reason:
        lines += ["  the agent reads:"] + [f"    > {output.safe(text)}" for text in _shown(decision.reason)]
    return lines


def _fresh(row: Standing, now: int) -> list[str]:
    facts = row.facts
    words = {"same": "no: ", "changed": "it may have been mended: ", "unknown": "cannot be told: "}
    lines = ["Has anything changed since?", f"  {words.get(row.fresh, '')}{output.safe(row.why)}"]
    names = {**moment.FACTS, "sources": "sources"}
    compared = [f"{said} {facts[name]}" for name, said in names.items() if facts.get(name)]
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
        times = units.count(record.streak, "time") + " or more" * (record.streak >= KEEP)
        first = output.ago(record.first_at, now)
        lines.append(f"  failed {times} since it last worked, {record.identical} alike in a row; first {first}")
    if record.last_ok_at:
        lines.append(f"  last worked {output.ago(record.last_ok_at, now)} ({record.last_ok_id})")
    why = "" if record.state_why == record.state else record.state_why
    state = f"{record.state}{': ' + output.safe(why) if why else ''}"
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
        names = [data.get(n) for n in ("record", "target", "by_event", "decision", "label_event", "supersedes")]
        names += decision.get("records") or ()
        if id in names or id in (other.get("causes") or ()):
            found.append(other)
    return sorted(found, key=order)[-RELATED_MAX:]


def _hints(row: Standing | None, event: Event) -> list[str]:
    id = logview.short(event["id"])
    if row is not None and row.record.state == "open":
        return [f"Wrong, or no longer true? `projectmem dispute {id}`. Not now? `projectmem snooze {id} --for 2h`."]
    return [f"The gate does not object because of it. `projectmem log --kind action` shows what came after {id}."]


def _decision(place: Place, event: Event) -> list[str]:
    """A decision on record: told from the state that it was made in, else from what was recorded with it alone."""
    from projectmem_gate.model import Decision, Session

    from projectmem.replay import known_policies

    data = event["data"]
    lines = [f"The gate's answer {event['id']} of {output.when(event['at'])}, session {_session(data)}", ""]
    try:
        recorded = data["decision"]
        decision = Decision(**{name: recorded[name] for name in Decision.__slots__ if name in recorded})
        session, now = Session(**data["session"]), data["now"]
        policy = known_policies(place)[data["policy"]]
        action, record, asks = _behind(place, data, decision)
        label = next((row for row in data.get("labels") or [] if decision.record and row.get("id") == decision.record), None)
        facts = (data.get("facts") or {}).get(decision.record) or {}
        lines += moment.told(action, decision, record, facts, session, policy, now, asks=asks, label=label)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # erased, or not written by this program
        lines += ["What was proposed", f"  {output.safe(data.get('text', ''), limit=400)}", ""]
        verdict = str((data.get("decision") or {}).get("verdict"))
        lines.append(
            f"The gate said {output.safe(verdict)}: it {moment.meaning(verdict)}. What it went by is no longer on record."
        )
    after = [e for e in lines_with(place.home, data["call"]) if _is_end(e, data)] if data.get("call") else []
    if after:
        lines += ["", "What became of the call", f"  {logview.line(after[-1], output.Paint(False))}"]
    id = logview.short(event["id"])
    return [
        *lines,
        "",
        f"`projectmem replay --verify` recomputes it from what was recorded; `projectmem explain {id} --json` has that.",
    ]


def _session(data: dict[str, Any]) -> str:
    return output.safe((data.get("session") or {}).get("session") or "?")


def _is_end(event: Event, data: dict[str, Any]) -> bool:
    ended = data_of(event)
    same = ended.get("call") == data["call"] and ended.get("input_sha") == data.get("input_sha")
    return event["kind"] == "action.finished" and same


def _behind(place: Place, data: dict[str, Any], decision: Any) -> tuple[Any, Any, list[Any]]:
    """(action, the record behind the decision or None, asks) as they were at that position of the log."""
    from projectmem.hook.judge import candidates, failed_fix
    from projectmem.state import folded

    action = action_of(data)
    state = folded(place.home)
    records, asks = candidates(state, tuple(data["keys"]), action.key, data["now"], data["as_of"])
    records += failed_fix(state, action, data["now"], data["as_of"])
    # A failed chain is remembered under two keys and one id: the whole call's goes first.
    found = sorted((r for r in records if r.id == decision.record), key=lambda r: r.key != action.key)
    return action, found[0] if found else None, asks

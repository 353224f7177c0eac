"""Decisions that a machine can check: propose a clause, try it on the past, make it a rule, list, confirm and end rules.

A rule is the decision it enforces (`decision.recorded`) and one `label.set` with what it covers, what it was made from, and
what it would have said in the past. The gate reads the latter and never the text.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from projectmem_logs.errors import SpooledError

from projectmem.errors import BadInputError, NotFoundError, ProjectmemError, RefusedError
from projectmem.lookup import data_of, find_one, lines_with
from projectmem.recorded import action_of

if TYPE_CHECKING:
    from projectmem_gate.clauses import Clause
    from projectmem_gate.model import Action

    from projectmem.place import Place

Event = dict[str, Any]
IDS_MAX = 10
EXAMPLES_MAX = 20


@dataclass(slots=True)
class Past:
    """What a clause would have said to the calls on record.

    seen         calls since `since`;  ok, failed  those that it covers, by how they ended;  ids  the newest that went well
    ever_ok      those that went well whenever it was;  as_of  the position of the log up to which it was read
    """

    since: int
    as_of: dict[str, int] = field(default_factory=dict)
    seen: int = 0
    ok: int = 0
    failed: int = 0
    ever_ok: int = 0
    ids: list[str] = field(default_factory=list)

    def to_data(self) -> dict[str, Any]:
        """As it is recorded with the rule."""
        return {name: getattr(self, name) for name in self.__slots__}


def label_of(clause: Clause) -> dict[str, Any]:
    """The clause as the matcher takes it."""
    return {"label": "rule", "target": clause.target, "pattern": clause.pattern, "instead": clause.instead}


def covers(label: Mapping[str, Any], action: Action) -> bool:
    """Whether the gate would object to the action because of it: its own decision, with nothing else on record."""
    from projectmem_gate.decide import decide
    from projectmem_gate.model import ALLOW, Session
    from projectmem_gate.policy import DEFAULT

    return decide(action, [], {}, Session(""), DEFAULT, 0, labels=[label]).verdict != ALLOW


def tried(events: Iterable[Event], label: Mapping[str, Any], since: int, until: Mapping[str, int] | None = None) -> Past:
    """What `label` would have said to the finished calls among `events`; with `until` ({stream: seq}) of those alone."""
    past, hits = Past(since), []
    for event in events:
        stream, seq = event["stream"], event["seq"]
        if until is not None and seq > until.get(stream, 0):
            continue
        past.as_of[stream] = max(seq, past.as_of.get(stream, 0))
        data = data_of(event)
        if event["kind"] != "action.finished" or not data:
            continue
        recent = event["at"] >= since
        past.seen += recent
        try:
            hit = covers(label, action_of(data))
        except (KeyError, TypeError, AttributeError, IndexError):  # not written by this program
            continue
        if not hit:
            continue
        if data.get("outcome") == "ok":
            past.ever_ok += 1
            if recent:
                past.ok += 1
                hits.append((event["at"], stream, seq, event["id"]))
        past.failed += recent and data.get("outcome") == "failed"
    past.as_of = dict(sorted(past.as_of.items() if until is None else until.items()))
    past.ids = [id for *_, id in sorted(hits, reverse=True)[:IDS_MAX]]
    return past


def past_of(place: Place, label: Mapping[str, Any], now: int) -> Past:
    """What the clause would have said to every call on record. Raises LogError."""
    from projectmem_logs.reader import read_events

    from projectmem import output
    from projectmem.policies import in_force

    policy, _ = in_force(place)
    return tried(output.progress(read_events(place.home), "trying it on the past"), label, now - policy.window_us)


def proposed(place: Place, text: str) -> Clause:
    """The clause that a decision's text says. Raises BadInputError that says why there is none."""
    from projectmem_gate.clauses import propose

    generated = marked_generated(place.root)
    clause, why = propose(text, generated)
    if clause is None and (quoted := _quoted(text)):
        clause, why = propose(quoted, generated)
    if clause is None:
        raise BadInputError(
            f"no rule can be read from `{text[:80]}`: {why}. Write a command in backticks (in single quotes for the shell), "
            "or say it with --path, --command or --tool"
        )
    return clause


def _quoted(text: str) -> str:
    """*Never run git push --force* with the command in backticks, where its first word is a program; "" for all else."""
    import re
    import shutil

    from projectmem_gate.clauses import is_known

    start = r"((?:do not|don't|never|must not) (?:run|execute|use) )"
    said = re.fullmatch(start + r"([a-z][\w.+-]*(?: [^\s`,;]+)*)", text.strip().rstrip(" .!"), re.IGNORECASE)
    if said is None:
        return ""
    words = said[2].split()
    plain = not any(word.lower() in _PROSE for word in words)
    return f"{said[1]}`{said[2]}`" if plain and (is_known(words[0]) or shutil.which(words[0])) else ""


# Words of a sentence that goes on after the command.
_PROSE = frozenset(
    "a an the and or nor if unless when while until before after only without on in at for to from with by here now as it".split()
)


def marked_generated(root: str) -> str:
    """The pattern of files that `.gitattributes` marks as generated, "" for none."""
    try:
        with open(os.path.join(root, ".gitattributes"), encoding="utf-8", errors="replace") as file:
            rows = [line.split() for line in file.read(100_000).splitlines() if not line.lstrip().startswith("#")]
    except OSError:
        return ""
    marks = {"linguist-generated", "linguist-generated=true"}
    return " | ".join(dict.fromkeys(row[0].removeprefix("/") for row in rows if len(row) > 1 and marks.intersection(row[1:])))[
        :400
    ]


def given(target: str, pattern: str, instead: str = "") -> Clause:
    """A clause as a person wrote it. Raises BadInputError for a pattern that covers everything, or its own alternative."""
    from projectmem_gate.clauses import Clause, canonical

    for one in (pattern, instead):
        if len(one) > 400 or (one and not all(piece.strip().strip("*/") for piece in one.split(" | "))):
            raise BadInputError(f"`{one[:60]}` matches everything, or is too long: name what is meant")
    if instead and target != "command":
        raise BadInputError("--instead belongs to --command: it names the command to use")
    if target == "command":
        pattern, instead = canonical(pattern), canonical(instead)
    if not pattern.strip():
        raise BadInputError("say what the rule covers: --path, --command or --tool with a pattern")
    return Clause(target, pattern, instead)


def examples(
    place: Place, clause: Clause, *, like: Sequence[str] = (), unlike: Sequence[str] = (), origin: str = ""
) -> list[dict[str, Any]]:
    """What the rule is made from, each tried: {id, text, covers}. Raises RefusedError for one that comes out otherwise.

    like, unlike   commands (or files, for a path) that it must and must not cover
    origin         id of the call that is the reason for it, "" for none
    """
    label = label_of(clause)
    found = [*((text, True) for text in like), *((text, False) for text in unlike), *clause.examples]
    rows = []
    for text, wanted in list(dict.fromkeys(found))[:EXAMPLES_MAX]:
        if covers(label, _example(place, clause.target, text)) != wanted:
            raise RefusedError(f"the rule {'does not cover' if wanted else 'covers'} its example `{text}`: {spelled(label)}")
        rows.append({"id": "", "text": text, "covers": wanted})
    if origin:
        event = find_one(place, origin)
        data = data_of(event)
        if event["kind"] not in ("action.finished", "action.proposed") or not data:
            raise BadInputError(f"{event['id']} is no call: a rule can be made from a call that was proposed or made")
        if not covers(label, action_of(data)):
            raise RefusedError(
                f"the rule does not cover the call it is made from, `{str(data.get('text'))[:80]}`: {spelled(label)}"
            )
        rows.append({"id": event["id"], "text": str(data.get("text"))[:200], "covers": True})
    return rows


def _example(place: Place, target: str, text: str) -> Action:
    from projectmem.check import action_for

    if target == "command":
        return action_for(place, "Bash", {"command": text}, place.root)
    if target == "tool":
        return action_for(place, text, {}, place.root)
    path = os.path.join(place.root, text)
    return action_for(place, "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, place.root)


def spelled(label: Mapping[str, Any]) -> str:
    """What a label covers, in words."""
    from projectmem import output

    what = {"path": "edits of", "command": "commands", "tool": "calls of"}.get(str(label.get("target")), "")
    instead = f", use `{output.safe(label['instead'])}`" if label.get("instead") else ""
    return f"{what} `{output.safe(label.get('pattern', ''))}`{instead}"


def add(
    place: Place,
    text: str,
    clause: Clause,
    past: Past,
    made_from: list[dict[str, Any]],
    *,
    effect: str,
    review_at: int,
    now: int,
    origin: str,
    actor: Mapping[str, str] | None = None,
    decision: str = "",
    replaces: str = "",
    notices: list[str] | None = None,
) -> list[Event]:
    """Record the decision `text` (unless `decision` names one on record) and its clause. The last event is the clause's.

    An agent's clause is written with the effect `warn`. `replaces` is the clause that it takes the place of.
    Raises KindError, LogError, RefusedError, ProjectmemError where only the decision could be kept.
    """
    from projectmem.record import write_all

    actions = [row["id"] for row in made_from if row["id"]]
    drafts: list[tuple[str, dict[str, Any], list[str]]] = []
    if not decision:
        decided = ("decision.recorded", {"title": text, "text": "", "supersedes": ""}, actions)
        try:
            decision = str(write_all(place, [decided], now=now, origin=origin, actor=actor, notices=notices)[-1]["id"])
        except SpooledError:
            raise ProjectmemError(
                "the log is busy: the decision is kept and recorded as soon as it is free, but no rule was made of it yet. "
                "`projectmem rule add --decision ID` does that; `projectmem log --kind decision.recorded` shows the id"
            ) from None
        now += 1  # so that the clause's id begins otherwise than its decision's: people name both by their beginnings
    if replaces:
        drafts.append(("label.cleared", {"label_event": replaces, "reason": "replaced by a newer rule"}, [replaces]))
    data = {
        **label_of(clause),
        "effect": effect if origin == "human" else "warn",
        "reason": text,
        "review_at": review_at,
        "decision": decision,
        "examples": made_from,
        "replay": past.to_data(),
    }
    drafts.append(("label.set", data, [decision, *actions, *([replaces] if replaces else [])]))
    return write_all(place, drafts, now=now, origin=origin, actor=actor, notices=notices)


@dataclass(slots=True)
class Row:
    """One label or decision's clause: its event, what it does now, and why no more; or why it ended."""

    event: Event
    does: str
    why: str
    state: str

    def to_data(self) -> dict[str, Any]:
        """The row as JSON data."""
        return {
            "id": self.event["id"],
            "state": self.state,
            "does": self.does,
            "why": self.why,
            "origin": self.event["actor"]["origin"],
            "at": self.event["at"],
            **data_of(self.event),
        }


def rows(place: Place, now: int, *, every: bool = False) -> list[Row]:
    """Labels and rules in force, oldest first; with `every` those that ended too. Raises LogError."""
    from projectmem_gate.rules import standing

    from projectmem.hook.facts import Disk
    from projectmem.hook.judge import labels_of
    from projectmem.state import policy_of, reading

    with reading(place) as state:
        live = {label["id"]: label for label in labels_of(state, Disk(place))}
        policy = policy_of(state)
    ends: dict[str, str] = {}
    events = []
    for event in lines_with(place.home, '"kind":"label.', '"kind":"decision.recorded"'):
        data = data_of(event)
        if event["kind"] == "label.set" and data:
            events.append(event)
        elif event["kind"] == "label.cleared":
            ends[str(data.get("label_event"))] = f"cleared by {event['id']}: {data.get('reason') or 'no reason given'}"
        elif event["kind"] == "decision.recorded" and data.get("supersedes"):
            ends[str(data["supersedes"])] = f"its decision was superseded by {event['id']}: {data.get('title')}"
    found = []
    for event in sorted(events, key=lambda e: (e["at"], e["stream"], e["seq"])):
        id, data = event["id"], event["data"]
        if id in live:
            does, why = standing(live[id], policy, now)
            found.append(Row(event, does, why, "in force"))
        elif every:
            found.append(Row(event, "silent", ends.get(id) or ends.get(str(data.get("decision"))) or "ended", "ended"))
    return found


def find_rule(place: Place, wanted: str) -> Event:
    """The one label or clause that `wanted` names: its id, or that of its decision. Raises NotFoundError, BadInputError."""
    event = find_one(place, wanted, lambda e: e["kind"] in ("label.set", "decision.recorded") and bool(data_of(e)), "rule")
    if event["kind"] == "label.set":
        return event
    ends = {str(data_of(e).get("label_event")) for e in lines_with(place.home, '"kind":"label.cleared"')}
    own = [
        e for e in lines_with(place.home, event["id"]) if e["kind"] == "label.set" and data_of(e).get("decision") == event["id"]
    ]
    live = [e for e in own if e["id"] not in ends]
    if not live:
        raise NotFoundError(f"decision {event['id']} has no rule: `projectmem rule add --decision {event['id']}` makes one")
    return live[-1]

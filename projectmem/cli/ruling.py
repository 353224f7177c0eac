"""`projectmem rule ...`: decisions that the gate checks. Add, try, list, confirm and clear them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from projectmem import caller, output, units
from projectmem.cli import common
from projectmem.cli.common import EXITS, Json, Root
from projectmem.errors import BadInputError, RefusedError
from projectmem.logview import short

if TYPE_CHECKING:
    from projectmem_gate.clauses import Clause

    from projectmem.place import Place
    from projectmem.rules import Past

app = common.group("Turn decisions into rules that the gate checks.", epilog=EXITS)

Text = Annotated[str, typer.Argument(help="The decision in one line, e.g. `use pnpm here`.", show_default=False)]
Path = Annotated[str, typer.Option("--path", metavar="PATTERN", help="Files it forbids to edit; ` | ` between several.")]
Command = Annotated[str, typer.Option("--command", metavar="PATTERN", help="Commands it forbids, e.g. `npm | yarn`.")]
Tool = Annotated[str, typer.Option("--tool", metavar="PATTERN", help="Tools it forbids, e.g. `mcp__prod__*`.")]
Instead = Annotated[str, typer.Option("--instead", metavar="COMMAND", help="With --command: what to use; never covered.")]
Effect = Annotated[str, typer.Option("--effect", help="warn | ask | deny")]
Id = Annotated[str, typer.Argument(help="Id of the rule or of its decision, or enough of it.", show_default=False)]
Review = Annotated[str, typer.Option("--review", metavar="WHEN", help="When to look at it again; past it, it only warns.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether the rule is what was meant.")]


def register(parent: typer.Typer) -> None:
    """Add the group to the application."""
    parent.add_typer(app, name="rule")


def _clause(place: Place, text: str, path: str, command: str, tool: str, instead: str) -> Clause:
    from projectmem import rules

    named = [(target, pattern) for target, pattern in (("path", path), ("command", command), ("tool", tool)) if pattern]
    if len(named) > 1:
        raise BadInputError("a rule is about one of --path, --command and --tool: add one for each")
    if named:
        return rules.given(*named[0], instead)
    if instead:
        raise BadInputError("--instead belongs to --command: say what it is to be used instead of")
    return rules.proposed(place, text)


def _shown(clause: Clause, past: Past, effect: str, held: str) -> None:
    """What is proposed, and what it would have said in the past."""
    from projectmem import rules

    common.say(f"the rule covers {rules.spelled(rules.label_of(clause))}")
    ended = f"{past.ok} that went well and {past.failed} that failed"
    common.say(f"of {units.count(past.seen, 'call')} on record since {output.when(past.since)} it would have objected to {ended}")
    if past.ids:
        common.say(f"  among them {', '.join(short(id) for id in past.ids[:5])} (`projectmem explain ID` shows one)")
    common.say(f"effect {effect}{held}")


def _held(place: Place, clause: Clause, past: Past, effect: str, review_at: int, now: int) -> str:
    """What follows the effect: why it will do less than asked for, or no more than that; "" where there is nothing to say."""
    from projectmem_gate.rules import standing

    from projectmem import rules
    from projectmem.policies import in_force

    policy, _ = in_force(place)
    label = {**rules.label_of(clause), "origin": caller.origin(), "effect": effect, "hits": past.ok, "review_at": review_at}
    does, why = standing(label, policy, now)
    if not why:
        return ""
    return f": {why}" if does == effect else f"; for now it {'denies' if does == 'deny' else does + 's'}: {why}"


@app.command(epilog=EXITS)
def add(
    text: Text = "",
    path: Path = "",
    command: Command = "",
    tool: Tool = "",
    instead: Instead = "",
    effect: Effect = "ask",
    example: Annotated[list[str] | None, typer.Option("--example", help="What it must cover (repeatable).")] = None,
    unlike: Annotated[list[str] | None, typer.Option("--unlike", help="What it must not cover (repeatable).")] = None,
    origin: Annotated[str, typer.Option("--from", metavar="ID", help="The call that is the reason for it.")] = "",
    decision: Annotated[str, typer.Option("--decision", metavar="ID", help="A decision that is on record already.")] = "",
    review: Review = "90d",
    yes: Yes = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Record a decision, and have the gate check it.

    What it covers is read from the text where that is plain (`use pnpm here`, `do not edit src/gen/`), else give it. It is
    tried on its examples and on every call on record first. A person's rule asks by default; an agent's only warns.
    """
    from projectmem import rules
    from projectmem.lookup import find_one

    place, now, who = common.open_place(root), common.now(), caller.origin()
    if effect not in ("warn", "ask", "deny"):
        raise BadInputError(f"`{effect}` is not an effect: give --effect warn, ask or deny")
    if decision:
        event = find_one(place, decision, lambda e: e["kind"] == "decision.recorded" and "data" in e, "decision")
        decision, text = str(event["id"]), text.strip() or str(event["data"]["title"])
    if not text.strip():
        raise BadInputError("say what was decided, or name the decision with --decision")
    clause = _clause(place, text.strip(), path, command, tool, instead)
    made_from = rules.examples(place, clause, like=example or (), unlike=unlike or (), origin=origin)
    past = rules.past_of(place, rules.label_of(clause), now)
    effect, review_at = effect if who == "human" else "warn", units.until(review, now)
    if not as_json:
        _shown(clause, past, effect, _held(place, clause, past, effect, review_at, now))
    if who == "human" and not (yes or as_json) and not typer.confirm("record it?"):
        raise RefusedError("nothing was recorded")
    heard: list[str] = []
    with common.kept(as_json):
        events = rules.add(
            place, text.strip(), clause, past, made_from, effect=effect, review_at=review_at, now=now, origin=who,
            actor=caller.actor(), decision=decision, notices=heard,
        )  # fmt: skip
    common.notices(heard)
    _tell(place, events[-1], as_json, "recorded")


def _tell(place: Place, event: dict[str, Any], as_json: bool, what: str) -> None:
    if as_json:
        common.emit(event)
    else:
        common.say(
            f"{what} rule {event['id']} in {output.safe(place.home)}; `projectmem rule clear {short(event['id'])}` ends it"
        )


@app.command(epilog=EXITS)
def check(
    text: Text = "",
    path: Path = "",
    command: Command = "",
    tool: Tool = "",
    instead: Instead = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Try a rule on the past; record nothing.

    Shows what it would cover, and what it would have said to past calls.
    """
    from projectmem import rules

    place, now = common.open_place(root), common.now()
    clause = _clause(place, text.strip(), path, command, tool, instead)
    rules.examples(place, clause)
    past = rules.past_of(place, rules.label_of(clause), now)
    if as_json:
        common.emit({**rules.label_of(clause), "replay": past.to_data()})
    else:
        _shown(clause, past, "ask", _held(place, clause, past, "ask", 0, now))


@app.command("list", epilog=EXITS)
def list_rules(
    every: Annotated[bool, typer.Option("--all", help="Also those that were cleared or superseded.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """List rules and labels: what each does now, and why no more."""
    from projectmem import rules

    now = common.now()
    found = rules.rows(common.open_place(root), now, every=every)
    if as_json:
        common.emit([row.to_data() for row in found])
        return
    if not found:
        common.say("no rule or label is in force" if not every else "there was never a rule or label")
        return
    cells = []
    for row in found:
        data = row.event["data"]
        review = output.when(data["review_at"])[:10] if data.get("review_at") else ""
        who = "person" if row.event["actor"]["origin"] == "human" else "agent"
        cells.append([row.does, who, review, short(row.event["id"]), output.safe(data.get("reason") or data.get("label"))])
    head, *lines = output.table(cells, ("DOES", "BY", "REVIEW", "ID", "DECIDED"), width=common.width())
    common.say(head)
    for row, line in zip(found, lines, strict=True):
        common.say(line)
        common.say(f"    covers {rules.spelled(row.event['data'])}")
        if row.why:
            common.say(f"    {output.safe(row.why)}")


@app.command(epilog=EXITS)
def confirm(
    id: Id,
    effect: Effect = "",
    review: Review = "90d",
    yes: Yes = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Confirm a rule that is held at a warning (people only).

    An agent's, one that is due for review, or one that past calls spoke against: it is tried on the past again and put in the
    place of the old one. Needs a person at a terminal.
    """
    from projectmem_gate.clauses import Clause

    from projectmem import rules

    common.require_person("a rule that does more than warn")
    place, now = common.open_place(root), common.now()
    old = rules.find_rule(place, id)
    data = old["data"]
    if data["label"] != "rule":
        raise BadInputError(f"{old['id']} is a label: set it again with `projectmem record label`, and clear the old one")
    wanted = effect or ("ask" if old["actor"]["origin"] != "human" else data["effect"])
    if wanted not in ("warn", "ask", "deny"):
        raise BadInputError(f"`{wanted}` is not an effect: give --effect warn, ask or deny")
    clause = Clause(data["target"], data["pattern"], data.get("instead") or "")
    past, review_at = rules.past_of(place, rules.label_of(clause), now), units.until(review, now)
    if not as_json:
        _shown(clause, past, wanted, _held(place, clause, past, wanted, review_at, now))
    if not (yes or as_json) and not typer.confirm("record it?"):
        raise RefusedError("nothing was changed")
    heard: list[str] = []
    with common.kept(as_json):
        events = rules.add(
            place, data["reason"], clause, past, data.get("examples") or [], effect=wanted, review_at=review_at, now=now,
            origin="human", actor=caller.actor(), decision=data["decision"], replaces=old["id"], notices=heard,
        )  # fmt: skip
    common.notices(heard)
    _tell(place, events[-1], as_json, "confirmed")


@app.command(epilog=EXITS)
def clear(
    id: Id,
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever reads the log later.")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """End a rule or a label (people only). Its decision stays on record. Needs a person at a terminal."""
    from projectmem import rules
    from projectmem.record import record

    common.require_person("ending a rule")
    place = common.open_place(root)
    old = rules.find_rule(place, id)
    data = {"label_event": old["id"], "reason": reason}
    with common.kept(as_json):
        event = record(place, "label.cleared", data, now=common.now(), origin="human", actor=caller.actor(), causes=[old["id"]])
    if as_json:
        common.emit(event)
    else:
        common.say(f"ended {output.safe(old['data'].get('reason') or old['id'])}: recorded as {event['id']}")

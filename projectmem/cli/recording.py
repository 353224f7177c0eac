"""`projectmem record ...`: what people and agents have to say, one event each, with where it landed."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from projectmem import caller, output, units
from projectmem.cli import common, ruling
from projectmem.cli.common import EXITS, Json, Root
from projectmem.errors import BadInputError

app = common.group("Record an issue, attempt, fix, note and the like.", epilog=EXITS)

TITLE_MAX, TEXT_MAX = 500, 20_000  # characters; the log's own limits
BLANKS_MAX = 1_000  # around a text from standard input

Text = Annotated[str, typer.Argument(help="What to record; `-` reads it from standard input.", show_default=False)]
Issue = Annotated[str, typer.Option("--issue", metavar="ID", help="The issue it belongs to.")]
Verifier = Annotated[
    str, typer.Option("--verifier", help="What proved it, e.g. the test command; `none` if nothing did.", metavar="TEXT")
]


def register(parent: typer.Typer) -> None:
    """Add the groups to the application."""
    parent.add_typer(app, name="record")
    ruling.register(parent)  # what a decision may become


def _text(value: str, most: int = TEXT_MAX) -> str:
    text = (sys.stdin.read(most + BLANKS_MAX) if value == "-" else value).strip()
    if not text:
        raise BadInputError("nothing to record: the text is empty")
    if len(text) > most:
        raise BadInputError(f"the text has more than {most:,} characters: give the gist, and name the file that has the rest")
    return text


def _write(root: str, as_json: bool, kind: str, data: dict[str, Any], what: str) -> None:
    from projectmem.record import record

    place = common.open_place(root)
    heard: list[str] = []
    with common.kept(as_json):
        event = record(place, kind, data, now=common.now(), origin=caller.origin(), actor=caller.actor(), notices=heard)
    common.notices(heard)
    _tell(place.home, event, as_json, what)


def _tell(home: str, event: dict[str, Any], as_json: bool, what: str) -> None:
    if as_json:
        common.emit(event)
    else:
        common.say(f"recorded {output.safe(what)} {event['id']} in {output.safe(home)}")


def _issue(root: str, wanted: str) -> str:
    from projectmem.record import find_issue

    return find_issue(common.open_place(root), wanted) if wanted else ""


@app.command(epilog=EXITS)
def issue(
    title: Annotated[str, typer.Argument(help="One line that says what is wrong.", show_default=False)] = "",
    path: Annotated[list[str] | None, typer.Option("--path", help="A file it concerns (repeatable).", show_default=False)] = None,
    close: Annotated[str, typer.Option("--close", metavar="ID", help="Close this issue instead of opening one.")] = "",
    resolution: Annotated[str, typer.Option("--resolution", help="With --close: how it was resolved.")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Open an issue, or close one with --close."""
    if close:
        id = _issue(root, close)
        _write(root, as_json, "issue.closed", {"issue": id, "resolution": resolution}, f"issue {id} closed:")
        return
    from projectmem.record import new_id

    id = new_id()
    data = {"issue": id, "title": _text(title, TITLE_MAX), "paths": list(path or [])}
    _write(root, as_json, "issue.opened", data, f"issue {id}:")


@app.command(epilog=EXITS)
def hypothesis(text: Text, issue: Issue = "", root: Root = "", as_json: Json = False) -> None:
    """Note what might be the cause."""
    _write(root, as_json, "hypothesis.noted", {"issue": _issue(root, issue), "text": _text(text)}, "hypothesis")


@app.command(epilog=EXITS)
def attempt(
    text: Text,
    outcome: Annotated[str, typer.Option("--outcome", help="worked | failed | unclear")],
    issue: Issue = "",
    verifier: Verifier = "none",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Record something that was tried, and how it ended."""
    if outcome not in ("worked", "failed", "unclear"):
        raise BadInputError(f"`{outcome}` is not an outcome: give --outcome worked, failed or unclear")
    data = {"issue": _issue(root, issue), "text": _text(text), "outcome": outcome, "verifier": verifier}
    _write(root, as_json, "attempt.recorded", data, "attempt")


@app.command(epilog=EXITS)
def fix(text: Text, issue: Issue = "", verifier: Verifier = "none", root: Root = "", as_json: Json = False) -> None:
    """Record what solved a problem."""
    data = {"issue": _issue(root, issue), "text": _text(text), "verifier": verifier}
    _write(root, as_json, "fix.recorded", data, "fix")


@app.command(epilog=EXITS)
def decision(
    title: Annotated[str, typer.Argument(help="The decision in one line.", show_default=False)],
    text: Annotated[str, typer.Argument(help="Why, and what follows from it; `-` reads standard input.")] = "",
    supersedes: Annotated[str, typer.Option("--supersedes", metavar="ID", help="The earlier decision it replaces.")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Record a decision of the project."""
    from projectmem_gate.clauses import propose as proposed

    from projectmem.lookup import find_one

    older = ""
    if supersedes:
        place = common.open_place(root)
        older = str(find_one(place, supersedes, lambda e: e["kind"] == "decision.recorded", "decision")["id"])
    data = {"title": _text(title, TITLE_MAX), "text": _text(text) if text else "", "supersedes": older}
    _write(root, as_json, "decision.recorded", data, "decision")
    if not as_json and proposed(data["title"])[0] is not None:
        common.note("the gate can check this: `projectmem rule add --decision` with its id shows how")


@app.command(epilog=EXITS)
def note(
    text: Text,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A word to find it by (repeatable).", show_default=False)] = None,
    supersedes: Annotated[str, typer.Option("--supersedes", metavar="ID", help="The earlier note that it replaces.")] = "",
    review: Annotated[str, typer.Option("--review", metavar="WHEN", help="When to look at it again; uncertain after that.")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Record a note."""
    from projectmem.lookup import find_one

    data: dict[str, Any] = {"text": _text(text), "tags": list(tag or [])}
    if supersedes:
        place = common.open_place(root)
        data["supersedes"] = str(find_one(place, supersedes, lambda e: e["kind"] == "note.recorded", "note")["id"])
    if review:
        data["review_at"] = units.until(review, common.now())
    _write(root, as_json, "note.recorded", data, "note")


@app.command(epilog=EXITS)
def label(
    label: Annotated[str, typer.Argument(help="fragile | protected", show_default=False)] = "",
    path: Annotated[str, typer.Option("--path", metavar="PATTERN", help="Files it is about, relative to the root.")] = "",
    command: Annotated[str, typer.Option("--command", metavar="PATTERN", help="Commands it is about.")] = "",
    tool: Annotated[str, typer.Option("--tool", metavar="PATTERN", help="Tools it is about.")] = "",
    effect: Annotated[str, typer.Option("--effect", help="warn | ask | deny")] = "warn",
    reason: Annotated[str, typer.Option("--reason", help="Why; the agent reads it.")] = "",
    review: Annotated[str, typer.Option("--review", metavar="WHEN", help="When to look at it again, e.g. 90d.")] = "90d",
    clear: Annotated[str, typer.Option("--clear", metavar="ID", help="Remove the label that this event set.")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Mark files, commands or tools (people only).

    Fragile or protected, with what the gate does about it. Needs a person at a terminal.
    """
    common.require_person("a label")
    if clear:
        from projectmem.lookup import find_one

        event = find_one(common.open_place(root), clear, lambda e: e["kind"] == "label.set", "label")
        _write(root, as_json, "label.cleared", {"label_event": event["id"], "reason": reason}, "label cleared:")
        return
    given = [(target, pattern) for target, pattern in (("path", path), ("command", command), ("tool", tool)) if pattern]
    if label not in ("fragile", "protected"):
        raise BadInputError(f"`{label}` is not a label: give fragile or protected")
    if len(given) != 1:
        raise BadInputError("say what the label is about with exactly one of --path, --command and --tool")
    if effect not in ("warn", "ask", "deny"):
        raise BadInputError(f"`{effect}` is not an effect: give --effect warn, ask or deny")
    target, pattern = given[0]
    if target == "command":
        from projectmem_gate.clauses import as_typed

        pattern = as_typed(pattern)
    data = {
        "label": label,
        "target": target,
        "pattern": pattern,
        "effect": effect,
        "reason": reason,
        "review_at": units.until(review, common.now()),
    }
    _write(root, as_json, "label.set", data, "label")

"""`projectmem policy ...`: see, check and accept the rules that the gate goes by."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from projectmem import output
from projectmem.cli import common
from projectmem.cli.common import EXITS, Json, Root

app = common.group("See, check and accept the gate's policy.", epilog=EXITS)


def register(parent: typer.Typer) -> None:
    """Add the group to the application."""
    parent.add_typer(app, name="policy")


@app.command(epilog=EXITS)
def show(root: Root = "", as_json: Json = False) -> None:
    """Show the policy in force and where it comes from.

    And whether the file says otherwise.
    """
    from projectmem.policies import file_state, in_force, policy_path

    place = common.open_place(root)
    policy, source = in_force(place)
    path, state = policy_path(place), file_state(place)
    if as_json:
        common.emit({"hash": policy.hash, "source": source, "file": path, "file_state": state, "policy": policy.to_data()})
        return
    common.say(f"policy {policy.hash[:16]} ({output.safe(source)})")
    told = {
        "in force": "as in force",
        "differs": "differs from what is in force: `projectmem policy accept`",
        "missing": "not there; what is in force does not need it",
    }
    common.say(f"  {'file':<22} {output.safe(path)} ({output.safe(told.get(state, state))})")
    for key, value in _written(policy.to_data()):
        common.say(f"  {key:<22} {output.safe(value)}")


def _written(data: dict[str, Any]) -> list[tuple[str, str]]:
    """(key as in policy.toml, value as people say it) of a compiled policy."""
    from projectmem_gate.policy_text import KEYS

    rows = [(key, _said(name, data[name])) for key, name in KEYS.items()]
    for rule in data["rules"]:
        review = f", review {rule['review']}" if rule["review"] else ""
        reason = f": {rule['reason']}" if rule["reason"] else ""
        rows.append((f"rule {rule['name']}", f"{rule['effect']} {rule['target']} `{rule['pattern']}`{review}{reason}"))
    return rows


def _said(name: str, value: Any) -> str:
    """Lengths of time in their unit, those of the failure classes in groups: what most have first."""
    if isinstance(value, dict):
        groups: dict[int, list[str]] = {}
        for cls, us in value.items():
            groups.setdefault(us, []).append("unknown cause" if cls == "unknown" else cls)
        (most, _), *others = sorted(groups.items(), key=lambda row: (-len(row[1]), row[1]))
        said = [f"{', '.join(classes)}: {_span(us)}" for us, classes in others]
        return "; ".join([_span(most) if others else f"{', '.join(groups[most])}: {_span(most)}", *said])
    if name.endswith("_us"):
        return output.span(value)
    return value if isinstance(value, str) else output.to_json(value, indent=None)


def _span(us: int) -> str:
    return output.span(us) if us else "not at all"


@app.command(epilog=EXITS)
def validate(
    file: Annotated[str, typer.Argument(help="The file to check (default: the project's).", show_default=False)] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Check a policy file; errors name file, line and key. Changes nothing."""
    from projectmem.policies import policy_path, read

    path = os.path.abspath(file) if file else policy_path(common.open_place(root))
    policy, _ = read(path, named=bool(file))
    if as_json:
        common.emit({"file": path, "ok": True, "hash": policy.hash})
    else:
        common.say(f"{output.safe(path)} is valid, hash {policy.hash[:16]}")


@app.command(epilog=EXITS)
def path(root: Root = "", as_json: Json = False) -> None:
    """Print where the project's policy file belongs."""
    from projectmem.policies import policy_path

    where = policy_path(common.open_place(root))
    if as_json:
        common.emit({"file": where, "exists": os.path.exists(where)})
    else:
        common.say(where)


@app.command(epilog=EXITS)
def accept(
    file: Annotated[str, typer.Argument(help="The file to accept (default: the project's).", show_default=False)] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Put a policy in force (people only).

    Its text is written into the log, so that every decision can be recomputed. Needs a person at a terminal.
    """
    from projectmem.policies import accept as put_in_force
    from projectmem.policies import policy_path

    common.require_person("a policy")
    place = common.open_place(root)
    with common.kept(as_json):
        event = put_in_force(place, os.path.abspath(file) if file else policy_path(place), now=common.now())
    if as_json:
        common.emit(event)
    else:
        common.say(f"policy {event['data']['hash'][:16]} is in force, recorded as {event['id']} in {output.safe(place.home)}")

"""`verify`, `checkpoint`, `prove`: is the log whole, does it hold what was kept of it, and proof of both for others."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from projectmem import caller, clock, output, remembered, render
from projectmem.cli import common
from projectmem.cli.common import EXITS, EXITS_CHECKED, Json, Root
from projectmem.errors import BadInputError
from projectmem.hook import health


def register(parent: typer.Typer) -> None:
    """Add the commands to the application."""
    parent.command(epilog=EXITS_CHECKED)(verify)
    parent.command(epilog=EXITS)(checkpoint)
    parent.command(epilog=EXITS_CHECKED)(prove)


def verify(
    kept: Annotated[
        list[str] | None,
        typer.Option("--checkpoint", metavar="FILE", help="A checkpoint kept elsewhere, or `git-note`; repeatable."),
    ] = None,
    key: Annotated[
        str, typer.Option("--key", metavar="KEY", help="Public key that must have signed it, or a file with it.")
    ] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Check the log: every line, every hash.

    With --checkpoint also whether it still holds every record that the checkpoint covers: a cut or
    rewritten end shows in no other way.
    """
    from projectmem_logs.verify import verify as check

    place = common.open_place(root)
    with output.Waiting("checking the log") as waiting:
        report = check(place.home, waiting.tell)
    found: list[Any] = []
    if kept:
        from projectmem.integrity import verify as hold

        with output.Waiting("holding the log against the checkpoint"):
            found = hold(place, kept, key)
    health.note(place.home, report.problems, common.now())
    erasures = _erasures(place.home)
    missing = remembered.lost(place.home, {p.stream for p in report.problems if p.kind != "torn"})
    ok = report.ok and all(one.ok for one in found) and not any(erasures.values()) and not missing
    if as_json:
        more = {"checkpoints": [{**_plain(one), "ok": one.ok} for one in found]} if kept else {}
        common.emit({**_plain(report), "ok": ok, "home": place.home, "erasures": erasures, "missing": missing, **more})
    else:
        _show(report, found, place.home)
        for text in missing:
            common.say(f"{common.paint()('red', 'CUT')}: {output.safe(text)}")
            common.say(f"  what to do: {remembered.WHAT_TO_DO}")
        for text in clock.of_report(report, common.now()):
            common.say(f"clock: {output.safe(text)}")
        _show_erasures(erasures)
    if not ok:
        common.leave(1)


def _show(report: Any, found: list[Any], home: str) -> None:
    paint = common.paint()
    state = paint("green", "whole") if report.ok else paint("red", "DAMAGED")
    held = f"{render.count(report.events, 'event')} in {render.count(len(report.streams), 'stream')}"
    common.say(f"log {state}: {held}, {output.safe(home)}")
    for number, problem in enumerate(report.problems, 1):
        where = f"{problem.stream}/{problem.segment} at byte {problem.offset}"
        common.say(f"  {output.safe(problem.kind)}: {output.safe(where)}: {output.safe(problem.detail)}")
        if [other.remedy for other in report.problems[number : number + 1]] != [problem.remedy]:  # said once for several alike
            common.say(f"    what to do: {output.safe(problem.remedy)}")
    for one in found:
        bad = one.state.upper() if one.signed else f"{one.state}, UNPROVEN"
        state = paint("green", one.state) if one.ok else paint("red", bad)
        common.say(f"checkpoint {state}: stream {output.safe(one.stream or one.origin)}: {output.safe(one.detail)}")
        words = _SIGNATURES if one.signed else {**_SIGNATURES, **_DEMANDED}
        common.say(f"  signature: {words[one.signature]}")


def _erasures(home: str) -> dict[str, Any]:
    """What is wrong with what was erased: payloads that are still there, and tombstones that nobody asked for."""
    from projectmem_logs.erasing import unasked, unfinished

    from projectmem.forget import pending

    return {"pending": pending(home), "unfinished": unfinished(home), "unasked": unasked(home)}


def _show_erasures(found: dict[str, Any]) -> None:
    paint = common.paint()
    if found["pending"] or found["unfinished"]:
        text = f"an erasure was cut short ({render.count(found['unfinished'], 'payload')} still there)"
        common.say(f"{paint('red', text)}: run `projectmem forget --resume`")
    if found["unasked"]:
        text = f"erased without a request on record: {render.count(len(found['unasked']), 'event')}"
        common.say(f"{paint('red', text)}: {', '.join(output.safe(id) for id in found['unasked'][:5])}")


_SIGNATURES = {
    "good": "good",
    "bad": "BAD: the checkpoint was changed after it was signed",
    "unknown key": "by a key that is not known here; give the one you trust with --key",
    "none": "none; it is worth as much as the place it was kept in",
    "unchecked": "not checked; give the public key with --key",
}
_DEMANDED = {
    "unknown key": "NOT by the key you gave",
    "none": "NONE, and you gave the key that must have signed it",
}


def _plain(report: object) -> dict[str, object]:
    return dict(json.loads(output.to_json(report)))


def checkpoint(
    to: Annotated[str, typer.Option("--to", metavar="FILE", help="Keep it in this file, or in a `git-note` on HEAD.")] = "",
    sign: Annotated[bool, typer.Option("--sign", help="Sign it (Ed25519); a key is made the first time.")] = False,
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="The secret key's file (default: in the log's folder).")] = "",
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Seal the log's present state in a few lines.

    Kept out of the agent's reach, they show later whether records were cut off or rewritten
    (`verify --checkpoint`). Refuses where the one kept there before says otherwise.
    """
    from projectmem_logs import signing
    from projectmem_logs.signed_note import bundle

    from projectmem.integrity import seal

    place = common.open_place(root)
    sign = sign or bool(key)
    with output.Waiting("sealing the log"):
        notes, event, heard = seal(
            place, now=common.now(), origin=caller.origin(), actor=caller.actor(), to=to, sign=sign, key=key
        )
    common.notices(heard)
    public = signing.public_key(place.home, key) if sign else None
    text = bundle(notes)
    if as_json:
        rows = [{"origin": note.origin, "size": note.size, "root": note.root.hex()} for note in notes]
        shown = {"event": event["id"], "root": event["data"]["root"], "size": event["data"]["size"], "checkpoints": rows}
        common.emit({**shown, "text": text, "to": to, "key": public.text() if public else ""})
        return
    sealed = f"sealed {render.count(event['data']['size'], 'event')} in {render.count(len(notes), 'stream')}"
    common.say(text.rstrip("\n") if not to else f"{sealed}: {output.safe(to)}")
    if public is not None:
        common.note(f"signed; to check it elsewhere: projectmem verify --checkpoint ... --key '{public.text()}'")


def prove(
    id: Annotated[str, typer.Argument(help="The event to prove, or enough of its id.", show_default=False)] = "",
    consistency: Annotated[
        tuple[str, str] | None,
        typer.Option("--consistency", metavar="OLD NEW", help="That checkpoint NEW goes on from OLD (files or sizes)."),
    ] = None,
    check: Annotated[
        str, typer.Option("--check", metavar="FILE", help="Check a proof (as --json prints it) without a log.")
    ] = "",
    stream: Annotated[str, typer.Option("--stream", metavar="ID", help="With sizes: the stream that is meant.")] = "",
    size: Annotated[int, typer.Option("--size", metavar="N", min=0, help="Prove it in the tree of the first N records.")] = 0,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Prove that an event is in the log, or that it only grew.

    A proof is a dozen hashes; whoever has a checkpoint can check it without the log.
    """
    if sum((bool(id), consistency is not None, bool(check))) != 1:
        raise BadInputError("give the id of an event, or --consistency OLD NEW, or --check FILE")
    if check:
        _checked(check, as_json)
        return
    from projectmem_logs.checkpoint import prove_inclusion

    place = common.open_place(root)
    if consistency is not None:
        from projectmem.integrity import consistency as made

        proofs = made(place, *consistency, stream)
    else:
        from projectmem.lookup import find_one

        proofs = [prove_inclusion(place.home, find_one(place, id), size or None)]
    if as_json:
        common.emit(proofs[0] if len(proofs) == 1 else proofs)
        return
    for proof in proofs:
        _say(proof)


def _checked(path: str, as_json: bool) -> None:
    from projectmem_logs.checkpoint import check_proof

    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (ValueError, RecursionError):
        raise BadInputError(f"`{path}` is not JSON: give what `projectmem prove --json` printed") from None
    proofs = found if isinstance(found, list) else [found]
    results = [isinstance(proof, dict) and check_proof(proof) for proof in proofs]
    ok = bool(results) and all(results)
    if as_json:
        common.emit({"ok": ok, "proofs": len(results)})
    else:
        common.say(
            "the proof holds: now compare its origin, size and root with your checkpoint" if ok else "the proof does NOT hold"
        )
        for proof in proofs if ok else ():
            _say(proof)
    if not ok:
        common.leave(1)


def _say(proof: dict[str, Any]) -> None:
    common.say(f"{output.safe(proof['origin'])}")
    if proof["proof"] == "inclusion":
        common.say(f"  event {output.safe(proof['id'])} is record {proof['index'] + 1} of {proof['size']}")
        record = proof["record"]
        common.say(f"  {output.safe(record['kind'])}, {output.when(record['ts'])}, salted digest {output.safe(record['digest'])}")
        common.say(f"  its hash {output.safe(proof['leaf'])}")
        common.say(f"  root     {output.safe(proof['root'])}")
    else:
        for name in ("old", "new"):
            common.say(f"  {name} size {proof[name]['size']}, root {output.safe(proof[name]['root'])}")
        common.say("  the new tree begins with the whole old one")
    for hash in proof["path"]:
        common.say(f"  path     {output.safe(hash)}")

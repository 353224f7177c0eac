"""`embedder`: which model turns texts into vectors for recall."""

from __future__ import annotations

from typing import Annotated

import typer

from projectmem import output
from projectmem.cli import common
from projectmem.cli.common import EXITS, Json, Root


def register(parent: typer.Typer) -> None:
    """Add the command to the application."""
    parent.command(epilog=EXITS)(embedder)


def embedder(
    installed: Annotated[bool, typer.Option("--minilm", help="Take MiniLM as the extra [minilm] installed it.")] = False,
    use: Annotated[
        str,
        typer.Option("--use", metavar="DIR", help="Take a model.onnx (vocab.txt beside it) from there.", show_default=False),
    ] = "",
    sha256: Annotated[
        str,
        typer.Option(
            "--sha256", metavar="HEX", help="The SHA-256 of that model.onnx (default: the measured build's).", show_default=False
        ),
    ] = "",
    default: Annotated[bool, typer.Option("--default", help="Go back to the shipped table.")] = False,
    root: Root = "",
    as_json: Json = False,
) -> None:
    """Show or choose what recall embeds with.

    The shipped table needs nothing. For MiniLM install `projectmem-gate[minilm]`, then `projectmem embedder --minilm`. The
    index is made anew from the log; until then recall goes by words.
    """
    from projectmem_projections import minilm, recollection, vectors

    from projectmem.errors import BadInputError

    if bool(use) + default + installed > 1:
        raise BadInputError("give one of --minilm, --use DIR and --default")
    home = common.open_place(root).home
    if use or installed:
        minilm.put(home, use or minilm.installed(), sha256 or minilm.SHA256)
    elif default:
        minilm.remove(home)
    found, note = minilm.chosen(home)
    if (use or installed or default) and not vectors.available():
        with output.Waiting("embedding the log anew"):
            common.notices(recollection.refresh(home, found))
    if note:
        common.note(output.safe(note))
    if as_json:
        common.emit({"model": found.model, "revision": found.revision, "dim": found.dim, "note": note})
    else:
        common.say(f"{output.safe(found.model)}, {found.dim} dimensions, revision {found.revision[:12]}")

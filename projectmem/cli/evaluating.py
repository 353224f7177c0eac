"""`eval recall`, `calibrate`, `audit recall`: how well recall does, fitting its floor, and watching it as the store grows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from projectmem import output, render
from projectmem.cli import common
from projectmem.cli.common import EXITS, EXITS_CHECKED, Json, Root

if TYPE_CHECKING:
    from projectmem_projections.embed import Space

    from projectmem.evaluation.labelled import Labelled

Files = Annotated[
    list[Path] | None,
    typer.Argument(help="Files of labelled questions besides the shipped one.", show_default=False),
]
Target = Annotated[
    int | None,
    typer.Option(
        "--target", min=0, max=500, help="So many unanswerable questions per mille may pass [20 or 25].", show_default=False
    ),
]


def register(parent: typer.Typer) -> None:
    """Add the commands to the application."""
    evaluate = common.group("Measure how well something does on labelled data.", epilog=EXITS)
    evaluate.command(name="recall", epilog=EXITS)(eval_recall)
    parent.add_typer(evaluate, name="eval")
    auditing = common.group("Watch for drift.", epilog=EXITS_CHECKED)
    auditing.command(name="recall", epilog=EXITS_CHECKED)(audit_recall)
    parent.add_typer(auditing, name="audit")
    parent.command(epilog=EXITS)(calibrate)


def _sets(files: list[Path] | None) -> list[Labelled]:
    from projectmem.evaluation import labelled

    return [labelled.read(labelled.OWN), *(labelled.read(path) for path in files or ())]


def _embedders(model: Path | None = None, home: str = "") -> list[Space | None]:
    """Every way of recalling that there is: the shipped table and a model where faiss is, and words alone.

    model  a folder with another model's files;  home  of a log that may have chosen one
    """
    from projectmem_projections import vectors

    found: list[Space] = []
    if not vectors.available():
        from projectmem_projections import embed, minilm

        found.append(embed.default())
        extra: Space = minilm.Minilm(str(model)) if model else minilm.chosen(home)[0] if home else found[0]
        if extra.model != found[0].model:
            found.append(extra)
    return [*found, None]


def eval_recall(
    files: Files = None,
    grow: Annotated[str, typer.Option("--grow", metavar="SIZES", help="Sizes of growing stores, e.g. 300,3000,10000.")] = "",
    filler: Annotated[
        list[Path] | None,
        typer.Option("--filler", metavar="FILE", help="Recorded calls that fill them (*.jsonl.gz, or a folder)."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="DIR", help="A MiniLM model besides: a folder with model.onnx.")
    ] = None,
    target: Target = None,
    as_shipped: Annotated[
        bool,
        typer.Option("--as-shipped", help="Measure the given files alone, with the shipped models: nothing is fitted to them."),
    ] = False,
    by_set: Annotated[
        bool,
        typer.Option("--by-set", help="Fit without any question of the same documents, not only of the same family."),
    ] = False,
    write: Annotated[Path | None, typer.Option("--write", metavar="FILE", help="Put the tables into a Markdown file.")] = None,
    as_json: Json = False,
) -> None:
    """Print recall's figures beside its baselines.

    No memory, abstaining always, plain top-k and the controller, with intervals. Every question is decided by a model that was
    fitted without it, and the shipped questions are always among them. With --as-shipped the models that recall uses decide as
    they are, over the given files alone.
    """
    from projectmem_projections import calibrations
    from projectmem_projections.calibration import Calibration
    from projectmem_projections.searching import space_of

    from projectmem.errors import BadInputError
    from projectmem.evaluation import measure, tables

    if as_shipped and not files:
        raise BadInputError("--as-shipped measures files that nothing was fitted to: name at least one")
    if by_set and (as_shipped or not files):
        raise BadInputError("--by-set fits to the other files: name at least one besides the shipped one, without --as-shipped")
    sets = _sets(files)[int(as_shipped) :]
    if write is not None:
        tables.check(write, fresh=as_shipped)
    reports: dict[str, Any] = {}
    growths: dict[str, Any] = {}
    for embedder in _embedders(model):
        space = space_of(embedder)
        with output.Waiting(f"measuring {space}"):
            given = Calibration(calibrations.shipped()).model(space) if as_shipped else None
            reports[space] = measure.report(sets, embedder, space, target, given, by_set)
            if grow:
                growths[space] = _grown(sets, embedder, space, grow, filler, target, by_set)
    if as_json:
        common.emit({"reports": reports, "growth": growths})
        return
    lines = [*tables.methods(reports), "", *(tables.kinds(reports) if as_shipped or by_set else [])]
    lines += [] if as_shipped else ["", *tables.caps(reports)]
    if growths:
        lines += ["", *tables.growths(growths)]
    for line in lines:
        common.say(line)
    if write is not None:
        tables.write(write, lines, fresh=as_shipped)


def _grown(
    sets: list[Labelled],
    embedder: Space | None,
    space: str,
    grow: str,
    filler: list[Path] | None,
    target: int | None,
    by_set: bool,
) -> list[dict[str, Any]]:
    """The growth of the last store by the shipped model; by set, also of every store by models of the others."""
    from projectmem_projections import calibrations

    from projectmem.errors import BadInputError
    from projectmem.evaluation import filler as filling
    from projectmem.evaluation import labelled, measure

    try:
        sizes = sorted({int(size) for size in grow.split(",")})
    except ValueError:
        raise BadInputError(f"`{grow}` is not a list of sizes like 300,3000,10000") from None
    documents = filling.recorded(filler, sizes[-1]) if filler else filling.made_up(sizes[-1])
    sets = labelled.together(sets)
    rows = measure.growth(sets[-1:], embedder, {sets[-1].name: calibrations.shipped()[space]}, documents, sizes)
    for row in rows:
        row["set"] = f"{row['set']}, as shipped"
    others = measure.growth(sets, embedder, measure.left_out(sets, embedder, space, target), documents, sizes) if by_set else []
    return [*others, *rows]


def calibrate(files: Files = None, target: Target = None, root: Root = "", as_json: Json = False) -> None:
    """Fit recall's floor to labelled questions.

    Kept for this project: one model for each way of recalling that is installed here, stored with the embedder's id.
    The log is not changed.
    """
    from projectmem_logs import files as storage
    from projectmem_projections import calibrations, glance
    from projectmem_projections.searching import space_of

    from projectmem.evaluation import calibrate as fitting
    from projectmem.evaluation import labelled

    place = common.open_place(root)
    sets = labelled.together(_sets(files))
    models = []
    for embedder in _embedders(home=place.home):
        with output.Waiting(f"fitting {space_of(embedder)}"):
            models.append(fitting.fit(sets, embedder, space_of(embedder), target)[0])
    folder = glance.folder(place.home)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, calibrations.OWN)
    storage.replace(path, calibrations.to_text(models).encode())
    if as_json:
        common.emit({"path": path, "models": [m.to_data() for m in models]})
        return
    for model in models:
        floors = ", ".join(f"{kind} {floor / 1000:+.2f}" for kind, floor in model.floors.items())
        common.say(f"{model.space}: {model.fitted}; floors in logits: {floors}")
    common.say(f"written to {output.safe(path)}")


def audit_recall(root: Root = "", as_json: Json = False) -> None:
    """Ask fixed probes at growing sizes, report drift.

    Beside a control without memory, and once more in another order. Exit code 1 where false injections rose or the order
    mattered.
    """
    from projectmem_projections import calibrations, glance
    from projectmem_projections.documents import Facts
    from projectmem_projections.following import Follower
    from projectmem_projections.searching import space_of

    from projectmem.evaluation import audit, tables

    place = common.open_place(root)
    with output.Waiting("auditing"):
        facts = Facts()
        facts.apply(Follower(place.home))
        documents = [(d.id, d.told) for d in facts.documents()]
        embedder = _embedders(home=place.home)[-2:][0]
        models = calibrations.load(glance.folder(place.home), None).calibration.models
        found: dict[str, Any] = audit.audit(documents, embedder, space_of(embedder), models)
    if as_json:
        common.emit(found)
    else:
        for one in found["snapshots"]:
            shares = f"injected {tables.share(one['injected'], interval=True)}, own texts found {tables.share(one['found'])}"
            common.say(f"{render.count(one['documents'], 'memory', 'memories'):>14} ({one['percent']} %): {shares}")
        common.say(f"without memory: injected {tables.share(found['no_memory'])}")
        common.say(f"in another order: {found['shuffled']} probes answered otherwise; drift {found['drift']:+.1f} points")
    if not found["ok"]:
        raise typer.Exit(1)

"""A recall's decision in words a person understands, for `recall --explain`; the numbers themselves are in `--json`. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from projectmem_projections import glosses, structure

from projectmem import controller, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from projectmem.answering import Answer
    from projectmem.ranking import Ranked

UNIT = 10_000
MUCH, LITTLE = 4_000, 1_500
TEXT_MAX = 100

ACTIONS = {
    controller.NO_MEMORY: "nothing to decide",
    controller.INJECT_TOP: "the best are shown",
    controller.SUMMARISE: "shown in short lines",
    controller.HIGH_PRECISION: "only what is surely right is shown",
    controller.HIGH_RECALL: "more than usual is shown",
    controller.ABSTAIN: "nothing is shown",
    controller.ASK: "the best is shown, with a question whether it helps",
}
KINDS = {"path": "a file", "command": "a command", "error": "an error message", "prose": "a question in words"}
# feature that is set -> what it says of the document
FOR = {"same_name": "names the same error", "path_same": "names that file"}
AGAINST = {
    "other_name": "names another error",
    "no_name": "does not name the error",
    "other_code": "another error number",
    "other_world": "another ecosystem",
    "path_other": "another file",
    "only_ran": "a command that merely ran",
    "other_cause": "the same command with another error",
}
FITS = {"languages": "language", "frameworks": "framework", "tools": "tool", "platforms": "platform", "folders": "folder"}


def explained(found: Answer, query: str, now: int) -> list[str]:
    """Why this was answered, a few lines; then each document that came near: whether it was shown, how sure, for and against."""
    kind = structure.of(query).kind
    lines = []
    if found.decision is not None:
        learned = " (learned from what earlier recalls led to)" if found.decision.learned else ""
        lines.append(f"Decision: {ACTIONS[found.decision.action]}, because: {found.why}{learned}.")
    how = "words and meaning" if any(r.candidate.cosine is not None for r in [*found.above, *found.below]) else "words"
    lines.append(f"Read as {KINDS[kind]}; {render.count(found.documents, 'memory', 'memories')} compared by {how}.")
    shown = {r.document.id for r in found.items}
    for ranked in [*found.above, *found.below]:
        lines += _document(ranked, kind, ranked.document.id in shown, now)
    return lines


def sure(evidence: int) -> int:
    """Thousandths of a logit as per cent, 0 .. 100."""
    return round(100 / (1 + math.exp(-max(-20_000, min(20_000, evidence)) / 1000)))


def _document(ranked: Ranked, kind: str, shown: bool, now: int) -> list[str]:
    document, near = ranked.document, ranked.candidate.features
    reached = ranked.evidence >= ranked.floor
    what = "shown" if shown else "held back" if reached else "not sure enough"
    head = (
        f"{'+' if shown else '=' if reached else '-'} {document.type} {render.short(document.id)}, {render.ago(document.at, now)}"
    )
    lines = [f"{head}: {render.inline(render.told(document, TEXT_MAX), TEXT_MAX + 40)}"]
    lines.append(f"    {what}: {sure(ranked.evidence)} % sure that it answers, {sure(ranked.floor)} % needed")
    good, bad = _arguments(near, kind)
    meaning = glosses.of(document.told)
    lines += [f"    it is about: {meaning}"] if meaning else []
    lines += [f"    for it: {'; '.join(good)}"] if good else []
    lines += [f"    against it: {'; '.join(bad)}"] if bad else []
    if reached:
        lines.append(f"    place {_share(ranked.score)}: {_parts(ranked)}")
    return lines


def _arguments(near: Mapping[str, int], kind: str) -> tuple[list[str], list[str]]:
    """What speaks for a document and what against it."""
    covered = near.get("cover", 0)
    words = f"has {covered * 100 // UNIT} % of the question's words, by weight"
    good = [words] if covered >= MUCH else []
    bad = [] if covered >= MUCH else [words]
    good += [said for name, said in FOR.items() if near.get(name, 0)]
    bad += [said for name, said in AGAINST.items() if near.get(name, 0)]
    good += [f"the same {said}" for name, said in FITS.items() if near.get(name, 0) > 0]
    bad += [f"another {said}" for name, said in FITS.items() if near.get(name, 0) < 0]
    if kind == "command":
        other = near.get("run_other", 0)
        (bad if other >= controller.OTHER_RUN else good).append(
            "another command" if other >= controller.OTHER_RUN else "the same command"
        )
    if near.get("apart", 0) >= MUCH:
        good.append("stands out from the rest of the memory")
    elif near.get("apart", UNIT) < LITTLE:
        bad.append("hardly nearer than anything else")
    if near.get("unmatched", 0) >= MUCH:
        bad.append("a weighty word of the question has no counterpart in it")
    return good, bad


def _parts(ranked: Ranked) -> str:
    """What the place in the order is made of."""
    parts = {
        "likeness": ranked.candidate.similarity,
        "freshness": ranked.age,
        "confidence": ranked.confidence,
        "importance": ranked.importance,
        "type": ranked.weight,
        "use": ranked.usage,
    }
    text = ", ".join(f"{name} {_share(value)}" for name, value in parts.items())
    if ranked.visits:
        text += f"; helped {ranked.utility / UNIT:+.2f} over {render.count(ranked.visits, 'time')}"
    return text + ("; its review is overdue" if ranked.uncertain else "")


def _share(value: int) -> str:
    return f"{value / UNIT:.2f}"

"""The figures of `eval recall` as text for people and as tables for the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from projectmem.errors import BadInputError
from projectmem.evaluation.measure import ABSTENTION_CAP

BEGIN, END = "<!-- recall-tables: written by `projectmem eval recall --write` -->", "<!-- recall-tables end -->"
STRATA = ("none_far", "none_near", "none_close", "none_sibling")
HEAD = f"| space | questions of | method | right, first [95 %] | wrong | abstained | {' | '.join(STRATA)} | utility | plain |"


def share(found: dict[str, Any] | None, interval: bool = False) -> str:
    """`.46 [.35, .57]`, or `.46`; `-` of nothing."""
    if not found or not found["of"]:
        return "-"
    text = f"{found['share']:.2f}"
    return f"{text} [{found['low']:.2f}, {found['high']:.2f}]" if interval else text


def count(found: dict[str, Any] | None) -> str:
    """`3/191`, `-` of nothing."""
    return f"{found['hits']}/{found['of']}" if found and found["of"] else "-"


def methods(reports: dict[str, dict[str, Any]]) -> list[str]:
    """One row per space, set and method."""
    rows = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    for space, sets in reports.items():
        for name, found in sets.items():
            for method, f in found.items():
                cells = [space, name, method, share(f["right"], interval=True), share(f["wrong"]), share(f["abstained"])]
                cells += [count(f["injected"].get(s)) for s in STRATA] + [f"{f['utility']:+.3f}", f"{f['plain_utility']:+.3f}"]
                rows.append("| " + " | ".join(cells) + " |")
    return rows


def growths(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """One row per space and size of the store."""
    head = "| space | documents | right | wrong | " + " | ".join(STRATA) + " | false | surely | top-k right |"
    rows = [head, "|" + "---|" * (head.count("|") - 1)]
    for space, sizes in found.items():
        for one in sizes:
            f = one["controller"]
            cells = [space, f"{one['documents']:,}", share(f["right"], interval=True), share(f["wrong"])]
            cells += [count(f["injected"].get(s)) for s in STRATA]
            cells += [share(one["false"], interval=True), count(one["sure"]), share(one["top_k"]["right"])]
            rows.append("| " + " | ".join(cells) + " |")
    return rows


def caps(reports: dict[str, dict[str, Any]]) -> list[str]:
    """Whether the controller's silence stays below the cap, in one line a set."""
    out = []
    for space, sets in reports.items():
        for name, found in sets.items():
            quiet = found["controller"]["abstained"]
            held = "below" if quiet["share"] <= ABSTENTION_CAP else "ABOVE"
            out.append(
                f"{space}, {name}: abstained on {share(quiet, interval=True)} of what has an answer, {held} {ABSTENTION_CAP:.2f}"
            )
    return out


def write(path: Path, lines: list[str]) -> None:
    """Replace what stands between the marks of a Markdown file. Raises BadInputError where there are none."""
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise BadInputError(f"{path} has no place for the tables: put the lines `{BEGIN}` and `{END}` where they belong")
    before, _, rest = text.partition(BEGIN)
    path.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}" + rest.partition(END)[2], encoding="utf-8")

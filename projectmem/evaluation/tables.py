"""The figures of `eval recall` as text for people and as tables for the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from projectmem.errors import BadInputError
from projectmem.evaluation import measure

TABLES = "<!-- recall-tables: written by `projectmem eval recall --write` -->", "<!-- recall-tables end -->"
FRESH = (
    "<!-- recall-fresh: written by `projectmem eval recall --as-shipped --write` -->",
    "<!-- recall-fresh end -->",
)
SILENT = ("no_memory", "abstain_only")  # methods that show nothing, whatever the space
STRATA = ("none_far", "none_near", "none_close", "none_sibling")


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
    """One row per space, set and method; what shows nothing is the same in every space and has one row a set."""
    strata = _kinds(reports, "injected")
    rows = _head("space", "questions of", "method", "right, first [95 %]", "wrong", "abstained", *strata, "utility", "plain")
    first: dict[str, dict[str, Any]] = next(iter(reports.values()), {})
    silent = {name: {method: found[method] for method in SILENT if method in found} for name, found in first.items()}
    for space, sets in {"any": silent, **reports}.items():
        for name, found in sets.items():
            for method, f in found.items():
                if space != "any" and method in SILENT:
                    continue
                cells = [space, name, method, share(f["right"], interval=True), share(f["wrong"]), share(f["abstained"])]
                cells += [count(f["injected"].get(s)) for s in strata] + [f"{f['utility']:+.3f}", f"{f['plain_utility']:+.3f}"]
                rows.append("| " + " | ".join(cells) + " |")
    return rows


def kinds(reports: dict[str, dict[str, Any]]) -> list[str]:
    """How many of each kind of answerable question are answered right: ranked first, and ranked first and shown.

    One row per space and set; and how many unanswerable questions were shown something in all.
    """
    of = _kinds(reports, "right_by")
    rows = _head("space", "questions of", "right", *of, "false [95 %]")
    for space, sets in reports.items():
        for name, found in sets.items():
            for method, label in (("top_k", "ranked first"), ("controller", "and shown")):
                f = found[method]
                cells = [space, name, label, *(count(f["right_by"].get(kind)) for kind in of), _all(f["injected"])]
                rows.append("| " + " | ".join(cells) + " |")
    return rows


def _all(injected: dict[str, Any]) -> str:
    hits, of = (sum(f[key] for f in injected.values()) for key in ("hits", "of"))
    return f"{hits}/{of} = {share(measure.share(hits, of), interval=True)}" if of else "-"


def _kinds(reports: dict[str, dict[str, Any]], figure: str) -> list[str]:
    """The kinds of question that occur: the strata first, then the others by name."""
    named = {kind for sets in reports.values() for found in sets.values() for f in found.values() for kind in f[figure]}
    return [s for s in STRATA if s in named] + sorted(named.difference(STRATA))


def _head(*names: str) -> list[str]:
    return ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]


def growths(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """One row per space, store and size of the store."""
    rows = _head("space", "questions of", "documents", "right", "wrong", "false [95 %]", "surely", "said again", "top-k right")
    for space, sizes in found.items():
        for one in sizes:
            f = one["controller"]
            cells = [space, one["set"], f"{one['documents']:,}", share(f["right"], interval=True), share(f["wrong"])]
            cells += [f"{count(one['false'])} = {share(one['false'], interval=True)}", count(one["sure"]), count(one["again"])]
            cells += [share(one["top_k"]["right"])]
            rows.append("| " + " | ".join(cells) + " |")
    return rows


def caps(reports: dict[str, dict[str, Any]]) -> list[str]:
    """Whether the controller's silence stays below the cap, in one line a set."""
    out, cap = [], measure.ABSTENTION_CAP
    for space, sets in reports.items():
        for name, found in sets.items():
            quiet = found["controller"]["abstained"]
            held = f"{'below' if quiet['share'] <= cap else 'ABOVE'} {cap:.2f}"
            out.append(f"{space}, {name}: abstained on {share(quiet, interval=True)} of what has an answer, {held}")
    return out


def check(path: Path, fresh: bool = False) -> None:
    """Raises BadInputError where `write` would: before anything is measured for it."""
    begin, end = FRESH if fresh else TABLES
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            f"{path} cannot be read ({getattr(error, 'strerror', None) or error}): name a Markdown file"
        ) from error
    if begin not in text or end not in text:
        raise BadInputError(f"{path} has no place for the tables: put the lines `{begin}` and `{end}` where they belong")


def write(path: Path, lines: list[str], fresh: bool = False) -> None:
    """Replace what stands between the marks of a Markdown file; `fresh`: between its second pair. Raises as `check` does."""
    check(path, fresh)
    begin, end = FRESH if fresh else TABLES
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    path.write_text(f"{before}{begin}\n\n" + "\n".join(lines) + f"\n\n{end}" + rest.partition(end)[2], encoding="utf-8")

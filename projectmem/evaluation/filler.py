"""Documents that a store is filled with to see how it grows: made up, or taken from recorded tool calls. Deterministic."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from projectmem.errors import BadInputError

_TOOLS = (
    "pytest mypy ruff cargo go npm pnpm make docker kubectl terraform alembic celery gradle bundle composer dotnet cmake".split()
)
_AREAS = "billing search catalog orders auth mail export import report chart queue cache session media invoice ledger".split()
_PARTS = "parser worker client handler schema store index loader view filter mapper runner writer reader policy router".split()
_WHAT = (
    "expected {n} rows, got {m}",
    "assertion failed in {area}_{part}: {n} != {m}",
    "cannot open {area}/{part}.{ext}: it was moved to {area}/v{n}",
    "{part} of {area} returned status {n} instead of {m}",
    "the {area} {part} is slower than {n} ms since the index was dropped",
    "rule {n} of the {area} {part} contradicts rule {m}",
    "unexpected field `{part}` in {area} record {n}",
    "the {part} skips every {n}th {area} item when the batch is larger than {m}",
)
_EXTENSIONS = "py ts go rs java rb sql yaml toml json".split()


def made_up(count: int) -> list[tuple[str, str]]:
    """(id, text) of so many made-up memories, all different, the same on every machine."""
    out = []
    for i in range(count):
        area, part = _AREAS[i % len(_AREAS)], _PARTS[i // len(_AREAS) % len(_PARTS)]
        tool, what = _TOOLS[(i * 7) % len(_TOOLS)], _WHAT[(i // 3) % len(_WHAT)]
        text = what.format(n=i * 13 % 997, m=i, area=area, part=part, ext=_EXTENSIONS[i % len(_EXTENSIONS)])
        out.append((f"z{i:07d}", f"{tool} {area}/{part}_{i}: {text}"))
    return out


def recorded(paths: list[Path], count: int) -> list[tuple[str, str]]:
    """(id, text) of so many memories: recorded tool calls (`steps/*.jsonl.gz`), different ones only, each with the head of what
    it said where it failed; made-up ones where those are too few.

    paths  files, or folders with such files.  Raises BadInputError for one that cannot be read, or a folder without any.
    """
    seen: dict[str, None] = {}
    for path in _files(paths):
        for text in _calls(path):
            seen.setdefault(text)
            if len(seen) >= count:
                break
    taken = [(f"y{i:07d}", text) for i, text in enumerate(seen)]
    return [*taken, *made_up(count - len(taken))]


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
        elif found := sorted(path.glob("*.jsonl.gz")):
            yield from found
        else:
            raise BadInputError(f"{path} holds no recorded calls (*.jsonl.gz)")


def _calls(path: Path) -> Iterator[str]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                head = " ".join(str(row.get("output_excerpt") or "").split())[:120]
                given = row.get("input") or ""
                if isinstance(given, dict):
                    given = given.get("command") or given.get("cmd") or given
                text = " ".join(str(given).split())[:160]
                if row.get("kind") == "shell" and len(text) > 8:
                    yield f"{text} failed ({row.get('error_kind') or 'exit'}): {head}" if row.get("is_error") and head else text
    except (OSError, ValueError, AttributeError, EOFError) as error:
        raise BadInputError(f"{path} cannot be read as recorded calls ({error})") from error

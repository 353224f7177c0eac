"""Where calibrations are kept [H]: the shipped ones, a home's own, and what its current generation's background scored.

    data/recall-calibration.json                     shipped: {"schema", "models": [..]}
    <home>/projections/recall/calibration.json       written by `projectmem calibrate`, wins for the spaces it names
    <generation>/background.json                     {"crc", "scores": space -> score of the background questions in this store}

A model names the vector space it was fitted for, so one of another embedder is never used by mistake. A file that cannot be
read is
passed over and the shipped models hold: `problems` says so.
"""

from __future__ import annotations

import os

from projectmem_gate.model import Value
from projectmem_logs import files
from projectmem_logs.fastjson import loads

from projectmem_projections.calibration import SCHEMA, Calibration, Model
from projectmem_projections.lookups import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SHIPPED = os.path.join(os.path.dirname(__file__), "data", "recall-calibration.json")
OWN, BACKGROUND = "calibration.json", "background.json"
_cache: list[dict[str, Model]] = []


class Loaded(Value):
    """A calibration, and what could not be read of it."""

    __slots__ = ("calibration", "problems")

    def __init__(self, calibration: Calibration, problems: list[str]) -> None:
        self.calibration, self.problems = calibration, problems


def shipped() -> dict[str, Model]:
    """The models that come with the package: space -> model."""
    if not _cache:
        _cache.append(_read(SHIPPED))
    return _cache[0]


def load(folder: str, generation: str | None) -> Loaded:
    """What holds for a log whose recall generations live in `folder`."""
    models, problems, background = dict(shipped()), list[str](), dict[str, int]()
    own = os.path.join(folder, OWN)
    if os.path.exists(own):
        try:
            models.update(_read(own))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{own} cannot be used, so the shipped calibration holds: run `projectmem calibrate` again ({error})")
    if generation is not None:
        background = measured(generation) or {}  # of a small one: the floor then stands
    return Loaded(Calibration(models, background), problems)


def measured(generation: str) -> dict[str, int] | None:
    """What the background questions score in a generation: space -> score; None where that is not there, or not as written."""
    try:
        found = loads(files.read(os.path.join(generation, BACKGROUND)))
        scores: dict[str, int] = found["scores"]
        sound = found["crc"] == crc(scores) and all(type(score) is int for score in scores.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return scores if sound else None


def crc(scores: Mapping[str, int]) -> int:
    """The checksum of such scores: a floor that is too low would let wrong answers through."""
    return check("background", repr(sorted(scores.items())).encode())


def to_text(models: Iterable[Model]) -> str:
    """Models as the text of a calibration file."""
    from json import dumps  # not for a hook, which only reads

    data = {"schema": SCHEMA, "models": [m.to_data() for m in sorted(models, key=lambda m: m.space)]}
    return dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _read(path: str) -> dict[str, Model]:
    data = loads(files.read(path))
    if data["schema"] != SCHEMA:
        raise ValueError(f"schema {data['schema']}, expected {SCHEMA}")
    return {model.space: model for model in map(Model.from_data, data["models"])}

"""From features to a decision: how sure it is that a document answers a query, and how sure it must be. Pure; on the hook's path.

A model belongs to one vector space (embedder and revision; "lexical" where no cosine is known) and is a logistic regression
over `evidence` features, fitted on labelled queries (`projectmem calibrate`). Its score is in thousandths of a logit: 0
means even odds.
The floor is absolute. It sinks a little with the store, because a document stands out less among many and its words are less
rare, near misses like answers; and it does not sink, or rises, where unrelated questions come nearer in this very store than
stores differ anyway.
"""

from __future__ import annotations

from projectmem_gate.model import Value

from projectmem_projections.lexical import UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

LEXICAL = "lexical"
SCHEMA = 3  # of features and scores: a difference means that models are refused and stores are measured again
BASE_COUNT = 300
BACKGROUND_PERCENT = 75  # of the background questions' best scores, this percentile stands for the store
RISE_MAX = 4_000  # thousandths of a logit that a store may raise its floor by
SINK_MAX = 700  # and lower it by: little more than was measured
STORES_DIFFER = 1_000  # by so much the background of stores of one size differs: labelled ones have -3459 to -2497


class Model(Value):
    """What `projectmem calibrate` fits for one vector space.

    weights     feature -> thousandths of a logit for a full feature;  bias: thousandths of a logit
    floors      kind of query (`structure.KINDS`) -> score that must be reached in a store of BASE_COUNT documents
    background  score that the background questions reach in the store it was fitted on (their BACKGROUND_PERCENT percentile)
    per_tenfold change of the floor with each tenfold beyond BASE_COUNT, measured on growing stores, thousandths of a logit;
                the store's own background, where it is far above this one, holds it up or raises it
    fitted      what it was fitted on and how well it did, for people
    """

    __slots__ = ("background", "bias", "fitted", "floors", "per_tenfold", "space", "weights")

    def __init__(
        self,
        space: str,
        weights: Mapping[str, int],
        bias: int,
        floors: Mapping[str, int],
        background: int,
        per_tenfold: int,
        fitted: str = "",
    ) -> None:
        self.space, self.weights, self.bias, self.floors = space, dict(weights), bias, dict(floors)
        self.background, self.per_tenfold, self.fitted = background, per_tenfold, fitted

    def score(self, features: Mapping[str, int]) -> int:
        """How sure, in thousandths of a logit."""
        total = sum(weight * features.get(name, 0) for name, weight in self.weights.items())
        return self.bias + total // UNIT

    def floor(self, kind: str, documents: int, background: int | None = None) -> int:
        """What must be reached for a query of this kind in a store of so many documents.

        background  what the background questions reach in this very store, None where that was not measured
        """
        rise = self.per_tenfold * tenfolds_percent(documents) // 100
        if background is not None:
            rise = max(rise, background - self.background - STORES_DIFFER)
        return self.floors[kind] + max(-SINK_MAX, min(RISE_MAX, rise))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Model:
        """The inverse of `to_data`. Raises KeyError, TypeError or ValueError for what is none."""
        model = cls(**{name: data[name] for name in cls.__slots__})
        numbers = [*model.weights.values(), *model.floors.values(), model.bias, model.background, model.per_tenfold]
        if any(type(n) is not int for n in numbers) or not isinstance(model.space, str):
            raise ValueError("numbers of a calibration are integers")
        model.floors = {kind: model.floors[kind] for kind in ("path", "command", "error", "prose")}
        return model


def percentile(scores: Sequence[int]) -> int:
    """The BACKGROUND_PERCENT percentile, 0 of nothing."""
    ordered = sorted(scores)
    return ordered[(len(ordered) - 1) * BACKGROUND_PERCENT // 100] if ordered else 0


def tenfolds_percent(documents: int) -> int:
    """Hundredths of a tenfold above BASE_COUNT (0 up to it), piecewise linear between tenfolds."""
    tenfolds, size = 0, BASE_COUNT
    while documents >= size * 10:
        tenfolds, size = tenfolds + 1, size * 10
    return tenfolds * 100 + (max(0, documents - size) * 100) // (size * 9)


class Calibration(Value):
    """The models that hold for one store: the shipped ones, or what was calibrated here, and the store's own background.

    background  space -> score that the background questions reach in this store's current generation
    """

    __slots__ = ("background", "models")

    def __init__(self, models: Mapping[str, Model], background: Mapping[str, int] | None = None) -> None:
        self.models, self.background = dict(models), dict(background or {})

    def model(self, space: str) -> Model:
        """The model of a vector space; of an embedder that nobody calibrated.

        The lexical one (its cosine then counts for nothing).
        """
        return self.models.get(space) or self.models[LEXICAL]

    def floor(self, space: str, kind: str, documents: int) -> int:
        """See `Model.floor`."""
        model = self.model(space)
        return model.floor(kind, documents, self.background.get(model.space))

"""Logistic regression with a ridge, in numpy, deterministic; folds that keep families together; Wilson intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

STEPS = 100
Z95 = 1.96


def logistic(rows: Array, labels: Array, weights: Array, ridge: float) -> tuple[Array, float]:
    """(coefficients of shape (features,), bias) that maximise the penalised likelihood, by Newton's method.

    rows    shape (n, features);  labels 0 or 1 of shape (n,);  weights of shape (n,)
    ridge   penalty on the coefficients of the standardised features
    """
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    inputs = np.column_stack([np.ones(len(rows)), (rows - mean) / spread])
    penalty = np.eye(inputs.shape[1]) * ridge
    penalty[0, 0] = 1e-6
    found = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(inputs @ found, -30, 30)))
        slope = inputs.T @ (weights * (chance - labels)) + penalty @ found
        bend = (inputs * (weights * chance * (1 - chance))[:, None]).T @ inputs + penalty
        step = np.linalg.solve(bend, slope)
        found = found - step
        if float(np.abs(step).max()) < 1e-8:
            break
    coefficients = found[1:] / spread
    return coefficients, float(found[0] - (coefficients * mean).sum())


def folds(families: Sequence[str], count: int) -> list[int]:
    """Fold of each row: families stay together, dealt out in a fixed shuffled order."""
    order = sorted(set(families), key=lambda f: (_mixed(f), f))
    place = {family: number % count for number, family in enumerate(order)}
    return [place[f] for f in families]


def _mixed(text: str) -> int:
    """A fixed scramble of a name: FNV-1a, 32 bits (`hash` differs from run to run)."""
    value = 2166136261
    for byte in text.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def wilson(hits: int, of: int) -> tuple[float, float]:
    """95 % interval of a share. (0, 1) of nothing. Wilson, JASA 22 (1927)."""
    if not of:
        return 0.0, 1.0
    share, z2 = hits / of, Z95 * Z95
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = Z95 * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return max(0.0, middle - half), min(1.0, middle + half)

"""Recall's share of the policy: the weights of the blend, half-lives and type weights, from the table `[recall]`.

Pure; on the hook's path.

The defaults stand here; `compile_recall` (not on the hook's path) checks what a person wrote and names the key that is wrong.
What was accepted is kept with the policy in the log, so that a recorded recall can be recomputed.
"""

from __future__ import annotations

from projectmem_gate.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# component -> share of the blend in per cent; they add up to 100.
SHARES: Mapping[str, int] = {"similarity": 60, "age": 10, "confidence": 10, "importance": 8, "type": 8, "usage": 4}
# type -> weight in per cent; how much such a thing is worth when everything else is equal.
WEIGHTS: Mapping[str, int] = {
    "decision": 100, "fix": 100, "failure": 90, "attempt": 80, "note": 80, "issue": 70, "hypothesis": 50, "label": 100,
}  # fmt: skip
# type -> half-life in days: episodes fade in days, rules in months.
HALF_LIVES: Mapping[str, int] = {
    "decision": 180, "fix": 60, "failure": 7, "attempt": 14, "note": 60, "issue": 30, "hypothesis": 7, "label": 365,
}  # fmt: skip
LAMBDA_PERCENT = 50  # how much utility counts against the blend once there is any experience (MemRL)
WINDOW_TOKENS = 200_000  # of the reader's context window, where it does not say
SHARE_PERMILLE = 2  # of the window that a recall may take
CAP_TOKENS = 600  # and never more than this


class RecallPolicy(Value):
    """Shares in per cent, type weights in per cent, half-lives in days; `utility` per cent.

    Budget as a share of the window and a cap.
    """

    __slots__ = ("cap", "half_lives", "share", "shares", "utility", "weights")

    def __init__(self, **fields: Any) -> None:
        self.shares: dict[str, int] = {**SHARES, **fields.get("shares", {})}
        self.weights: dict[str, int] = {**WEIGHTS, **fields.get("weights", {})}
        self.half_lives: dict[str, int] = {**HALF_LIVES, **fields.get("half_lives", {})}
        self.utility: int = fields.get("utility", LAMBDA_PERCENT)
        self.share: int = fields.get("share", SHARE_PERMILLE)
        self.cap: int = fields.get("cap", CAP_TOKENS)

    @classmethod
    def from_data(cls, data: object) -> RecallPolicy:
        """The inverse of `to_data`; what is missing or of the wrong shape takes the default."""
        if not isinstance(data, dict):
            return cls()
        tables = {n: {k: v for k, v in data[n].items() if type(v) is int} for n in _TABLES if isinstance(data.get(n), dict)}
        return cls(**tables, **{n: data[n] for n in ("utility", "share", "cap") if type(data.get(n)) is int})

    def budget(self, window: int = WINDOW_TOKENS) -> int:
        """Tokens that one recall may take of a context window of this size."""
        return min(self.cap, window * self.share // 1000)


_TABLES = ("shares", "weights", "half_lives")
DEFAULT = RecallPolicy()


def compile_recall(tree: object, filename: str) -> RecallPolicy:
    """The `[recall]` table of a policy, parsed. Raises PolicyError naming the key."""
    from projectmem_gate.policy import PolicyError

    def fail(key: str, what: str) -> PolicyError:
        return PolicyError(f"{filename}: recall{'.' + key if key else ''}: {what}")

    if not isinstance(tree, dict):
        raise fail("", "must be a table")
    limits = {"shares": (0, 100), "weights": (0, 100), "half_lives": (1, 3650)}
    simple = {"utility": (0, 100), "share": (0, 100), "cap": (50, 10_000)}
    for key, value in tree.items():
        if key in simple:
            low, high = simple[key]
            if type(value) is not int or not low <= value <= high:
                raise fail(key, f"`{value}` is not a whole number from {low} to {high}")
        elif key in limits and isinstance(value, dict):
            low, high = limits[key]
            known = SHARES if key == "shares" else WEIGHTS
            for name, number in value.items():
                if name not in known:
                    raise fail(f"{key}.{name}", f"unknown; known are {', '.join(known)}")
                if type(number) is not int or not low <= number <= high:
                    raise fail(f"{key}.{name}", f"`{number}` is not a whole number from {low} to {high}")
        else:
            raise fail(key, f"unknown key; known are {', '.join((*limits, *simple))}")
    made = RecallPolicy(**tree)
    if sum(made.shares.values()) != 100:
        raise fail("shares", f"must add up to 100 with the defaults of those left out, these make {sum(made.shares.values())}")
    return made

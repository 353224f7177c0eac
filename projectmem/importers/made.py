"""A draft of a call made ready for the log: its bytes, and what the gate's snapshot takes from it.

Both are worked out where the call was drafted, mostly in a process of its own, so that who writes the log only has to give the
event its place. What crosses from one process to the other is a `Row`, which marshal takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from projectmem_logs import bulk
from projectmem_projections.fold_rows import folded

if TYPE_CHECKING:
    from projectmem_projections.fold_rows import Folded

Draft = dict[str, Any]
# at, kind, actor, the bytes of its data, whether it failed, characters of its input, what it folds to, and the keys that a
# failure on record would change it for
Row = tuple[int, str, dict[str, str], bytes, bool, int, "Folded", tuple[str, ...]]


class Made:
    """A draft, of which nothing but its bytes is at hand where it was made in another process.

    folded  what it folds to; None for what an import does not tell of: it is then written as a draft
    """

    __slots__ = ("actor", "at", "chars", "draft", "failed", "folded", "kind", "raw")

    def __init__(self, draft: Draft) -> None:
        data = draft["data"]
        self.draft: Draft | None = draft
        self.raw = b""
        self.at, self.kind, self.actor = draft["at"], draft["kind"], draft["actor"]
        self.failed, self.chars = data["outcome"] == "failed", len(data["input"])
        self.folded = folded(self.kind, self.at, self.actor, data)

    @classmethod
    def of(cls, row: Row) -> Made:
        """What a row says."""
        made = cls.__new__(cls)
        made.draft = None
        made.at, made.kind, made.actor, made.raw, made.failed, made.chars, made.folded, _ = row
        return made


def rows(given: Sequence[tuple[Draft, tuple[str, ...]] | None]) -> list[Row | None]:
    """Drafts with the keys that a failure on record would change them for, as rows; None for what is no plain draft of an import:
    the asker has it drafted where it can be told what is wrong."""
    plain = [one for one in given if one is not None and not one[0].get("causes")]
    try:
        raws = [one[4] for one in bulk.prepare_many([draft for draft, _ in plain], 0)]
    except Exception:
        raws = [b""] * len(plain)
    out: list[Row | None] = [None] * len(given)
    at = iter(zip(plain, raws, strict=True))
    for n, one in enumerate(given):
        if one is None or one[0].get("causes"):
            continue
        (draft, keys), raw = next(at)
        made = Made(draft)
        if raw and made.folded is not None:
            out[n] = made.at, made.kind, made.actor, raw, made.failed, made.chars, made.folded, keys
    return out


def encoded(given: Sequence[Made], now: int) -> list[bulk.Encoded] | None:
    """As the log takes them; None where one is to be written as a draft. Raises EventError for what the log does not take."""
    if any(one.folded is None for one in given):
        return None
    own = [one for one in given if one.draft is not None]
    with bulk.Uncollected(len(own) > 1):
        prepared = iter(bulk.prepare_many([one.draft for one in own], now))
    return [bulk.encoded(one.kind, one.at, one.actor, one.raw) if one.draft is None else next(prepared) for one in given]


def drafts(given: Sequence[Made]) -> list[Draft]:
    """As drafts, whoever made them."""
    return [
        {"kind": one.kind, "at": one.at, "actor": one.actor, "causes": [], "data": bulk.read(one.raw)}
        if one.draft is None
        else one.draft
        for one in given
    ]

"""What the end of a segment looks like and what may be done about it: a table, and the pure scan that feeds it.

A batch is one write and one sync, and the next begins only after the sync returned. So after a crash only the last
batch can be unfinished ("torn", to be cut: nobody was told it is stored), and damage in front of a later batch cannot
come from a crash ("corrupt", never cut). Every record names the first seq of its batch and how many of it follow.
What an editor or a bad disk did inside the last batch alone looks like a crash: so what is cut is kept, in quarantine.
"""

from __future__ import annotations

from .envelope import MAX_BATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .envelope import Line

CLEAN, UNTERMINATED, TORN, CORRUPT, MORE = "clean", "unterminated", "torn", "corrupt", "more"
NONE, SAME, BEYOND = "none", "same", "beyond"  # what the lines from the damage on claim, by their batches

ANY = None
# damage   there are bytes after the last good record
# crash    those bytes could be one unfinished write of ours: no longer than a batch, not an editor's or a stranger's, and
#          not something in front of the record that should come next
# later    the batches claimed by the lines from the damage on: by whole ones, and by damaged ones that still name this stream
#          and their batch (what is left of one unfinished write names the next batch and no other)
# whole    the last good record closes its batch
# newline  the last good record ends in its newline
# (damage, crash, later, whole, newline, -> state)
TABLE: tuple[tuple[bool | None, bool | None, str | None, bool | None, bool | None, str], ...] = (
    (False, ANY, ANY, True, True, CLEAN),
    (False, ANY, ANY, True, False, UNTERMINATED),  # whole but for its newline: finish the line, lose nothing
    (False, ANY, ANY, False, ANY, TORN),  # cut between two records of a batch
    (True, False, ANY, ANY, ANY, CORRUPT),  # no crash did this: never cut it
    (True, True, NONE, ANY, ANY, TORN),  # nothing that names a batch follows: the unfinished write itself
    (True, True, SAME, ANY, ANY, TORN),  # what follows belongs to the unfinished batch, or repeats what came before
    (True, True, BEYOND, ANY, ANY, CORRUPT),  # what follows was begun after the damaged part was synced
)


def classify(damage: bool, crash: bool, later: str, whole: bool, newline: bool) -> str:
    """The state for one combination of facts: exactly one row of TABLE applies (a test goes through them all)."""
    facts = (damage, crash, later, whole, newline)
    for *row, state in TABLE:
        if all(want is ANY or want == fact for want, fact in zip(row, facts, strict=True)):
            return str(state)
    raise AssertionError("the recovery table has a hole")


class Tail:
    """The verdict on the end of a stream.

    state        clean | unterminated | torn | corrupt | more (the lines given do not reach back far enough to tell)
    seq, hash    of the last record of the last whole batch: where the next record chains on
    ids          ids of the records of that batch, as far as they were read
    cut          byte offset in the segment where the good part ends
    damage, why  offset and fault of the first damaged line (-1, "" when none)
    """

    __slots__ = ("cut", "damage", "hash", "ids", "seq", "state", "why")

    def __init__(self, state: str, seq: int, hash: str, ids: list[str], cut: int, damage: int = -1, why: str = "") -> None:
        self.state, self.seq, self.hash, self.ids, self.cut, self.damage, self.why = state, seq, hash, ids, cut, damage, why


def joins(line: Line, seq: int, hash: str, batch: int, left: int) -> str:
    """Why `line` cannot follow the record (seq, hash, batch, left): "" when it can. An empty `hash` is not compared."""
    if line.seq != seq + 1:
        return "duplicate" if line.seq <= seq else "gap"
    if hash and line.prev != hash:
        return "chain"
    fits = line.batch == line.seq if left == 0 else (line.batch == batch and line.left == left - 1)
    return "" if fits else "batch"


def assess(lines: Sequence[Line], stream: str, anchor: tuple[int, str] | None, size: int, start: int = 0) -> Tail:
    """Judge consecutive lines up to the end of a segment.

    anchor  (seq, hash or "") of the record before `lines[0]` when they start a segment; None when they start mid-file
    size, start  byte offsets where the file ends and where the lines begin
    """
    seq, hash = anchor or (0, "")
    batch = left = 0
    closed_seq, closed_hash, closed_end = seq, hash, start  # the end of the last whole batch
    closed_ids: list[str] = []
    ids: list[str] = []
    known = begun = anchor is not None  # whether `closed_*` is a fact yet; whether the first record of a batch is in sight
    why, at = "", len(lines)
    for i, line in enumerate(lines):
        if not line.ok or line.stream != stream:
            why, at = line.why or "stream", i
        elif i == 0 and anchor is None:
            known = line.batch == line.seq
            closed_seq, closed_hash = line.seq - 1, line.prev
        else:
            why = joins(line, seq, hash, batch, left)
            at = i if why else at
        if why:
            break
        seq, hash, batch, left = line.seq, line.hash, line.batch, line.left
        if line.seq == line.batch:
            ids, begun = [], True
        ids.append(line.id)
        if left == 0:
            closed_seq, closed_hash, closed_end, closed_ids, known = seq, hash, line.end, ids, True
    damaged = at < len(lines)
    if anchor is None and at == 0:
        return Tail(MORE, seq, hash, [], size)  # no good record in sight: look further back
    crash = not damaged or _could_be_ours(lines[at:], size, at == 0 and start == 0, seq, hash)
    newline = at == 0 or lines[at - 1].terminated
    state = classify(damaged, crash, _later(lines[at:], stream, seq), left == 0, newline)
    if not (known if state == TORN else begun or state == CORRUPT):
        state = MORE  # the batch before the torn one, or the beginning of the last one, is not in sight
    cut = closed_end if state == TORN else size
    return Tail(state, closed_seq, closed_hash, closed_ids, cut, lines[at].start if damaged else -1, why)


def _later(rest: Sequence[Line], stream: str, seq: int) -> str:
    """What the lines from the first damage on claim about their batches: whole ones, and damaged ones as far as they name it."""
    claims = [(line.stream, line.batch) if line.ok else line.named for line in rest]
    batches = [batch for named, batch in claims if named == stream]
    return NONE if not batches else BEYOND if max(batches) > seq + 1 else SAME


def _could_be_ours(rest: Sequence[Line], size: int, all_of_it: bool, seq: int, hash: str) -> bool:
    """Could these damaged bytes be what a crash left of one write? Not when an editor dressed the lines, not when they are
    longer than any batch, not when the record that goes on from the last good one stands whole behind them (a write begins
    with it), and not when the whole segment is several lines, each of something else (another encoding)."""
    if any(line.dressed for line in rest) or size - rest[0].start > MAX_BATCH:
        return False
    if any(line.ok and line.seq == line.batch == seq + 1 and line.prev == hash for line in rest[1:]):
        return False
    strange = rest[0].why == "foreign" and all(line.why in ("foreign", "nul") for line in rest)
    return not (all_of_it and len(rest) > 1 and strange)

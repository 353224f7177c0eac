"""The recovery table over all its inputs, and the scan that feeds it against every tail of a small log."""

from __future__ import annotations

import itertools

import pytest
from projectmem_logs.envelope import GENESIS, MAX_BATCH, Line, check_line, seal
from projectmem_logs.recovery import ANY, BEYOND, CLEAN, CORRUPT, NONE, SAME, TABLE, TORN, UNTERMINATED, assess, classify

INPUTS = list(itertools.product((False, True), (False, True), (NONE, SAME, BEYOND), (False, True), (False, True)))


@pytest.mark.parametrize("facts", INPUTS)
def test_exactly_one_row_applies(facts: tuple[bool, bool, str, bool, bool]) -> None:
    """No hole and no overlap."""
    rows = [row for row in TABLE if all(w is ANY or w == f for w, f in zip(row, facts, strict=False))]
    assert len(rows) == 1 and classify(*facts) == rows[0][-1]


@pytest.mark.parametrize("facts", INPUTS)
def test_the_table_errs_on_the_side_of_not_cutting(facts: tuple[bool, bool, str, bool, bool]) -> None:
    """Written down independently: what each state requires."""
    damage, crash, later, whole, newline = facts
    state = classify(*facts)
    if state == CORRUPT:
        assert damage and (not crash or later == BEYOND)
    elif state == TORN:
        assert not (damage and later == BEYOND) and (damage or not whole)
    else:
        assert state == (CLEAN if newline else UNTERMINATED) and not damage and whole


def good(seq: int, batch: int, left: int, *, prev: str | None = None, start: int = 0) -> Line:
    """A valid line of 10 bytes."""
    line = Line("", start or (seq - 1) * 10, (start or (seq - 1) * 10) + 10)
    line.seq, line.batch, line.left, line.stream, line.hash, line.id = seq, batch, left, "s", f"h{seq}", f"id{seq}"
    line.prev = f"h{seq - 1}" if prev is None else prev
    return line


def bad(start: int, why: str = "hash", length: int = 10, named: tuple[str, int] = ("", 0)) -> Line:
    """A damaged line, and the stream and batch it still names."""
    line = Line(why, start, start + length)
    line.named = named
    return line


WHOLE = [good(1, 1, 0), good(2, 2, 1), good(3, 2, 0)]
CASES: list[tuple[str, list[Line], str, int, int]] = [
    # name, lines, state, seq of the last whole batch, where it ends
    ("nothing", [], CLEAN, 0, 0),
    ("whole batches", WHOLE, CLEAN, 3, 30),
    ("cut between the records of a batch", WHOLE[:2], TORN, 1, 10),
    ("damage at the end", [*WHOLE, bad(30)], TORN, 3, 30),
    ("damage inside the last batch", [WHOLE[0], bad(10), WHOLE[2]], TORN, 1, 10),
    ("damage in front of a later batch", [bad(0), *WHOLE[1:]], CORRUPT, 0, 0),
    ("a record missing", [WHOLE[0], good(3, 3, 0)], CORRUPT, 1, 10),
    ("a record twice", [*WHOLE, good(3, 2, 0, start=30)], TORN, 3, 30),
    ("two records swapped", [WHOLE[0], good(3, 3, 0), good(2, 2, 0)], CORRUPT, 1, 10),
    ("another chain", [WHOLE[0], good(2, 2, 0, prev="x")], TORN, 1, 10),
    ("damage that names the batch it is in", [*WHOLE, bad(30, named=("s", 4)), bad(40, named=("s", 4))], TORN, 3, 30),
    ("damage that names batches begun later", [*WHOLE, bad(30, named=("s", 4)), bad(40, named=("s", 5))], CORRUPT, 3, 30),
    ("damage that names another stream's batch", [*WHOLE, bad(30), bad(40, named=("t", 9))], TORN, 3, 30),
    ("only strange lines", [bad(0, "foreign"), bad(10, "foreign")], CORRUPT, 0, 0),
    ("one strange scrap", [bad(0, "foreign", 5)], TORN, 0, 0),
    ("longer than any batch", [WHOLE[0], bad(10, "nul", MAX_BATCH + 1)], CORRUPT, 1, 10),
]


@pytest.mark.parametrize(("name", "lines", "state", "seq", "end"), CASES, ids=[c[0] for c in CASES])
def test_what_the_end_of_a_segment_looks_like(name: str, lines: list[Line], state: str, seq: int, end: int) -> None:
    """The state, the record to chain on, and for a torn tail where to cut."""
    size = max([line.end for line in lines], default=0)
    tail = assess(lines, "s", (0, "h0"), size)
    assert (tail.state, tail.seq) == (state, seq)
    assert tail.cut == (end if state == TORN else size)


def test_an_unterminated_record_is_finished_not_cut() -> None:
    """A whole last batch without its newline loses nothing; an unfinished one is cut."""
    last = good(3, 2, 0)
    last.terminated = False
    assert assess([*WHOLE[:2], last], "s", (0, "h0"), 29).state == UNTERMINATED
    last.left = 1
    assert assess([*WHOLE[:2], last], "s", (0, "h0"), 29).state == TORN


def test_lines_an_editor_dressed_are_never_cut() -> None:
    """A whole record with a carriage return is an editor's doing: corrupt, even as the last batch."""
    line = bad(30, "crlf")
    line.dressed = True
    assert assess([*WHOLE, line], "s", (0, "h0"), 40).state == CORRUPT


def test_a_window_without_a_whole_batch_asks_for_more() -> None:
    """Starting mid-file, nothing is decided before a good record and the batch before the damage are in sight."""
    assert assess([bad(50), bad(60)], "s", None, 70).state == "more"
    assert assess([good(6, 5, 1), bad(60)], "s", None, 70).state == "more"
    assert assess([good(6, 6, 0), bad(60)], "s", None, 70).state == TORN


def test_the_end_of_a_batch_alone_does_not_make_it_whole() -> None:
    """Its beginning may be what the crash took: a last batch is clean only when its first record is in sight."""
    assert assess([good(6, 5, 0)], "s", None, 60).state == "more"
    assert assess([good(5, 5, 1), good(6, 5, 0)], "s", None, 60).state == CLEAN
    assert assess([good(6, 5, 0), good(7, 7, 0)], "s", None, 70).state == CLEAN


def record(data: dict[str, object], batch: int = 7) -> bytes:
    """One line of the stream "s", without its newline."""
    draft = {"kind": "note.recorded", "actor": {"origin": "human", "agent": '},"at":1,"batch":1,"causes":['}, "data": data}
    scope = {"project": "p", "tenant": ""}
    return seal(
        draft, stream="s", seq=9, batch=batch, ts=1, prev=GENESIS, salt=bytes(16), id="0" * 36, scope=scope
    )[1][:-1]  # fmt: skip


def test_a_damaged_line_names_its_stream_and_batch_where_they_stand_and_nowhere_else() -> None:
    """What an actor or a payload says of batches and streams is not taken for the envelope's."""
    line = record({"text": "Anna", "at": {"x": 1}, "batch": 99, "causes": [], "stream": "t", "ts": 1})
    assert check_line(line).ok and check_line(line).named == ("", 0)
    assert check_line(line.replace(b"Anna", b"Hanna")).named == ("s", 7)
    assert check_line(line.replace(b"Anna", b"A\0na")).named == ("s", 7)
    begin, end = line.index(b',"data":'), line.index(b',"salt":')
    for scrap in (line[:begin], line[begin:], line[9:], line[:end], bytes(len(line)), line.replace(b'"batch":7', b'"batch":x')):
        assert check_line(scrap).named == ("", 0)

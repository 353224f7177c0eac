"""Reads the log from a remembered position onwards, for recall [H]. A position is {stream: (segment, byte offset, seq)}.

Uses the light tail reader; a stream that it cannot follow is read through `projectmem_logs.reader`, which knows damage.
"""

from __future__ import annotations

from projectmem_projections.tail import positions, read_tail, segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Position = Mapping[str, tuple[str, int, int]]

CHUNK = 10_000


class Follower:
    """Iterate over it for the events after `position`, stream by stream; then `position` is where it stopped.

    problems   what could not be followed and was read around
    rewritten  the log no longer holds what the position stands for: whatever was made from it up to there is of another log
    """

    def __init__(self, home: str, position: Position | None = None) -> None:
        self.home = home
        self.position: dict[str, tuple[str, int, int]] = {s: (p[0], p[1], p[2]) for s, p in (position or {}).items()}
        self.problems: list[str] = []
        self.rewritten = False

    @property
    def seqs(self) -> dict[str, int]:
        """The position as {stream: last sequence number}."""
        return {stream: seq for stream, (_, _, seq) in self.position.items() if seq}

    def behind(self) -> bool:
        """Whether some segment has grown, shrunk or is new since the position (looks at names and sizes only)."""
        now = positions(self.home)
        return set(self.seqs) - set(now) != set() or any(self.position.get(s, ("", 0, 0))[:2] != at for s, at in now.items())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        streams = sorted(positions(self.home))
        self.rewritten = bool(set(self.seqs) - set(streams))
        for stream in streams:
            yield from self._stream(stream)

    def _stream(self, stream: str) -> Iterator[dict[str, Any]]:
        names = segments(self.home, stream)
        segment, offset, seq = self.position.get(stream, (names[0] if names else "", 0, 0))
        while True:
            tail = read_tail(self.home, stream, segment, offset, seq, CHUNK)
            yield from tail.events
            seq = tail.events[-1]["seq"] if tail.events else seq
            segment, offset = tail.segment, tail.offset
            self.position[stream] = (segment, offset, seq)
            if tail.shortened:
                self.rewritten = True
                return
            if tail.problem:
                self.problems.append(tail.problem)
                yield from self._around(stream, segment, offset, seq)
                return
            if tail.reached_end:
                return

    def _around(self, stream: str, segment: str, offset: int, seq: int) -> Iterator[dict[str, Any]]:
        from projectmem_logs.reader import read_stream

        for event in read_stream(self.home, stream, seq, None, []):
            seq = max(seq, event["seq"])
            yield event
        self.position[stream] = (segment, offset, seq)

"""What a log shows of the clocks it was written by: where one went back, and whether one is ahead. Pure; no fault of the log.

`ts` orders display only. A stream's order is that of its seqs, cursors count seqs, and the gate places what is dated ahead of
its own clock by that order, so a clock that was wrong harms nothing; but whoever reads times should know.
"""

from __future__ import annotations

from dataclasses import dataclass

SKEW_US = 300_000_000  # clocks may differ by this much without a word
JUMPS_MAX = 100  # jumps kept of one stream
_TAIL = b',"ts":'
_DIGITS = 17  # a colon and the sixteen digits of any time from 2001 to 2286


@dataclass(frozen=True)
class Jump:
    """A clock that went back: the record at `offset` of `segment` was recorded `back` microseconds before the latest time
    that its stream had seen, at `ts`. Records before it may be dated ahead of the time they were made."""

    stream: str
    segment: str
    offset: int
    ts: int
    back: int


class Clock:
    """Follows the times of one stream's records, in their order.

    latest  the latest time (microseconds) since the clock last went back by more than SKEW_US;  jumps  those places
    """

    def __init__(self, stream: str) -> None:
        self.stream, self.latest = stream, 0
        self.jumps: list[Jump] = []

    def see(self, segment: str, offset: int, lines: list[bytes]) -> None:
        """Whole records, one after the other from byte `offset` on, without their newlines."""
        times = [raw[-24:-7] for raw in lines]
        joined = b"".join(times)
        plain = len(joined) == _DIGITS * len(lines) and joined[::_DIGITS] == b":" * len(lines)
        if plain and times == sorted(times) and int(times[0][1:]) >= self.latest:
            self.latest = int(times[-1][1:])
            return
        for raw in lines:
            self._one(segment, offset, raw)
            offset += len(raw) + 1

    def _one(self, segment: str, offset: int, raw: bytes) -> None:
        digits = raw[raw.rfind(_TAIL) + len(_TAIL) :].partition(b",")[0]
        if not digits.isdigit():
            return
        ts = int(digits)
        if ts >= self.latest:
            self.latest = ts
        elif self.latest - ts > SKEW_US:
            if len(self.jumps) < JUMPS_MAX:
                self.jumps.append(Jump(self.stream, segment, offset, ts, self.latest - ts))
            self.latest = ts

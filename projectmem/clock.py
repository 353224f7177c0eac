"""Says where the clocks that a log was written by were wrong: one that went back, one that is ahead of this machine's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from projectmem_logs.clocks import SKEW_US

from projectmem import output

SHOWN = 5
_THEN = "what was recorded before may be dated ahead of when it was; order and checks go by the records' numbers"


def back(stream: str, where: str, us: int, ts: int) -> str:
    """A clock that went back by `us` (microseconds), to `ts`."""
    return f"the clock of stream {stream} went back by {output.span(us)} at {where}, to {output.when(ts)}: {_THEN}"


def ahead(latest: Mapping[str, int], now: int) -> list[str]:
    """Of {stream: latest time on record} those that lie ahead of this clock by more than clocks may differ."""
    return [_ahead(stream, ts) for stream, ts in sorted(latest.items()) if ts > now + SKEW_US]


def _ahead(stream: str, ts: int) -> str:
    return (
        f"stream {stream} is dated {output.when(ts)}, ahead of this machine's clock: one of the two is wrong; until then what"
        " failed there warns at most"
    )


def of_report(report: Any, now: int) -> list[str]:
    """What a verification (`verify.Report`) saw of the clocks."""
    jumps = report.jumps
    lines = [back(j.stream, f"{j.segment} byte {j.offset}", j.back, j.ts) for j in jumps[:SHOWN]]
    more = [f"and {len(jumps) - SHOWN} more places where a clock went back"] if len(jumps) > SHOWN else []
    return lines + more + ahead({s.stream: s.latest for s in report.streams}, now)


def of_events(events: Iterable[Mapping[str, Any]], now: int) -> list[str]:
    """What these events show, those of each stream in their order."""
    latest: dict[str, int] = {}
    lines = []
    for event in sorted(events, key=lambda event: (event["stream"], event["seq"])):
        stream, ts = event["stream"], event["ts"]
        before = latest.get(stream, ts)
        if before - ts > SKEW_US:
            lines.append(back(stream, f"event {event['id']}", before - ts, ts))
            latest[stream] = ts
        else:
            latest[stream] = max(before, ts)
    return lines[:SHOWN] + ahead(latest, now)


def of_times(times: Iterable[int], now: int) -> list[str]:
    """What is to be said of failures recorded at these times (microseconds)."""
    count = sum(at > now + SKEW_US for at in times)
    if not count:
        return []
    return [
        f"{count} of these {'is' if count == 1 else 'are'} dated ahead of this machine's clock: one of the two clocks is wrong;"
        " until that time they warn at most"
    ]


def of_stats(found: Mapping[str, Any]) -> list[str]:
    """What the summaries say of the clocks (see `summaries.stats`)."""
    clock = found.get("clock") or {}
    lines = [back(row["stream"], f"record {row['seq']}", row["back_us"], row["ts"]) for row in clock.get("back", ())[:SHOWN]]
    return lines + [_ahead(stream, ts) for stream, ts in sorted(clock.get("ahead", {}).items())]

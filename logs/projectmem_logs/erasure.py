"""The erased form of a line: data and salt gone, a tombstone in their place, digest and hash as they were. Pure.

What finds the lines, rewrites their segments and reaches quarantine, spool and projections is built on this.
"""

from __future__ import annotations

from .canonical import canonical_text
from .envelope import check_line, is_id
from .errors import EventError, LineError


def tombstone(raw: bytes, *, by: str, at: int) -> bytes:
    """`raw`, one whole line without its newline, erased by event `by` at `at` (microseconds). An erased line stays as it is.

    Raises LineError when the line is damaged, EventError when `by` is no event id.
    """
    if not is_id(by):
        raise EventError(f"{by!r} is not an event id")
    line = check_line(raw)
    if not line.ok:
        raise LineError(line.why, "a damaged line cannot be erased; run `projectmem verify`")
    if line.erased:
        return raw
    data, digest = raw.find(b',"data":'), raw.rfind(b',"digest":"')
    kept = raw[:data] + raw[digest:]
    salt, ts = kept.rfind(b',"salt":"'), kept.rfind(b',"ts":')
    scope = kept.find(b',"scope":', salt)
    mark = f',"tombstone":{canonical_text({"at": at, "by": by})}'.encode()
    return kept[:salt] + kept[scope:ts] + mark + kept[ts:]

"""What an imported call folds to, but for its place in the log: worked out where its draft is made. Pure.

An import's calls are drafted by several processes and written by one, which then has no event to fold but only rows to put
together. `folded` is `fold.fold_event` of an event without a place, in a form that marshal takes; snapshot_rows.py gives it one.
"""

from __future__ import annotations

from projectmem_logs.fastjson import encode

from .fold import ENTRY_FIELDS, fold_event, hint_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    # key, t, at, the hint words of a failure, and the text of the rest of the entry's row (fold.pack) with its closing bracket
    Entry = tuple[str, str, int, tuple[str, str, str], str]
    Touch = tuple[str, str, int, str]  # type, subject, at, session
    Ok = tuple[str, str, int, str, str]  # family, key, at, text, session
    Fix = tuple[str, str, tuple[Any, ...]]  # verdict | made | restored, track, the row without stream, seq and id
    # The call that was seen, its entries, what it touched, its successes, what it says of fixes; and all keys that it has.
    Folded = tuple[list[tuple[str, str]], list[Entry], list[Touch], list[Ok], list[Fix], list[str]]

PLACED = ENTRY_FIELDS.index("session")  # the fields before it: t, at, and the place


def folded(kind: str, at: int, actor: Mapping[str, str], data: Mapping[str, Any]) -> Folded | None:
    """None for what has more to say than an imported call has: such an event is folded when it has its place."""
    if actor.get("origin") != "import":
        return None
    seen: list[tuple[str, str]] = []
    entries: list[Entry] = []
    touches: list[Touch] = []
    oks: list[Ok] = []
    fixes: list[Fix] = []
    for op in fold_event({"kind": kind, "at": at, "actor": actor, "data": data, "stream": "", "seq": 0, "id": ""}):
        name = op[0]
        if name == "entry":
            entries.append(_entry(op[1], op[2]))
        elif name == "touch":
            touches.append((op[1], op[2], op[3], op[6]))
        elif name == "ok":
            oks.append((op[1], op[2], op[3], op[7], op[8]))
        elif name == "seen":
            seen.append(op[1:])
        elif name in ("verdict", "made", "restored"):
            at, _, _, n, _, *rest = op[-1]
            fixes.append((name, op[1] if name == "verdict" else "", (at, n, *rest)))
        else:
            return None
    known = {data.get("key"): None, **{part.get("key"): None for part in data.get("parts") or () if isinstance(part, dict)}}
    return seen, entries, touches, oks, fixes, [key for key in known if isinstance(key, str)]


def _entry(key: str, entry: dict[str, Any]) -> Entry:
    words = hint_words([entry]) if entry["t"] == "fail" else ("", "", "")
    return key, entry["t"], entry["at"], words, encode([entry[name] for name in ENTRY_FIELDS[PLACED:]])[1:]


def row_text(t: str, at: int, stream: str, seq: int, id: str, rest: str) -> str:
    """The JSON text of an entry's row (`fold.pack`) in its place."""
    return f'["{t}",{at},"{stream}",{seq},"{id}",{rest}'


def fix_op(fix: Fix, stream: str, seq: int, id: str) -> tuple[Any, ...]:
    """The operation of fold.py."""
    name, track, (at, n, *rest) = fix
    row = (at, stream, seq, n, id, *rest)
    return (name, track, row) if name == "verdict" else (name, row)

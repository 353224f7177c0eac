"""What an `action.finished` tells of fixes [H]: verdicts of verifiers, edits that happened, files that were put back. Pure.

Three operations more, rows as gate/attempts.py has them:

    ("verdict", track, row)      ("made", row)      ("restored", row)
"""

from __future__ import annotations

from projectmem_gate.attempts import is_edit, restores
from projectmem_gate.verifiers import CI_LOGS, FINDINGS, is_whole, of_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Part = Mapping[str, Any]
    Place = tuple[int, str, int, str]  # at, stream, seq, id

SIGNATURE_MAX, TEXT_MAX, WORD_MAX = 200, 200, 64
AMOUNTS_MAX, AMOUNTS_FROM = 4, 1_000  # behind the numbers of parts
_ATOMIC = ("edit", "write", "patch")
# What only somebody's word stands for proves nothing.
_SEEN_BY = ("observed", "import")


def ops(
    place: Place,
    origin: str,
    session: str,
    data: Mapping[str, Any],
    parts: Sequence[Part],
    joins: Sequence[str],
    certain: Sequence[int],
) -> list[tuple[Any, ...]]:
    """The operations of one call. `certain`: the parts of a successful call that surely ran and succeeded."""
    outcome = data.get("outcome")
    if origin not in _SEEN_BY or outcome not in ("ok", "failed"):
        return []
    failed = data.get("failed_key") if outcome == "failed" else ""
    culprit = _culprit(parts, failed, data) if outcome == "failed" else len(parts)
    chained = outcome == "ok" or all(j == "&&" for j in joins[:culprit])
    out: list[tuple[Any, ...]] = []
    for n, part in enumerate(parts):
        if outcome == "failed" and (n == culprit or (part.get("kind") in _ATOMIC and (n > culprit or not chained))):
            continue  # an edit tool refuses as a whole
        out += _written(place, session, n, part)
    for n, red in _judged(data, parts, culprit, chained, certain):
        track, row = _verdict(place, session, n, parts[n], red, data)
        if track:
            out.append(("verdict", track, row))
    return out


def _culprit(parts: Sequence[Part], failed: Any, data: Mapping[str, Any]) -> int:
    """The part to blame: the recorded one, else the only verifier of the call; len(parts) for none."""
    for n, part in enumerate(parts):
        if failed and part.get("key") == failed:
            return n
    runs = [n for n, part in enumerate(parts) if of_part(part)[0]]
    return runs[0] if len(runs) == 1 and data.get("class") in ("test", "build") else len(parts)


def _judged(
    data: Mapping[str, Any], parts: Sequence[Part], culprit: int, chained: bool, certain: Sequence[int]
) -> Iterator[tuple[int, bool]]:
    """(number of the part, whether it failed) of the verifiers whose outcome is certain, in order."""
    report = data["report"] if isinstance(data.get("report"), dict) else {}
    shown = report.get("part")
    if type(shown) is int and 0 <= shown < len(parts):
        yield shown, report.get("outcome") == "failed"
    if data.get("outcome") == "ok":
        yield from ((n, False) for n in certain if n < len(parts) and n != shown)
        return
    for n in range(min(culprit, len(parts)) if chained else 0):
        yield n, False
    if culprit < len(parts) and culprit != shown and data.get("class") in FINDINGS:
        yield culprit, True


def _verdict(place: Place, session: str, n: int, part: Part, red: bool, data: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    at, stream, seq, id = place
    verifier, track = of_part(part)
    signature, cls = data.get("signature"), data.get("class")
    report = data.get("report")
    if isinstance(report, dict) and report.get("part") == n:
        verifier, signature, cls = str(report.get("verifier") or ""), report.get("signature"), "test"
        family, shown = str(part.get("family") or ""), str(part.get("text") or "")
        track = f"{verifier} {family if family in CI_LOGS else shown}" if verifier else ""
        whole = int(family in CI_LOGS)  # each run has a number of its own: the newest speaks for the project
    elif not verifier:  # most parts
        return "", ()
    else:
        whole = int(is_whole(part))
        if verifier == "ci":
            return "", ()  # shows what others ran: only its report says how that went
    if not verifier or (red and not signature):
        return "", ()
    sig = str(signature)[:SIGNATURE_MAX] if red else ""
    text = str(part.get("text") or "")[:TEXT_MAX]
    key = track if track.endswith(CI_LOGS) else str(part.get("key") or "")
    row = (at, stream, seq, n, id, key, int(red), sig, str(cls or "") if red else "", verifier, text, whole, session)
    return track[:TEXT_MAX], row


def _written(place: Place, session: str, n: int, part: Part) -> Iterator[tuple[Any, ...]]:
    at, stream, seq, id = place
    effects = [e for e in part.get("effects") or () if isinstance(e, (list, tuple)) and len(e) == 2]
    family, text, paths = str(part.get("family") or ""), str(part.get("text") or ""), part.get("paths") or ()
    if part.get("trivial") is True or not part.get("key"):
        return
    yield from _amounts(place, session, n, part)
    if is_edit(family, effects):
        path = next((str(s) for t, s in effects if t == "edit" and s), "")
        if path:
            given = [w[:WORD_MAX] for w in part.get("words") or () if isinstance(w, str) and w]
            words = [*sorted(set(given), key=lambda w: (-len(w), w)), "", "", ""][:3]
            undoes, variant = str(part.get("undoes") or ""), str(part.get("variant") or "")[:TEXT_MAX]
            if variant == "delete":  # a file that is gone is as it was before it was written
                yield "restored", (at, stream, seq, n, id, path)
                return
            yield "made", (at, stream, seq, n, id, str(part["key"]), path, undoes, variant, text[:TEXT_MAX], session, *words)
        return
    for path in restores(family, text, effects, [p for p in paths if isinstance(p, str)]):
        yield "restored", (at, stream, seq, n, id, path)


def _amounts(place: Place, session: str, n: int, part: Part) -> Iterator[tuple[Any, ...]]:
    """The writes that a shell's part amounted to, as the files showed when it had run: rows of their own beside its."""
    given = part.get("edits")
    for i, row in enumerate(given[:AMOUNTS_MAX] if isinstance(given, list) else ()):
        if isinstance(row, list) and 5 <= len(row) <= 8 and all(isinstance(value, str) for value in row) and row[0] and row[1]:
            key, path, undoes, variant, text, *words = row
            words = [*(w[:WORD_MAX] for w in words), "", "", ""][:3]
            at, stream, seq, id = place
            number = n + AMOUNTS_FROM * (i + 1)
            yield "made", (at, stream, seq, number, id, key, path, undoes, variant[:TEXT_MAX], text[:TEXT_MAX], session, *words)

"""[H] Failed fixes, derived: which edits were tried against a failure that still stands, and did not mend it.

An edit is an attempt at a failure (a verifier's track and a signature) when it was made between two runs that failed alike,
or was taken back while that failure stood. It is none when it only takes another one back, when it held (the verifier passed
after it, before another edit of the file), and no more once the failure is gone (the verifier passed). All of it is a
function of three sets of rows, whatever order they came in; `projections` keeps the rows and asks here.

Rows are plain tuples that start with their place (at, stream, seq, n): n is the number of the part within the call.

    verdict   place, id, key, red (1 | 0), sig, cls, verifier, text, whole (1: nothing was left out), session
    made      place, id, key, path, undoes, variant, text, session, w1, w2, w3    an edit that happened, with its hint words
    restored  place, id, path        a file ("" = every file) was put back as it was
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Row = tuple[Any, ...]

# What a store hands in at most: the newest verdicts of a track; of the edits since the oldest of these the newest up to the
# last verdict and the first after it (so that no later edit changes the answer by itself); the newest restorations.
VERDICTS_MAX, MADE_MAX, AFTER_MAX, RESTORED_MAX = 32, 256, 64, 64
PER_RUN = 24  # edits between two runs that are taken for attempts, the newest: more were not made for one failure
KEYS_MAX = 64  # attempts of a track that are remembered, the newest

_END: tuple[Any, ...] = (1 << 62,)
_EDITORS = ("sed", "perl", "python", "node", "ruby", "bun", "deno", "php")


def is_edit(family: str, effects: Sequence[Any]) -> bool:
    """Is a part with these an edit of one file: by an edit tool, a patch, a here-document, in place by sed or perl, or by code
    that names it?"""
    if family.startswith("edit "):
        return True
    return family.split(" ")[0] in _EDITORS and len(effects) == 1 and effects[0][0] == "edit" and bool(effects[0][1])


def restores(family: str, text: str, effects: Sequence[Any], paths: Sequence[str]) -> list[str]:
    """The files that a command puts back as they were, "" for every file: git checkout, restore, stash, reset, revert; rm."""
    words = text.partition("  # ")[0].split()
    sub = family.split(" ")[1] if family.startswith("git ") and " " in family else ""
    edited = [str(e[1]) for e in effects if e[0] == "edit" and e[1]]
    if family == "rm" or sub == "rm":
        return edited
    if not any(e[0] in ("edit", "checkout") for e in effects):
        return []
    if sub in ("checkout", "restore"):
        if edited:
            return edited
        if "." in words or ":/" in words:
            return [""]
        named = [w for w in words[2:] if "." in w.strip(".") or "/" in w] if sub == "checkout" and "-b" not in words else []
        return [w.removeprefix("./") for w in named if ".." not in w]
    if sub == "stash":
        return [] if any(w in ("pop", "apply", "list", "show", "drop", "branch") for w in words[2:3]) else [""]
    if sub == "reset":
        return [""] if not any("/" in w for w in words[2:]) else []
    if sub == "revert":
        return [""]
    return [""] if sub == "apply" and ("-R" in words or "--reverse" in words) else []


def attempts(verdicts: Sequence[Row], made: Sequence[Row], restored: Sequence[Row]) -> list[dict[str, Any]]:
    """The failed attempts of one track, oldest first; rows in order. Each:

    key, id, at, text, path, variant, session, words    of the edit as it was last tried (`id` its event, `at` when it was made)
    sig, verifier, vkey, vtext, cls            the failure: signature, verifier, the key and text of the run that last showed it
    since, red      time and event of that run;   seen  time of the newest evidence against the edit
    times, runs     how often a run failed alike after it, and the events of these runs, oldest first, at most 4
    undone          time it was taken back after it was last made, 0 when it was not
    paths           files of all attempts at this failure;  restored  times at which one of them, or every file, was put back
    """
    runs = standing(verdicts)
    if not runs or not made:
        return []
    undone = _Undone(made, restored)
    out: list[dict[str, Any]] = []
    for sig, reds in runs.items():
        found: dict[str, dict[str, Any]] = {}
        for n, red in enumerate(reds):
            judged = reds[n + 1] if n + 1 < len(reds) else None
            upto = judged[:4] if judged else _END
            within = [r for r in made if red[:4] < r[:4] < upto]
            for row in within[-PER_RUN:] if judged else within:  # what is still open must not depend on edits to come
                _judge(row, judged, found, verdicts, made, undone)
        paths = sorted({a["path"] for a in found.values()})
        back = [row[0] for row in restored if not row[5] or row[5] in paths]
        last = reds[-1]
        for attempt in found.values():
            attempt.update(sig=sig, verifier=last[9], vkey=last[5], vtext=last[10], cls=last[8], since=last[0], red=last[4])
            attempt.update(paths=paths, restored=back)
            out.append(attempt)
    out.sort(key=lambda a: (a["seen"], a["key"], a["sig"]))
    return out[-KEYS_MAX:]


def standing(verdicts: Sequence[Row]) -> dict[str, list[Row]]:
    """The failures that stand: signature -> the runs that showed it since a run last passed that covers them."""
    runs: dict[str, list[Row]] = {}
    newest: dict[str, Row] = {}
    for row in verdicts:
        newest[row[5]] = row
        if row[6]:
            if row[7]:
                runs.setdefault(row[7], []).append(row)
        else:
            for sig in [s for s, reds in runs.items() if row[11] or any(r[5] == row[5] for r in reds)]:
                del runs[sig]
    return {s: reds for s, reds in runs.items() if any(newest[r[5]][6] and newest[r[5]][7] == s for r in reds)}


class _Undone:
    """When edits were taken back: by the edit the other way round, by writing the file as before, by version control."""

    def __init__(self, made: Sequence[Row], restored: Sequence[Row]) -> None:
        self.first: dict[str, tuple[Any, ...]] = {}
        self.by_key: dict[str, list[tuple[Any, ...]]] = {}
        self.by_path: dict[str, list[tuple[Any, ...]]] = {}
        for row in restored:
            self.by_path.setdefault(row[5], []).append(row[:4])
        for row in made:
            again = row[5] in self.first
            self.first.setdefault(row[5], row[:4])
            if row[7]:
                self.by_key.setdefault(row[7], []).append(row[:4])
            elif again:  # the file is written as it was written before
                self.by_path.setdefault(row[6], []).append(row[:4])

    def takes_back(self, row: Row) -> bool:
        """Is this edit but another one the other way round?"""
        return bool(row[7]) and self.first.get(row[7], _END) < row[:4]

    def after(self, row: Row) -> tuple[Any, ...]:
        """The place at which an edit was first taken back after it was made, _END for never."""
        places = (self.by_key.get(row[5]), self.by_path.get(row[6]), self.by_path.get(""))
        return min((place for some in places if some for place in some if place > row[:4]), default=_END)


def _judge(
    row: Row, judged: Row | None, found: dict[str, dict[str, Any]], verdicts: Sequence[Row], made: Sequence[Row], undone: _Undone
) -> None:
    """Add what became of one edit to `found`: the run `judged` failed alike after it, or it was taken back before."""
    if undone.takes_back(row) or _held(row, verdicts, made, undone):
        return
    back = undone.after(row)
    failed = judged is not None and judged[:4] < back
    if not failed and back is _END:
        return  # nobody knows yet
    attempt = found.setdefault(row[5], {"times": 0, "runs": [], "seen": 0})
    attempt.update(
        key=row[5], id=row[4], at=row[0], path=row[6], variant=row[8], text=row[9], session=row[10], words=list(row[11:14])
    )
    attempt["undone"] = 0 if back is _END else back[0]
    if failed and judged is not None:
        attempt["times"] += 1
        attempt["runs"] = [*attempt["runs"], judged[4]][-4:]
    attempt["seen"] = max(attempt["seen"], judged[0] if failed and judged is not None else back[0])


def _held(row: Row, verdicts: Sequence[Row], made: Sequence[Row], undone: _Undone) -> bool:
    """Did the verifier pass after this edit, before another one of the file and before it was taken back?"""
    after = next((v for v in verdicts if v[:4] > row[:4]), None)
    if after is None or after[6] or undone.after(row) < after[:4]:
        return False
    others = (m for m in made if m[6] == row[6] and m[5] != row[5] and m[:3] != row[:3])  # one call may have several rows
    return not any(row[:4] < m[:4] < after[:4] for m in others)

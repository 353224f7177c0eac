"""[H] Files that were moved on record (`git mv`): the effect that says so, and what follows from all of them together.

Only `git mv` counts, without force: it refuses to overwrite. A plain `mv x y` mostly puts a new content into `y`
(`jq . a > tmp && mv tmp a`), and would give `y` the history of a temporary file.
"""

from __future__ import annotations

from projectmem_gate.hints import apart, runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from projectmem_gate.paths import Roots

TYPE = "move"  # of the effect; its subject is both names
BETWEEN = "\t"
MOVES_MAX = 256  # newest kept
MOVES_FOLLOWED = 16  # of one file


def effects(roots: Roots, cwd: str, operands: Sequence[str], flags: Sequence[str]) -> list[tuple[str, str]]:
    """The moves of `git mv OPERANDS` in `cwd`, as (`move`, "old<tab>new"); [] where it may overwrite, or a name is not plain."""
    if len(operands) < 2 or any(f not in ("-v", "--verbose", "-k") for f in flags):
        return []
    *sources, target = operands
    into = target.endswith("/") or target in (".", "..") or len(sources) > 1
    into = into or ("." in _last(sources[0]) and "." not in _last(target))  # `git mv a.py lib`: surely a folder
    out = []
    for source in sources:
        old = roots.literal(source, cwd)
        new = roots.literal(target.rstrip("/") + "/" + _last(source) if into else target, cwd)
        if old != new and all(name[:1] not in ("/", "?", "") and BETWEEN not in name and name != "." for name in (old, new)):
            out.append((TYPE, f"{old}{BETWEEN}{new}"))
    return out


def _last(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1]


def renames(subjects: Iterable[str]) -> dict[str, str]:
    """{name now: name before the first move} of moves in the order in which they were made; what was moved back is in none."""
    found: dict[str, str] = {}
    for subject in subjects:
        old, _, new = subject.partition(BETWEEN)
        if not old or not new:
            continue
        for name in [n for n in found if n == old or n.startswith(old + "/")]:  # moved before, or in a folder that moves now
            before = found.pop(name)
            now = new + name[len(old) :]
            if now != before:
                found[now] = before
            if name == old:
                break
        else:
            found[new] = old
    return found


def now(path: str, moved: dict[str, str]) -> str:
    """The name that a file of this canonical name has now. `moved` as `renames` gives it."""
    for _ in range(MOVES_FOLLOWED):
        found = next((c + path[len(b) :] for c, b in moved.items() if path == b or path.startswith(b + "/")), path)
        if found == path:
            break
        path = found
    return path


def words(raw: frozenset[str], subjects: Iterable[str]) -> frozenset[str]:
    """The words of an input, and those of the names before of the files whose names now may be in it."""
    out = set(raw)
    for subject in reversed(list(subjects)):
        old, _, new = subject.partition(BETWEEN)
        name = _last(new)
        if out.issuperset(run for run in (runs(name) if name.isascii() else apart(name)) if len(run) > 1):
            out.update(runs(_last(old)))
    return frozenset(out) if len(out) > len(raw) else raw

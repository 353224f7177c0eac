"""What commands, error codes and file names mean in plain words [H]: `du` is disk usage, `ECONNREFUSED` a refused connection.

People ask in words for what the log keeps as a command or a code. What such a text means is searched beside it, so that the two
meet. General knowledge, as in manual pages; nothing of it is about one project. Deterministic; reads one file of the package.

data/glosses.txt   a line each: what must be in a text, in any order (`-x` an option with this letter, alone or among others),
                   a bar, and what it means
"""

from __future__ import annotations

import os
import re

from projectmem_logs import files

TABLE = os.path.join(os.path.dirname(__file__), "data", "glosses.txt")
REVISION = "2"  # of table and rules together: part of what an index was made with
MOST = 6  # glosses of one text
HEAD = 400  # characters of a text that are looked at
CACHE_MAX = 4_096

# Programs whose names are English words too: they count only where a command begins.
_COMMANDS = frozenset(
    """ab ag alias alarm az bat bg black cut column convert date dd diff du env export fd fg file find free go head
    history host hostname http id jobs join kill less make mount nc nl nm nx paste patch perf ps rename rev screen seq
    service shred sort source split ss stat strings su tail tee time top touch tr trap tree truncate unset uptime
    watch which""".split()
)
_WORD, _BEGIN = r"--?[a-z][\w-]*|\+x|[\w.'\\/-]*\w", r"(?:^|[|;&`(]|\bsudo\b|\bxargs\b|\brun\b)\s*([a-z]+)\b(?![\w.'/]*:)"
_index: dict[str, list[tuple[tuple[str, ...], str]]] = {}
_compiled: list[re.Pattern[str]] = []
_known: dict[str, str] = {}


def of(text: str) -> str:
    """What the commands, codes and files that a text names mean, in words; "" where it names none that is known.

    At most MOST meanings, those first that ask for most. What a longer one says is not said by a shorter one again.
    """
    head = text[:HEAD]
    found = _known.get(head)
    if found is None:
        if len(_known) >= CACHE_MAX:
            _known.clear()
        found = _known[head] = _of(head.lower())
    return found


def _of(head: str) -> str:
    if not _index:
        _load()
    begins = set(_compiled[1].findall(head))
    have = {
        piece for word in _compiled[0].findall(head) for piece in _spellings(word) if piece not in _COMMANDS or piece in begins
    }
    found = []
    for word in sorted(have & _index.keys()):
        for needed, gloss in _index[word]:
            if have.issuperset(needed):
                found.append((-len(needed), word, needed, gloss))
    found.sort()
    kept: list[str] = []
    covered: list[frozenset[str]] = []
    for _, word, needed, gloss in found:
        these = frozenset((word, *needed))
        if len(kept) < MOST and gloss not in kept and not any(these < other for other in covered):
            kept.append(gloss)
            covered.append(these)
    return "; ".join(kept)


def _load() -> None:
    _compiled[:] = [re.compile(_WORD), re.compile(_BEGIN)]
    for line in files.read(TABLE).decode().splitlines():
        left, gloss = line.split("|")
        first, *rest = left.split()
        _index.setdefault(first, []).append((tuple(rest), gloss))


def _spellings(word: str) -> list[str]:
    """A word, and what in it the table may name: the letters of options, the parts of a path, its extension."""
    if word.startswith("--"):
        return [word]
    if word.startswith("-"):
        return [word] + ["-" + letter for letter in word[1:] if letter.isalpha()] if len(word) <= 6 else [word]
    out = [word]
    parts = [part for part in word.split("/") if part]
    if "/" in word:
        out += [part for part in parts if part not in _COMMANDS]
        out.append("/".join(parts[:2]))
    last = parts[-1] if parts else word
    if "." in last:
        pieces = [piece for piece in last.split(".") if piece and piece not in _COMMANDS]
        out += ["." + last.rsplit(".", 1)[-1], *pieces]
    return out

"""How well a document answers a query, as features: words covered and words not, names, commands and paths.

Pure; on the hook's path.

Every feature is an integer in ten-thousandths, 0 .. UNIT, so that all machines agree. `calibration` weighs them.
"""

from __future__ import annotations

from math import isqrt

from projectmem_projections import lexical, messages, structure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from projectmem_projections.structure import Structure

UNIT = lexical.UNIT
LINES_MAX = 20  # of an error message that is asked about
WORDS_MAX = 32  # a query of so many different words counts as long

# Those of both. `unmatched`, `uncovered`, `unlike`, `heaviest` and `reverse` come from `nearness`, with vectors from `alignment`.
#   lexical, rarity      BM25 over the query's own weight; how rare the rarest shared word is
#   cover                share of the weight of the query's words that the document has
#   length               number of different words of the query, on a logarithmic scale
#   same_name, other_name, no_name   the query names an error: so does the document; it names another; it names none
#   other_code           both give numbers of errors and share none (not weighed: `controller` never shows such a document)
#   only_ran             the query is an error message, and the document a command that nobody said failed (vetoes too)
#   other_cause          the query is a command with its error, the document the same command with another one (vetoes too)
#   other_world          both show ecosystems and share none
#   path_same, path_other   the query is a path: the document names that file, or a folder that holds it; it does not
#   run_other            the query is a command: how far the document's command is from it, UNIT for another one or none
#   apart                how much nearer it is than the mean of its AFTER-th to UPTO-th neighbour, see `apart`
#   clear                the same in standard deviations of these neighbours
#   other_message        both quote an error: how much of each message the other has not, see `messages`
#   general              nothing in the query looks like a name of something: no code, path, option, number or identifier
#   heaviest             weight of the query's heaviest word in language as such, whatever the store holds
#   unlike               share of the query's weight that nothing in the document is near to, where heavy words count more
#   is_error, told_error the query is an error message; share of its words that the document has, without values and paths
#                        and without those of the command that the document says failed
WORDY = (
    "lexical",
    "rarity",
    "cover",
    "length",
    "same_name",
    "other_name",
    "no_name",
    "other_world",
    "path_same",
    "path_other",
    "run_other",
    "is_error",
    "told_error",
    "apart",
    "other_message",
    "general",
    "heaviest",
    "unlike",
)
# With them (the cosine itself counts through `apart`: fitted beside it, its weight was negative)
#   unmatched   the query's heaviest word that has nothing near it in the document: its weight times its distance
#   uncovered   share of the query's weight that nothing in the document is near to
#   reverse     how much of the document is near some word of the query
VECTORED = (
    "unmatched",
    "reverse",
    "cover",
    "length",
    "other_name",
    "no_name",
    "other_world",
    "path_other",
    "run_other",
    "is_error",
    "told_error",
    "uncovered",
    "apart",
    "clear",
    "rarity",
    "other_message",
    "general",
    "heaviest",
)
AFTER, UPTO = 5, 23  # the neighbours that `apart` compares with: not the nearest, which may tell of the same thing
CLEAR, SPREAD = 10, 200  # so many standard deviations count as UNIT; added to each, that few neighbours make no giant
USUAL = {True: 1_500, False: 0}  # similarity of a neighbour that a small store does not have; with vectors, by words alone


class Asked:
    """A query, looked at once: its structure, its weighted words, and its message without volatile parts."""

    __slots__ = ("canonical", "general", "lasting", "length", "message", "quoted", "structure", "words")

    def __init__(self, text: str, words: lexical.Query) -> None:
        self.words = words
        self.structure = structure.of(text)
        # Failures are recorded with their command in the gate's spelling: `npm clean-install` as `npm ci`.
        self.canonical = structure.of(_canonical(text)) if self.structure.kind == "command" else None
        self.message = frozenset(lexical.tokens(structure.skeleton(text)))
        self.length = _log_share(len(words.weights))
        self.quoted = messages.Message(text, self.structure)
        self.lasting = lasting(text, self.structure)
        self.general = not any(map(_is_name, self.lasting.split()))


def features(asked: Asked, text: str, searched: str, score: int, rarity: int, cover: int) -> dict[str, int]:
    """The features of WORDY but those of other modules and of `apart`, and `structure.compatibility`, for one document.

    text      as it was recorded;  searched: with what it means in words;  score, rarity, cover: of `lexical.Query.finish`
    """
    table = frozenset(lexical.tokens(searched))
    out = dict.fromkeys((*WORDY, "other_code", "only_ran", "other_cause"), 0)
    out.update(lexical=score, rarity=rarity, cover=cover, length=asked.length, general=UNIT if asked.general else 0)
    told = structure.of(text)
    out["other_message"] = asked.quoted.other(text, told)
    _structural(asked, told, table, out)
    out.update(structure.compatibility(asked.structure, told))
    return out


def _structural(asked: Asked, document: Structure, table: frozenset[str], out: dict[str, int]) -> None:
    query = asked.structure
    if query.names:
        out["same_name" if query.names & document.names else "other_name" if document.names else "no_name"] = UNIT
    if query.codes and document.codes and not query.codes & document.codes:
        out["other_code"] = UNIT
    if query.ecosystems and document.ecosystems and not query.ecosystems & document.ecosystems:
        out["other_world"] = UNIT
    if query.kind == "path":
        same = any(_one_file(a, b) or _inside(a, b) for a in query.paths for b in document.paths)
        out["path_same" if same else "path_other"] = UNIT
    if query.kind == "command":
        out["run_other"] = UNIT - max(_run(q, document) for q in (query, asked.canonical) if q is not None)
    if query.kind == "error":
        out["is_error"] = UNIT
        out["only_ran"] = UNIT if document.kind == "command" and not document.failed else 0
        out["other_cause"] = UNIT if _other_cause(asked, document) else 0
        message = asked.message - frozenset(lexical.tokens(document.ran)) or asked.message
        out["told_error"] = UNIT * sum(token in table for token in message) // len(message) if message else 0


def lasting(query: str, found: Structure | None = None) -> str:
    """An error message without what differs from run to run, as signatures are recorded: that no document has it says nothing."""
    if (found or structure.of(query)).kind != "error":
        return query
    import re

    from projectmem_gate import signature

    return re.sub(r"<[a-z]+>", " ", "\n".join(signature.normal(line) for line in query.splitlines()[:LINES_MAX])).strip() or query


def _is_name(word: str) -> bool:
    """Whether a word names a thing rather than says something: it has a digit, a mark or a capital inside."""
    word = word.strip(".,:;?!()'\"`")
    inside = word[1:]
    if len(word) < 2 or (word.isalpha() and word.islower()):
        return False
    return any(c in "_./@-" or c.isdigit() or c.isupper() for c in inside) or word[0].isdigit()


def _canonical(command: str) -> str:
    """A command in the gate's spelling. Imported late: few questions are commands."""
    from projectmem_gate.identify import identify

    return identify("Bash", {"command": command}, root="/", cwd="/").text


def _other_cause(asked: Asked, document: Structure) -> bool:
    """Whether the query gives a command with its error, and the document tells that this command failed with another error."""
    if not document.said or asked.structure.starts != document.program:
        return False
    command = frozenset(lexical.tokens(document.ran))
    said = frozenset(lexical.tokens(structure.skeleton(document.said))) - command
    return bool(said) and len(asked.message - command) > 1 and 2 * len(said & asked.message) < len(said)


def _one_file(a: str, b: str) -> bool:
    """Whether two paths can be of one file: the shorter one ends the longer one."""
    short, long = sorted((a, b), key=len)
    return f"/{long}".endswith(f"/{short}")


def _inside(path: str, folder: str) -> bool:
    """Whether a path lies in a folder that is at least two deep (`src` alone holds nearly everything)."""
    return folder.count("/") > 0 and path.startswith(f"{folder}/")


def _run(query: Structure, document: Structure) -> int:
    """How much two commands are one: UNIT for the same program, subcommand and operands; options count for a fifth."""
    if not document.program or query.program != document.program:
        return 0
    options = _overlap(_letters(query.options), _letters(document.options))
    if not query.operands | document.operands:
        return options
    return (80 * _overlap(query.operands, document.operands) + 20 * options) // 100


def _overlap(a: frozenset[str], b: frozenset[str]) -> int:
    return UNIT * len(a & b) // len(a | b) if a | b else UNIT


def _letters(options: frozenset[str]) -> frozenset[str]:
    """Options by their first letter: `-r` and `--requirement` are one."""
    return frozenset(o[0] for o in options)


def apart(found: Sequence[tuple[int, str]], positions: int, vectors: bool) -> list[tuple[int, int]]:
    """How far each of the first `positions` documents stands out: (`apart`, `clear`), 0 .. UNIT.

    found    (similarity, text) of all that were found, nearest first;  vectors: whether cosines are in the similarities
    Documents that say about the same count once: a failure that happened often is no crowd. Where that leaves too few
    of a store that has more, those that were not looked at count as the farthest that was; where there are no more, as USUAL.
    """
    found = found[: UPTO + 1]
    more = len(found) > UPTO
    groups = _alike([text for _, text in found])
    first: dict[int, int] = {}
    for group, (similarity, _) in zip(groups, found, strict=True):
        first.setdefault(group, similarity)
    out = []
    count = UPTO - AFTER
    for group, (similarity, _) in zip(groups[:positions], found, strict=False):
        different = [near for other, near in first.items() if other != group]
        others = different[AFTER:UPTO]
        others += [different[-1] if more and different else USUAL[vectors]] * (count - len(others))
        above = similarity - sum(others) // count
        spread = isqrt(count * sum(o * o for o in others) - sum(others) ** 2) // count
        out.append((max(0, min(UNIT, above)), max(0, min(UNIT, above * UNIT // (CLEAR * (spread + SPREAD))))))
    return out


def _alike(texts: Sequence[str]) -> list[int]:
    """A group for each text: that of the first earlier one that shares half of the words of both."""
    groups: list[tuple[frozenset[str], int]] = []
    out = []
    for text in texts:
        words = frozenset(text.lower().split())
        same = (number for other, number in groups if 2 * len(words & other) >= len(words | other))
        number = next(same, len(groups))
        if number == len(groups):
            groups.append((words, number))
        out.append(number)
    return out


def _log_share(count: int) -> int:
    """0 for none, UNIT for WORDS_MAX and more, even steps for each doubling in between (integers: machines agree)."""
    bits = max(0, min(count + 1, WORDS_MAX)).bit_length() - 1
    rest = (min(count + 1, WORDS_MAX) << 10 >> bits) - 1024
    return min(UNIT, UNIT * (1024 * bits + rest) // (1024 * 5))

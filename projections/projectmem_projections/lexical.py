"""Lexical search: tokens of technical text and BM25 over them. Pure, and cheap enough to import in the hook.

Tokens are words, the parts of identifiers (`camelCase`, `snake_case`, `kebab-case`), file names, error names, and, for
scripts without spaces, pairs of neighbouring characters. Scores are integers, so that every machine ranks alike.
BM25: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009; the inverse document frequency that is never negative
is Lucene's.
"""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

REVISION = "2"  # of tokens and weights together: stored with an index, a difference means a rebuild
K1, B = 1.2, 0.75
UNIT = 10_000  # scores are in ten-thousandths: UNIT = every word of the query covered once
FEWEST = 100  # a smaller collection counts as so many: in one of three texts, every word that it has would look common
TOKENS_MAX = 2_000  # of one text

_STOP_WORDS = """
a an the of to in on at for and or is are was were be it its this that with from by as so my me i we you our what which how
do does did not cannot can t s
"""
STOP = frozenset(_STOP_WORDS.split())

# Short forms that technical text uses for the same thing.
SHORT = {
    "cert": "certificate", "cfg": "configuration", "conf": "configuration", "config": "configuration", "db": "database",
    "dep": "dependency", "deps": "dependency", "dir": "directory", "dirs": "directory", "env": "environment",
    "folder": "directory", "folders": "directory", "func": "function", "js": "javascript", "k8s": "kubernetes", "lib": "library",
    "libs": "library", "msg": "message", "param": "parameter", "params": "parameter", "pkg": "package", "postgresql": "postgres",
    "repo": "repository", "repos": "repository", "tz": "timezone", "var": "variable", "vars": "variable", "yml": "yaml",
}  # fmt: skip
# In this order; the first that fits and leaves enough of the word.
_SUFFIXES = (
    ("ing", ""), ("ied", "y"), ("ed", ""), ("ly", ""),
)  # fmt: skip

# Scripts written without spaces: Hiragana, Katakana, Han (with extension A and compatibility), Hangul, Thai.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0e7f"
_PATTERNS: dict[bool, tuple[re.Pattern[str], re.Pattern[str]]] = {}


def _patterns(ascii: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compiled on first use: importing this module must cost nothing. Those for ASCII text compile in a tenth of the time."""
    if ascii not in _PATTERNS:
        parts = r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+"
        if ascii:
            run = r"--?[a-zA-Z][\w-]*|\w+(?:[.-]\w+)*"
        else:
            run = rf"[{_UNSPACED}]+|--?[a-zA-Z][\w-]*|[^\W{_UNSPACED}]+(?:[.-][^\W{_UNSPACED}]+)*"
            parts += r"|[^\W\d_a-zA-Z]+"
        flags = re.ASCII if ascii else 0
        _PATTERNS[ascii] = (re.compile(run, flags), re.compile(parts, flags))
    return _PATTERNS[ascii]


def tokens(text: str) -> list[str]:
    """The tokens of a text, in order and with repeats, at most TOKENS_MAX."""
    ascii = text.isascii()
    if not ascii:
        import unicodedata

        text = unicodedata.normalize("NFKC", text)
    run, part = _patterns(ascii)
    out: list[str] = []
    for word in run.findall(text):
        if word[0] > "\u0dff" and _is_unspaced(word[0]):
            out.extend([word[i : i + 2] for i in range(len(word) - 1)] or [word])
            continue
        lower = word.lower()
        if lower in STOP:
            continue
        whole = _stem(lower)
        out.append(whole)
        parts = [p.lower() for p in part.findall(word)]
        if len(parts) > 1:
            out.extend(_stem(p) for p in parts if len(p) > 1 and p not in STOP)
        if len(out) >= TOKENS_MAX:
            break
    return out[:TOKENS_MAX]


def _is_unspaced(char: str) -> bool:
    return (
        "\u3040" <= char <= "\u30ff"
        or "\u3400" <= char <= "\u4dbf"
        or "\u4e00" <= char <= "\u9fff"
        or "\uac00" <= char <= "\ud7af"
        or "\uf900" <= char <= "\ufaff"
        or "\u0e00" <= char <= "\u0e7f"
    )


def _stem(word: str) -> str:
    """Light: word forms of English (plural, past, -ing, -ion, -ment, -ly, a final e) and usual short forms.

    Code stays as it is.
    """
    word = SHORT.get(word, word)
    if not word.isascii() or not word.isalpha():
        return word[:-1] if len(word) > 4 and word.endswith("s") and word[-2].isalpha() and word[-2] != "s" else word
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        word = word[:-3] + "y" if word.endswith("ies") and len(word) > 5 else word[:-1]
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= (3 if len(suffix) < 4 else 4):
            word = word[: -len(suffix)] + instead
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def impact(count: int, length: int, mean_length: float) -> int:
    """What `count` occurrences in a text of `length` tokens are worth, before idf, in ten-thousandths (0 .. 22,000)."""
    return round(UNIT * count * (K1 + 1) / (count + K1 * (1 - B + B * length / (mean_length or 1.0))))


def idf(documents: int, having: int) -> int:
    """Inverse document frequency in thousandths, never negative."""
    return round(1000 * math.log(1 + (documents - having + 0.5) / (having + 0.5)))


def counts(text: str) -> tuple[dict[str, int], int]:
    """How often each token occurs in a text, and how many tokens it has."""
    found = tokens(text)
    table: dict[str, int] = {}
    for token in found:
        table[token] = table.get(token, 0) + 1
    return table, len(found)


def invert(counted: Sequence[tuple[Mapping[str, int], int]]) -> tuple[dict[str, tuple[list[int], list[int]]], float]:
    """Postings of texts given as `counts`: token -> (rows ascending, impacts); and the mean length in tokens."""
    mean = sum(length for _, length in counted) / (len(counted) or 1)
    postings: dict[str, tuple[list[int], list[int]]] = {}
    for row, (table, length) in enumerate(counted):
        for token, count in table.items():
            rows, impacts = postings.setdefault(token, ([], []))
            rows.append(row)
            impacts.append(impact(count, length, mean))
    return postings, mean


class Query:
    """The weighted tokens of a query against a collection.

    weights   token -> idf in thousandths, in a fixed order; tokens that no document has count too
    total     their sum;  rarest: the idf of a token that one document has
    """

    __slots__ = ("rarest", "total", "weights")

    def __init__(self, tokens: Iterable[str], having: Mapping[str, int], documents: int) -> None:
        documents = max(documents, FEWEST)
        self.weights = {token: idf(documents, having.get(token, 0)) for token in tokens}
        self.total = sum(self.weights.values())
        self.rarest = idf(documents, 1) or 1

    def rows(self, postings: Mapping[str, tuple[Sequence[int], Sequence[int]]]) -> dict[int, tuple[int, int, int]]:
        """Row -> (score, rarity, cover) of every row that shares a token with the query; see `finish`."""
        sums: dict[int, int] = {}
        best: dict[int, int] = {}
        covered: dict[int, int] = {}
        for token, weight in self.weights.items():
            rows, impacts = postings.get(token, ((), ()))
            for row, value in zip(rows, impacts, strict=True):
                sums[row] = sums.get(row, 0) + weight * value
                covered[row] = covered.get(row, 0) + weight
                if weight > best.get(row, 0):
                    best[row] = weight
        return {row: self.finish(value, best.get(row, 0), covered[row]) for row, value in sums.items()}

    def text(self, counted: tuple[Mapping[str, int], int], mean: float) -> tuple[int, int, int]:
        """(score, rarity, cover) of one text that is not in the postings."""
        table, length = counted
        shared = [token for token in self.weights if token in table]
        value = sum(self.weights[token] * impact(table[token], length, mean) for token in shared)
        weights = [self.weights[token] for token in shared]
        return self.finish(value, max(weights, default=0), sum(weights))

    def finish(self, value: int, best: int, covered: int) -> tuple[int, int, int]:
        """(score, rarity, cover), all in ten-thousandths, 0 .. UNIT.

        score   BM25 over the query's own weight: UNIT when every token is covered about once (more counts as UNIT)
        rarity  idf of the rarest shared token over that of a token that only one document has
        cover   share of the query's weight that is covered, however often and in however long a text
        """
        total = self.total or 1
        return min(UNIT, value // total), min(UNIT, best * UNIT // self.rarest), covered * UNIT // total


def query_tokens(query: str) -> list[str]:
    """The distinct tokens of a query, in a fixed order."""
    return sorted(set(tokens(query)))

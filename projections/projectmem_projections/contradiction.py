"""Whether two recorded statements say the same, or contradict each other. Pure, deliberately narrow; on the hook's path.

It decides about what is held for a person to look at, so it must not cry wolf: only statements that share most of their words
count, and contradict when one denies what the other says, or gives another value in the same place (`port 5433`, `port 5432`;
`on Tuesdays`, `on Fridays`): a number, a day of the week or a month.
"""

from __future__ import annotations

from projectmem_projections import lexical

SAME_PERCENT = 80  # shared neighbouring words: one statement twice
ALIKE_PERCENT = 80  # shared words of the longer: about the same thing
FEWEST_WORDS = 3  # shared words; fewer are no statement
_DENIES = frozenset(
    "not no never don't dont doesn't isn't aren't cannot can't without avoid stop instead longer except unless".split()
)
_PLACES = frozenset(
    "port version timeout limit default is are be to at in on = : uses use using runs listens requires needs named called".split()
)
_DAYS = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august september"
    " october november december".split()
)  # `may` is a verb too often


def same(one: str, other: str) -> bool:
    """Whether two texts say the same in nearly the same words, in the same order."""
    a, b = _pairs(one), _pairs(other)
    return len(a & b) * 100 >= SAME_PERCENT * max(len(a | b), 1) and not contradict(one, other)


def contradict(one: str, other: str) -> bool:
    """Whether two statements about the same thing cannot both hold."""
    a, b = _words(one), _words(other)
    topics = [frozenset(lexical.tokens(" ".join(w for w in words if w not in _DENIES))) for words in (a, b)]
    shared = topics[0] & topics[1]
    mine, theirs = _values(a), _values(b)
    differ = {place for place in mine if theirs.get(place, mine[place]) != mine[place]}
    # `We deploy on Tuesdays` has one word besides those that stand everywhere: with a day or month they count too.
    dated = bool(shared) and any(_day(mine[place]) and _day(theirs[place]) for place in differ)
    if (len(set(a) & set(b)) if dated else len(shared)) < FEWEST_WORDS:
        return False
    if bool(_DENIES & set(a)) != bool(_DENIES & set(b)):
        return len(shared) * 100 >= ALIKE_PERCENT * max(map(len, topics))
    # Everything else must be the same: `api listens on port 80` says nothing about `web listens on port 81`.
    rest = [
        t - set(lexical.tokens(" ".join(values[p] for p in differ))) for t, values in zip(topics, (mine, theirs), strict=True)
    ]
    return bool(differ) and rest[0] == rest[1]


def _values(words: list[str]) -> dict[tuple[str, str], str]:
    """Numbers, days and months by the two words before them, where these are a place for a value."""
    found = {}
    for i in range(1, len(words)):
        if words[i - 1] in _PLACES and (words[i][:1].isdigit() or _day(words[i])):
            found[words[i - 2] if i > 1 else "", words[i - 1]] = words[i].removesuffix("s") if _day(words[i]) else words[i]
    return found


def _day(word: str) -> bool:
    """Whether a word is a day of the week, or a month, one or each of them."""
    return word in _DAYS or word.removesuffix("s") in _DAYS


def _words(text: str) -> list[str]:
    return [w for w in (raw.strip(".,;:()[]`'\"") for raw in text.lower().split()) if w]


def _pairs(text: str) -> frozenset[tuple[str, str]]:
    words = ["", *_words(text), ""]
    return frozenset((words[i], words[i + 1]) for i in range(len(words) - 1))

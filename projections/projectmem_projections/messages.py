"""Whether two error messages can be one: what each says that the other does not. Pure; on the hook's path.

The same program, or the same error's name, says very different things: `JSONDecodeError: Extra data` is not
`JSONDecodeError: Expecting value`. Words and vectors see what they share. A message that was recorded and the same message that
comes again say the same, apart from values, paths and numbers; so where both texts quote one, what is left over on both
sides counts against the document. A paraphrase quotes none, and is not judged by this.
"""

from __future__ import annotations

import re

from projectmem_projections import lexical, structure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_projections.structure import Structure

# Words that messages of any kind have, as `lexical` stems them.
_USUAL = frozenset("call char column command error exception expect fail failur fatal got line panic run traceback warn".split())
_SOURCES = {
    # An error's name: by its ending, a code, or a class in a module (`sqlalchemy.exc.NoResultFound`).
    "name": r"\b[A-Za-z_][\w.]*(?:Error|Exception|Warning|Violation|Failure|Mismatch)\b|\bE[A-Z]{4,}\b|\b[A-Z]+[0-9]{3,5}\b"
    r"|\b[A-Z]{3,}(?:_[A-Z0-9]+)+\b|\b(?:[a-z_]\w*\.)+[A-Z]\w+",
    "speaker": r"[\w./@-]+(?: [\w./@-]+){0,3}: \S",  # `protoc-gen-ts: program not found`
    # Where a note goes on from what was said to what was done.
    "done": r" Worked: | - |; | -> |\. (?=[A-Z])|, (?:added|set|use|run|install|fixed|moved|changed|upgrad|pin)\w* ",
}
_compiled: dict[str, re.Pattern[str]] = {}


def _re(name: str) -> re.Pattern[str]:
    """Compiled on first use: importing this module must cost nothing."""
    if name not in _compiled:
        _compiled[name] = re.compile(_SOURCES[name])
    return _compiled[name]


class Message:
    """What a question quotes of an error: `words` of it without names, values and paths; `quoted`: whether it quotes one."""

    __slots__ = ("own", "quoted", "words")

    def __init__(self, text: str, found: Structure) -> None:
        self.quoted = _quotes(text, found.kind == "error")
        self.words = _words(text) if self.quoted else frozenset()
        self.own = frozenset(lexical.tokens(found.starts)) if self.quoted else frozenset()

    def other(self, text: str, found: Structure) -> int:
        """How much of both messages is not in the other, the smaller share, 0 .. UNIT; 0 where one of the texts quotes none.

        text, found   a document as it was recorded, and its structure
        """
        if not self.quoted:
            return 0
        said = found.said or _re("done").split(text, maxsplit=1)[0]
        if not found.failed and not _quotes(said, found.kind == "error"):
            return 0
        theirs = _words(said) - self.own - frozenset(lexical.tokens(found.ran or found.starts))
        mine = self.words - self.own - (frozenset(lexical.tokens(found.ran)) if found.ran else frozenset())
        if not mine or not theirs:
            return 0
        return lexical.UNIT * min(len(mine - theirs) * len(theirs), len(theirs - mine) * len(mine)) // (len(mine) * len(theirs))


def _quotes(text: str, error: bool) -> bool:
    return error or bool(_re("name").search(text)) or bool(_re("speaker").match(text))


def _words(text: str) -> frozenset[str]:
    return frozenset(lexical.tokens(structure.skeleton(_re("name").sub(" ", text)))) - _USUAL

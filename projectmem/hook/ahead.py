"""Has recall's generation built while nobody waits: a session's start begins it, in a process of its own (building.py).

A hook reads the generation and what the log has gained since, and that only up to a limit (recall_light). Where nobody recalls
on the command line or over MCP, which build one after answering, none would ever stand: the first prompts of a project would
fold the whole log, and later ones would be told nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem.place import Place

BUILDER = "projectmem.building"  # what it takes is nothing that a hook may load
WORTH = 64 << 10  # bytes beyond the generation; fewer are read in milliseconds


def lock_path(home: str) -> str:
    """Held by the one process that builds."""
    return f"{home}/projections/ahead.lock"


def behind(home: str) -> int:
    """Bytes of the log that recall's generation does not have, all of it where there is none to use."""
    from projectmem_projections import glance, tail
    from projectmem_projections.corpus import Corpus, CorpusError

    generation = glance.current(home)
    known: dict[str, tuple[str, int]] = {}
    if generation is not None:
        try:
            corpus = Corpus(generation)
        except CorpusError:
            return tail.lag(home, known)
        known = {stream: at[:2] for stream, at in corpus.position.items()}
        corpus.close()
    return tail.lag(home, known)


def soon(place: Place) -> None:
    """Have it built where that is worth it. Raises nothing: without it recall only knows less."""
    from projectmem.hook import background

    try:
        if behind(place.home) > WORTH:
            background.start_alone(lock_path(place.home), BUILDER, place.home)
    except OSError:
        pass  # a folder that cannot be written, no process to be had: the next session tries again

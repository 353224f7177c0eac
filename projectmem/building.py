"""Builds recall's generation in the background, with low priority: the process that hook/ahead.py starts."""

from __future__ import annotations

from projectmem.hook import ahead, background, degraded

NICE = 15


def main(home: str) -> None:
    """Build it, where it is still worth it. Raises nothing: nobody would hear it."""

    def work() -> None:
        from projectmem_projections import minilm, recollection, vectors

        if ahead.behind(home) > ahead.WORTH:
            recollection.refresh(home, None if vectors.available() else minilm.chosen(home)[0])

    try:
        background.alone(ahead.lock_path(home), NICE, work)
    except Exception as exc:
        degraded.note(home, "recall", "could not be built ahead", f"{type(exc).__name__}: {exc}")

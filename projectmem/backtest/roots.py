"""Infers a call's project root from a transcript, where no disk can be asked: from where its sessions started."""

from __future__ import annotations

from collections.abc import Iterable


class Roots:
    """The roots of one repository's checkouts.

    A session starts at a root; one that started below another's start is a folder of that checkout, unless its path
    says that it is a worktree. A call outside every root belongs to the root its session started in.
    """

    def __init__(self, starts: Iterable[str]) -> None:
        starts = sorted({_clean(start) for start in starts}, key=lambda s: (s.count("/"), s))
        roots: list[str] = []
        for start in starts:
            above = [root for root in roots if _inside(start, root)]
            if not above or "worktree" in start[len(max(above, key=len)) :]:
                roots.append(start)
        self.roots = sorted(roots, key=len, reverse=True)

    def of(self, cwd: str, session_cwd: str) -> str:
        """The longest known root that contains `cwd`, else the one of the session's first folder."""
        cwd, session_cwd = _clean(cwd), _clean(session_cwd)
        for folder in (cwd, session_cwd):
            for root in self.roots:
                if _inside(folder, root):
                    return root
        return session_cwd


def _clean(path: str) -> str:
    path = path.replace("\\", "/")
    return path.rstrip("/") or "/"


def _inside(path: str, root: str) -> bool:
    return path == root or root == "/" or path.startswith(root + "/")

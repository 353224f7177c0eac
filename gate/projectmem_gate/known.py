"""[H] Roots that remember what they were asked: for who names the same few files again and again while nobody moves a folder."""

from __future__ import annotations

from projectmem_gate.paths import Roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

KEPT = 8_192  # names; a history of ten thousand calls has some 2,500


class KnownRoots(Roots):
    """As Roots; a name that was asked for once is not looked up again."""

    __slots__ = ("_names",)

    def __init__(
        self,
        root: str,
        worktrees: Sequence[str] = (),
        fold_case: bool = False,
        fold_unicode: bool = False,
        resolve: Callable[[str], str] | None = None,
        renames: Mapping[str, str] | None = None,
    ) -> None:
        self._names: dict[tuple[str, str, bool], str] = {}
        super().__init__(root, worktrees, fold_case, fold_unicode, resolve, renames)

    def name(self, path: str, cwd: str = ".", real: bool = False) -> str:
        """As of Roots."""
        asked = path, cwd, real
        found = self._names.get(asked)
        if found is None:
            if len(self._names) >= KEPT:
                self._names.clear()
            found = self._names[asked] = super().name(path, cwd, real)
        return found

    def literal(self, path: str, cwd: str = ".") -> str:
        """As of Roots: under other renames, so nothing of it is kept."""
        kept, self._names = self._names, {}
        try:
            return super().literal(path, cwd)
        finally:
            self._names = kept

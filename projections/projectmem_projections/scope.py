"""The one predicate that says which remembered items a reader may see. Pure; on the hook's path.

Every search (vector, lexical, summary) asks here and nowhere else.
"""

from __future__ import annotations

from projectmem_gate.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Scope(Value):
    """Whose memory is read, or where an item belongs.

    project   opaque id of the project; "" as a reader's scope is *empty* and sees nothing
    tenant    opaque id, compared exactly ("" is the tenant of a log that has none)
    worktree, branch   optional: an item that names one is seen only by readers of the same one or of none
    """

    __slots__ = ("branch", "project", "tenant", "worktree")

    def __init__(self, project: str, tenant: str = "", worktree: str = "", branch: str = "") -> None:
        self.project, self.tenant, self.worktree, self.branch = project, tenant, worktree, branch

    @property
    def empty(self) -> bool:
        """Whether a reader with this scope sees nothing at all."""
        return not self.project


def admits(reader: Scope, item: Scope) -> bool:
    """Whether `reader` may see something that belongs to `item`.

    Projects and tenants must be equal and the reader's project not empty. Worktree and branch separate only where both name
    one: what was recorded for the whole project is seen everywhere, and a reader of the whole project sees everything in it.
    """
    if reader.empty or reader.project != item.project or reader.tenant != item.tenant:
        return False
    for mine, theirs in ((reader.worktree, item.worktree), (reader.branch, item.branch)):
        if mine and theirs and mine != theirs:
            return False
    return True


def admitted(reader: Scope, items: Sequence[Scope]) -> list[bool]:
    """`admits` for each of the distinct scopes of an index."""
    return [admits(reader, item) for item in items]

"""Keeps what a call ended in where the gate's snapshot cannot be used: the snapshot is derived, what happened is not."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem.hook.payload import Payload
    from projectmem.place import Place


class Unread:
    """Stands for a snapshot that cannot be read: knows nothing, keeps nothing. A call may then be recorded twice (by two
    events that tell of it), which the fold counts as one."""

    def seen(self, session: str, call: str) -> bool:
        return False

    def claim(self, session: str, names: list[str], now: int) -> list[str]:
        return names

    def release(self, session: str, names: list[str]) -> None:
        """Nothing was claimed."""

    def pending_get(self, session: str, call: str) -> None:
        """No note."""

    def pending_like(self, session: str, prefix: str) -> list[Any]:
        return []

    def pending_put(self, session: str, call: str, data: Any) -> None:
        """A note that cannot be kept."""

    def reading(self) -> Unread:
        return self

    def __enter__(self) -> None:
        """There is nothing to read."""

    def __exit__(self, *_: object) -> None:
        """Nor to end."""

    def turn(self, session: str) -> int:
        return -1

    def entries(self, keys: Any, as_of: Any = None) -> dict[str, Any]:
        return {}

    def changes(self, since: int, limit: int = 64, paths: Any = ()) -> list[Any]:
        return []

    def moves(self) -> list[str]:
        return []

    def ok_after(self, family: str, at: int, limit: int = 8) -> list[Any]:
        return []

    def labels(self) -> list[Any]:
        return []

    def policy(self) -> None:
        """The shipped defaults."""

    def apply(self, events: Any, positions: Any = None) -> bool:
        return False

    def catch_up(self, home: str, limit_events: int = 0) -> bool:
        return False


def keep(place: Place, payload: Payload, now: int) -> None:
    """Record the outcomes of the payload's calls without the snapshot; the next reader of the log catches up with them.
    Raises LogError where not even the log takes them."""
    from projectmem.hook.finish import finish

    state: Any = Unread()
    finish(place, state, payload, now)

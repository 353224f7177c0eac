"""What experience taught about each memory: was it followed by success when it was shown? Pure; on the hook's path.

A fold of `recall.decided` and of the outcomes that the harness observed later in the same session: the next verifier passed
or failed,
the very failure that was recalled happened again, the memory was disputed, somebody gave feedback. Each gives a reward r, and
    Q <- Q + a (r - Q),   a = 0.3
as in MemRL (arXiv 2601.03192). Only what was shown learns. Kept as sets ordered by (at, stream, seq), so that streams may
interleave as they like. Integers in ten-thousandths.
"""

from __future__ import annotations

from projectmem_gate.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Event = Mapping[str, Any]
    Order = tuple[int, str, int]

UNIT = 10_000
RATE_PERCENT = 30
WITHIN = 2 * 3_600_000_000  # us: an outcome this long after a recall no longer speaks of it
RECALLS_KEPT = 400  # newest
START = "start"  # surface of what a session is told when it starts
PASSED, FAILED_AGAIN, FAILED_ELSE, USEFUL, USELESS, DISPUTED = UNIT, -UNIT, -UNIT // 2, UNIT, -UNIT, -UNIT

# Rewards of a decision, in ten-thousandths: |false positive| > verified reuse > right abstention > 0 (RSCB-MC, arXiv 2604.27283).
FALSE_POSITIVE, VERIFIED_REUSE, RIGHT_ABSTENTION = -UNIT, 6 * UNIT // 10, 2 * UNIT // 10


class Utility(Value):
    """What is known of one memory.

    value    Q, -UNIT .. UNIT;  visits: rewards it got;  variance: of the rewards, in UNIT squared over UNIT
    refreshed_at  when it last did good (us), 0 never;  contradicted: disputes and useless marks
    """

    __slots__ = ("contradicted", "refreshed_at", "value", "variance", "visits")

    def __init__(self, value: int = 0, visits: int = 0, variance: int = 0, refreshed_at: int = 0, contradicted: int = 0) -> None:
        self.value, self.visits, self.variance = value, visits, variance
        self.refreshed_at, self.contradicted = refreshed_at, contradicted


class Recalled(Value):
    """One recall: when, in which session, which memories it showed (by `memory`), and what the controller saw and did.

    surface  `start` for the profile of a session's start: its memories were seen, but no search put them there
    """

    __slots__ = ("action", "items", "order", "session", "state", "surface")

    def __init__(
        self, order: Order, session: str, items: tuple[str, ...], action: str = "", state: str = "", surface: str = ""
    ) -> None:
        self.order, self.session, self.items, self.action, self.state = order, session, items, action, state
        self.surface = surface


class Experience:
    """The fold. `apply` events in any order, any number of times; then ask `utilities` and `rewards`."""

    def __init__(self) -> None:
        self.recalls: dict[Order, Recalled] = {}
        self.outcomes: dict[str, dict[Order, tuple[str, str]]] = {}  # session -> order -> (passed | failed | broke, action key)
        self.said: dict[str, dict[Order, int]] = {}  # memory or recall event -> order -> reward
        self.names: dict[str, str] = {}  # id of an event that was shown -> its memory, where that has another name

    def apply(self, event: Event, data: Mapping[str, Any], order: Order) -> None:
        """Fold one event in; others than those above are skipped."""
        kind = event.get("kind")
        if kind == "recall.decided":
            self._recalled(event, data, order)
        elif kind == "action.finished":
            self._finished(event, data, order)
        elif kind == "feedback.given" and isinstance(data.get("target"), str):
            self.said.setdefault(data["target"], {})[order] = USEFUL if data.get("useful") is True else USELESS
        elif kind == "record.disputed" and isinstance(data.get("record"), str):
            self.said.setdefault(data["record"], {})[order] = DISPUTED

    def _recalled(self, event: Event, data: Mapping[str, Any], order: Order) -> None:
        items = [i for i in data.get("items") or () if isinstance(i, dict) and isinstance(i.get("id"), str)]
        for item in items:
            if _item(item) != item["id"]:
                self.names[item["id"]] = _item(item)
        decided = data.get("controller")
        decided = decided if isinstance(decided, dict) else {}
        told = data.get("profile")
        told = [name for name in told if isinstance(name, str)] if isinstance(told, list) else []
        names = (*(_item(item) for item in items), *told)
        action, state = str(decided.get("action", "")), str(decided.get("state", ""))
        self.recalls[order] = Recalled(order, _session(event), names, action, state, str(data.get("surface", "")))

    def _finished(self, event: Event, data: Mapping[str, Any], order: Order) -> None:
        outcome, key = data.get("outcome"), data.get("failed_key") or data.get("key")
        verifier = data.get("verifier") not in (None, "", "none")
        if outcome == "failed" or (outcome == "ok" and verifier):
            what = "passed" if outcome == "ok" else "failed" if verifier else "broke"
            self.outcomes.setdefault(_session(event), {})[order] = (what, key if isinstance(key, str) else "")

    def rewards(self) -> list[tuple[Recalled, dict[str, int]]]:
        """Recalls in order, each with the reward of those of its memories that an outcome spoke of."""
        ordered = {session: sorted(found.items()) for session, found in self.outcomes.items()}
        kept = sorted(self.recalls)[-RECALLS_KEPT:]
        searched = [self.recalls[o] for o in kept if self.recalls[o].surface != START]
        return [(recall, self._reward(recall, ordered.get(recall.session, []))) for recall in searched]

    @staticmethod
    def _reward(recall: Recalled, outcomes: list[tuple[Order, tuple[str, str]]]) -> dict[str, int]:
        found: dict[str, int] = {}
        for order, (what, key) in outcomes:
            if order <= recall.order:
                continue
            if order[0] - recall.order[0] > WITHIN or len(found) == len(set(recall.items)):
                break
            for memory in recall.items:
                if memory in found:
                    continue
                if what != "passed" and key and memory == key:
                    found[memory] = FAILED_AGAIN
                elif what in ("passed", "failed"):
                    found[memory] = PASSED if what == "passed" else FAILED_ELSE
        return found

    def decisions(self) -> list[tuple[str, str, int, bool]]:
        """(state, action, reward

        Whether it was a false positive) of every recall that a controller decided and an outcome followed.

        The reward is asymmetric: a false positive costs more than a verified reuse gives, and that more than a right abstention.
        """
        ordered = {session: sorted(found.items()) for session, found in self.outcomes.items()}
        found = []
        for recall, rewards in self.rewards():
            if not recall.action:
                continue
            if recall.items and rewards:
                bad = min(rewards.values()) < 0
                found.append((recall.state, recall.action, FALSE_POSITIVE if bad else VERIFIED_REUSE, bad))
            elif not recall.items:
                outcomes = ordered.get(recall.session, [])
                after = [what for o, (what, _) in outcomes if recall.order < o and o[0] - recall.order[0] <= WITHIN]
                if after and after[0] == "passed":
                    found.append((recall.state, recall.action, RIGHT_ABSTENTION, False))
        return found

    def utilities(self) -> dict[str, Utility]:
        """Memory -> what is known of it; memories that nothing spoke of are absent."""
        told: dict[str, list[tuple[Order, int, bool]]] = {}
        for recall, rewards in self.rewards():
            for memory, reward in rewards.items():
                told.setdefault(memory, []).append((recall.order, reward, False))
        for target, said in self.said.items():
            memory = self.names.get(target, target)
            for order, reward in said.items():
                told.setdefault(memory, []).append((order, reward, reward < 0))
        return {memory: _learn(sorted(found)) for memory, found in told.items()}

    def _of(self, session: str) -> list[Recalled]:
        """Recalls of a session since its newest start: what was said before a start is no longer in the context."""
        found = sorted((r for r in self.recalls.values() if r.session == session), key=lambda r: r.order)
        starts = [i for i, r in enumerate(found) if r.surface == START]
        return found[starts[-1] :] if starts else found

    def shown(self, session: str) -> frozenset[str]:
        """Memories that a session has in its context already: by `memory`, of its start by the last 8 characters of their ids."""
        return frozenset(name for recall in self._of(session) for name in recall.items)

    def instructed(self, session: str) -> bool:
        """Whether a session was told how to read what is recalled."""
        return any(recall.items for recall in self._of(session))

    def asked(self, session: str) -> bool:
        """Whether a session was asked for feedback."""
        return any(recall.action == "ask" and recall.items for recall in self._of(session))

    def to_state(self) -> dict[str, Any]:
        """Everything that later events may still need, as JSON: the newest recalls, and what speaks of them."""
        kept = [self.recalls[o] for o in sorted(self.recalls)[-RECALLS_KEPT:]]
        sessions = {r.session for r in kept}
        shown = {name for r in kept for name in r.items}
        oldest = kept[0].order if kept else NEVER
        return {
            "recalls": [[list(r.order), r.session, list(r.items), r.action, r.state, r.surface] for r in kept],
            "outcomes": [
                [session, list(order), *what]
                for session, found in sorted(self.outcomes.items())
                if session in sessions
                for order, what in sorted(found.items())
                if order > oldest
            ],
            "said": [
                [target, list(order), reward]
                for target, found in sorted(self.said.items())
                for order, reward in sorted(found.items())
            ],
            "names": {id: name for id, name in sorted(self.names.items()) if name in shown or id in self.said},
        }

    def add(self, other: Experience) -> None:
        """Take in everything that another fold holds (of later events, or of other streams)."""
        self.recalls.update(other.recalls)
        for session, outcomes in other.outcomes.items():
            self.outcomes.setdefault(session, {}).update(outcomes)
        for target, said in other.said.items():
            self.said.setdefault(target, {}).update(said)
        self.names.update(other.names)

    def add_state(self, state: Mapping[str, Any]) -> None:
        """Take in what `to_state` gave. Raises KeyError, TypeError or ValueError for anything else."""
        for order, session, items, action, seen, surface in state["recalls"]:
            made = Recalled(_order(order), session, tuple(items), action, seen, surface)
            self.recalls[made.order] = made
        for session, order, what, key in state["outcomes"]:
            self.outcomes.setdefault(session, {})[_order(order)] = (what, key)
        for target, order, reward in state["said"]:
            self.said.setdefault(target, {})[_order(order)] = reward
        self.names.update(state["names"])


NEVER: Order = (-1, "", 0)


def memory(id: str, type: str, key: str) -> str:
    """What a document is remembered by: a failure by its action, so that the same one failing again is the same memory."""
    return key if type == "failure" and key else id


def _item(item: Mapping[str, Any]) -> str:
    return memory(item["id"], str(item.get("type", "")), str(item.get("key", "")))


def _learn(found: list[tuple[Order, int, bool]]) -> Utility:
    value = total = squares = refreshed = against = 0
    for order, reward, contradicts in found:
        value += RATE_PERCENT * (reward - value) // 100
        total, squares = total + reward, squares + reward * reward
        refreshed = max(refreshed, order[0]) if reward > 0 else refreshed
        against += contradicts
    count = len(found)
    return Utility(value, count, (squares * count - total * total) // (count * count) // UNIT, refreshed, against)


def _session(event: Event) -> str:
    actor = event.get("actor")
    session = actor.get("session") if isinstance(actor, dict) else ""
    return session if isinstance(session, str) else ""


def _order(value: Any) -> Order:
    at, stream, seq = value
    return (int(at), str(stream), int(seq))

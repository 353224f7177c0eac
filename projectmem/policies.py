"""The policy of a project: the file people edit, and what is in force (what was last accepted into the log)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from projectmem.errors import NotFoundError

if TYPE_CHECKING:
    from projectmem_gate.policy import Policy

    from projectmem.place import Place
    from projectmem.recall_policy import RecallPolicy


def policy_path(place: Place) -> str:
    """Where the project's policy file belongs (it need not exist)."""
    return os.path.join(place.home, "policy.toml")


def read(path: str, *, named: bool = False) -> tuple[Policy, str]:
    """(policy, its text).  named: by a person, so that it is not the project's own

    Raises NotFoundError for no file, PolicyError (file, line, key) for a wrong one.
    """
    from projectmem_gate.policy import PolicyError
    from projectmem_gate.policy_text import parse

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        hint = "name one that exists" if named else "the shipped defaults apply until there is one"
        raise NotFoundError(f"no policy file at {path}: {hint}") from None
    except UnicodeDecodeError as exc:
        raise PolicyError(f"{path}: not UTF-8 text (byte {exc.start}): save it as UTF-8") from None
    parsed = parse(text, path)
    recall_of(text, path)
    return parsed, text


def recall_of(text: str, path: str) -> RecallPolicy:
    """Recall's table of a policy text that was parsed before. Raises PolicyError naming the key."""
    import tomllib

    from projectmem.recall_policy import compile_recall

    return compile_recall(tomllib.loads(text).get("recall", {}), path)


def recall_in_force(place: Place) -> RecallPolicy:
    """What recall goes by: the table of the policy that was last accepted, else the defaults."""
    from projectmem.recall_policy import RecallPolicy
    from projectmem.state import accepted, reading

    with reading(place) as state:
        return RecallPolicy.from_data((accepted(state) or {}).get("recall"))


def in_force(place: Place) -> tuple[Policy, str]:
    """(the policy that decides now, where it comes from)."""
    from projectmem.state import accepted, policy_of, reading

    with reading(place) as state:
        source = "accepted into the log" if accepted(state) else "shipped defaults"
        if source == "shipped defaults" and state.policy():
            source += "; one that was accepted on another machine rules nothing here"
        return policy_of(state), source


def file_state(place: Place) -> str:
    """How the project's policy file compares with what decides: `in force`, `differs`, `missing`, or what is wrong with it."""
    from projectmem_gate.policy import PolicyError

    path = policy_path(place)
    try:
        policy, text = read(path)
        recall = recall_of(text, path)
    except NotFoundError:
        return "missing"
    except (PolicyError, OSError) as exc:
        return f"cannot be used: {exc}"
    same = policy.hash == in_force(place)[0].hash and recall.to_data() == recall_in_force(place).to_data()
    return "in force" if same else "differs"


def accept(place: Place, path: str, *, now: int) -> dict[str, Any]:
    """Validate the file and write it into the log, from where it is in force. Returns the event.

    The newest policy by its `at` is in force; one that was accepted while the clock was ahead must not outlast this one.
    """
    from projectmem.record import record
    from projectmem.state import reading

    policy, text = read(path)
    data = {"text": text, "hash": policy.hash, "policy": policy.to_data(), "recall": recall_of(text, path).to_data()}
    with reading(place) as state:
        before = state.policy()
    at = max(now, before["at"] + 1) if before else now
    return record(place, "policy.changed", data, now=now, at=at, origin="human")

"""The dry run: what would the gate say to this action now? The same steps as the hook takes, and nothing is recorded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from projectmem.errors import BadInputError

if TYPE_CHECKING:
    from projectmem_gate.model import Action, Decision

    from projectmem.place import Place

EXIT_CODES = {"allow": 0, "warn": 10, "ask": 11, "deny": 12}


def check_action(
    place: Place, *, tool: str, tool_input: Any, cwd: str, now: int, harness: str = "", session: str = ""
) -> Decision:
    """The gate's decision on a call of `tool` with `tool_input` (what the harness would send) from the folder `cwd`.

    now in microseconds. Raises LogError, ProjectionError.
    """
    action = action_for(place, tool, tool_input, cwd, harness, now)
    return assess_now(place, action, now, session=session, harness=harness)[0]


def action_for(place: Place, tool: str, tool_input: Any, cwd: str, harness: str = "", now: int = 0) -> Action:
    """The canonical action of a call, its secrets replaced as the hook would replace them; of a proposed one (`now`) with the
    failed edits that it amounts to on disk."""
    from projectmem.hook.state import as_tried, identified
    from projectmem.state import reading

    call: Any = {"tool": tool, "input": tool_input, "cwd": os.path.abspath(cwd), "harness": harness}
    with reading(place) as state:
        moved = state.moves()
        action = identified(place, call, moved, done=False)
        return as_tried(place, state, call, action, now, moved) if now else action


def assess_now(
    place: Place, action: Action, now: int, *, session: str = "", harness: str = ""
) -> tuple[Decision, dict[str, Any], list[Any]]:
    """(decision, facts by record id, live records) for an action, against the workspace on disk."""
    from projectmem_gate.model import Session

    from projectmem.hook.facts import Disk
    from projectmem.hook.judge import assess
    from projectmem.place import env
    from projectmem.state import policy_of, reading

    with reading(place) as state:
        asker = Session(session, "", harness, "", state.turn(session) if session else -1)
        return assess(state, action, asker, Disk(place, env("PATH"), state.moves()), policy_of(state), now)


def tool_call(
    *, tool: str = "", command: str = "", file: str = "", input: Any = None, old: str = "", new: str = ""
) -> tuple[str, Mapping[str, Any]]:
    """(tool, input) from what a person typed: a command, a file to edit, or a tool with its JSON input.

    Raises BadInputError for a mix that says nothing or two things.
    """
    given = [name for name, value in (("command", command), ("file", file), ("input", input)) if value not in ("", None)]
    if len(given) != 1:
        raise BadInputError(
            "say what to check with exactly one of command, file and input" + (f" (got {' and '.join(given)})" if given else "")
        )
    if command:
        return tool or "Bash", {"command": command}
    if file:
        path = os.path.abspath(file)
        if not old and not new:  # the file alone: what would be said to any change of it
            return tool or "Write", {"file_path": path, "content": "", "old_string": "", "new_string": "\n"}
        return tool or "Edit", {"file_path": path, "old_string": old, "new_string": new}
    if not tool:
        raise BadInputError("an input is the input of a tool: name the tool too")
    if not isinstance(input, dict):
        raise BadInputError(f"the input of a tool is a JSON object, not {type(input).__name__}")
    return tool, input

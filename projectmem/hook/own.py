"""[H] Our own look and repair, told from its words alone: what is let through where a call cannot be checked and the policy says
`on_error = "deny"`. Otherwise the gate would refuse the very command that mends it.

No shell is parsed. The whole command must be plain words of an allowed few, so nothing can hide in it: no quotes, no variables,
no second command. What turns the gate off, erases, or writes where it is told to is not among them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem.hook.payload import Payload

COMMANDS = frozenset(("doctor", "verify", "repair", "rebuild", "replay"))
OPTIONS = frozenset(("--all", "--apply", "--fire", "--help", "--json", "--no-fire", "--verify", "-h"))
# Fields beside the command that cannot change what is run: no running shell that it is typed into, no rights that are asked for.
FIELDS = frozenset(
    "description timeout timeout_ms timeoutMs yield_time_ms max_output_tokens run_in_background explanation".split()
)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./")


def repairs(payload: Payload) -> bool:
    """Whether the payload asks to run one of our own commands that look and mend, and nothing else. Raises nothing."""
    from projectmem_gate import tools

    if len(payload.calls) != 1:
        return False
    call = payload.calls[0]
    fields = call["input"]
    if tools.kind_of(call["tool"]) != "sh" or not isinstance(fields, dict) or tools.escalated(fields):
        return False
    named = [name for name in fields if name in tools.COMMAND]
    if len(named) != 1 or fields.keys() - FIELDS - set(named) - set(tools.WORKDIR):
        return False
    text = fields[named[0]]
    return isinstance(text, str) and _plain(text)


def _plain(text: str) -> bool:
    words = text.strip(" ").split(" ")
    if not set(text) <= _PLAIN | {" "} or words[0] != "projectmem":
        return False
    found = ""
    rest = [word for word in words[1:] if word]
    while rest:
        word = rest.pop(0)
        if word == "--root" and rest and not rest[0].startswith("-"):
            rest.pop(0)
        elif not found and word in COMMANDS:
            found = word
        elif word not in OPTIONS:
            return False
    return bool(found)

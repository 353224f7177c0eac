"""Answers in Claude Code's form, which Codex, Qwen Code and Droid share: everything inside `hookSpecificOutput` [H]."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from projectmem_gate.model import Decision

    from projectmem.hook.payload import Answer

NO_REASON = "projectmem refused this call (no reason was given)"


def refusal(event: str, decision: Decision, *, asks: bool) -> Answer:
    """The call is refused with the reason. asks: the harness can ask a person, where the decision wants one asked."""
    permission = "ask" if asks and decision.verdict == "ask" and decision.by == "person" else "deny"
    reason = decision.reason or NO_REASON
    said = {"hookEventName": event, "permissionDecision": permission, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": said}


def refuses(reply: Mapping[str, object] | None) -> bool:
    """Whether an answer keeps the call from running (and not merely asks a person)."""
    said = (reply or {}).get("hookSpecificOutput")
    return isinstance(said, dict) and said.get("permissionDecision") == "deny"


def text(event: str, words: str) -> Answer:
    """Text for the model; None for no text."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": words}} if words else None

"""Who runs a command: a person at a terminal, or an agent (under a harness, or with no terminal at all)."""

from __future__ import annotations

import sys

from projectmem import place

# What each harness sets for the processes it starts -> (its name, the variable with its session id).
_HARNESSES = {
    "CLAUDECODE": ("claude-code", "CLAUDE_CODE_SESSION_ID"),
    "CLAUDE_CODE_ENTRYPOINT": ("claude-code", "CLAUDE_CODE_SESSION_ID"),
    "CODEX_SANDBOX": ("codex", "CODEX_THREAD_ID"),
    "CODEX_THREAD_ID": ("codex", "CODEX_THREAD_ID"),
    "GEMINI_CLI": ("gemini", "GEMINI_SESSION_ID"),
    "QWEN_CODE": ("qwen", ""),
    "COPILOT_CLI": ("copilot", ""),
    "CLINE_ACTIVE": ("cline", ""),
    "OPENCODE": ("opencode", ""),
    "FACTORY_PROJECT_DIR": ("droid", ""),
    "CURSOR_AGENT": ("cursor", ""),
}


def origin() -> str:
    """`human` for a person at a terminal, else `agent`. A pipe, a file or nothing on stdin is no terminal."""
    if place.harness_marker():
        return "agent"
    try:
        return "human" if sys.stdin is not None and sys.stdin.isatty() else "agent"
    except ValueError:  # stdin was closed
        return "agent"


def actor() -> dict[str, str]:
    """Session, agent, harness and model of the caller as far as the environment tells; "" for what it does not."""
    name, variable = _HARNESSES.get(place.harness_marker(), ("", ""))
    return {"session": place.env(variable) if variable else "", "agent": "", "harness": name, "model": ""}


def no_color() -> bool:
    """Whether the person asked for no colour (https://no-color.org: any value that is not empty)."""
    return bool(place.env("NO_COLOR")) or place.env("TERM") == "dumb"

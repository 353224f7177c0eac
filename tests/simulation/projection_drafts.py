"""Drafts of events for tests of the projections: finished calls, anything else, and how they get into a log."""

from __future__ import annotations

from typing import Any

from projectmem_logs.store import LogStore

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
DAY = 86_400 * SECOND


def part(n: int, **more: Any) -> dict[str, Any]:
    return {
        "key": f"{n:032x}",
        "kind": "sh",
        "family": "npm run",
        "text": f"npm run t{n}",
        "words": ["npm"],
        "paths": [f"p{n}.py"],
        "effects": [],
        "trivial": False,
        **more,
    }


def action(n: int, outcome: str, at: int, session: str = "s1", **more: Any) -> dict[str, Any]:
    parts = more.pop("parts", [part(n)])
    data = {
        "call": f"c{at}",
        "tool": "Bash",
        "kind": "sh",
        "input": "{}",
        "cwd": ".",
        "key": f"{n:032x}",
        "text": f"npm run t{n}",
        "joins": ["&&"] * (len(parts) - 1),
        "parsed": True,
        "parts": parts,
        "failed_key": f"{n:032x}" if outcome == "failed" else "",
        "outcome": outcome,
        "exit_code": 1 if outcome == "failed" else 0,
        "class": "test" if outcome == "failed" else "",
        "signature": "boom" if outcome == "failed" else "",
        "excerpt": "boom at line 3" if outcome == "failed" else "",
        "duration_ms": 7,
        "facts": {},
        "as_of": None,
        "turn": 1,
        "source": "hook",
        **more,
    }
    return event("action.finished", data, at, session)


def event(kind: str, data: dict[str, Any], at: int, session: str = "s1", origin: str = "observed") -> dict[str, Any]:
    actor = {"session": session, "agent": "", "harness": "claude-code", "model": "m1", "origin": origin}
    return {"kind": kind, "at": NOW + at, "actor": actor, "causes": [], "data": data}


def write(home: str, *drafts: dict[str, Any]) -> list[str]:
    return [e["id"] for e in LogStore(home).append(list(drafts), now=NOW)]

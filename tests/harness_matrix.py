"""The README's table of harnesses, made by asking the adapters: `python -m tests.harness_matrix --write`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from projectmem_gate.model import Decision

from projectmem.hook.payload import ADAPTERS, Payload
from projectmem.setup.harnesses import HARNESSES

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- harnesses: made by `make matrix` -->", "<!-- end of harnesses -->"
HEAD = (
    "harness",
    "refuses",
    "a warning is read",
    "asks a person",
    "told at the start",
    "a subagent's call",
    "left running",
    "hooks in",
    "proven against",
)


def _payload(adapter: Any, tool: str) -> Payload:
    event = next(event for event, kind in adapter._KINDS.items() if kind == "pre")
    payload = Payload(event, "pre", {})
    payload.calls = [{"tool": tool, "input": {}}]
    return payload


def _refuses(adapter: Any) -> str:
    tools = {"run_commands": "commands", "editor": "every call"}
    held = [
        what
        for tool, what in tools.items()
        if adapter.refuses(adapter.answer(_payload(adapter, tool), Decision("ask", reason="R")))
    ]
    return held[-1] if held else "no"


def _warns(adapter: Any) -> str:
    kinds = {
        kind for event, kind in adapter._KINDS.items() if kind in ("post", "batch", "prompt") and adapter.context(event, "x")
    }
    if adapter.WARNS_BEFORE:
        return "beside the call"
    return "with a result" if "post" in kinds else "with a prompt"


def _row(name: str) -> tuple[str, ...]:
    adapter, harness = importlib.import_module(f"projectmem.hook.{ADAPTERS[name]}"), HARNESSES[name]
    asked = adapter.answer(_payload(adapter, "run_commands"), Decision("ask", reason="R", by="person"))
    start = next(event for event, kind in adapter._KINDS.items() if kind == "start")
    return (
        harness.title,
        _refuses(adapter),
        _warns(adapter),
        "no: refused" if adapter.refuses(asked) else "yes",
        "yes" if adapter.context(start, "x") else "no",
        adapter.SUBAGENT,
        adapter.BACKGROUND,
        f"`{harness.project}`",
        harness.proof,
    )


def table() -> str:
    """The table as it stands in the README, with its marks."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(name) for name in HARNESSES)]
    return "\n".join([BEGIN, *(f"| {' | '.join(row)} |" for row in rows), END])


def written(text: str) -> str:
    """The README's text with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    return before + table() + rest.partition(END)[2]


if __name__ == "__main__":
    if "--write" in sys.argv:
        README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(table() + "\n")

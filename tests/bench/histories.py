"""Histories of real calls, as each harness keeps them, to measure imports with. Needs the shared data (PROJECTMEM_SHARED).

Commands, edits and the beginnings and ends of outputs are those of real sessions of four repositories (eval/steps). What was cut
there is grown again, by lines of other outputs of the same kind, to lengths drawn from a log-normal distribution with a median
of 500 and a mean of 2,400 characters: a Codex session of 441 calls that its authors published has 4.8 kB a call, and of these
some 2.5 are output. What stands around a call is what the real clients write (each was run against a scripted model), without
what only makes a file longer at no cost: encrypted reasoning, system prompts, hooks' own lines, progress of subagents.

`commands`: nothing but shell commands with the excerpts of their outputs (200 or 500 characters), a line or two a call.
`whole`: messages, commands, reads, searches and edits. Calls of a harness's own (to-do lists, questions) are left out of both.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SHARED = Path(os.environ.get("PROJECTMEM_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "eval" / "steps"
SOURCES = (
    "agentv.codex",
    "entire-graph.codex",
    "context-evaluator.claude-code",
    "entire-graph.claude-code",
    "entire-cli.claude-code",
)
MEDIAN, SIGMA, LONGEST = 500, 1.77, 40_000  # of outputs, in characters
BEGAN_MS = 1_790_000_000_000
_CUT, _MORE = " ... ", re.compile(r"\.\.\.\[\+(\d+)\]$")
_PATCH = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.*)$", re.MULTILINE)
_SAYS = (
    "I have read what came back. The next step is to look at how this is used elsewhere, then change it and run the tests again. "
)


class Step(NamedTuple):
    """One call: kind is shell | read | search | edit | write | patch; `given` has command, path, pattern, old, new, content."""

    id: str
    session: str
    kind: str
    given: dict[str, Any]
    output: str
    code: int | None
    failed: bool
    at: int  # ms, of the result

    @property
    def command(self) -> str:
        """The same by a shell, for harnesses that do so."""
        path = self.given.get("path", ".")
        if self.kind == "read":
            return f"sed -n '1,240p' {path}"
        return f"rg -n {json.dumps(self.given['pattern'])} {path}" if self.kind == "search" else str(self.given["command"])


def steps(root: str, form: str) -> Iterator[Step]:
    """The calls of `whole` or `commands`, made in `root`, session by session."""
    chance = random.Random(11)
    text = {"shell": [""], "read": [""], "search": [""], "edit": [""]}
    for number, source in enumerate(SOURCES):
        with gzip.open(SHARED / f"{source}.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        tops = sorted({row["cwd"] or "" for row in rows}, key=len)
        top = next((t for t in tops if sum((row["cwd"] or "").startswith(t) for row in rows) > len(rows) // 3 and t), "/none")
        for n, row in enumerate(rows):
            kind = row["kind"]
            if kind not in text or (form == "commands" and kind != "shell"):
                continue
            lines = text[kind]
            if not row["is_error"]:  # the words of failures are not strewn over what went well
                lines += [line for line in (row["output_excerpt"] or "").split("\n") if line and _CUT not in line][:8]
            given = _given(kind, json.loads(json.dumps(row["input"]).replace(top, root)), lines, chance)
            if given is None:
                continue
            output = (row["output_excerpt"] or "").replace(top, root)
            if form == "whole" and _CUT in output:
                output = _grown(output, lines, chance)
            kind = "patch" if "patch" in given else "write" if "content" in given else kind
            failed, at = bool(row["is_error"]), BEGAN_MS + n * 20_000
            code = row["exit_code"] if kind == "shell" else None
            yield Step(f"call_{number:02}{n:014x}", row["traj_id"].partition(":")[2], kind, given, output, code, failed, at)


def _given(kind: str, given: Any, lines: list[str], chance: random.Random) -> dict[str, Any] | None:
    if not isinstance(given, dict):
        return None
    command, path = given.get("command"), given.get("file_path") or given.get("path")
    if kind == "shell":
        return {"command": _whole(command, lines, chance)} if isinstance(command, str) else None
    if kind == "search":
        return {"pattern": given["pattern"], "path": path or "."} if isinstance(given.get("pattern"), str) else None
    patch = given.get("patch")
    if isinstance(patch, str):
        return {"patch": _whole(patch, lines, chance), "path": (_PATCH.findall(patch) or [""])[0]}
    if not isinstance(path, str):
        return None
    old, new = given.get("old_string", given.get("old_str")), given.get("new_string", given.get("new_str"))
    if isinstance(old, str) and isinstance(new, str):
        return {"path": path, "old": _whole(old, lines, chance), "new": _whole(new, lines, chance)}
    if isinstance(given.get("content"), str):
        return {"path": path, "content": _whole(given["content"], lines, chance)}
    return {"path": path} if kind == "read" else None


def _whole(text: str, lines: list[str], chance: random.Random) -> str:
    """A text that was cut, as long as it was."""
    found = _MORE.search(text)
    return text if found is None else text[: found.start()] + _filler(int(found[1]), lines, chance)


def _grown(output: str, lines: list[str], chance: random.Random) -> str:
    """An output that was cut, with the middle that it may have had: it was longer than what is left of it."""
    head, _, tail = output.partition(_CUT)
    size = 0
    while size < len(output):
        size = min(LONGEST, int(MEDIAN * math.exp(chance.gauss(0, SIGMA))))
    return f"{head}\n{_filler(size - len(output), lines, chance)}\n{tail}"


def _filler(size: int, lines: list[str], chance: random.Random) -> str:
    found, length = list[str](), 0
    while length < size:
        at = chance.randrange(len(lines))
        found += lines[at : at + 12]
        length += sum(map(len, lines[at : at + 12])) + 12
    return "\n".join(found)[:size]


def says(step: Step) -> str:
    """What an agent says before every third call."""
    return _SAYS * (1 + len(step.id) % 2) if step.at // 20_000 % 3 == 0 else ""

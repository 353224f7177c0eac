"""The part that plugins written in JavaScript share: they start the registered command for each event and read its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from projectmem.setup.command import MARK, hook_args, interpreter

TIMEOUT_MS = 10_000
_BRIDGE = """// %(mark)s: written by `projectmem init`, taken out by `projectmem uninit`. Do not edit.
import { spawn } from "node:child_process"

const COMMAND = %(command)s
const ARGS = %(args)s
const MAX_OUTPUT = 262144

// One event: JSON to the command, its JSON answer back; an empty answer for whatever goes wrong.
const ask = (event, payload) => new Promise((resolve) => {
  let out = ""
  try {
    const child = spawn(COMMAND, [...ARGS, event], { stdio: ["pipe", "pipe", "ignore"], timeout: %(timeout)d })
    child.on("error", () => resolve({}))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (chunk) => { out += chunk })
    child.on("close", () => {
      try { resolve(JSON.parse(out) || {}) } catch { resolve({}) }
    })
    child.stdin.end(JSON.stringify(payload))
  } catch { resolve({}) }
})

const cut = (text) => typeof text === "string" && text.length > MAX_OUTPUT
  ? text.slice(0, MAX_OUTPUT / 2) + "\\n...\\n" + text.slice(-MAX_OUTPUT / 2) : text

"""


def text(harness: str) -> str:
    """The source of the shared part, for this installation and a harness."""
    *args, _ = hook_args(harness, "")
    return _BRIDGE % {"mark": MARK, "command": json.dumps(interpreter()), "args": json.dumps(args), "timeout": TIMEOUT_MS}


def started(source: str, events: Iterable[str]) -> dict[str, list[list[str]]]:
    """The command that a plugin's source starts for each event, {} where it cannot be read."""
    found = [re.search(rf"^const {name} = (.*)$", source, re.MULTILINE) for name in ("COMMAND", "ARGS")]
    try:
        command, args = (json.loads(match.group(1)) if match else None for match in found)
    except ValueError:
        return {}
    if not isinstance(command, str) or not isinstance(args, list):
        return {}
    return {event: [[command, *map(str, args), event]] for event in events}

"""The MCP server: what an agent may read of the log, and what it may write into it. `projectmem mcp`, over stdio.

The tools are in mcp_tools.py. Besides them: summaries as resources, and two prompts. Errors come back as tool errors that say
what to do; nothing but the protocol is written to stdout (the SDK turns stray prints to stderr).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from projectmem import mcp_wire, output, render
from projectmem.errors import BadInputError, NotFoundError, ProjectmemError
from projectmem.installed import version
from projectmem.mcp_tools import KINDS, Reply, Tools

if TYPE_CHECKING:
    from projectmem.place import Place

P = ParamSpec("P")
__all__ = ["KINDS", "Tools", "build", "definition_tokens", "run"]

INSTRUCTIONS = (
    "Memory of what failed and what worked in this project. Call summary when you start, recall before you debug, "
    "record what you decide, try and fix (one plain line each)."
)
# What each answer is as data. Terse: an agent pays for the definitions in every session.
_STRING = {"type": "string"}
_BLOCK = {"text": _STRING, "ids": {}}
# Told to clients that ask a person before each call that changes something. What a recall leaves in the log is its own record; a
# dispute takes back what was recorded, which is what clients assume of a tool without hints.
_READS, _ADDS = ToolAnnotations(read_only_hint=True), ToolAnnotations(destructive_hint=False)
_HINTS = {"record": _ADDS, "dispute": None}
_OUTPUTS = {
    "check": {"verdict": {"enum": ["allow", "warn", "ask", "deny"]}, "reason": _STRING, "record": _STRING},
    "record": {"id": _STRING},
    "dispute": {"id": _STRING},
}
NEEDLESS = ("title", "default", "additionalProperties", "minimum", "maximum")
PROMPTS: dict[str, tuple[tuple[str, str], ...]] = {
    "start": (),
    "debug": (("error", "the text that fails"),),
}  # each with what it needs


class Registered(Tool):
    """A tool whose wrong arguments are answered in one line that says what is right."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        """As the SDK's, with the arguments looked at first. Raises ToolError."""
        known = [str(name) for name in self.parameters.get("properties", {})]
        unknown = sorted(set(arguments) - set(known))
        if unknown:
            has = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ToolError(f"{self.name} has no argument `{render.inline(unknown[0], 60)}`: {has}")
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as exc:
            raise ToolError(f"{self.name}: {_faults(exc)}") from exc
        try:
            return await super().run(arguments, context, convert_result)
        except UnexpectedToolError:
            raise
        except ToolError as exc:  # the model knows which tool it called
            raise ToolError(str(exc).removeprefix(f"Error executing tool {self.name}: ")) from exc


def _faults(error: ValidationError) -> str:
    """Each wrong argument with what is wrong; never what was given, which may be long."""
    found = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {render.inline(fault['msg'].lower(), 200)}" for fault in found[:5])


def _told(function: Callable[P, str]) -> Callable[P, Reply]:
    """A tool whose known errors reach the agent as text; others stay crashes and are logged to stderr."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Reply:
        from projectmem_gate.policy import PolicyError
        from projectmem_logs.errors import LogError
        from projectmem_projections.errors import ProjectionError

        try:
            reply = function(*args, **kwargs)
        except (ProjectmemError, LogError, ProjectionError, PolicyError, OSError) as error:
            raise ToolError(render.inline(str(error), 600)) from error
        data = reply.data if isinstance(reply, Reply) else {}
        clean = {k: output.hide_secrets(v) if isinstance(v, str) else v for k, v in data.items()}
        return Reply.of(output.hide_secrets(reply), clean)

    return call


def _answered(function: Callable[P, Reply]) -> Callable[P, CallToolResult]:
    """The reply as the protocol has it: text for the model, and the same as data."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        reply = function(*args, **kwargs)
        return CallToolResult(content=[TextContent(type="text", text=str(reply))], structured_content=reply.data)

    return call


def build(
    place: Place | Callable[[], Place], *, clock: Callable[[], int], nonce: Callable[[], str], lacks: str = ""
) -> MCPServer[Any]:
    """The server for one project, not yet connected.  place  as for `Tools`;  lacks  what the client is told at the start of a
    project that is not set up."""
    tools = Tools(place, clock=clock, nonce=nonce)
    functions = (tools.summary, tools.check, tools.recall, tools.record, tools.failures, tools.explain, tools.dispute)
    server = Server(
        "projectmem",
        instructions=f"{INSTRUCTIONS} {lacks}".rstrip(),
        version=version(),
        tools=[_registered(f) for f in functions],
        log_level="WARNING",
    )
    _add_resources(server, tools)
    server.add_prompt(Prompt.from_function(_start(tools), name="start", description="Begin with what is on record."))
    server.add_prompt(Prompt.from_function(_debug(tools), name="debug", description="Look an error up before you debug it."))
    return server


def _registered(function: Callable[..., Reply]) -> Tool:
    name = function.__name__
    hints = _HINTS.get(name, _READS)
    tool = Registered.from_function(_answered(_told(function)), name=name, annotations=hints, structured_output=False)
    tool.parameters = _lean(tool.parameters)
    tool.fn_metadata.output_schema = {"type": "object", "properties": _OUTPUTS.get(name, _BLOCK)}
    return tool


def _lean(schema: Any) -> Any:
    """Generated titles repeat the names, defaults say no more than that an argument may be left out, a limit is told to who goes
    beyond it, and the values of an enum have their type: an agent pays for all of it in every session."""
    if isinstance(schema, dict):
        options = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
        if len(options) == 1:
            schema = {**{k: v for k, v in schema.items() if k != "anyOf"}, **options[0]}
        needless = {k for k in NEEDLESS if not isinstance(schema.get(k), dict)} | ({"type"} if "enum" in schema else set())
        return {k: _lean(v) for k, v in schema.items() if k not in needless}
    return [_lean(v) for v in schema] if isinstance(schema, list) else schema


def _add_resources(server: MCPServer[Any], tools: Tools) -> None:
    """The summaries, to be read by the client without a call of the model."""

    def reading(about: str = "") -> str:
        try:
            return str(_told(tools.summary)(about))
        except ToolError as error:
            asked_wrong = isinstance(error.__cause__, (BadInputError, NotFoundError))
            raise (ResourceNotFoundError if asked_wrong else ResourceError)(str(error)) from error

    @server.resource("projectmem://summary", name="summary", description="What a session should know when it starts.")
    def summary() -> str:
        return reading()

    @server.resource("projectmem://path/{+path}", name="path", description="What is on record about a file or folder.")
    def of_path(path: str) -> str:
        return reading(f"./{path}")

    @server.resource("projectmem://issue/{issue}", name="issue", description="An issue with attempts and fixes.")
    def of_issue(issue: str) -> str:
        return reading(issue)

    @server.resource("projectmem://period/{period}", name="period", description="What happened lately: 2d, 2026-11-30.")
    def of_period(period: str) -> str:
        return reading(period)


def _start(tools: Tools) -> Callable[[], str]:
    def start() -> str:
        return f"{_told(tools.summary)()}\n\nTake this into account. `recall` before you debug, `record` what you decide."

    return start


def _debug(tools: Tools) -> Callable[[str], str]:
    def debug(error: str) -> str:
        known = _told(tools.recall)(error)
        return f"{known}\n\nThis is failing:\n{render.inline(error, 1_000)}\n\nSay first whether the above is the same failure."

    return debug


def definition_tokens(tools: list[Any]) -> int:
    """What the tool definitions cost an agent, by `render.tokens` of their JSON as the client receives them."""
    shown = [t.model_dump(by_alias=True, exclude_none=True, mode="json") for t in tools]
    return render.tokens(json.dumps(shown, separators=(",", ":")))


class Server(MCPServer[Any]):
    """The SDK's server, which over stdio also answers the lines that are no message, and says what a prompt lacks."""

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None, context: Any = None) -> Any:
        """As the SDK's, with name and arguments looked at first: it logs a traceback where they are wrong. Raises MCPError."""
        if name not in PROMPTS:
            known = ", ".join(PROMPTS)
            raise MCPError(INVALID_PARAMS, f"no prompt is called `{render.inline(name, 60)}`: there are {known}")
        for needed, what in PROMPTS[name]:
            if not str((arguments or {}).get(needed) or "").strip():
                raise MCPError(INVALID_PARAMS, f"{name} needs `{needed}`: {what}")
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as exc:  # the SDK's, around whatever went wrong
            if not isinstance(exc.__cause__, ToolError):
                raise
            raise MCPError(INTERNAL_ERROR, str(exc)) from exc

    async def run_stdio_async(self) -> None:
        """Serve until the client closes stdin."""
        await mcp_wire.serve(self._lowlevel_server)


def run(place: Place | Callable[[], Place]) -> None:
    """Serve until the client closes stdin. Ctrl-C ends it at once, as SIGTERM does: the SDK would wait for its reading thread.

    place  as for `Tools`. Without a log the server starts all the same: of one that ends at once a client says only that the
    connection was closed. Each call then says what to run, and works once that was done.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    lacks = ""
    if callable(place):
        try:
            place = place()
        except ProjectmemError as exc:
            lacks = f"It is not set up here ({render.inline(str(exc), 600)}): tell the person; until then every tool says so."
    server = build(place, clock=lambda: time.time_ns() // 1000, nonce=lambda: os.urandom(6).hex(), lacks=lacks)
    if lacks:
        sys.stderr.write(f"projectmem: {lacks}\n")
    server.run("stdio")

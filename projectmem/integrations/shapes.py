"""What a framework's tool call and its result are in the terms that every harness's hook speaks: tool, input, outcome.

Pure: no clock, no disk. Any value is taken; what is no JSON is named by its type, so that the same call gives the same identity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from projectmem_gate import tools
from projectmem_gate.lines import names

from projectmem.hook.payload import errored, head_and_tail

Translate = Callable[[str, Any], tuple[str, Any]]
DEPTH_MAX = 12
LONG_BITS = 10_000  # of a number: Python writes no decimal of more than 4,300 digits
# Beside these an argument `command` is all that a tool does.
_BESIDE_COMMAND = tools.NOISE | names("timeout_seconds env_vars restart") | frozenset(tools.WORKDIR)
_CODES = ("exit_code", "exitCode", "returncode", "return_code", "exit_status")
_STREAMS = ("stdout", "output", "stderr", "error", "error_message", "message", "content", "result", "text")


class Tools:
    """How a program's own tools are understood. Tools of the names that harnesses use need no word here.

    commands   {tool: argument that holds a command line}: the call is that command, as in any shell tool
    edits      {tool: (path argument, old text argument, new text argument)}: a replacement in a file
    writes     {tool: (path argument, content argument)}: a whole file
    translate  (tool, input) -> (tool, input) for what these cannot say, asked first
    """

    def __init__(
        self,
        commands: Mapping[str, str] | None = None,
        edits: Mapping[str, Sequence[str]] | None = None,
        writes: Mapping[str, Sequence[str]] | None = None,
        translate: Translate | None = None,
    ) -> None:
        self.commands, self.edits, self.writes = dict(commands or {}), dict(edits or {}), dict(writes or {})
        self.translate = translate
        for what, given, count in (("edits", self.edits, 3), ("writes", self.writes, 2)):
            for tool, fields in given.items():
                if isinstance(fields, str) or len(fields) != count:
                    raise ValueError(f"`{what}` names {count} arguments for each tool, not {fields!r} as for `{tool}`")

    def neutral(self, tool: str, given: Any) -> tuple[str, Any]:
        """(tool, input) as the gate's identity knows them."""
        given = plain(given)
        if isinstance(given, str) and given[:1] == "{":
            try:
                given = plain(json.loads(given))
            except ValueError:
                pass
        if self.translate is not None:
            tool, given = self.translate(tool, given)
            given = plain(given)
        if not isinstance(given, dict):
            return tool, given
        if tool in self.commands:
            return "bash", _as_command(given, self.commands[tool])
        if tool in self.edits:
            return "edit", _renamed(given, self.edits[tool], ("file_path", "old_string", "new_string"))
        if tool in self.writes:
            return "write", _renamed(given, self.writes[tool], ("file_path", "content"))
        return _guessed(tool, given)


def _guessed(tool: str, given: dict[str, Any]) -> tuple[str, Any]:
    """A tool of an unknown name, by its arguments: one command line, or a path with an old and a new text."""
    kind = tools.kind_of(tool)
    if kind == "sh" and isinstance(given.get("commands"), list):
        return tool, _as_command(given, "commands")  # LangChain's shell tool: command lines, not one argument vector
    if kind != "other":
        return tool, given
    for name in ("command", "cmd"):
        if isinstance(given.get(name), str) and given.keys() - {name} <= _BESIDE_COMMAND:
            return "bash", _as_command(given, name)
    for wanted in (tools.PATH, tools.OLD, tools.NEW):
        if not any(isinstance(given.get(name), str) for name in wanted):
            return tool, given
    return "edit", given


def _as_command(given: dict[str, Any], name: str) -> dict[str, Any]:
    value = given.get(name)
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "\n".join(value)
    rest = {key: given[key] for key in given if key in tools.WORKDIR or key in tools.LIMITS or key in tools.BACKGROUND}
    return {**rest, "command": value}


def _renamed(given: dict[str, Any], fields: Sequence[str], wanted: Sequence[str]) -> dict[str, Any]:
    rest = {key: value for key, value in given.items() if key not in fields}
    return {**rest, **{to: given.get(field) for field, to in zip(fields, wanted, strict=True)}}


def plain(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """A value as JSON data: models and dataclasses by their fields, anything else by the name of its type."""
    if isinstance(value, str):
        return whole(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if len(inside) > DEPTH_MAX or id(value) in inside:
        return "..."
    inside = (*inside, id(value))
    if isinstance(value, Mapping):
        return {whole(str(key)): plain(member, inside) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member, inside) for member in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(member, inside) for member in value), key=str)
    fields = fields_of(value)
    return type(value).__name__ if fields is None else plain(fields, inside)


def whole(text: str) -> str:
    """The text with halves of a surrogate pair spelled out, as the hook has them, and NUL: no file or file's name takes them."""
    text = text.replace("\0", "\\x00") if "\0" in text else text
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a pydantic model, a dataclass or a mapping; None for anything else."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        try:
            found = dump()
        except Exception:  # a model whose fields cannot be dumped is named by its type
            return None
        return found if isinstance(found, dict) else None
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return {name: getattr(value, name, None) for name in value.__dataclass_fields__}
    return None


def text_of(value: Any, inside: tuple[int, ...] = ()) -> str:
    """The text of a result as a model reads it, near enough: a string, blocks of content, an object's streams, else JSON."""
    if value is None or len(inside) > DEPTH_MAX or id(value) in inside:  # what holds itself says it once
        return ""
    if isinstance(value, str):
        return value
    inside = (*inside, id(value))
    if isinstance(value, (list, tuple)):
        return "\n".join(text for member in value if (text := text_of(member, inside)))
    fields = fields_of(value)
    if fields is None:
        long = isinstance(value, int) and value.bit_length() > LONG_BITS
        return hex(value) if long else str(value) if isinstance(value, (bool, int, float)) else ""
    streams = [fields[name] for name in _STREAMS if isinstance(fields.get(name), str) and fields[name]]
    if streams:
        return "\n".join(streams)
    nested = fields.get("content")
    if isinstance(nested, (list, tuple)):
        return text_of(nested, inside)
    return json.dumps(plain(fields), ensure_ascii=False, sort_keys=True)


def returned(call: dict[str, Any], value: Any, is_error: bool | None, exit_code: int | None) -> None:
    """Set what a result tells of the call: output, exit code, the framework's mark.

    A framework's "no error" only says that the function returned; a command says more in its text (`Exit code: 2`), which is
    not read where the mark says success: it is kept for other tools alone.
    """
    call["output"] = head_and_tail(text_of(value))
    fields = fields_of(value) or {}
    if exit_code is None:
        exit_code = next((fields[name] for name in _CODES if type(fields.get(name)) is int), None)
    if exit_code is not None:
        call["exit_code"], call["is_error"] = exit_code, exit_code != 0
        call["error_kind"] = "exit" if exit_code else ""
        return
    if is_error is None and fields:
        is_error = _says_error(fields)
    shell = tools.kind_of(call["tool"]) == "sh"
    call["is_error"] = True if is_error else None if shell else is_error
    call["error_kind"] = "tool" if is_error else ""


def _says_error(fields: Mapping[str, Any]) -> bool | None:
    """Whether a result's fields say that it is an error: `status: error`, `isError`, or an `error` and nothing else."""
    status = fields.get("status")
    if isinstance(status, str) and status.lower() in ("error", "failed", "failure"):
        return True
    if fields.get("isError") is True or fields.get("is_error") is True:
        return True
    return True if fields.get("error") and not fields.keys() - {"error", "error_code", "error_type", "details"} else None


def raised(call: dict[str, Any], error: BaseException) -> None:
    """Set what an exception tells of the call."""
    code = getattr(error, "returncode", None)
    text = named(error)
    if type(code) is int:  # subprocess.CalledProcessError and its kin: the command's own words
        said = [_decoded(getattr(error, name, None)) for name in ("stdout", "stderr")]
        returned(call, "\n".join(part for part in said if part) or text.partition(": ")[2] or text, True, code)
        return
    if "\n" in text:
        text = text.partition(": ")[2]
    said = [_decoded(getattr(error, name, None)) for name in ("stdout", "stderr")]
    errored(call, "\n".join([*(part for part in said if part), text]))
    if isinstance(error, TimeoutError) or type(error).__name__ == "TimeoutExpired":
        call["timed_out"], call["error_kind"] = True, "timeout"
    elif isinstance(error, KeyboardInterrupt):
        call["interrupted"], call["error_kind"] = True, "interrupted"
    elif type(error).__name__ in ("CancelledError", "Cancelled", "GeneratorExit"):
        call["error_kind"] = "cancelled"


def named(error: BaseException) -> str:
    """An exception's type and text; the type alone where the text cannot be made."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}: (its text cannot be shown)"


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""


def added(value: Any, text: str) -> Any:
    """A result with a text behind it for the model: to a string, a list of text blocks, or an object; others as they are."""
    if not text:
        return value
    if value is None or value == "":
        return text
    if isinstance(value, str):
        return f"{value}\n\n{text}"
    if isinstance(value, list):
        return [*value, {"type": "text", "text": text}]
    if isinstance(value, Mapping):
        return {**value, "projectmem": text}
    return f"{value}\n\n{text}" if isinstance(value, (int, float, bool)) else value

"""Reads the tasks that Cline's editor extension keeps: `tasks/ID/api_conversation_history.json` in its folder of an editor.

Not run: no real extension stands behind this. What is read is what its sources of 2025 write: calls as the model's tool calls, or
as tags in its text, one a parameter; a result as the call's, or as text that begins `[TOOL for '...'] Result:`. Times are in
`ui_messages.json` beside it, the folder in the first message or in `state/taskHistory.json`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from projectmem.hook.cline import HARNESS
from projectmem.hook.payload import call_of, errored, exited, head_and_tail, number_after, text_of
from projectmem.importers.reading import Call, Counts, by_age, ended, ms_us, parsed, payload_of, whole
from projectmem.place import config_dir

FILE = "api_conversation_history.json"
EXTENSION = "saoudrizwan.claude-dev"
EDITORS = ("Code", "Code - Insiders", "Cursor", "VSCodium", "Windsurf")
_REMOTE = ("~/.vscode-server", "~/.vscode-server-insiders", "~/.cursor-server")
_SHELL = "execute_command"
# Tools whose calls in the form of tags are read; what else stands in tags is prose or asks the person.
_TOOLS = (_SHELL, "write_to_file", "replace_in_file", "read_file", "search_files", "list_files", "use_mcp_tool")
_TAGGED = re.compile(rf"<({'|'.join(_TOOLS)})>(.*?)</\1>", re.DOTALL)
_PARAMETER = re.compile(r"<([a-z_]+)>(.*?)</\1>", re.DOTALL)
_WHOLE = {"content": re.compile(r"<content>(.*)</content>", re.DOTALL), "diff": re.compile(r"<diff>(.*)</diff>", re.DOTALL)}
_RESULT = re.compile(r"\[(\w+)(?: for '.*?')?\] Result:\s*", re.DOTALL)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\)")
_DENIED, _FAILED = "The user denied this operation", "The tool execution failed with the following error"
_RUNNING, _OUTPUT = "still running in the user's terminal", "Output:\n"
_LATE = "timed out"


def task_files() -> list[Path]:
    """All tasks of all editors on this machine, oldest first."""
    folders = [Path(config_dir(variable, default)) for variable, default in _homes()]
    users = [folder / editor / "User" for folder in folders for editor in EDITORS]
    users += [Path(config_dir("", name)) / "data" / "User" for name in _REMOTE]
    found = [path for user in users for path in (user / "globalStorage" / EXTENSION / "tasks").glob(f"*/{FILE}")]
    return by_age([*found, *(Path(config_dir("", "~/.cline")) / "data" / "tasks").glob(f"*/{FILE}")])


def _homes() -> list[tuple[str, str]]:
    """Where editors keep their settings: Linux, macOS, Windows."""
    return [("XDG_CONFIG_HOME", "~/.config"), ("", "~/Library/Application Support"), ("APPDATA", "~/AppData/Roaming")]


def read_task(path: Path, counts: Counts) -> Iterator[Call]:
    """The calls of one task in the order of their results."""
    raw, written = whole(path, counts)
    if not raw:
        return
    try:
        messages = parsed(raw)
    except ValueError:
        counts.bad(path, "not JSON")
        return
    if not isinstance(messages, list):
        counts.bad(path, "no list of messages")
        return
    when, session = _times(path), f"cline:{path.parent.name}"
    cwd = _folder(messages) or _of_history(path)
    open_calls: list[tuple[str, str, Any, int, str]] = []  # id, tool, input, began, model
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            continue
        at = ms_us(message.get("ts")) or when(number) or written
        info = message.get("modelInfo")
        model = text_of(info, "modelId") or text_of(info, "id") if isinstance(info, dict) else ""
        if message.get("role") == "assistant":
            open_calls = [(id, tool, given, at, model) for id, tool, given in _asked(message)]
            continue
        for id, tool, told in _answers(message):
            use = next((one for one in open_calls if (one[0] == id if id else one[1] == tool and not one[0])), None)
            if use is not None:
                open_calls.remove(use)
                number_of = use[0] or f"{path.parent.name}-{number}-{len(open_calls)}"
                call = call_of(payload_of(session, cwd, use[4]), HARNESS, use[1], use[2], number_of)
                answered(call, told)
                yield ended(call, at, use[3])


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _asked(message: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(id, "" for none, tool, input) of the calls of a message of the model's."""
    blocks = _blocks(message)
    native = [block for block in blocks if block.get("type") == "tool_use" and text_of(block, "name")]
    yield from ((text_of(block, "id"), block["name"], block.get("input")) for block in native)
    for block in [] if native else blocks:
        for found in _TAGGED.finditer(text_of(block, "text")):
            tool, inner = found.groups()
            given = {name: value.strip("\n") for name, value in _PARAMETER.findall(inner)}
            for name, pattern in _WHOLE.items():  # a file's text may hold tags of the same name
                if name in given and (all_of_it := pattern.search(inner)):
                    given[name] = all_of_it.group(1).strip("\n")
            if tool == _SHELL and "command" in given:
                given["command"] = given["command"].strip()
            yield "", tool, given


def _answers(message: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(id, tool, text) of the results in a message to the model: of native calls the id, of others the tool."""
    tool, texts = "", list[str]()
    for block in _blocks(message):
        if block.get("type") == "tool_result":
            content = block.get("content")
            inner = _blocks({"content": content})
            text = "\n".join(text_of(part, "text") for part in inner)
            yield text_of(block, "tool_use_id"), "", _RESULT.sub("", text, count=1) if _RESULT.match(text) else text
            continue
        text = text_of(block, "text")
        found = _RESULT.match(text)
        if found or text.startswith(("<environment_details>", "<feedback>", "<task>")):
            if tool:
                yield "", tool, "\n".join(texts)
            tool, texts = (found.group(1), [text[found.end() :]]) if found else ("", [])
        elif tool:
            texts.append(text)
    if tool:
        yield "", tool, "\n".join(texts)


def answered(call: Call, text: str) -> None:
    """Put what the extension said of a call into it. It tells the exit codes of some commands; of others only the output shows
    whether they failed."""
    if text.startswith(_DENIED):
        errored(call, text)["error_kind"] = "denied"
    elif text.startswith((_FAILED, "Error executing ")):
        errored(call, text.removeprefix(_FAILED).strip().removeprefix(":").strip())
    elif call["tool"] != _SHELL:
        call["output"], call["is_error"] = head_and_tail(text), False
    else:
        head, mark, output = text.partition(_OUTPUT)
        code = number_after(head, "exit code") if "exit code" in head else None
        call["output"] = head_and_tail(output if mark else text)
        if _RUNNING in head:
            call["background"] = "async"
        elif code is not None:
            exited(call, code, output if mark else text)
        call["timed_out"] = _LATE in head


def _folder(messages: list[Any]) -> str:
    for message in messages[:8]:
        for block in _blocks(message) if isinstance(message, dict) else []:
            found = _FOLDER.search(text_of(block, "text"))
            if found:
                return found.group(1)
    return ""


def _of_history(path: Path) -> str:
    """The folder that the extension's list of tasks names; "" where it does not: the calls then belong to no repository."""
    try:
        rows = orjson.loads((path.parents[2] / "state" / "taskHistory.json").read_bytes())
    except (OSError, ValueError, IndexError):
        return ""
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and row.get("id") == path.parent.name:
            return text_of(row, "cwdOnTaskInitialization") or text_of(row, "shadowGitConfigWorkTree")
    return ""


def _times(path: Path) -> Any:
    """A function from a message's number to its time in us, by what the person was shown beside it; 0 where nothing tells."""
    try:
        rows = orjson.loads(path.with_name("ui_messages.json").read_bytes())
    except (OSError, ValueError):
        rows = []
    first: dict[int, int] = {}
    for row in rows if isinstance(rows, list) else []:
        index, at = (row.get("conversationHistoryIndex"), ms_us(row.get("ts"))) if isinstance(row, dict) else (None, 0)
        if type(index) is int and at:
            first[index + 1] = min(at, first.get(index + 1, at))  # the number of messages before it was shown, less one
    numbers = sorted(first)

    def when(number: int) -> int:
        at = bisect_left(numbers, number)
        return first[numbers[min(at, len(numbers) - 1)]] if numbers else 0

    return when

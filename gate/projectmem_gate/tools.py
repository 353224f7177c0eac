"""[H] Tool names of the harnesses, and where each keeps its fields.

One table for Claude Code, Codex, Gemini, Qwen, Copilot, opencode, Cline, Droid, pi, OpenHands, SWE-agent and mini-swe-agent.
Names are compared without case, `_`, `-` and `.`, so that `exec_command`, `execCommand` and `ExecCommand` are one.
"""

from __future__ import annotations

from projectmem_gate.lines import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KINDS = {
    "sh": """bash shell execcommand localshell localshellcall shellcommand runshellcommand runcommand runincommandline executebash
        executecommand executebashcommand terminal runterminalcmd runinterminal execute cmdrunaction command powershell pwsh
        shelltool bashtool unifiedexec containerexec monitor zsh sh runbash runcommands""",
    "code": "exec",
    "edit": """edit multiedit strreplace replace strreplaceeditor strreplacebasededittool editfile replaceinfile searchreplace
        fileeditor editor insert edittool replacestringinfile multireplacestringinfile inserteditintofile texteditor editblock""",
    "write": "write writefile create createfile writetofile newfile savefile filewrite overwrite",
    "patch": "applypatch patch applydiff unifieddiff",
    "fetch": "webfetch fetch readurl fetchurl fetchwebpage urlfetch browse",
    "read": "read readfile view viewfile readmanyfiles open viewimage readfiles cat notebookread lsp readtextfile",
    "search": """grep glob find findfile search searchfile searchdir ls listdir listdirectory listfiles rg codesearch searchfiles
        grepsearch filesearch searchfilecontent findbyname""",
    "notebook": "notebookedit editnotebook editnotebookfile",
}
KINDS = {name: kind for kind, names in _KINDS.items() for name in names.split()}

COMMAND = ("command", "cmd", "script", "commands", "commandLine", "CommandLine", "command_line", "code", "input")
WORKDIR = ("workdir", "cwd", "working_directory", "workingDirectory", "dir_path", "directory", "working_dir", "Cwd")
PATH = (
    "file_path",
    "path",
    "filePath",
    "filename",
    "file",
    "target_file",
    "absolute_path",
    "notebook_path",
    "relative_workspace_path",
    "TargetFile",
    "uri",
    "AbsolutePath",
)
OLD = ("old_string", "old_str", "oldString", "oldStr", "old_text", "oldText", "search", "old", "old_content", "TargetContent")
NEW = (
    "new_string",
    "new_str",
    "newString",
    "newStr",
    "new_text",
    "newText",
    "replace",
    "new",
    "new_content",
    "ReplacementContent",
    "insert_text",
)
CONTENT = ("content", "file_text", "contents", "text", "fileText", "CodeContent", "new_source")
PATCH = ("patch", "input", "patchText", "diff", "patch_text", "content", "command")
URL = ("url", "uri", "URL", "link")
# Fields that say how to run or show a call, not what it does.
NOISE = names(
    """
    description timeout timeout_ms timeoutMs yield_time_ms max_output_tokens max_tokens run_in_background
    justification prefix_rule explanation instruction is_background isBackground security_risk summary session_id
    login tty toolCallId thought requires_approval dangerouslyDisableSandbox sandbox_permissions
    with_escalated_permissions blocking initial_wait shellId sessionId mode detach additional_permissions
    environment_id shell prompt background is_input reset wait_for_previous_tools toolSummary toolAction
    """
)


LIMITS = ("timeout", "timeout_ms", "timeoutMs", "timeout_seconds")
BACKGROUND = ("run_in_background", "is_background", "isBackground", "background")
_LIMITING = frozenset((*LIMITS, *BACKGROUND))
_SECONDS_MAX = 3_600  # a smaller number is one of seconds: nobody gives a command three of a thousand


def limit(fields: dict[str, Any]) -> int:
    """Milliseconds after which the harness is asked to end the call; 0 where nothing is said, -1 in the background."""
    if _LIMITING.isdisjoint(fields):
        return 0
    if any(fields.get(name) is True for name in BACKGROUND):
        return -1
    value = first(fields, LIMITS)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 2**53:
        return 0
    return int(value * 1000 if value <= _SECONDS_MAX else value)


def plain(tool: str) -> str:
    return tool.lower().replace("_", "").replace("-", "").replace(".", "")


def kind_of(tool: str) -> str:
    """sh | code | edit | write | patch | fetch | read | search | notebook | mcp | other."""
    if tool.startswith("mcp_"):
        return "mcp"
    return KINDS.get(plain(tool), "other")


def first(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Value of the first of `names` that is there and not None."""
    for name in names:
        if name in fields:
            value = fields[name]
            if value is not None:
                return value
    return None


def text(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    """Like first, as a string: lists of strings are joined by newlines, anything else that is no string is ""."""
    value = first(fields, names)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "\n".join(value)
    return ""


def escalated(fields: dict[str, Any]) -> bool:
    """The harness is asked to run the call outside its sandbox."""
    if fields.get("dangerouslyDisableSandbox") is True or fields.get("with_escalated_permissions") is True:
        return True
    asked = fields.get("sandbox_permissions")
    return isinstance(asked, str) and asked not in ("", "use_default", "default", "sandboxed")

"""Edits Claude Code's settings files: adds our hooks, takes exactly those out again, and leaves all else as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from projectmem.hook.claude_code import BATCH, EVENTS, FAILURE, HARNESS, PRE, PROMPT
from projectmem.place import SWITCH_VARIABLE
from projectmem.serve.settings import Settings as Resident
from projectmem.setup import hook_lists
from projectmem.setup.command import guarded, hook_args, interpreter, is_ours, line
from projectmem.setup.hook_lists import SettingsError, all_hooks, hooks_of, read, registered

__all__ = ["SettingsError", "add", "entries", "problems", "read", "registered", "remove"]

Note = dict[str, Any]


# What is posted to the server where there is one. The start of a session is not: it is what starts the server.
_POSTED = (PRE, FAILURE, BATCH, PROMPT)


def entries(home: str = "", resident: Resident | None = None) -> dict[str, dict[str, Any]]:
    """Our group of each event, as Claude Code wants it: absolute interpreter, explicit timeout in seconds. One line for a shell
    and not a list of words: Copilot CLI runs these settings too, but without the list, and would run the payload as a program.

    With `resident` (the settings of the server for the log in `home`) an HTTP hook stands beside each command that is made
    for every call, and the command does nothing while the server runs: the client lets a call go on when it gets no answer.
    """
    groups = {}
    for event, (timeout, matched) in EVENTS.items():
        command, args = interpreter(), hook_args(HARNESS, event)
        posted = resident is not None and event in _POSTED
        if posted:
            command, args = guarded(home, command, args)
        hooks: list[dict[str, Any]] = [{"type": "command", "command": line(command, args), "timeout": timeout}]
        if resident is not None and posted:
            hooks.append(_posted(resident, event, timeout))
        groups[event] = {"matcher": "*", "hooks": hooks} if matched else {"hooks": hooks}
    return groups


def _posted(resident: Resident, event: str, timeout: int) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {resident.token}", "X-Projectmem-Gate": f"${SWITCH_VARIABLE}"}
    url = resident.url(HARNESS, event)
    return {"type": "http", "url": url, "headers": headers, "allowedEnvVars": [SWITCH_VARIABLE], "timeout": timeout}


def add(path: Path, home: str = "", resident: Resident | None = None, note: Note | None = None) -> Note:
    """Put our hooks (`entries`) into the file, in place of earlier ones of ours. Returns a note for `remove`."""
    return hook_lists.add(path, entries(home, resident), note)


def remove(path: Path, note: Note | None = None) -> bool:
    """Take our hooks out. `note` is what `add` returned. Returns whether anything was ours."""
    return hook_lists.remove(path, note)


# Measured on 2.1.332: one of these of another kind and Claude Code ignores the whole file, without a word where nobody looks on.
_KINDS: dict[type, str] = {
    bool: "allowManagedHooksOnly alwaysThinkingEnabled autoMemoryEnabled disableAllHooks enableAllProjectMcpServers fastMode "
    "includeCoAuthoredBy includeGitInstructions prefersReducedMotion promptSuggestionEnabled respectGitignore showTurnDuration "
    "skipWebFetchPreflight spinnerTipsEnabled terminalProgressBarEnabled",
    dict: "attribution enabledPlugins env fileSuggestion hooks modelOverrides permissions pluginConfigs sandbox spinnerVerbs "
    "statusLine worktree",
    list: "allowedHttpHookUrls availableModels claudeMdExcludes companyAnnouncements httpHookAllowedEnvVars",
    str: "advisorModel agent apiKeyHelper autoMemoryDirectory autoUpdatesChannel awsAuthRefresh awsCredentialExport defaultShell "
    "forceLoginOrgUUID language model otelHeadersHelper outputStyle plansDirectory",
}
_PERMISSIONS: dict[type, str] = {list: "additionalDirectories allow ask deny", str: "defaultMode disableBypassPermissionsMode"}
_CALLED = {bool: "true or false", dict: "an object", list: "a list", str: "a text"}
_NEEDED = {"command": "command", "prompt": "prompt", "http": "url"}  # what a hook of this type must have


def problems(path: Path) -> list[str]:
    """What in the file makes Claude Code drop hooks without a word (measured on the client): [] when all is well."""
    try:
        data, _ = read(path)
        hooks = hooks_of(path, data)
    except SettingsError as exc:
        return [str(exc)]
    permissions = data.get("permissions")
    wrong = [*_other_kinds(data, _KINDS), *_other_kinds(permissions if isinstance(permissions, dict) else {}, _PERMISSIONS)]
    wrong += [text for group in hooks.get(PRE, []) if (text := _unreadable(group))]
    wrong = [f"{path}: {text}, so Claude Code ignores the whole file" for text in wrong]
    if data.get("disableAllHooks") is True:
        wrong.append(f"{path}: `disableAllHooks` is true, so no hook runs")
    for event, groups in hooks.items():
        for group in groups:
            matcher = group.get("matcher") if isinstance(group, dict) else None
            if matcher is not None and any(is_ours(h) for h in all_hooks([group])) and not _matches_all(matcher):
                wrong.append(f'{path}: the matcher of {event} is {matcher!r}, so the gate sees only part of the calls: use "*"')
    return wrong


def _other_kinds(data: dict[str, Any], kinds: dict[type, str]) -> list[str]:
    return [
        f"`{name}` is not {_CALLED[kind]}"
        for kind, names in kinds.items()
        for name in names.split()
        if name in data and not isinstance(data[name], kind)
    ]


def _unreadable(group: Any) -> str:
    """What is wrong with a group of PreToolUse, "" for nothing: there one that Claude Code cannot read costs all, while
    of other events only that one is left out (measured)."""
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return f"an entry of {PRE} is no object with a list `hooks`"
    if not isinstance(group.get("matcher", ""), str):
        return f"a `matcher` of {PRE} is not a text"
    for hook in group["hooks"]:
        kind = hook.get("type") if isinstance(hook, dict) else None
        if not isinstance(kind, str):
            return f"a hook of {PRE} has no `type`"
        if kind in _NEEDED and not isinstance(hook.get(_NEEDED[kind]), str):
            return f"a hook of {PRE} has no `{_NEEDED[kind]}`"
        if "timeout" in hook and not _is_time(hook["timeout"]):
            return f"a `timeout` of {PRE} is no number above 0"
    return ""


def _is_time(given: object) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool) and given > 0


def _matches_all(matcher: object) -> bool:
    return matcher in ("*", "", ".*")

"""[H] The one entrance: what a tool call *is*, for recording and checking alike. See ../IDENTITY.md.

Pure and total: any tool name and any JSON value give an Action; what cannot be understood is matched verbatim.
"""

from __future__ import annotations

from . import calls, edits, tools
from .commands import build
from .keys import key_of, text_digest
from .model import Action, Part
from .paths import Roots
from .shell import Scope, Walk
from .wrappers import SHELLS, basename

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MAX_INPUT = 65_536  # characters; a longer command is matched by its hash
_TRIMMED = "...[+"


def identify(
    tool: str,
    tool_input: Any,
    *,
    root: str,
    cwd: str,
    harness: str = "",
    resolve: Callable[[str], str] | None = None,
    input_sha: str = "",
    worktrees: Sequence[str] = (),
    fold_case: bool = False,
    fold_unicode: bool = False,
) -> Action:
    """The canonical Action of a tool call.

    tool, tool_input  as the harness names and sends them (any JSON value; a JSON string of an object is read too)
    root, cwd         absolute, either operating system's spelling; worktrees: further roots of the same project
    resolve           absolute path -> real path, for symlinks; None when the disk must not be asked
    input_sha         hash of the whole input, used where a transcript trimmed a string
    fold_case, fold_unicode  the file system ignores case / Unicode normal form
    """
    tool = tool if isinstance(tool, str) else str(tool)
    try:
        roots = Roots(root, worktrees, fold_case, fold_unicode, resolve)
        return _identify(tool, tool_input, roots, roots.name(cwd or root), input_sha if isinstance(input_sha, str) else "")
    except Exception:  # identity must never cost the call: record it as not understood
        return _verbatim(tool, tool_input, input_sha if isinstance(input_sha, str) else "")


def _verbatim(tool: str, tool_input: Any, sha: str) -> Action:
    try:
        body = sha or calls.canonical(tool_input)
    except Exception:
        body = "?"
    part = Part(key_of("verbatim", tools.plain(tool), body), "other", tools.plain(tool)[:80] or "other", f"{tool} {body}"[:400])
    return Action(tool, "other", ".", part.key, part.text, (part,), (), False)


def _identify(tool: str, tool_input: Any, roots: Roots, cwd: str, sha: str) -> Action:
    kind = tools.kind_of(tool)
    if isinstance(tool_input, str) and tool_input[:1] == "{" and kind != "other":
        import json

        try:
            tool_input = json.loads(tool_input)
        except ValueError:
            pass
    if isinstance(tool_input, (str, list)):
        tool_input = {("patch" if kind == "patch" else "command"): tool_input} if kind in ("sh", "patch") else {"input": tool_input}
    fields: dict[str, Any] = tool_input if isinstance(tool_input, dict) else {}
    away = tools.escalated(fields)
    trimmed = sha if sha and _is_trimmed(fields) else ""
    if kind == "sh":
        workdir = tools.text(fields, tools.WORKDIR)
        here = roots.name(workdir, cwd) if workdir else cwd
        command = _command(tools.first(fields, tools.COMMAND))
        if command is not None:
            return _shell(tool, command, roots, here, away, trimmed)
        kind = "other"
    parts: list[Part] = []
    if kind == "mcp":
        parts = [calls.mcp_part(tool, tool_input, away, trimmed)]
    elif kind == "fetch" and tools.text(fields, tools.URL):
        parts = [calls.fetch_part(fields, away)]
    elif kind in ("edit", "write", "patch", "notebook"):
        parts = _changes(tool, kind, fields, roots, cwd, away, trimmed)
        kind = {"notebook": "edit"}.get(kind, kind)
    if not parts and kind in ("read", "search") or (not parts and kind == "edit" and fields.get("command") == "view"):
        kind = "read" if kind == "edit" else kind
        parts = [calls.read_part(tool, kind, fields, roots, cwd, away)]
    if not parts:
        kind = "other"
        parts = [calls.other_part(tool, tool_input, trimmed, away)]
    return _action(tool, parts[0].kind if len(parts) == 1 else kind, cwd, parts, ["&&"] * (len(parts) - 1), True, away)


def _is_trimmed(value: Any, depth: int = 0) -> bool:
    if isinstance(value, str):
        return _TRIMMED in value
    if depth > 6:
        return False
    if isinstance(value, dict):
        return any(_is_trimmed(v, depth + 1) for v in value.values())
    return isinstance(value, list) and any(_is_trimmed(v, depth + 1) for v in value)


def _action(tool: str, kind: str, cwd: str, parts: list[Part], joins: list[str], parsed: bool, away: bool) -> Action:
    serious = [i for i, p in enumerate(parts) if not p.trivial] or list(range(len(parts)))
    if len(serious) == 1:
        key = parts[serious[0]].key
        text = parts[serious[0]].text
    else:
        fields, shown = ["chain", parts[serious[0]].key], parts[serious[0]].text
        for before, i in zip(serious, serious[1:], strict=False):
            between = {*joins[before:i]}
            operator = between.pop() if len(between) == 1 else ";"
            fields += [operator, parts[i].key]
            shown += ("; " if operator == ";" else f" {operator} ") + parts[i].text
        key, text = key_of(*fields), shown
    return Action(tool, kind, cwd, key, text[:400], tuple(parts), tuple(joins), parsed, away)


# -- shell ---------------------------------------------------------------------------------------------------------


def _command(value: Any) -> str | list[str] | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        if basename(value[0]) in SHELLS and len(value) == 3 and value[1][:1] == "-" and "c" in value[1]:
            return str(value[2])
        return value
    return None


def _shell(tool: str, command: str | list[str], roots: Roots, cwd: str, away: bool, sha: str) -> Action:
    text = command if isinstance(command, str) else " ".join(command)
    text = text.replace("\r\n", "\n").strip()
    if sha or len(text) > MAX_INPUT:
        return _whole(tool, text, sha or text_digest(text), roots, cwd, away, False)
    walk, scope = Walk(roots), Scope(cwd)
    if isinstance(command, str):
        walk.run(_without_secrets(text), scope)
    else:  # an argument vector: no shell looks at it
        from .words import clean

        walk.command([clean(w) for w in command], {}, scope, ("", ""), [])
    if not walk.parsed or not walk.commands or not walk.complete:
        return _whole(tool, text, "", roots, cwd, away, walk.parsed and walk.complete, walk)
    parts: list[Part] = []
    keys: list[str] = []
    for item in walk.commands:
        part = build(item, keys, walk.commands, roots, away)
        parts.append(part)
        keys.append(part.key)
    return _action(tool, "sh", cwd, parts, walk.joins, True, away)


def _without_secrets(text: str) -> str:
    """Redaction marks `<secret:1a2b>` are words, not redirections."""
    if "<secret:" not in text:
        return text
    out, at = [], 0
    while True:
        i = text.find("<secret:", at)
        j = text.find(">", i) if i >= 0 else -1
        if i < 0 or j < 0 or j - i > 80:
            out.append(text[at:])
            return "".join(out)
        out.append(text[at:i] + "secret_" + text[i + 8 : j])
        at = j + 1


def _whole(tool: str, text: str, sha: str, roots: Roots, cwd: str, away: bool, parsed: bool, walk: Walk | None = None) -> Action:
    """A command matched verbatim; what a partial tree shows of its effects is kept."""
    effects: dict[tuple[str, str], None] = {}
    paths: dict[str, None] = {}
    if walk is not None:
        keys: list[str] = []
        for item in walk.commands:
            try:
                part = build(item, keys, walk.commands, roots, away)
            except Exception:
                part = Part("", "sh", "", "")
            keys.append(part.key)
            effects.update(dict.fromkeys(part.effects))
            paths.update(dict.fromkeys(part.paths))
    if not parsed:
        effects[("any", "shell")] = None
    fields = ["sh", cwd, "verbatim", sha or text] + (["escalated"] if away else [])
    family = " ".join(text.split()[:1])[:80] or "shell"
    part = Part(key_of(*fields), "sh", family, text[:400], (), tuple(paths)[:32], tuple(effects)[:32], not text)
    return Action(tool, "sh", cwd, part.key, part.text, (part,), (), parsed, away)


# -- edits ---------------------------------------------------------------------------------------------------------


def _changes(tool: str, kind: str, fields: dict[str, Any], roots: Roots, cwd: str, away: bool, sha: str) -> list[Part]:
    raw = tools.text(fields, tools.PATH)
    path = roots.name(raw, cwd, real=True) if raw else ""
    command = fields.get("command")
    if kind == "patch" or (isinstance(command, str) and "*** Begin Patch" in command):
        return _patch(tools.text(fields, tools.PATCH), roots, cwd, away, sha)
    if kind == "write" or command == "create":
        content = tools.text(fields, tools.CONTENT)
        return [edits.write_part(path, content, sha, away)] if path else []
    if kind == "notebook":
        cell = str(fields.get("cell_id") or fields.get("cell_number") or "")
        content = f"{fields.get('edit_mode', '')}\n{tools.text(fields, tools.CONTENT)}"
        return [edits.hunk_part(path, "cell " + cell, content, sha=sha, escalated=away)] if path else []
    many = fields.get("edits") or fields.get("replacements")
    if isinstance(many, list) and many:
        parts = []
        for i, one in enumerate(many[: edits.MAX_HUNKS]):
            if isinstance(one, dict):
                own = tools.text(one, tools.PATH)
                parts.append(
                    edits.hunk_part(
                        roots.name(own, cwd, real=True) if own else path,
                        tools.text(one, tools.OLD),
                        tools.text(one, tools.NEW),
                        all_of_them=one.get("replace_all") is True,
                        sha=f"{sha}#{i}" if sha else "",
                        escalated=away,
                    )
                )
        return parts
    if not path:
        return []
    if command in ("view", "undo_edit"):
        return []
    old, new = tools.text(fields, tools.OLD), tools.text(fields, tools.NEW)
    if command == "insert" or fields.get("insert_line") is not None:
        return [edits.hunk_part(path, f"line {fields.get('insert_line')}", new, sha=sha, escalated=away)]
    if not old and not new:
        content = tools.text(fields, ("instructions", "code_edit", *tools.CONTENT))
        return [edits.write_part(path, content, sha, away)] if content or sha else []
    if not old and not sha:  # creating a file by an edit with nothing to replace
        return [edits.write_part(path, new, "", away)]
    return [edits.hunk_part(path, old, new, all_of_them=fields.get("replace_all") is True, sha=sha, escalated=away)]


def _patch(text: str, roots: Roots, cwd: str, away: bool, sha: str) -> list[Part]:
    files = edits.read_patch(text)
    parts: list[Part] = []
    for number, file in enumerate(files[: edits.MAX_HUNKS]):
        path = roots.name(file.path, cwd, real=True)
        if sha:
            parts.append(edits.hunk_part(path, "", "", sha=f"{sha}#{number}", escalated=away, kind="patch"))
        elif file.op == "add":
            parts.append(edits.write_part(path, "\n".join(file.content), "", away))
        elif file.op == "delete":
            parts.append(edits.hunk_part(path, "delete", "", sha="delete", escalated=away, kind="patch"))
        else:
            for old, new in file.hunks:
                parts.append(edits.hunk_part(path, old, new, escalated=away, kind="patch"))
            if file.moved:
                to = roots.name(file.moved, cwd, real=True)
                move = edits.hunk_part(to, "", "", sha=f"moved from {path}", escalated=away, kind="patch")
                move.effects = (("edit", path), ("edit", to))
                parts.append(move)
    return parts[: edits.MAX_HUNKS]

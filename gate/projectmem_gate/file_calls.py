"""[H] Edits, writes and patches of every harness as parts: which fields hold the path, the old text and the new."""

from __future__ import annotations

from projectmem_gate import blocks, edits, scripted, tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_gate.model import Part
    from projectmem_gate.paths import Roots


def parts_of(kind: str, fields: dict[str, Any], roots: Roots, cwd: str, away: bool, sha: str) -> list[Part]:
    """Parts of an edit, write, patch or notebook call; [] when it is none (a `view`, no path, no patch)."""
    command = fields.get("command")
    if set(fields) == {"command"} and isinstance(command, str) and kind != "patch":
        fields = scripted.one_line(kind, command) or {}
    raw = tools.text(fields, tools.PATH)
    path = roots.name(raw, cwd, real=True) if raw else ""
    command, diff = fields.get("command"), fields.get("diff")
    if isinstance(diff, str) and path and not sha and (found := blocks.read(diff)):
        return [edits.hunk_part(path, old, new, escalated=away) for old, new in found[: edits.MAX_HUNKS]]
    if kind == "patch" or (isinstance(command, str) and "*** Begin Patch" in command):
        return _patch(tools.text(fields, tools.PATCH), roots, cwd, away, sha)
    if kind == "write" or command == "create":
        content = tools.text(fields, tools.CONTENT)
        return [edits.write_part(path, content, sha, away)] if path else []
    if kind == "notebook":
        cell = str(fields.get("cell_id") or fields.get("cell_number") or "")
        mode = fields.get("edit_mode") or "replace"
        content = f"{'' if mode == 'replace' else mode}\n{tools.text(fields, tools.CONTENT)}"
        return [edits.hunk_part(path, "cell " + cell, content, sha=sha, escalated=away)] if path else []
    many = fields.get("edits") or fields.get("replacements")
    if isinstance(many, list) and many:
        return _many(many, path, roots, cwd, away, sha)
    if ("path" not in fields and not path) or command in ("view", "undo_edit"):
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


def _many(many: list[Any], path: str, roots: Roots, cwd: str, away: bool, sha: str) -> list[Part]:
    """The replacements of a MultiEdit, in order."""
    parts = []
    for i, one in enumerate(many[: edits.MAX_HUNKS]):
        if isinstance(one, dict):
            own = tools.text(one, tools.PATH)
            part = edits.hunk_part(
                roots.name(own, cwd, real=True) if own else path,
                tools.text(one, tools.OLD),
                tools.text(one, tools.NEW),
                all_of_them=one.get("replace_all") is True,
                sha=f"{sha}#{i}" if sha else "",
                escalated=away,
            )
            parts.append(part)
    return parts


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

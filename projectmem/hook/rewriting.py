"""What a call that has not run yet would make of the files on disk, and the edits of other tools that come to the same.

A fix that failed as an edit is the same fix by `sed`, by a patch that lies in a file, by a here-document, or as the whole file
written anew, and the other way round. What the call would leave in a file is computed where that can be done for certain
(gate/rewrites.py); from the text before and after follow the hunk, the hunks, and the write that it amounts to. One of
these with which the fix failed is added to the action as a part of the kind `derived`.
"""

from __future__ import annotations

import os

from projectmem_gate import tools
from projectmem_gate.fixes import DERIVED

from projectmem.hook.widening import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from projectmem_gate.model import Action, Part

    Texts = dict[str, tuple[str, str]]  # path -> (before, after)

FILES_MAX = 4
BYTES_MAX = 256 << 10
HUNKS_MAX = 16


def as_tried(
    root: str,
    call: Any,
    action: Action,
    moved: Sequence[str],
    named: Callable[[str, dict[str, Any]], Action],
    find: Callable[[Action], Any],
) -> Action:
    """The action; with the edits that it amounts to where these failed as a fix.

    moved  moves of files on record;  named  identifies a call of a tool with these arguments, from the root, as the hook does
    find   the records of failed fixes that an action makes again (`judge.failed_fix`)
    """
    known = find(action)
    if known and (known[0].fix["undone"] or action.variant(known[0].key) == known[0].fix["variant"]):
        return action
    texts = changed(root, call, action, moved)
    fresh = bool(texts) and _is_nowhere(texts)
    if known:
        return _placed(action, known[0]) if fresh else action
    for parts in _forms(texts, named) if texts else ():
        joins = (*action.joins, *["&&"] * len(parts))
        other = _with(action, (*action.parts, *parts), joins)
        found = find(other)
        if found:
            return _placed(other, found[0]) if fresh else other
    return action


def _is_nowhere(texts: Texts) -> bool:
    """Is what is put in nowhere in the files yet? Then an earlier edit that put it there was taken back, whoever did it."""
    for before, after in texts.values():
        for new in (_bare(*pair)[1] for pair in hunks(before, after)):
            if not new or new in before:
                return False
    return True


def _placed(action: Action, record: Any) -> Action:
    """The action, its edit taken for one at the very place of the failed one."""
    parts = [_copy(p, variant=record.fix["variant"]) if p.key == record.key else p for p in action.parts]
    return _with(action, tuple(parts), action.joins)


def _with(action: Action, parts: tuple[Part, ...], joins: tuple[str, ...]) -> Action:
    given = {name: getattr(action, name) for name in action.__slots__}
    return type(action)(**{**given, "parts": parts, "joins": joins})


def _copy(part: Part, **other: Any) -> Part:
    return type(part)(**{**{name: getattr(part, name) for name in part.__slots__}, **other})


def _forms(texts: Texts, named: Callable[[str, dict[str, Any]], Action]) -> list[tuple[Part, ...]]:
    """The ways to say what becomes of the files: as one hunk each, as several, as a write."""
    whole = [(path, before, after) for path, (before, after) in texts.items()]
    forms = [whole]
    forms += [
        [(path, old, new) for path, before, after in whole for old, new in hunks(before, after, beside)]
        for beside in ("above", "below", "nothing")
    ]
    out: dict[tuple[str, ...], tuple[Part, ...]] = {}
    for form in forms:
        edits = [named("Edit", {"file_path": path, "old_string": old, "new_string": new}) for path, old, new in form]
        _keep(out, [part for action in edits for part in action.parts])
    _keep(out, [part for path, _, after in whole for part in named("Write", {"file_path": path, "content": after}).parts])
    return list(out.values())


def _keep(out: dict[tuple[str, ...], tuple[Part, ...]], parts: Sequence[Part]) -> None:
    if parts:
        out.setdefault(tuple(p.key for p in parts), tuple(_copy(p, kind=DERIVED) for p in parts))


def _bare(old: str, new: str) -> tuple[str, str]:
    """Old and new text without the line of context that `hunks` leaves."""
    a, b = old.split("\n"), new.split("\n")
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return "\n".join(a), "\n".join(b)


def hunks(before: str, after: str, beside: str = "above") -> list[tuple[str, str]]:
    """(old, new) lines of each place where two texts differ. Where lines only came or went, with the line `above` or `below`
    them, or with none (`nothing`). [] where they differ in too many places."""
    from difflib import SequenceMatcher

    a, b = before.split("\n"), after.split("\n")
    out = []
    for tag, i, j, k, n in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if tag != "replace" and beside == "below":
            j, n = min(len(a), j + 1), min(len(b), n + 1)
        elif tag != "replace" and beside == "above" and i and k:
            i, k = i - 1, k - 1
        elif tag == "delete" and beside == "nothing":
            out.append(("\n".join([*a[i:j], ""]), ""))
            continue
        out.append(("\n".join(a[i:j]), "\n".join(b[k:n])))
    return out if len(out) <= HUNKS_MAX else []


def changed(root: str, call: Any, action: Action, moved: Sequence[str]) -> Texts:
    """The files that the call changes, by name from the root; {} where that is not known of all of them."""
    given = call["input"]
    if not isinstance(given, dict):
        return {}
    edits = action.kind in ("edit", "write", "patch")
    texts = _edited(root, call["cwd"], given) if edits else _ran(root, call, action, moved)
    return {path: pair for path, pair in texts.items() if pair[0] != pair[1] and pair[0]}


def _edited(root: str, cwd: str, given: dict[str, Any]) -> Texts:
    """By a tool that edits or writes one file; a patch in the form that its files can be told from."""
    path, content = tools.text(given, tools.PATH), tools.text(given, tools.CONTENT)
    many = given.get("edits") or given.get("replacements")
    rows = many if isinstance(many, list) else [given]
    if not path or len(rows) > HUNKS_MAX or not all(isinstance(row, dict) for row in rows):
        return _patched(root, _relative(root, cwd, "."), tools.text(given, tools.PATCH), 1) if not path else {}
    name = _relative(root, cwd, path)
    before = text = _read(os.path.join(root, name))
    if content and not many and not tools.text(given, tools.OLD):
        return {name: (before, content.replace("\r\n", "\n"))}
    for row in rows:
        old, new = (tools.text(row, names).replace("\r\n", "\n") for names in (tools.OLD, tools.NEW))
        if not old or old not in text or (text.count(old) > 1 and row.get("replace_all") is not True):
            return {}
        text = text.replace(old, new)
    return {name: (before, text)}


def _patched(root: str, folder: str, text: str, strip: int, *, reverse: bool = False) -> Texts:
    """By a patch: every hunk of it must fit in one place."""
    from projectmem_gate.rewrites import hunks_of

    found = hunks_of(text, strip, reverse=reverse)
    texts: Texts = {}
    for path, rows in found or ():
        name = os.path.normpath(os.path.join(folder, path))
        before = now = _read(os.path.join(root, name))
        for old, new in rows:
            if not old or now.count(old) != 1:
                return {}
            now = now.replace(old, new)
        texts[name] = (before, now)
    return texts if len(texts) <= FILES_MAX else {}


def _ran(root: str, call: Any, action: Action, moved: Sequence[str]) -> Texts:
    """By a shell command: {} where it writes a file in a way that is not understood."""
    from projectmem_gate.paths import Roots
    from projectmem_gate.rewrites import steps

    command = tools.first(call["input"], tools.COMMAND)
    if not isinstance(command, str):
        return {}
    roots = Roots(root)
    texts: Texts = {}
    for step in steps(command, roots, roots.name(call["cwd"] or root, real=True)):
        if step.how == "patch":
            more = _patched(root, step.folder, _read(os.path.join(root, step.path)), step.strip, reverse=step.reverse)
            if not more or more.keys() & texts.keys():
                return {}
            texts.update(more)
            continue
        if step.how == "code":
            made = _coded(root, step, texts)
            if not made:
                return {}
            texts.update(made)
            continue
        folder, base = os.path.split(os.path.join(root, step.path))
        name = _relative(root, os.path.realpath(folder), base)
        before, text = texts.get(name) or (_read(os.path.join(root, name)),) * 2
        left = step.apply(text)
        if left is None or len(texts) >= FILES_MAX:
            return {}
        texts[name] = (before, left)
    patches = any(part.family in ("git apply", "patch") for part in action.parts)
    return texts if patches or _covers(action, texts, moved) else {}


def _coded(root: str, step: Any, texts: Texts) -> Texts:
    """By a small program of Python, {} for one that is not understood."""
    from projectmem_gate.python_edits import written

    def named(path: str) -> str:
        return _relative(root, step.folder, path)

    def read(path: str) -> str:
        return texts[named(path)][1] if named(path) in texts else _read(os.path.join(root, named(path)))

    found = written(step.text, read) or {}
    before = {path: texts[named(path)][0] if named(path) in texts else read(path) for path in found}
    return {named(path): (before[path], text) for path, text in found.items()} if len(texts) < FILES_MAX else {}


def _covers(action: Action, texts: Texts, moved: Sequence[str]) -> bool:
    """Are these all the files that the action writes? What it removes, and a program that it runs on them, does not count."""
    names = _Names(moved)
    for part in action.parts:
        if part.family == "rm":
            continue
        for kind, subject in part.effects:
            if kind == "edit" and names.now(subject) not in texts and not subject.endswith("/**"):
                return False
            if kind == "any" and part.family != "python" and any(mark in part.text for mark in (" <<", " -c ", " -e ")):
                return False
    return True


class _Names:
    """Where files of the log's names are on disk."""

    def __init__(self, moved: Sequence[str]) -> None:
        self.renames: dict[str, str] = {}
        if moved:
            from projectmem_gate.moves import renames

            self.renames = renames(moved)

    def now(self, path: str) -> str:
        if not self.renames:
            return path
        from projectmem_gate.moves import now

        return now(path, self.renames)


def _relative(root: str, cwd: str, path: str) -> str:
    return os.path.relpath(os.path.join(root, cwd, path), root).replace(os.sep, "/")


def _read(path: str) -> str:
    return read_text(path, BYTES_MAX)


def amounts_to(
    root: str, action: Action, moved: Sequence[str], named: Callable[[str, dict[str, Any]], Action]
) -> dict[int, list[list[Any]]]:
    """{number of the part: [[key, path, undoes, variant, text, *words]]} of the writes that the shell's parts of a finished call
    amounted to, by what the files hold now. Nothing for what is an edit of its own anyway (a here-document, a patch in place)."""
    out: dict[int, list[list[Any]]] = {}
    where = _Names(moved)
    for number, part in enumerate(action.parts):
        if part.kind != "sh" or part.trivial or part.family == "rm" or part.family.startswith("edit "):
            continue
        names = [where.now(subject) for kind, subject in part.effects if kind == "edit" and subject]
        if part.family in ("git apply", "patch") and not names:
            names = _named_by_patch(root, part)
        rows = []
        for name in names[:FILES_MAX]:
            text = _read(os.path.join(root, name)) if name[:1] not in ("/", "~", "?") else ""
            if text:
                write = named("Write", {"file_path": name, "content": text}).parts[0]
                rows.append([write.key, write.paths[0], "", write.variant, part.text[:200], *write.words][:8])
        if rows:
            out[number] = rows
    return out


def _named_by_patch(root: str, part: Any) -> list[str]:
    from projectmem_gate.rewrites import hunks_of

    for path in part.paths:
        found = hunks_of(_read(os.path.join(root, path)), 1, reverse=False)
        if found:
            return [name for name, _ in found]
    return []

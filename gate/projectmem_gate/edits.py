"""[H] Identity of edits, writes and patches: the path and what is taken out and put in, whatever the tool.

An edit is (path, removed lines, added lines): the whole lines that old and new share at their ends are context, which differs
from tool to tool. So the same hunk through Edit, MultiEdit, str_replace or apply_patch has one key. What was left out, the exact
old and new text, is the part's `variant`: an edit whose text was not found is another edit once its context is put right. A
patch or multi-edit of several hunks is a sequence of parts.
"""

from __future__ import annotations

from projectmem_gate.hints import pick
from projectmem_gate.keys import key_of, text_digest
from projectmem_gate.model import Part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_HUNKS = 64


def file_words(path: str) -> tuple[str, ...]:
    """Hint words of a file: its last name, which every spelling of the path contains."""
    base = path.rsplit("/", 1)[-1]
    return pick([base]) if base not in (".", "..") else ()


def _trim(old: str, new: str) -> tuple[list[str], list[str], str]:
    """Removed lines, added lines without the whole lines both share at the start and the end, and one line next to them."""
    a, b = old.split("\n"), new.split("\n")
    n = 0
    while n < len(a) and n < len(b) and a[n] == b[n]:
        n += 1
    m = 0
    while m < len(a) - n and m < len(b) - n and a[-1 - m] == b[-1 - m]:
        m += 1
    before, after = a[n - 1] if n else "", a[len(a) - m] if m else ""
    return a[n : len(a) - m], b[n : len(b) - m], before if before.strip() else after


def hunk_part(
    path: str, old: str, new: str, *, all_of_them: bool = False, sha: str = "", escalated: bool = False, kind: str = "edit"
) -> Part:
    """One replacement in one file. `sha` stands for the content where old and new were trimmed by a transcript."""
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]  # a patch has lines, an edit text: the last newline is no difference
    removed, added, beside = _trim(old, new)
    gone_digest, come_digest = text_digest("\n".join(removed)), text_digest("\n".join(added))
    if sha:
        how, fields, back = "sha", [sha], []
    elif removed and added:
        how, fields, back = "hunk", [gone_digest, come_digest], [come_digest, gone_digest]
    else:  # a pure insertion or deletion says where only by the line next to it
        line = text_digest(beside)
        how, fields, back = "beside", [gone_digest, come_digest, line], [come_digest, gone_digest, line]
    flags = ["all"] * all_of_them + ["escalated"] * escalated
    gone, come = _first(removed), _first(added)
    return Part(
        key_of("edit", path, how, *fields, *flags),
        kind,
        f"edit {path}",
        f"edit {path}: {gone} -> {come}"[:400],
        file_words(path),
        (path,) if path else (),
        _effects(path),
        variant=sha or text_digest(old) + text_digest(new),
        undoes=key_of("edit", path, how, *back, *flags) if back else "",
    )


def _first(lines: list[str]) -> str:
    """The first line that says something, for people."""
    return next((line.strip() for line in lines if line.strip()), "")[:140]


def _effects(path: str) -> tuple[tuple[str, str], ...]:
    name = path.rsplit("/", 1)[-1]
    if name == ".env" or name.startswith(".env.") or name == ".envrc":
        return ("edit", path), ("env", path)
    return (("edit", path),)


def write_part(path: str, content: str, sha: str = "", escalated: bool = False) -> Part:
    """The whole file is written. `sha` stands for the content where a transcript trimmed it."""
    body = sha or text_digest(content.replace("\r\n", "\n").rstrip("\n"))
    fields = ["write", path, body] + (["escalated"] if escalated else [])
    text = f"write {path} {body[:8]}"
    return Part(key_of(*fields), "write", f"edit {path}", text, file_words(path), (path,) if path else (), _effects(path))


class FilePatch:
    """One file of a patch: op add | delete | update, new name when moved, hunks as (old text, new text)."""

    __slots__ = ("content", "hunks", "moved", "op", "path")

    def __init__(self, op: str, path: str) -> None:
        self.op, self.path, self.moved = op, path, ""
        self.content: list[str] = []
        self.hunks: list[tuple[str, str]] = []


def read_patch(text: str) -> list[FilePatch]:
    """Files of a Codex apply_patch envelope or of a unified diff, in order; [] when it is neither."""
    if "*** Begin Patch" in text or "*** Update File:" in text or "*** Add File:" in text or "*** Delete File:" in text:
        return _codex(text.replace("\r\n", "\n").split("\n"))
    if "\n+++ " in text or text.startswith("--- "):
        return _unified(text.replace("\r\n", "\n").split("\n"))
    return []


def _flush(current: FilePatch | None, old: list[str], new: list[str]) -> None:
    if current is not None and (old or new):
        current.hunks.append(("\n".join(old), "\n".join(new)))
    old.clear()
    new.clear()


def _codex(lines: Sequence[str]) -> list[FilePatch]:
    out: list[FilePatch] = []
    current: FilePatch | None = None
    old: list[str] = []
    new: list[str] = []
    for line in lines:
        if line.startswith("*** "):
            head, _, path = line[4:].partition(": ")
            op = {"Add File": "add", "Delete File": "delete", "Update File": "update"}.get(head)
            if op:
                _flush(current, old, new)
                current = FilePatch(op, path.strip())
                out.append(current)
            elif head == "Move to" and current is not None:
                current.moved = path.strip()
            elif head.startswith("End Patch"):
                break
        elif current is None:
            continue
        elif current.op == "add":
            current.content.append(line[1:] if line[:1] == "+" else line)
        elif line.startswith("@@"):
            _flush(current, old, new)
        else:
            _hunk_line(line, old, new)
    _flush(current, old, new)
    return out


def _hunk_line(line: str, old: list[str], new: list[str]) -> None:
    if line[:1] == "+":
        new.append(line[1:])
    elif line[:1] == "-":
        old.append(line[1:])
    elif line[:1] in (" ", ""):
        old.append(line[1:])
        new.append(line[1:])


def _unified(lines: Sequence[str]) -> list[FilePatch]:
    out: list[FilePatch] = []
    current: FilePatch | None = None
    before = ""
    old: list[str] = []
    new: list[str] = []
    inside = False
    for line in lines:
        if line.startswith("--- ") and not inside:
            before = line[4:].split("\t")[0].strip()
        elif line.startswith("+++ ") and not inside:
            after = line[4:].split("\t")[0].strip()
            op = "delete" if after == "/dev/null" else "add" if before == "/dev/null" else "update"
            path = before if op == "delete" else after
            current = FilePatch("update" if op != "delete" else "delete", path[2:] if path[:2] in ("a/", "b/") else path)
            current.op = op
            out.append(current)
        elif line.startswith("@@"):
            _flush(current, old, new)
            inside = True
        elif line.startswith("diff --git"):
            _flush(current, old, new)
            inside = False
        elif inside and current is not None and line[:1] in ("+", "-", " "):
            if current.op == "add" and line[:1] == "+":
                current.content.append(line[1:])
            else:
                _hunk_line(line, old, new)
    _flush(current, old, new)
    return out

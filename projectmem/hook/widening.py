"""[H] An edit of a part of a line, as the edit of the whole line that it is: other tools (patches, `sed`) only know lines.

Before the call the file holds the old text, after it the new one; either shows the rest of the line. Where the text is not
there exactly once, or the file is too large, the edit stays as it was proposed.
"""

from __future__ import annotations

import os

from projectmem_gate import tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BYTES_MAX = 1 << 20


def widened(root: str, cwd: str, given: Any, *, done: bool) -> Any:
    """The input of an edit with its old and new text made whole lines; `given` itself where there is nothing to widen.

    done  the call has gone well: the file holds the new text
    """
    if not isinstance(given, dict):
        return given
    many = given.get("edits") or given.get("replacements")
    if isinstance(many, list):
        rows = [_one(root, cwd, row, tools.text(given, tools.PATH), done) for row in many]
        if all(a is b for a, b in zip(rows, many, strict=True)):
            return given
        return {**given, ("edits" if given.get("edits") else "replacements"): rows}
    return _one(root, cwd, given, "", done)


def _one(root: str, cwd: str, row: Any, shared: str, done: bool) -> Any:
    if not isinstance(row, dict) or row.get("replace_all") is True:
        return row
    names = [next((n for n in group if isinstance(row.get(n), str)), "") for group in (tools.OLD, tools.NEW)]
    path = tools.text(row, tools.PATH) or shared
    if not all(names) or not path:
        return row
    old, new = row[names[0]], row[names[1]]
    if not old or old == new:
        return row
    text = read_text(os.path.join(root, cwd, path))
    for here in (new, old) if done else (old, new):
        if here and text.count(here) == 1:
            at = text.index(here)
            before = text[text.rfind("\n", 0, at) + 1 : at]
            end = at + len(here)
            # What ends with its line takes the next one for a line of its own.
            after = "" if here.endswith("\n") else text[end:].partition("\n")[0]
            if not before and not after:
                return row
            return {**row, names[0]: before + old + after, names[1]: before + new + after}
    return row


def read_text(path: str, bytes_max: int = BYTES_MAX) -> str:
    """A file's text with newlines as edits have them, "" for one that is too large or cannot be read."""
    try:
        if os.path.getsize(path) > bytes_max or not os.path.isfile(path):
            return ""
        with open(path, "rb") as file:
            return file.read(bytes_max).decode("utf-8", "replace").replace("\r\n", "\n")
    except (OSError, ValueError):
        return ""

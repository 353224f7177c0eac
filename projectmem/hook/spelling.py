"""[H] The words of a call's input for the hook's first look, those of files behind symbolic links included.

A record's hint words of a file are of its real name. Where an input names it by a link, the letters of that name need not be in
the input: then they are added here, for which every short text in the input that may be a path is looked up (one `lstat` each).
"""

from __future__ import annotations

import os

from projectmem_gate.hints import ANY, raw_words, runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from projectmem.hook.payload import Call

TEXTS_MAX = 64  # looked up; an input with more is parsed
PATH_MAX = 1_024
PATCH_MAX = 256 << 10
_NAMES_A_FILE = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ ", "--- ")


def input_words(call: Call, root: str) -> frozenset[str]:
    """`hints.raw_words` of the call's input, with those of the real names of files that it names by a link. Raises nothing."""
    words = raw_words(call["input"])
    if ANY in words:
        return words
    found: list[str] = []
    if not _texts(call["input"], found):
        return words | {ANY}
    more: set[str] = set()
    folders = dict.fromkeys((call.get("cwd") or root, root))
    for name in found:
        if ".patch" in name or ".diff" in name:
            more.update(_in_patches(name, folders))
        for folder in folders:
            path = os.path.join(folder, name)
            try:
                if os.path.islink(path):
                    more.update(runs(os.path.basename(os.path.realpath(path))))
            except (OSError, ValueError):
                continue
    return words | more


def real_words(call: Call, root: str) -> frozenset[str]:
    """Words of the folder that the call is made in, and of the real names of the files that it may name: what the rules for paths
    go by. Raises nothing."""
    folder = call.get("cwd") or root
    found: list[str] = []
    if not _texts(call["input"], found):
        return frozenset((ANY,))
    out: set[str] = set()
    for path in dict.fromkeys([folder, *(os.path.join(base, name) for name in found for base in (folder, root))]):
        try:
            out.update(runs(path), runs(os.path.realpath(path)))
        except (OSError, ValueError):
            return frozenset((ANY,))
    return frozenset(out)


def _texts(value: Any, out: list[str], depth: int = 0) -> bool:
    """Collect what may be a path; False where there is too much of it, or a form whose file is not told by a line of its own."""
    if isinstance(value, str):
        if "\n" not in value:
            if 0 < len(value) <= PATH_MAX:
                out.append(value)
        elif "<<<<<<<" in value:
            return False
        elif "*** " in value or "\n+++ " in value or "\n--- " in value:
            out += [_of_line(line) for line in value.split("\n") if line.startswith(_NAMES_A_FILE)]
    elif depth < 6 and isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            if not _texts(member, out, depth + 1):
                return False
    return len(out) <= TEXTS_MAX


def _of_line(line: str) -> str:
    name = line.split(": ", 1)[1] if line.startswith("***") else line[4:].split("\t", 1)[0]
    name = name.strip()
    return name[2:] if name[:2] in ("a/", "b/") and not line.startswith("***") else name


def _in_patches(text: str, folders: Iterable[str]) -> set[str]:
    """The words of the files that patches change which a command names: `git apply fix.patch` names none of them itself."""
    more: set[str] = set()
    for word in text.replace("=", " ").replace("<", " ").split()[:TEXTS_MAX]:
        if word.strip("'\"").endswith((".patch", ".diff")):
            for folder in folders:
                try:
                    with open(os.path.join(folder, word.strip("'\"")), encoding="utf-8", errors="replace") as file:
                        rows = [_of_line(line) for line in file.read(PATCH_MAX).split("\n") if line.startswith(_NAMES_A_FILE)]
                except (OSError, ValueError):
                    continue
                for name in rows:
                    more.update(runs(name.rsplit("/", 1)[-1]))
    return more

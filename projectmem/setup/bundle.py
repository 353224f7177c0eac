"""Writes the bundle that hook/bundled.py serves: the compiled code of every module a hook may import, in one file."""

from __future__ import annotations

import importlib.util
import marshal
import os
import sys
from pathlib import Path
from types import CodeType

from projectmem_logs import files

from projectmem.hook import bundled

MAGIC = importlib.util.MAGIC_NUMBER


# Where a bundle is below the folder that holds the package; then comes the name of the interpreter, and `.bundle`.
PREFIX = "/projectmem/hook/__pycache__/projectmem."


def path() -> Path:
    """Where the bundle of this interpreter is: beside the compiled files of the hook."""
    folder = Path(bundled.__file__).absolute().parents[2]
    return Path(f"{folder}{PREFIX}{sys.implementation.cache_tag}.bundle")


def write(sources: dict[str, Path]) -> None:
    """Write the bundle of these modules, atomically. `sources` is {full name: source}. Raises OSError, SyntaxError."""
    content = _content(sources)
    target = path()
    target.parent.mkdir(exist_ok=True)
    if not target.exists() or target.read_bytes() != content:
        files.replace(str(target), content)
        target.chmod(0o644)  # as a `.pyc`: who may read the sources may run them


def fresh(sources: dict[str, Path]) -> bool:
    """Whether the bundle holds exactly these sources as they are now."""
    try:
        with open(path(), "rb") as file:
            head = file.read(12)
            if head[:4] != MAGIC:
                return False
            file.seek(int.from_bytes(head[4:8], "little"), 1)
            index = file.read(int.from_bytes(head[8:12], "little")).decode()
    except (OSError, UnicodeDecodeError):
        return False
    served = bundled.Bundle(file, index, 0)
    return index.count("\n") == len(sources) + 1 and all(served.find_spec(name) is not None for name in sources)


def _content(sources: dict[str, Path]) -> bytes:
    lines, codes, offset = [""], [], 0
    for name, source in sorted(sources.items()):
        before = source.stat()
        code = _cached(source, before) or marshal.dumps(_compiled(source))
        is_package = source.name == "__init__.py"
        folder = source.parents[name.count(".") + is_package]
        facts = (folder, "p" if is_package else "m", before.st_mtime_ns, before.st_size, offset, len(code))
        lines.append("\t".join(map(str, (name, *facts))))
        codes.append(code)
        offset += len(code)
    index = ("\n".join(lines) + "\n").encode()
    own = marshal.dumps(_compiled(Path(bundled.__file__)))
    return MAGIC + len(own).to_bytes(4, "little") + len(index).to_bytes(4, "little") + own + index + b"".join(codes)


def _cached(source: Path, facts: os.stat_result) -> bytes:
    """The code of the source's `.pyc` where that was made of the source as it is (PEP 3147, PEP 552), else nothing: to compile
    all modules takes most of a second."""
    try:
        found = Path(importlib.util.cache_from_source(str(source), optimization="")).read_bytes()
    except OSError:
        return b""
    made_of = b"".join((n & 0xFFFFFFFF).to_bytes(4, "little") for n in (0, int(facts.st_mtime), facts.st_size))
    return found[16:] if found[:16] == MAGIC + made_of else b""


def _compiled(source: Path) -> CodeType:
    code = compile(source.read_bytes(), str(source), "exec", dont_inherit=True, optimize=0)
    assert isinstance(code, CodeType)
    return code

"""Serves the hook's modules from one file of compiled code, which `init` writes (setup/bundle.py).

The usual import asks the file system five things for each module, in Python; with seventy modules that is a quarter of what
a hook costs. The guarantee is that of a `.pyc`: code is used only while its source has the time and size that it was
compiled from. Whatever is missing or not as expected is imported the usual way.

The file, after 4 bytes of the interpreter's magic number: 4 + 4 bytes with the lengths of the first two parts, this module's
own code (the registered command runs it), the index, the code of all modules. The index is text, one line for each module
between newlines: name, TAB, folder of the sources its path starts in, `p` for a package or `m`, mtime in ns, size, offset and
length of its code.
"""

from __future__ import annotations

import os
import sys
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import IO, Any

PREFIX = "projectmem"  # of the name of every module that is served


class Bundle:
    """Finds and loads the modules of an open bundle."""

    def __init__(self, file: IO[bytes], index: str, start: int) -> None:
        self.file, self.index, self.start = file, index, start
        self._spec: Any = type(sys.__spec__)
        self._found: dict[str, tuple[int, int]] = {}

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a bundled module; None where there is none, or its source is another by now."""
        if not name.startswith(PREFIX):
            return None
        at = self.index.find(f"\n{name}\t")
        if at < 0:
            return None
        folder, kind, mtime, size, offset, length = self.index[at + len(name) + 2 : self.index.find("\n", at + 1)].split("\t")
        inside = f"{folder}/{name.replace('.', '/')}"
        source = f"{inside}/__init__.py" if kind == "p" else f"{inside}.py"
        try:
            now = os.stat(source)
        except OSError:
            return None
        if now.st_mtime_ns != int(mtime) or now.st_size != int(size):
            return None
        self._found[name] = self.start + int(offset), int(length)
        spec: ModuleSpec = self._spec(name, self, origin=source)
        if kind == "p":
            spec.submodule_search_locations = [inside]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the usual kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        offset, length = self._found[module.__name__]
        module.__file__ = module.__spec__.origin if module.__spec__ else None
        self.file.seek(offset)
        exec(loads(self.file.read(length)), module.__dict__)  # noqa: S102, S302 - as importing does


def serve(file: IO[bytes], size: int) -> None:
    """Serve the modules of an open bundle that was read up to its index of `size` bytes. Keeps the file open."""
    index = file.read(size).decode()
    sys.meta_path.insert(0, Bundle(file, index, file.tell()))

"""Standard input, named pipes and process substitution that a person names: they are read once, in order, and never by surprise
(a pipe among the files that a harness keeps would hold an import up for ever).

Only readers that take what they read as it comes, and ask nothing of the file's neighbours, can do with one.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

FORMATS = ("claude-code", "codex", "qwen", "copilot", "droid", "pi", "junit", "mini-swe-agent", "swe-agent", "atif")
HEAD = 1 << 20  # bytes that can be looked at again
STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_heads: dict[Path, bytes | None] = {}  # of the streams that were named; None before they are read


def is_stream(path: Path) -> bool:
    """Whether it is standard input, however that is called, or a pipe or socket; a regular file is none, except as `-`."""
    if str(path) == "-":
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    piped = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return piped or (str(path) in STDIN and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode))


def admit(paths: Iterable[Path]) -> None:
    """Let these be read by `opened`."""
    _heads.update(dict.fromkeys(paths))


def opened(path: Path) -> IO[bytes] | None:
    """The stream for reading, None for a path that was not admitted as one; asked again, its first HEAD bytes. Raises OSError."""
    if path not in _heads:
        return None
    if (head := _heads[path]) is not None:
        return io.BytesIO(head)
    file = os.fdopen(0, "rb", closefd=False) if str(path) in STDIN else path.open("rb")
    _heads[path] = head = file.read(HEAD)
    return io.BufferedReader(_Rest(head, file), HEAD)


class _Rest(io.RawIOBase):
    """A stream from its start, though its first bytes were read already."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self.head, self.file = head, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece, self.head = self.head[: len(buffer)], self.head[len(buffer) :]
        piece = piece or self.file.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self.file.close()
        super().close()

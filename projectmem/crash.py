"""Writes what a bug left behind to a file, so that the person sees one line and the details are not lost."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence

MAX_BYTES = 1_000_000


def write_details(exc: BaseException, args: Sequence[str]) -> str:
    """Append the traceback to a file of this user and return its path. Never raises."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    body = "".join(traceback.format_exception(exc))
    text = f"--- {stamp} python {sys.version.split()[0]} on {sys.platform}\narguments: {list(args)!r}\n{body}\n"
    text = without_secrets(text)
    try:
        path = os.path.join(_folder(), "errors.log")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        if os.path.exists(path) and os.path.getsize(path) > MAX_BYTES:
            flags |= os.O_TRUNC
        fd = os.open(path, flags, 0o600)
        with os.fdopen(fd, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path
    except Exception:
        return "nowhere (no folder could be written to)"


def _folder() -> str:
    """The project's own folder, or a private temporary one where there is no project."""
    try:
        from projectmem import place

        found = place.find(os.getcwd())
        if found is not None and os.path.isdir(found.home):
            return found.home
    except Exception:  # noqa: S110 - whatever is broken, the details still want a place
        pass
    return tempfile.mkdtemp(prefix="projectmem-")


def without_secrets(text: str) -> str:
    """The text with everything that looks like a secret replaced. Never raises."""
    try:
        from projectmem_logs.redact import Redactor

        return Redactor(os.urandom(32)).text(text)  # a mark under a known key could be tried out against guesses
    except Exception:
        return text

"""Fails loudly: a line in `<home>/hook.log`, an event where the log still takes one, and who was told already.

Nothing here raises: it runs when something else is broken already.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem.hook.payload import Payload
    from projectmem.place import Place

MAX_LOG_BYTES = 262_144
KEEP_LOG_BYTES = 131_072
MAX_LINE = 2_000
MAX_TOLD = 20  # sessions remembered


def note(home: str, where: str, what: str, detail: str = "") -> None:
    """Add one line to the hook's own log. The file stays below 256 kB; does nothing where there is no home."""
    try:
        if not os.path.isdir(home):
            return
        import time

        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        text = f"{stamp} {where}: {_without_secrets(home, what)}"
        text += f": {_without_secrets(home, detail)}" if detail else ""
        line = text.replace("\r", "\\r").replace("\n", "\\n")[:MAX_LINE].encode("utf-8", "backslashreplace") + b"\n"
        path = f"{home}/hook.log"
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            size = os.lseek(fd, 0, os.SEEK_END)
            if size > MAX_LOG_BYTES:
                _shorten(path, size)
            os.write(fd, line)
        finally:
            os.close(fd)
    except Exception:  # noqa: S110 - there is nowhere left to complain to
        pass


def _without_secrets(home: str, text: str) -> str:
    """Messages quote what came in. Where secrets cannot be replaced, the message still matters more."""
    try:
        from projectmem_logs.redact import Redactor
        from projectmem_logs.store import redaction_key

        return Redactor(redaction_key(home)).text(text[:MAX_LINE])
    except Exception:
        return text


def _shorten(path: str, size: int) -> None:
    with open(path, "rb") as file:
        file.seek(size - KEEP_LOG_BYTES)
        tail = file.read().partition(b"\n")[2]
    with open(path, "wb") as file:
        file.write(tail)


def event(place: Place, session: str, harness: str, now: int, where: str, what: str, detail: str = "") -> None:
    """A `gate.degraded` event beside the line in hook.log, so that audits see what was not enforced."""
    note(place.home, where, what, detail)
    try:
        from projectmem.writing import append

        actor = {"session": session, "agent": "", "harness": harness, "model": "", "origin": "observed"}
        what, detail = _without_secrets(place.home, what), _without_secrets(place.home, detail)
        data = {"where": where[:80], "what": what[:200], "detail": detail[:500]}
        append(place, [{"kind": "gate.degraded", "at": now, "actor": actor, "causes": [], "data": data}], now)
    except Exception as exc:
        note(place.home, where, "no gate.degraded event could be written", f"{type(exc).__name__}: {exc}")


def _made(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o600)


def first_time(home: str, session: str) -> bool:
    """Whether this session has not been told yet that something is wrong; remembers that it now is."""
    path = f"{home}/hook.told"
    name = session[:200].replace("\n", " ")
    mark = _full_mark(home, name)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            told = file.read(8_192).split("\n")
    except OSError:
        told = []
    if name in told or os.path.exists(mark):
        return False
    text = "\n".join([name, *told][:MAX_TOLD]).encode("utf-8", "replace")
    try:
        with open(path, "r+b", buffering=0, opener=_made) as file:  # written over, then cut: with no room nothing is lost
            if file.write(text) == len(text):
                file.truncate()
                return True
    except OSError:
        pass
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
    except OSError:
        pass  # nothing can be remembered: too often is better than never
    return True


def _full_mark(home: str, name: str) -> str:
    """An empty file that remembers a session where a full disk takes no more bytes: its name alone says it."""
    from zlib import crc32

    return f"{home}/hook.told-{crc32(name.encode('utf-8', 'replace')):08x}"


def refusal(payload: Payload, what: str) -> dict[str, Any] | None:
    """The answer to a call that cannot be checked where the policy says `on_error = "deny"`; None for our own repair."""
    from projectmem_gate.model import Decision

    from projectmem.hook.own import repairs

    if repairs(payload):
        return None

    reason = f"projectmem could not check this call ({what[:200]}) and the policy says on_error = deny. Run `projectmem doctor`."
    found: dict[str, Any] | None = payload.adapter.answer(payload, Decision("deny", "on_error", reason=reason))
    return found

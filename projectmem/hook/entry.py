"""The way in: JSON on stdin, at most one JSON object on stdout, always exit 0.

A hook that crashes or says too much is worse than none: every failure here ends in a line in hook.log, a degraded event
where the log still works, one message to the person per session, and the call going on as if there were no hook
(unless the policy says `on_error = "deny"`).
"""

from __future__ import annotations

import os
import sys
import time

from projectmem import place as places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    from projectmem.hook.payload import Adapter, Payload
    from projectmem.place import Place

MUST_ANSWER = ("cursor", "preToolUse")  # where silence was reported to block every call
MAX_INPUT_BYTES = 32 << 20  # a batch of images is a few MB; more is a mistake
_BOM = b"\xef\xbb\xbf"


def find(cwd: str) -> Place | None:
    """As `place.find`; a resident process need not look at all of git's files again (serve/remembered.py)."""
    return places.find(cwd)


def main(argv: list[str], stdin: IO[bytes] | None = None, stdout: IO[bytes] | None = None) -> int:
    """Answer one call of the hook. `argv` is [harness, event]. Returns 0, whatever happens."""
    said = False
    try:
        if not places.switched_off():
            source = sys.stdin.buffer if stdin is None else stdin
            reply = respond(argv, source.read(MAX_INPUT_BYTES + 1), time.time_ns() // 1000)
            if reply is not None:
                from projectmem_logs.fastjson import encode

                _write(encode(reply).encode("utf-8", "backslashreplace"), stdout)  # a lone surrogate becomes its JSON escape
                said = True
    except BaseException as exc:  # nothing may leave here but exit code 0
        _complain(os.getcwd, f"{type(exc).__name__}: {exc}")
    if not said and tuple(argv[:2]) == MUST_ANSWER:
        _write(b'{"permission":"allow"}', stdout)
    return 0


def _write(data: bytes, stdout: IO[bytes] | None) -> None:
    sink = sys.stdout.buffer if stdout is None else stdout
    sink.write(data)
    sink.flush()


def run() -> None:
    """What the registered command calls: `main`, then out without tearing the interpreter down (it is a fifth of the time)."""
    main(sys.argv[1:])
    os._exit(0)


def respond(argv: list[str], raw: bytes, now: int, *, home: str = "") -> dict[str, Any] | None:
    """The answer to one payload as JSON data, None for nothing to say. `now` in microseconds since the epoch.

    home  where given, the only log that is asked and written: a payload from another project gets no answer
    """
    harness, event = [*argv, "", ""][:2]
    from projectmem.hook.payload import ADAPTERS

    if harness not in ADAPTERS:
        _complain(os.getcwd, f"unknown harness {harness[:40]!r}: this version knows {', '.join(ADAPTERS)}")
        return None
    if len(raw) > MAX_INPUT_BYTES:
        _complain(os.getcwd, f"{event}: payload larger than {MAX_INPUT_BYTES} bytes was not looked at")
        return None
    adapter = _adapter(ADAPTERS[harness])
    try:
        data = _read(raw)
        named = data.get("hook_event_name") if not event and isinstance(data, dict) else None  # who calls it by hand
        payload = adapter.parse(named if isinstance(named, str) else event, data)
        payload.adapter = payload.adapter or adapter
    except (ValueError, OverflowError, RecursionError) as exc:
        _complain(os.getcwd, f"{event}: payload not understood: {exc}")
        return None
    return answered(payload, now, home=home) if payload.kind else None


def answered(payload: Payload, now: int, *, home: str = "") -> dict[str, Any] | None:
    """The answer to a payload that was read, in its adapter's words; `home` as above. Raises nothing that a hook must not."""
    place = find(payload.cwd) or (None if home else places.of_session())
    if place is None:
        return _not_set_up(payload)
    if home and place.home != home:
        return None
    try:
        reply = _looked(place, payload, now)
    except Exception as exc:
        reply = _failed(place, payload, now, exc)
    return _without_secrets(place, reply) if reply else reply


def _looked(place: Place, payload: Payload, now: int) -> dict[str, Any] | None:
    """What the gate makes of it, also while its snapshot is being rebuilt. Raises what pipeline.run raises of other faults."""
    from projectmem.hook import pipeline

    try:
        return pipeline.run(place, payload, now)
    except Exception as exc:
        from projectmem_projections.errors import SnapshotDamaged

        from projectmem.hook.state import BehindError

        if not isinstance(exc, (BehindError, SnapshotDamaged)):
            raise
        from projectmem.hook import meanwhile

        return meanwhile.run(place, payload, now, str(exc))


def _adapter(name: str) -> Adapter:
    full = f"projectmem.hook.{name}"
    __import__(full)
    found: Any = sys.modules[full]
    return found  # type: ignore[no-any-return]


def _without_secrets(place: Place, reply: dict[str, Any]) -> dict[str, Any]:
    """What is said quotes the log, and an older version or another tool may have written a secret into that."""
    try:
        from projectmem.hook.state import redactor

        return dict(redactor(place).tree(reply))
    except Exception as exc:
        _complain(os.getcwd, f"an answer was not searched for secrets: {type(exc).__name__}: {exc}")
        return reply


def _read(raw: bytes) -> Any:
    """The payload as JSON data. Raises ValueError, RecursionError as `loads`.

    A byte-order mark (of a shell that pipes) is no part of it. What is no Unicode costs its own characters and not the call: half
    a character of a client that cuts a text in two, a byte that is no UTF-8. No file takes them, so they are escaped.
    """
    from projectmem_logs.fastjson import loads  # not before it is known that the hook is on

    try:
        text, torn = raw.removeprefix(_BOM).decode(), b"\\ud" in raw or b"\\uD" in raw
    except UnicodeDecodeError:
        text, torn = raw.removeprefix(_BOM).decode("utf-8", "surrogateescape"), True
    data = loads(text)
    if not torn:
        return data
    from projectmem_logs.canonical import sanitize

    return sanitize(data)


def _not_set_up(payload: Payload) -> dict[str, Any] | None:
    """Nothing to say where there is no log; one that came with the folder is not served, and a person is told so."""
    text = _why_not(payload)
    found: dict[str, Any] | None = payload.adapter.with_message(None, text) if text else None
    return found


def _why_not(payload: Payload) -> str:
    found = places.locate(payload.cwd) if payload.kind == "start" else None
    if found is None:
        return ""
    if not found.exists and os.path.isdir(f"{found.home}/log"):
        return f"projectmem: {found.home} has lost its project.json, so the gate is off. Run `projectmem init`."
    if not found.foreign:
        return ""
    return (
        f"projectmem: the log in {found.home} was not made on this machine, so nothing is checked or "
        "recorded here. Run `projectmem init` to accept it, or delete that folder."
    )


def _failed(place: Place, payload: Payload, now: int, exc: Exception) -> dict[str, Any] | None:
    """Fail open, loudly; closed only where the policy in force says so."""
    import traceback

    from projectmem.hook import degraded

    what = f"{type(exc).__name__}: {exc}"
    last = traceback.extract_tb(exc.__traceback__)[-1:]
    where = f"{os.path.basename(last[0].filename)}:{last[0].lineno}" if last else ""
    if payload.kind in ("post", "batch"):
        _keep(place, payload, now, exc)
    degraded.event(place, payload.session, payload.adapter.HARNESS, now, payload.event, "the gate failed", f"{what} at {where}")
    message = None
    if degraded.first_time(place.home, payload.session):
        message = (
            f"projectmem: the gate failed on {payload.event} ({what[:200]}), so calls are not checked. Run `projectmem doctor`."
        )
    reply: dict[str, Any] | None = None
    if payload.kind == "pre" and _denies_on_error(place):
        from projectmem.hook.degraded import refusal

        reply = refusal(payload, what)
    if message:
        reply = payload.adapter.with_message(reply, message)
    return reply


def _keep(place: Place, payload: Payload, now: int, exc: Exception) -> None:
    """Record what happened all the same where only the gate's snapshot was at fault."""
    from projectmem_projections.errors import ProjectionError

    if not isinstance(exc, (ProjectionError, OSError)):
        return
    try:
        from projectmem.hook.unread import keep

        keep(place, payload, now)
    except Exception as again:
        from projectmem.hook import degraded

        degraded.note(place.home, payload.event, "what became of the call is lost", f"{type(again).__name__}: {again}")


def _denies_on_error(place: Place) -> bool:
    """Whether the accepted policy asks for `on_error = "deny"`; where it cannot be read, what is kept beside it says."""
    try:
        from projectmem.hook.state import open_state, policy_of

        state = open_state(place, patient=False)
        try:
            return getattr(policy_of(state), "on_error", "allow") == "deny"
        finally:
            state.close()
    except Exception:
        from projectmem_projections.closed import marked

        return marked(f"{place.home}/projections/gate.sqlite")


def _complain(cwd: Any, what: str) -> None:
    """A line in the hook.log of the project that the process stands in, if there is one."""
    try:
        from projectmem.hook import degraded

        place = places.find(cwd())
        if place is not None:
            degraded.note(place.home, "hook", what)
    except BaseException:  # noqa: S110 - the working directory may be gone too
        pass

"""The gate inside a process: one object, asked before and told after each tool call, on the same path as the hook.

Nothing here raises into the agent or writes to standard output. A gate that fails lets the call go on and says so: a warning of
the logger `projectmem`, a line in hook.log and an event in the log (or refuses, where the policy says `on_error = "deny"`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from projectmem_gate.model import Decision

from projectmem import place as places
from projectmem.errors import NoProjectError
from projectmem.hook import entry
from projectmem.hook.payload import Payload, call_of, checked
from projectmem.integrations import shapes

log = logging.getLogger("projectmem")
T = TypeVar("T")
KEPT_MAX = 4_096  # calls under way and turns that are remembered; older ones belong to what never ended
TOOL_MAX = 200
NO_REASON = "projectmem refused this call (no reason was given)"
ENDED = ("", "rejected", "cancelled", "interrupted", "timeout")


class Inside:
    """The adapter of a framework: what the pipeline asks of a harness (hook/payload.py), answered with plain fields."""

    BATCHES, WARNS_BEFORE = False, True

    def __init__(self, harness: str) -> None:
        self.HARNESS = harness

    def answer(self, payload: Payload, decision: Decision) -> dict[str, Any] | None:
        """The verdict and its reason; None lets the call go on without a word."""
        if decision.verdict == "allow":
            return None
        return {"verdict": decision.verdict, "reason": decision.reason or NO_REASON}

    def refuses(self, reply: Mapping[str, Any] | None) -> bool:
        """Whether an answer keeps the call from running: nobody is there to be asked, so an ask does."""
        return (reply or {}).get("verdict") in ("ask", "deny")

    def context(self, event: str, text: str) -> dict[str, Any] | None:
        """Text for the model, with a result or at the start."""
        return {"context": text} if text else None

    def with_message(self, reply: Mapping[str, Any] | None, message: str) -> dict[str, Any]:
        """The same answer with a line for a person."""
        return {**(reply or {}), "message": message}


class Verdict:
    """What the gate says of one call; `after` takes it back with what became of the call.

    verdict  allow | warn | ask | deny;  reason  for the model, "" for allow
    """

    __slots__ = ("_call", "_key", "_payload", "_started", "reason", "verdict")

    def __init__(self, verdict: str = "allow", reason: str = "") -> None:
        self.verdict, self.reason = verdict, reason
        self._payload: Payload | None = None
        self._call: dict[str, Any] = {}
        self._key: tuple[str, ...] = ()
        self._started = 0

    @property
    def refused(self) -> bool:
        """Whether the tool must not run: `reason` is its result. The same call, repeated in a later turn, passes an ask."""
        return self.verdict in ("ask", "deny")

    def __repr__(self) -> str:
        return f"Verdict({self.verdict!r}, {self.reason[:60]!r})"


class Gate:
    """One project's gate. Safe to share between threads and tasks.

    cwd      absolute folder that the tools run in;  session  used where a framework names no conversation of its own
    """

    def __init__(self, cwd: str, *, session: str = "", known: shapes.Tools | None = None) -> None:
        self.cwd = os.path.abspath(cwd)
        self.session = session or f"in-process-{os.getpid()}-{os.urandom(6).hex()}"
        self.known = known or shapes.Tools()

    @classmethod
    def open(
        cls,
        path: str = ".",
        *,
        session: str = "",
        commands: Mapping[str, str] | None = None,
        edits: Mapping[str, Sequence[str]] | None = None,
        writes: Mapping[str, Sequence[str]] | None = None,
        translate: shapes.Translate | None = None,
    ) -> Gate:
        """The gate of a project; `path` is the folder that the tools run in.

        `commands`, `edits`, `writes` and `translate` say what the program's own tools do (shapes.Tools).
        Raises NoProjectError where no log is set up, ValueError for a table that makes no sense.
        """
        place = places.locate(os.path.abspath(path))
        if place is None or not place.ready:
            raise NoProjectError(f"no log for {os.path.abspath(path)}: run `projectmem init` in that project")
        return cls(path, session=session, known=shapes.Tools(commands, edits, writes, translate))

    def before(
        self,
        tool: str,
        args: Any,
        *,
        session: str = "",
        agent: str = "",
        call_id: str = "",
        turn: object = None,
        harness: str = "in-process",
        model: str = "",
    ) -> Verdict:
        """Ask about a call that is about to run. Raises nothing.

        args     its arguments: any value, or JSON as text
        call_id  the framework's own, if it has one
        turn     any hashable value, the same for the calls of one model answer and another for the next; None where not known
                 (then a repeat counts as meant after two seconds)
        """
        verdict = Verdict()
        if places.switched_off():
            return verdict
        try:
            name, given = self.known.neutral(shapes.whole(str(tool))[:TOOL_MAX], args)
            raw = {
                "session_id": shapes.whole(session or self.session)[:TOOL_MAX],
                "agent_id": shapes.whole(agent)[:TOOL_MAX],
                "cwd": self.cwd,
                "model": model,
            }
            key = (self.cwd, harness, raw["session_id"], call_id)
            id = _begin(key)
            verdict._key = key
            verdict._call = {**raw, "tool": name, "input": given, "call": id, "harness": harness}
            verdict._call["turn"] = _turn((self.cwd, harness, raw["session_id"], agent), turn)
            verdict._payload = _payload("before", "pre", verdict._call)
            reply = _told(verdict._payload)
            verdict._started = time.monotonic_ns()  # what the gate itself took is no cost of the call's
            verdict.verdict, verdict.reason = str(reply.get("verdict") or "allow"), str(reply.get("reason") or "")
        except Exception as exc:
            verdict._payload = None
            verdict.verdict, verdict.reason = self._without_an_answer(exc)
        if verdict.refused or verdict._payload is None:
            _end(verdict._key)
        return verdict

    def after(
        self,
        verdict: Verdict,
        result: Any = None,
        *,
        error: BaseException | None = None,
        is_error: bool | None = None,
        exit_code: int | None = None,
        ended: str = "",
    ) -> str:
        """Tell what became of the call; returns the text that belongs behind its result for the model, mostly "". Raises nothing.

        result, error  what the tool returned or raised;  is_error  the framework's mark, None where it has none
        ended          how it ended without either: rejected (by a person or the framework), cancelled, interrupted, timeout
        """
        if verdict._payload is None or verdict.refused or places.switched_off():
            return ""
        said = [verdict.reason] if verdict.verdict == "warn" else []
        try:
            payload = _payload("after", "post", verdict._call)
            call = payload.calls[0]
            if error is not None:
                shapes.raised(call, error)
            else:
                shapes.returned(call, result, is_error, exit_code)
            if ended and ended in ENDED:
                call["error_kind"], call["is_error"] = ended, True
                call["timed_out"], call["interrupted"] = ended == "timeout", ended == "interrupted"
            call["duration_ms"] = (time.monotonic_ns() - verdict._started) // 1_000_000
            reply = _told(payload)
            said += [str(reply["context"])] if reply.get("context") else []
        except Exception as exc:
            self.failed("after a call", exc)
        finally:
            _end(verdict._key)
            verdict._payload = None  # told once
        return "\n".join(said)

    def rejected(
        self, tool: str, args: Any, *, session: str = "", agent: str = "", call_id: str = "", harness: str = "in-process"
    ) -> None:
        """Record a call that a person, or the framework's own rule, refused before the gate was asked; once for each `call_id`.
        Nothing is learned from it. Raises nothing."""
        if places.switched_off():
            return
        try:
            name, given = self.known.neutral(shapes.whole(str(tool))[:TOOL_MAX], args)
            who, whose = shapes.whole(session or self.session)[:TOOL_MAX], shapes.whole(agent)[:TOOL_MAX]
            known = {"session_id": who, "agent_id": whose, "cwd": self.cwd}
            id = f"{call_id[:120]}.rejected" if call_id else ""
            payload = _payload("after", "post", {**known, "harness": harness, "tool": name, "input": given, "call": id})
            payload.calls[0]["error_kind"] = "rejected"
            _told(payload)
        except Exception as exc:
            self.failed("at a rejected call", exc)

    def start(self, *, session: str = "", harness: str = "in-process", source: str = "") -> str:
        """Record that a session starts; returns what the log has to say at a start (for the system prompt), "" for nothing."""
        if places.switched_off():
            return ""
        try:
            raw = {"session_id": (session or self.session)[:TOOL_MAX], "cwd": self.cwd, "source": source, "harness": harness}
            reply = _told(_payload("start", "start", raw))
            return str(reply.get("context") or "")
        except Exception as exc:
            self.failed("at the start", exc)
            return ""

    async def abefore(self, tool: str, args: Any, **more: Any) -> Verdict:
        """`before`, in a thread: the loop goes on."""
        return await off_loop(lambda: self.before(tool, args, **more))

    async def aafter(self, verdict: Verdict, result: Any = None, **more: Any) -> str:
        """`after`, in a thread. Where the task is being cancelled, use `after_cancelled`."""
        return await off_loop(lambda: self.after(verdict, result, **more))

    def waits(self, verdict: Verdict) -> None:
        """Forget a call that has not run yet: the framework asks a person first, and comes again with the answer."""
        _end(verdict._key)
        verdict._payload = None

    def after_cancelled(self, verdict: Verdict, ended: str = "cancelled") -> None:
        """`after` for a task that may not wait any more: told in a thread of its own that ends before the process does."""
        threading.Thread(target=self.after, args=(verdict,), kwargs={"ended": ended}, name="projectmem").start()

    def _without_an_answer(self, exc: Exception) -> tuple[str, str]:
        """What is said of a call that could not be asked about: it goes on, unless the policy says otherwise."""
        self.failed("before a call", exc)
        place = places.find(self.cwd)
        if place is None or not entry._denies_on_error(place):
            return "allow", ""
        return "deny", f"projectmem could not check this call ({shapes.named(exc)}) and the policy says on_error = deny."

    def failed(self, where: str, exc: Exception) -> None:
        """Say that the gate failed: to the logger, and in hook.log."""
        what = shapes.named(exc)
        log.warning("projectmem: the gate failed %s (%s), so this call is not checked. Run `projectmem doctor`.", where, what)
        place = places.find(self.cwd)
        if place is not None:
            from projectmem.hook import degraded

            degraded.note(place.home, "in process", f"the gate failed {where}", what)


async def off_loop(work: Callable[[], T]) -> T:
    """What `work` returns, computed in a thread where a loop of asyncio runs (under another one, here)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return await asyncio.to_thread(work)


def _payload(event: str, kind: str, known: Mapping[str, Any]) -> Payload:
    raw = {name: known.get(name, "") for name in ("session_id", "agent_id", "cwd", "model", "source")}
    payload = checked(Payload(event, kind, raw))
    payload.adapter = Inside(str(known["harness"]))
    payload.turn = known.get("turn", -1)
    if kind != "start":
        call = call_of(payload, known["harness"], known["tool"], known["input"], known["call"])
        payload.calls = [call]
    return payload


answering = threading.Lock()  # calls of one process wait for each other, not for the log's lock until it gives up


def _told(payload: Payload) -> dict[str, Any]:
    """The answer to a payload, {} for none; what a person should hear goes to the logger."""
    with answering:
        reply = entry.answered(payload, _now())
    if reply and reply.get("message"):
        log.warning("%s", reply["message"])
    return reply or {}


def _now() -> int:
    return time.time_ns() // 1000


# -- which call, which turn ------------------------------------------------------------------------------------------

_lock = threading.Lock()
_running: dict[tuple[str, ...], list[Any]] = {}  # a call of a framework's own id -> [our id, how many gates have it]
_turns: dict[tuple[tuple[str, ...], object], int] = {}  # (who, token) -> its number
_last: dict[tuple[str, ...], int] = {}  # who -> the highest number
TURN_EPOCH = 1_577_836_800  # 2020: turns are counted in seconds from here, so that a session that is resumed goes on upward


def _begin(key: tuple[str, ...]) -> str:
    """An id for the call. Two gates around one call share it; a framework that gives an id again means another call."""
    given = key[-1]
    with _lock:
        if given and key in _running:
            _running[key][1] += 1
            return str(_running[key][0])
        id = f"{given[:120]}.{os.urandom(4).hex()}" if given else os.urandom(8).hex()
        if given:
            _running[key] = [id, 1]
            while len(_running) > KEPT_MAX:
                del _running[next(iter(_running))]
        return id


def _end(key: tuple[str, ...]) -> None:
    with _lock:
        found = _running.get(key) if key else None
        if found is not None:
            found[1] -= 1
            if found[1] <= 0:
                del _running[key]


def _turn(who: tuple[str, ...], token: object) -> int:
    """The number of a turn: higher for every new token, -1 without one."""
    if token is None:
        return -1
    with _lock:
        found = _turns.get((who, token))
        if found is None:
            found = _turns[who, token] = _last[who] = max(_last.pop(who, 0) + 1, int(time.time()) - TURN_EPOCH)
            for kept in (_turns, _last):
                while len(kept) > KEPT_MAX:
                    del kept[next(iter(kept))]  # type: ignore[arg-type]
        return found

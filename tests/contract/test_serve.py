"""The resident hook: the same answers as the command's, to those who show the token, and a server that does not stay behind."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.store import LogStore
from projectmem_logs.verify import verify

from projectmem.serve import alive, kept, run, settings
from projectmem.setup import init as setup
from projectmem.setup.claude_settings import registered
from projectmem.setup.command import words_of
from tests.patience import PATIENCE

ERROR = "Exit code 2\nsrc/app.ts(3,5): error TS2304: Cannot find name 'x'.\nnpm error code 2"


class Client:
    """Posts to a server as a harness does."""

    def __init__(self, hooked: Any, server: run.Server) -> None:
        self.hooked, self.settings = hooked, server.settings

    def post(self, event: str, payload: Any, path: str = "", method: str = "POST", **headers: str) -> tuple[int, bytes]:
        """(status, body)."""
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        wanted = {"Authorization": f"Bearer {self.settings.token}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        connection = http.client.HTTPConnection("127.0.0.1", self.settings.port, timeout=PATIENCE)
        try:
            connection.request(method, path or f"{settings.BASE}/claude-code/{event}", raw, wanted)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture
def hooked(hooked: Any) -> Iterator[Any]:
    """In a folder with a short name: a Unix socket's path may not be long."""
    with tempfile.TemporaryDirectory(prefix="pm") as folder:
        yield type(hooked)(Path(folder).resolve())


@pytest.fixture
def server(hooked: Any) -> Iterator[run.Server]:
    """A running server of the project."""
    made = run.Server(str(hooked.home))
    ready = threading.Event()
    thread = threading.Thread(target=made.run, args=(lambda _: ready.set(),))
    thread.start()
    assert ready.wait(PATIENCE)
    yield made
    made.end("the test is over")
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.fixture
def client(hooked: Any, server: run.Server) -> Client:
    """Of that server."""
    return Client(hooked, server)


def test_a_session_over_http_is_the_session_of_the_command(hooked: Any, client: Client) -> None:
    """Silence, learning, an objection: byte for byte what `respond` says; events are recorded once."""
    call = hooked.call("npm run build")
    assert client.post("PreToolUse", hooked.payload("PreToolUse", **call)) == (204, b"")
    failed = hooked.payload("PostToolUseFailure", **call, error=ERROR, is_interrupt=False, duration_ms=60_000)
    assert client.post("PostToolUseFailure", failed)[0] == 204
    assert client.post("PostToolUseFailure", failed)[0] == 204
    batch = hooked.payload("PostToolBatch", tool_calls=[{**call, "tool_response": ERROR}])
    assert client.post("PostToolBatch", batch)[0] == 204
    assert len(hooked.events("action.finished")) == 1
    again = hooked.payload("PreToolUse", "two", **hooked.call("npm run build", "again"))
    status, body = client.post("PreToolUse", again)
    assert status == 200
    hooked.now = time.time_ns() // 1000
    assert json.loads(body) == hooked.fire("PreToolUse", "two", **hooked.call("npm run build", "again"))
    assert len(hooked.events("action.proposed")) == 1


def test_only_who_shows_the_token_is_answered(hooked: Any, client: Client) -> None:
    """No token, a wrong one, a web page, a rebound name, another method or path: a status, and nothing recorded."""
    fields = hooked.payload("SessionEnd", reason="x")
    before = len(hooked.events())
    port = client.settings.port
    for headers, status in (
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer " + "0" * 64}, 401),
        ({"Authorization": f"Bearer {client.settings.token}\u00e9"}, 401),
        ({"Host": "evil.example"}, 403),
        ({"Host": f"evil.example:{port}"}, 403),
        ({"Host": f"127.0.0.1:{port + 1}"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content_Length": "x"}, 411),
        ({"Content_Length": str(64 << 20)}, 413),
    ):
        assert client.post("SessionEnd", fields, **headers)[0] == status, headers
    for path in (
        "/",
        "/SessionEnd",
        f"{settings.BASE}/other/SessionEnd",
        f"{settings.BASE}/claude-code/a/b",
        f"/x{settings.BASE}/",
    ):
        assert client.post("SessionEnd", fields, path=path)[0] == 404
    assert client.post("SessionEnd", fields, method="GET")[0] == 405
    assert client.post("SessionEnd", fields, method="OPTIONS")[0] == 501
    assert len(hooked.events()) == before
    assert client.post("SessionEnd", fields)[0] == 204
    assert len(hooked.events()) == before + 1


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("POST {path} HTTP/1.1\r\nhOsT: {host}\r\nAUTHORIZATION:{token}\r\ncontent-length:0\r\n\r\n", b"204"),
        ("POST {path} HTTP/1.1\nHost: {host}\nAuthorization: {token}\nContent-Length: 0\n\n", b"204"),
        ("POST {path} HTTP/1.1\r\nHost: {host}\r\nHost: evil\r\nAuthorization: {token}\r\nContent-Length: 0\r\n\r\n", b"400"),
        ("POST {path} HTTP/1.1\r\nHost : {host}\r\nAuthorization: {token}\r\nContent-Length: 0\r\n\r\n", b"400"),
        ("POST {path} HTTP/1.1\r\nHost: {host}\r\n Origin: x\r\nAuthorization: {token}\r\nContent-Length: 0\r\n\r\n", b"400"),
        ("POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {token}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        ("POST {path} HTTP/1.1\r\nHost: {host}\r\nX: {long}\r\nAuthorization: {token}\r\nContent-Length: 0\r\n\r\n", b"400"),
        ("POST {path} HTTP/1.1\r\n" + "".join(f"x{n}: y\r\n" for n in range(100)) + "\r\n", b"400"),
        ("POST {path} HTTP/1.1\r\nHost\r\n\r\n", b"400"),
        ("POST {path} HTTP/2.0\r\n\r\n", b"400"),
        ("POST {path}\r\n\r\n", b"400"),
    ],
)
def test_a_request_is_read_as_it_is_written_or_refused(client: Client, head: str, status: bytes) -> None:
    """Headers in any case; what two readers may understand differently is refused."""
    port = client.settings.port
    given = {"path": f"{settings.BASE}/claude-code/SessionEnd", "host": f"127.0.0.1:{port}", "long": "y" * 70_000}
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as raw:
        raw.sendall(head.format(**given, token=f"Bearer {client.settings.token}").encode())
        assert raw.recv(100).split(b" ")[1] == status


def test_bodies_that_are_no_payload_are_survived(hooked: Any, client: Client, tmp_path: Path) -> None:
    """Nothing to say, and the next request is answered; another project's payload is not written anywhere."""
    for raw in (b"", b"[]", b"\xff\xfe", b"{" * 50_000):
        assert client.post("PreToolUse", raw) == (204, b"")
    other = tmp_path / "other"
    setup.init(str(other.mkdir() or other), now=hooked.now, import_sessions=False)
    assert client.post("SessionEnd", {**hooked.payload("SessionEnd", reason="x"), "cwd": str(other)}) == (204, b"")
    assert not list((other / ".projectmem-gate" / "log").glob("*/*.jsonl"))
    assert client.post("SessionEnd", hooked.payload("SessionEnd", reason="x"), X_Projectmem_Gate="off") == (204, b"")
    assert hooked.events("session.ended") == []


def test_the_unix_socket_is_private_and_answers(hooked: Any, server: run.Server) -> None:
    """Owner only; the same requests, whatever Host they name."""
    assert settings.socket_path("/x" * 60) == ""
    where = Path(settings.socket_path(str(hooked.home)))
    assert where.stat().st_mode & 0o777 == 0o600
    body = json.dumps(hooked.payload("SessionEnd", reason="x")).encode()
    head = f"POST {settings.BASE}/claude-code/SessionEnd HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.settings.token}\r\n"
    with socket.socket(socket.AF_UNIX) as plug:
        plug.connect(str(where))
        plug.sendall(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        assert plug.recv(1000).startswith(b"HTTP/1.1 204")
    assert len(hooked.events("session.ended")) == 1


def test_many_at_once(hooked: Any, client: Client) -> None:
    """Thirty-two parallel failures, each told twice: each recorded once."""
    calls = [hooked.call(f"make part{n}") for n in range(32)]
    failures = [hooked.payload("PostToolUseFailure", **c, error=ERROR, is_interrupt=False, duration_ms=9) for c in calls]
    threads = [threading.Thread(target=client.post, args=("PostToolUseFailure", f)) for f in failures * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hooked.run("ls")
    hooked.settle()
    told = [event["data"]["call"] for event in hooked.events("action.finished")]
    assert sorted(told)[: len(calls) + 1] == sorted({*told})
    assert {call["tool_use_id"] for call in calls} <= set(told)
    assert hooked.events("gate.degraded") == []


def test_one_server_and_its_marks(hooked: Any, server: run.Server) -> None:
    """A second one says so and leaves; settings are the owner's alone; who reads the mark finds the server."""
    assert alive.server(str(hooked.home)) == os.getpid()
    assert Path(settings.path(str(hooked.home))).stat().st_mode & 0o777 == 0o600
    with pytest.raises(run.BusyError):
        run.Server(str(hooked.home)).run()
    assert alive.server(str(hooked.home)) == os.getpid()
    Path(settings.path(str(hooked.home))).chmod(0o644)
    from projectmem.errors import ProjectmemError

    with pytest.raises(ProjectmemError, match="read by others"):
        settings.read(str(hooked.home))


def _ends(home: Path, then: Callable[[], object] = bool, **options: Any) -> str:
    """Why a server that is started now ends; `then` is done once it serves."""
    made = run.Server(str(home), **options)
    late = threading.Timer(PATIENCE, lambda: made.end("it stayed behind"))
    late.start()
    why = made.run(lambda _: then())
    late.cancel()
    assert alive.server(str(home)) == 0
    assert not (home / "serve.alive").exists()
    return why


def test_a_server_that_fails_gives_way_to_the_command(
    hooked: Any, server: run.Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the server itself is a 500, a line in hook.log, and the end of its mark, so that the command answers."""

    def broken(*args: Any, **options: Any) -> None:
        raise TypeError("half installed")

    monkeypatch.setattr("projectmem.hook.entry.respond", broken)
    assert client.post("PreToolUse", hooked.payload("PreToolUse", **hooked.call("ls")))[0] == 500
    until = time.monotonic() + PATIENCE
    while alive.server(str(hooked.home)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not alive.server(str(hooked.home))
    assert "half installed" in "\n".join(hooked.log_lines())


def test_no_server_stays_behind(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle, without its parent, without its settings: it ends by itself, and its marks are gone."""
    monkeypatch.setattr(run, "TICK_S", 0.02)
    monkeypatch.setattr(run, "ORPHAN_IDLE_S", 0.1)
    assert "nobody has asked" in _ends(hooked.home, idle_s=0.1)
    looks = iter([True, True, False])
    assert "nobody has asked" in _ends(hooked.home, idle_s=0.1, held=lambda: next(looks))
    assert list(looks) == [], "while something else holds it, it goes on"
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert "is gone" in _ends(hooked.home, lambda: child.communicate(b"\n"), parent=child.pid)
    assert "settings are gone" in _ends(hooked.home, Path(settings.path(str(hooked.home))).unlink)


def test_the_page_costs_the_hook_nothing() -> None:
    """Who serves both loads no library of the page, nor what the page asks: those are another process's."""
    heavy = "{'starlette', 'uvicorn', 'jinja2', 'asyncio', 'mcp', 'duckdb', 'numpy', 'faiss', 'pydantic'}"
    program = f"import sys, projectmem.serve.both, projectmem.serve.run; sys.exit(str({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "set()"


def _guarded(hooked: Any, event: str, **fields: Any) -> bytes:
    """What the registered command says, the guard included."""
    hook = registered(hooked.root / ".claude" / "settings.local.json")[event][0]
    done = subprocess.run(
        words_of(hook),
        input=json.dumps(hooked.payload(event, **fields)).encode(),
        capture_output=True,
        check=True,
        timeout=PATIENCE,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stderr == b""
    return done.stdout


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the guard reads /proc; elsewhere both hooks answer")
def test_the_command_answers_while_no_server_does(hooked: Any) -> None:
    """`init --http`: both registered. A living server silences the command; a dead one, or a stranger with its id, does not."""
    setup.init(str(hooked.root), now=hooked.now, import_sessions=False, http=True)
    hooks = registered(hooked.root / ".claude" / "settings.local.json")
    assert [hook["type"] for hook in hooks["PreToolUse"]] == ["command", "http"]
    assert [hook["type"] for hook in hooks["SessionStart"]] == ["command"]
    hooked.now = time.time_ns() // 1000
    hooked.fails(hooked.call("npm run build"), ERROR, ms=60_000)
    mark = hooked.home / "serve.alive"
    call = hooked.call("npm run build")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        unheard = 1  # nobody listens there
        for text, speaks in (
            (None, True),
            (alive.mark(os.getpid(), port), False),
            (alive.mark(os.getpid(), unheard), True),  # it listens in another network namespace
            (f"{os.getpid()} 1 {port:04X}\n", True),  # a stranger with its id
            (f"999999999 5 {port:04X}\n", True),
            ("", True),
            ("$(touch x) `id` *\n", True),
        ):
            mark.unlink(missing_ok=True)
            if text is not None:
                mark.write_text(text)
            assert bool(_guarded(hooked, "PreToolUse", session_id="two", **call)) is speaks, text
    setup.init(str(hooked.root), now=hooked.now, import_sessions=False)
    hooks = registered(hooked.root / ".claude" / "settings.local.json")
    assert [hook["type"] for hook in hooks["PreToolUse"]] == ["command"]


def test_a_session_starts_the_server_it_was_set_up_for(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the server outlives neither the harness nor its settings."""
    hooked.fire("SessionStart", source="startup")
    assert not (hooked.home / "serve.alive").exists()
    settings.make(str(hooked.home))
    monkeypatch.setenv("CLAUDE_PID", str(os.getpid()))
    hooked.fire("SessionStart", "two", source="startup")
    until = time.monotonic() + PATIENCE
    while not (pid := alive.server(str(hooked.home))) and time.monotonic() < until:
        time.sleep(0.05)
    assert pid not in (0, os.getpid())
    Path(settings.path(str(hooked.home))).unlink()
    while "settings are gone" not in "\n".join(hooked.log_lines()):
        assert time.monotonic() < until, hooked.log_lines()
        time.sleep(0.05)
    assert not alive.server(str(hooked.home))


def test_what_recall_has_read_is_kept_and_followed(hooked: Any, client: Client) -> None:
    """A failure is answered from what was read before it and what others have written since; a log that is too long to be read
    for a failure is not."""
    text = "the frobnicator cannot find name x before make schema was run"
    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}

    def fail(n: int) -> bytes:
        call = hooked.call(f"frobnicate z{n}", id=f"k{n}")
        body = hooked.payload("PostToolUseFailure", **call, error=f"Exit code 1\n{text}", is_interrupt=False, duration_ms=5)
        return client.post("PostToolUseFailure", body)[1]

    def note(text: str) -> None:
        now = time.time_ns() // 1000
        draft = {"kind": "note.recorded", "at": now, "actor": actor, "causes": [], "data": {"text": text, "tags": []}}
        LogStore(str(hooked.home)).append([draft], now=now)

    assert b"make schema" not in fail(0)
    (first,) = kept._glances.values()
    note(f"{text}: do that first")
    assert b"do that first" in fail(1)
    assert list(kept._glances.values()) == [first], "what was read is not read again"


def test_what_is_kept_open_is_one_store_and_a_snapshot_that_is_still_there(hooked: Any, client: Client) -> None:
    """Files stay open from request to request and do not pile up; a snapshot that is replaced meanwhile is opened anew, and a
    stream that somebody else wrote to is read again."""

    def fail(n: int) -> None:
        call = hooked.call(f"make t{n}", id=f"k{n}")
        body = hooked.payload("PostToolUseFailure", **call, error=ERROR, is_interrupt=False, duration_ms=5)
        assert client.post("PostToolUseFailure", body)[0] in (200, 204), "200: what is known of a failure like it"

    def asked(n: int) -> int:
        return client.post("PreToolUse", hooked.payload("PreToolUse", **hooked.call(f"make t{n}", id=f"q{n}{time.time_ns()}")))[0]

    fail(0)
    ((_, store),) = kept._stores[str(hooked.home)]
    (snapshot,) = kept._snapshots[f"{hooked.home}/projections/gate.sqlite"]
    for n in range(1, 4):
        fail(n)
    assert [kept_store for _, kept_store in kept._stores[str(hooked.home)]] == [store]
    assert kept._snapshots[snapshot.path] == [snapshot]
    os.rename(snapshot.path, f"{snapshot.path}.old")
    assert asked(2) == 200, "folded anew from the log"
    assert kept._snapshots[snapshot.path] != [snapshot]
    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}
    note = {
        "kind": "note.recorded",
        "at": time.time_ns() // 1000,
        "actor": actor,
        "causes": [],
        "data": {"text": "x", "tags": []},
    }
    LogStore(str(hooked.home)).append([note], now=note["at"])
    fail(4)
    assert [asked(n) for n in (1, 4)] == [200, 200]
    assert verify(str(hooked.home)).ok

"""The page in a real browser: opened by the printed address, walked as a person does, with hostile text in the log."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from projectmem.hook import entry
from projectmem.place import Place
from projectmem.record import record
from tests.e2e.browser import Browser, programs
from tests.patience import PATIENCE

pytestmark = pytest.mark.xdist_group("browser")  # one browser at a time
HOSTILE = "<script>document.title='owned'</script><img src='http://evil.example/x' onerror=document.title='owned'>\u202eevil"
ERROR = f"Exit code 2\nError: Missing environment variable VITE_API_URL {HOSTILE}\nnpm error code 2"
# What reaches beyond the right edge, but for tables that are scrolled by themselves.
WIDE = """return [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll')
    && e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML.slice(0, 200))"""
ACTOR = {"session": "", "agent": "", "harness": "", "model": ""}


def fill(place: Place) -> None:
    """Failures in two sessions, a refusal, and a note."""
    now = time.time_ns() // 1000 - 600_000_000
    for number, session in enumerate(("one", "one", "two", "two")):
        call = {"tool_name": "Bash", "tool_input": {"command": "npm run build"}, "tool_use_id": f"t{number}"}
        base = {"session_id": session, "transcript_path": "", "cwd": place.root}
        for event, fields in (
            ("PreToolUse", call),
            ("PostToolUseFailure", {**call, "error": ERROR, "is_interrupt": False, "duration_ms": 95_000}),
        ):
            now += 1_000_000
            entry.respond(["claude-code", event], json.dumps({**base, "hook_event_name": event, **fields}).encode(), now)
    data = {"text": f"Deploys go through the staging host {HOSTILE}", "tags": []}
    record(place, "note.recorded", data, now=now, origin="human", actor=ACTOR)


class Served:
    """`projectmem serve` as a person runs it."""

    def __init__(self, place: Place, *options: str) -> None:
        self.lines: list[str] = []
        argv = [sys.executable, "-m", "projectmem", "serve", "--root", place.root, *options]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.address = self.line("the page is at ").rpartition(" ")[2]

    def line(self, begin: str) -> str:
        """The next line that begins so."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if line.startswith(begin):
                return line.strip()
        raise AssertionError(f"it never said {begin!r}: {self.lines}")

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """(exit code, what else it said)."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, rest


@pytest.fixture
def served(place: Place) -> Iterator[Served]:
    """The page of a project with a history."""
    fill(place)
    made = Served(place, "--page-only")
    yield made
    made.end()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A browser, or skip with the reason."""
    if programs() is None:
        pytest.skip("no chromium and chromedriver on PATH (Debian: chromium, chromium-driver)")
    made = Browser(tmp_path)
    made.requested()
    yield made
    made.close()


def test_a_person_walks_through_the_page(served: Served, browser: Browser) -> None:
    """From the printed address to a failure, a decision, its recomputation, the log and recall; nothing of the log is obeyed,
    nothing leaves the machine, nothing is complained of; narrow, dark and by keyboard too."""
    browser.open(served.address)
    assert "token" not in browser.address and urlsplit(browser.address).path.count("/") == 2
    assert browser.title == "Now · projectmem"
    browser.wait("article h3 a")
    assert "VITE_API_URL <script>" in browser.text()
    browser.click("article h3 a")
    browser.wait(".told .lines")
    assert browser.text("h1").startswith("Failure") and "What the gate says now" in browser.text()
    browser.follow("Decisions")
    assert "ask" in browser.text(".rows")
    browser.click(".rows .what a")
    browser.wait(".told .lines")
    assert browser.text("h1").startswith("The gate's answer")
    browser.follow("Recompute this decision")
    browser.wait(".verdict")
    assert browser.text(".verdict").startswith("Same.")
    browser.enter("#ask", "where do deploys go through")
    browser.wait("main details")
    assert "staging host" in browser.text(".rows")
    browser.follow("Log")
    browser.enter("#q", "staging")
    assert len(browser.all(".rows .row")) == 1
    browser.click(".rows .what a")
    browser.wait(".told .lines")
    assert "<script>" in browser.text() and "\\u202e" in browser.text()
    for name in ("Memory", "Health", "Numbers", "Failures"):
        browser.follow(name)
        browser.wait("main h1")
    _narrow_and_dark(browser)
    hosts = {urlsplit(address).hostname for address in browser.requested()}
    assert hosts == {"127.0.0.1"}
    assert [line for line in browser.console() if "127.0.0.1" in line or "SEVERE" in line or "evil" in line] == []
    assert "owned" not in browser.title


def _narrow_and_dark(browser: Browser) -> None:
    """Every page fits 360 px; the first thing that Tab reaches leads past the navigation; the ground is dark for who wants it."""
    browser.resize(360)
    base = "/".join(browser.address.split("/")[:4])
    for page in ("", "failures", "decisions", "log", "memory", "health", "stats", "recall?q=x"):
        browser.open(f"{base}/{page}")
        browser.wait(".checks" if page == "health" else "main h1")
        assert browser.run(WIDE) == [], page
        assert browser.run("return document.querySelectorAll('main h1').length") == 1
        assert browser.run("return [...document.querySelectorAll('input,select')].every(e => e.labels.length)")
    browser.open(f"{base}/log")
    browser.press("\ue004")
    assert browser.run("return document.activeElement.className") == "skip"
    light = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.dark()
    assert browser.run("return getComputedStyle(document.body).backgroundColor") != light


def test_another_browser_is_told_what_to_do(served: Served, browser: Browser) -> None:
    """Without the key: no data; a link on another page leads in all the same."""
    host = urlsplit(served.address)
    browser.open(f"http://{host.netloc}/")
    assert "needs its key" in browser.text("h1") and "projectmem serve" in browser.text()
    browser.open(f"http://localhost:{host.port}/?token=wrong")
    assert "needs its key" in browser.text("h1")
    browser.open(f'data:text/html,<a href="{served.address}">in</a>')
    browser.follow("in")
    browser.wait("article h3 a")
    assert "token" not in browser.address


def _status(address: str, host: str = "") -> int:
    split = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", split.port, timeout=PATIENCE)
    try:
        connection.request("GET", f"{split.path}?{split.query}", headers={"Host": host} if host else {})
        return connection.getresponse().status
    finally:
        connection.close()


def _answers(address: str) -> bool:
    try:
        return _status(address) == 303
    except OSError:
        return False


def _command_lines() -> str:
    return "\n".join(path.read_bytes().decode(errors="replace") for path in _processes())


def _processes() -> list[Path]:
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]


def test_serve_shows_the_page_and_answers_hooks_and_ends_both(place: Place) -> None:
    """Two processes; the key is in neither's title; a second one shows its page alone; each ends in order."""
    fill(place)
    one = Served(place)
    hook = next((line for line in one.lines if line.startswith("answering hooks at http")), "") or one.line("answering hooks")
    assert _status(one.address) == 303 and _status(one.address, "evil.example") == 403
    token = one.address.partition("token=")[2]
    assert token and token not in _command_lines()
    other = Served(place)
    said = [*other.lines, ""]
    if not any("already" in line for line in said):
        said.append(other.line("another `projectmem serve`"))
    assert any("this one shows the page alone" in line for line in said)
    assert _status(other.address) == 303
    assert other.end(signal.SIGINT)[0] == 0
    assert _status(one.address) == 303, hook
    code, rest = one.end()
    assert code == 0 and "the page ended: it was told to" in rest
    assert not _answers(one.address)
    assert not (Path(place.home) / "serve.alive").exists()


def test_the_page_ends_with_who_started_it(place: Place) -> None:
    """Also where that was killed and could tell nobody."""
    one = Served(place)
    one.process.kill()
    assert one.process.wait(PATIENCE) == -signal.SIGKILL
    until = time.monotonic() + PATIENCE
    while _answers(one.address):
        assert time.monotonic() < until
        time.sleep(0.1)
    one.process.communicate(timeout=PATIENCE)


def test_open_starts_a_browser_without_showing_the_key(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser is given a file that only its owner can read; it is gone with the page."""
    told, program = tmp_path / "told", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {told}.new && mv {told}.new {told}\n')
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    one = Served(place, "--page-only", "--open")
    until = time.monotonic() + PATIENCE
    while not told.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    address = told.read_text()
    assert address.startswith("file://") and "token" not in address
    file = Path(urlsplit(address).path)
    assert file.stat().st_mode & 0o777 == 0o600 and one.address in file.read_text()
    assert one.end()[0] == 0
    assert not file.exists()


def test_what_cannot_be_served_is_said(place: Place) -> None:
    """A port that is taken, options that exclude each other, a project that is none."""
    one = Served(place, "--page-only")
    port = str(urlsplit(one.address).port)
    for options, code, words in (
        (["--page-only", "--port", port], 3, "give another with --port"),
        (["--port", port], 3, "give another with --port"),
        (["--hook-only", "--open"], 2, "--hook-only shows no page"),
        (["--root", "/"], 3, "projectmem init"),
    ):
        argv = [sys.executable, "-m", "projectmem", "serve", "--root", place.root, *options]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == code and words in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    assert one.end()[0] == 0

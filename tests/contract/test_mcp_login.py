"""A server over HTTP behind OAuth: said to want a login, logged in to once, tokens renewed, and kept for one's own eyes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from projectmem.errors import BadInputError, ProjectmemError
from projectmem.mcp_address import address_of
from projectmem.mcp_login import Store, login
from tests.contract.test_mcp_bridge import Web, _said, _texts

pytestmark = pytest.mark.slow
SERVER = Path(__file__).with_name("oauth_server.py")


class Guarded(Web):
    """The server behind OAuth; `kind` is the number of seconds that a token holds."""

    def start(self, kind: str = "3600", token: str = "") -> None:
        """Start it and wait until it answers."""
        import socket

        env = {**self.env, "PROXIED_CALLS": str(self.calls), "PROXIED_TOKENS": str(self.folder / "tokens.txt")}
        self.server = subprocess.Popen([sys.executable, str(SERVER), str(self.port), kind], env=env)
        for _ in range(2_000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the server does not start")

    def given(self) -> list[str]:
        """How the tokens that were given out came about."""
        return [line.split()[0] for line in (self.folder / "tokens.txt").read_text().splitlines()]


@pytest.fixture
def web(hooked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    """A server that is not started yet, and a folder for what is kept of logins."""
    found = Guarded(hooked, tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found.env["XDG_STATE_HOME"] = str(tmp_path / "state")
    yield found
    found.stop()


def _browse(said: str) -> None:
    """As a browser would: open the address that is shown, and go where it is sent."""
    url = said.splitlines()[-1]
    threading.Thread(target=lambda: urllib.request.urlopen(url).read(), daemon=True).start()


async def _deploy(client: Any) -> tuple[str, bool]:
    return _said(await client.call_tool("deploy", {"target": "good"}))


def test_after_one_login_the_proxy_gets_in(web: Guarded) -> None:
    """Before it is said what to do; no token is in any message, and the file is for its owner alone."""
    web.start()
    with pytest.raises((MCPError, BaseExceptionGroup)) as caught:
        web.session(_deploy)
    assert "HTTP 401" in _texts(caught.value) and "projectmem proxy --login --url" in _texts(caught.value)
    heard: list[str] = []

    def told(text: str) -> None:
        heard.append(text)
        _browse(text)

    done = login(address_of({"url": web.url}), told)
    store = Store(address_of({"url": web.url}))
    assert str(store.path) in done and store.path.stat().st_mode & 0o777 == 0o600
    token = store.kept["tokens"]["access_token"]
    assert token not in done + "".join(heard)
    assert web.session(_deploy) == ("deployed good", False)
    assert web.given() == ["given"]


def test_a_token_that_has_run_out_is_renewed_by_a_later_process(web: Guarded) -> None:
    """Nobody is asked again."""
    web.start("1")
    login(address_of({"url": web.url}), _browse)
    time.sleep(2)
    assert web.session(_deploy) == ("deployed good", False)
    assert web.given()[:2] == ["given", "renewed"]


def test_a_login_that_the_server_has_forgotten_is_said_to_be_wanted_again(web: Guarded) -> None:
    """No flow begins without a person, and what was kept stays as it was."""
    web.start()
    login(address_of({"url": web.url}), _browse)
    kept = Store(address_of({"url": web.url})).path.read_bytes()
    web.stop()
    web.start()
    with pytest.raises((MCPError, BaseExceptionGroup)) as caught:
        web.session(_deploy)
    assert "wants a login" in _texts(caught.value) and "--login" in _texts(caught.value)
    assert Store(address_of({"url": web.url})).path.read_bytes() == kept


def test_a_login_that_cannot_be_is_said_in_words(web: Guarded) -> None:
    """Nobody there; a server that asks for none."""
    with pytest.raises(ProjectmemError, match=r"no login to http://127.*cannot be reached.*check the address"):
        login(address_of({"url": web.url}), _browse)
    Web.start(web)
    with pytest.raises(BadInputError, match="asked for no login"):
        login(address_of({"url": web.url}), _browse)

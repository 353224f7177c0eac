"""Whatever is asked of the page is answered: no address, field, header or cookie is a bug of it, or gets past its doors."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from projectmem_logs.home import init_home
from projectmem_logs.store import LogStore

from tests.web_client import KEYS, Web

NOW = 1_796_100_000_000_000
ACTOR = {"session": "s1", "agent": "", "harness": "", "model": "", "origin": "agent"}
TEXT = st.text(max_size=60)
WORDS = st.one_of(TEXT, st.sampled_from(["note", "action", "s1", "1", "-1", "9" * 30, "ask", "a-1", "\0", "\ud7ff", "01a22fde"]))
FIELDS = st.dictionaries(st.sampled_from(["kind", "session", "q", "upto", "verdict", "limit", "all", "x"]), WORDS, max_size=4)
PAGES = st.sampled_from(["log", "decisions", "failures", "event/", "event/01a22fde", "nothing"])
STATUSES = {200, 303, 307, 400, 401, 403, 404, 414}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """The page of a project with a few notes."""
    root = tmp_path_factory.mktemp("web") / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    home = str(Path(root, ".git", "projectmem"))
    init_home(home, NOW)
    store = LogStore(home)
    for n in range(5):
        data = {"text": f"note {n}", "tags": []}
        store.append([{"kind": "note.recorded", "at": NOW, "actor": ACTOR, "causes": [], "data": data}], now=NOW + n)
    store.close()
    made = Web(root, NOW + 10)
    yield made
    assert made.told == []


@settings(max_examples=60)
@given(page=PAGES, more=st.one_of(st.just(""), TEXT), fields=FIELDS)
def test_any_address_is_answered(web: Web, page: str, more: str, fields: dict[str, str]) -> None:
    """With a page, or with what is wrong; what was given is never markup."""
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
    answer = web.get(f"{page}{quote(more, safe='')}?{query}")
    assert answer.status in STATUSES and "bug in projectmem" not in answer.text
    assert answer.text.isprintable() or not set("\0\x1b\u202e\u2066") & set(answer.text)


@settings(max_examples=100)
@given(
    path=st.one_of(TEXT, st.sampled_from(["", "log", "../f0f0/log", "/f0f0/", "page.css", "%2e%2e"])),
    query=TEXT,
    cookie=TEXT,
    host=st.one_of(TEXT, st.sampled_from(["127.0.0.1", "localhost:80", "127.0.0.1:80@evil", "localhost.evil", "[::1]evil"])),
)
def test_nobody_gets_in_without_the_key(web: Web, path: str, query: str, cookie: str, host: str) -> None:
    """Nothing of the log and no cookie, whatever path, query, cookie and host are."""

    def plain(text: str) -> str:
        return text.encode("latin-1", "ignore").decode("latin-1").replace("\n", "").replace("\r", "")

    answer = web.get(
        f"{KEYS.folder}/{quote(path, safe='/.%')}?{quote(query, safe='=&%')}",
        known=False,
        headers={"cookie": plain(cookie), "host": plain(host)},
    )
    assert answer.status in (401, 403, 414) and "set-cookie" not in answer.headers
    assert "note 1" not in answer.text and KEYS.session not in answer.text and KEYS.token not in answer.text

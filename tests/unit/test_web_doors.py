"""Who gets in: the key and nothing else, from this machine and no other page, and headers that keep it so."""

from __future__ import annotations

import pytest
from projectmem_logs.redact import Redactor

from projectmem.place import Place
from projectmem.web.doors import COOKIE, HEADERS, Keys
from tests.web_client import HOST, KEYS, Web

NOW = 1_796_100_000_000_000


@pytest.fixture
def web(place: Place) -> Web:
    """The page of an empty project."""
    return Web(place.root, NOW)


PAGES = ("", "failures", "decisions", "log", "memory", "recall", "recall?q=x", "health", "stats", "event/01a22fde-be4c-70a7")


def test_without_the_cookie_nothing_is_said(web: Web) -> None:
    """401 and what to do, the same for a page that is there and one that is not; no name of the project."""
    for page in PAGES:
        answer = web.get(page, known=False)
        assert answer.status == 401
        assert answer.text == web.get("nothing/here", known=False).text == web.get("/other", known=False).text
        assert "projectmem serve" in answer.words
        assert "repo" not in answer.text and KEYS.token not in answer.text and KEYS.folder not in answer.text
        assert "set-cookie" not in answer.headers


def test_the_key_is_exchanged_at_once(web: Web) -> None:
    """A cookie that no script reads and no other page or port is sent, and an address without the key."""
    answer = web.get(f"/?token={KEYS.token}", known=False)
    assert (answer.status, answer.headers["location"]) == (303, f"{KEYS.folder}/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}={KEYS.session};")
    assert {"HttpOnly", "SameSite=strict", f"Path={KEYS.folder}/"} <= set(cookie.split("; "))
    assert KEYS.token not in cookie
    assert web.get("").status == 200
    assert web.get("/elsewhere").status == web.get(f"{KEYS.folder}x/").status == 401, "it opens its own folder alone"


def test_a_link_on_another_page_leads_in_by_a_page_of_our_own(web: Web) -> None:
    """A strict cookie is not sent along a redirect that another page began; from our own page it is."""
    answer = web.get(f"/?token={KEYS.token}", known=False, headers={"sec-fetch-site": "cross-site"})
    assert answer.status == 200 and f"url={KEYS.folder}/" in answer.text
    assert KEYS.session in answer.headers["set-cookie"] and KEYS.session not in answer.text


WRONG_KEYS = (
    "token=",
    "token=x",
    f"token={KEYS.session}",
    "token=%00",
    "key=1",
    "token=%ff",
    "a&b&c&d=%",
)


def test_a_wrong_key_opens_nothing(web: Web) -> None:
    """401, no cookie, and not a word of what was given."""
    for query in WRONG_KEYS:
        answer = web.get(f"/?{query}", known=False)
        assert answer.status == 401 and "set-cookie" not in answer.headers


def test_too_many_fields_are_refused_too(web: Web) -> None:
    """And are no error of the page."""
    assert web.get("/?" + "&".join(f"a{n}=1" for n in range(50)), known=False).status == 401


WRONG_COOKIES = (
    "",
    "=",
    f"{COOKIE}=",
    f"{COOKIE}={KEYS.token}",
    f"x{COOKIE}={KEYS.session}",
    f"{COOKIE}=\xe9",
)


def test_a_wrong_cookie_opens_nothing(web: Web) -> None:
    """Only its own name with its own value does, among others too."""
    for cookie in WRONG_COOKIES:
        assert web.get("log", known=False, headers={"cookie": cookie}).status == 401
        assert web.get("log", known=False, headers={"cookie": f"a=b; {COOKIE}=no; {COOKIE}={KEYS.session}; c"}).status == 200


OTHER_HOSTS = (
    "evil.example",
    "evil.example:8123",
    "127.0.0.1.evil.example",
    "0.0.0.0:8123",
    "",
    "192.168.0.2",
    "localhost:x",
)


def test_a_rebound_name_is_not_answered(web: Web) -> None:
    """With the cookie or the key: 403, before either is looked at."""
    for host in OTHER_HOSTS:
        assert web.get("log", headers={"host": host}).status == 403
        answer = web.get(f"/?token={KEYS.token}", headers={"host": host})
        assert answer.status == 403 and "set-cookie" not in answer.headers


OWN_HOSTS = (
    "127.0.0.1:8123",
    "localhost:9",
    "LOCALHOST",
    "[::1]:8123",
    "127.0.0.1",
)


def test_names_of_this_machine_are_answered(web: Web) -> None:
    """Whatever the port: it may have been forwarded."""
    for host in OWN_HOSTS:
        assert web.get("log", headers={"host": host}).status == 200


OTHER_ORIGINS = (
    "https://evil.example",
    "null",
    "http://127.0.0.1:9999",
    "http://localhost:8123",
)


def test_other_pages_are_not_answered(web: Web) -> None:
    """An Origin that is not ours, another port's page, or a request that the browser says began elsewhere."""
    for origin in OTHER_ORIGINS:
        assert web.get("log", headers={"origin": origin}).status == 403
        assert web.get("log", headers={"origin": f"http://{HOST}"}).status == 200
        for site in ("cross-site", "same-site"):
            assert web.get("log", headers={"sec-fetch-site": site}).status == 401
        assert web.get("log", headers={"sec-fetch-site": "same-origin"}).status == 200


WRITING = (
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "TRACE",
)


def test_it_is_only_read(web: Web) -> None:
    """405, and HEAD is a GET."""
    for method in WRITING:
        answer = web.get("log", method=method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
        assert web.get("log", method="HEAD").status == 200


PATHS = (
    "",
    "log",
    "nothing",
    "/other",
    "/page.css",
    f"/?token={KEYS.token}",
    "event/zz",
    "log?kind=x",
)


def test_every_answer_has_the_headers(web: Web) -> None:
    """Whatever the status: no script, no frame, no other host, no cache, no referrer."""
    for path in PATHS:
        for known in (True, False):
            answer = web.get(path, known=known)
            for name, value in HEADERS.items():
                assert answer.headers[name.lower()] == value
        policy = HEADERS["Content-Security-Policy"]
        for part in ("default-src 'none'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert part in policy
        assert "script" not in policy and "unsafe" not in policy


def test_long_addresses_are_refused(web: Web) -> None:
    """Before anything is done with them."""
    assert web.get("log?q=" + "x" * 5_000).status == 414
    assert web.get("x" * 5_000).status == 414


def test_keys_are_new_each_time_and_are_not_shown() -> None:
    """Neither by chance in a message; and what a log records of a printed address is without the key."""
    one, other = Keys(), Keys()
    assert len({one.token, one.session, one.folder, other.token, other.session, other.folder}) == 6
    assert one.token not in repr(one) and one.session not in repr(one)
    fixed = "Zx9_abcDEF-1234567890abcdefghijklmno1234567"
    assert fixed not in Redactor(b"k" * 32).text(f"the page is at http://127.0.0.1:43121/?token={fixed}")

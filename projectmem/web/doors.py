"""Who gets in: loopback by name, reading methods, the key of this run, and headers that keep every other page out.

Against another user of the machine: without the key there is no answer, and the key is in no process title and no log. Against
other pages in the same browser, DNS rebinding included: the Host must name loopback, no foreign Origin, a cookie that is HttpOnly
and SameSite=Strict. Cookies do not know ports, so ours is bound to a folder whose name is made anew for each run: another server
on loopback is never sent it.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "projectmem_page"
METHODS = ("GET", "HEAD")
ADDRESS_MAX = 4_096  # bytes of path and query
FIELDS_MAX = 4  # of the address with the key
OPEN = ("/page.css", "/icon.svg")  # what anybody may have: it says nothing of the log
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Keys:
    """The secrets of one run.

    token   in the address that is printed;  session  in the cookie that it is exchanged for;  folder  under which the page is
    """

    __slots__ = ("folder", "session", "token")

    def __init__(self, token: str = "", session: str = "", folder: str = "") -> None:
        self.token = token or secrets.token_urlsafe(32)
        self.session = session or secrets.token_urlsafe(32)
        self.folder = folder or f"/{secrets.token_hex(8)}"

    def __repr__(self) -> str:
        return "Keys()"


class Doors:
    """Lets a request through to `app` (whose paths begin with the folder), or answers itself with `refuse(status, why)`.

    asked  is called for every request that got in
    """

    def __init__(self, app: ASGIApp, keys: Keys, refuse: Callable[[int, str], Response], asked: Callable[[], None]) -> None:
        self.app, self.keys, self.refuse, self.asked = app, keys, refuse, asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self.answer(scope)
        if answer is None:
            self.asked()
            await self.app(scope, receive, guarded)
        else:
            await answer(scope, receive, guarded)

    def answer(self, scope: Scope) -> Response | None:
        """What is answered here; None lets the request in."""
        headers, path = Headers(scope=scope), str(scope["path"])
        host = headers.getlist("host")
        if len(host) != 1 or not _LOOPBACK.fullmatch(host[0]):
            return self.refuse(403, "This page answers only to a name of this machine: 127.0.0.1 or localhost.")
        if headers.get("origin", f"http://{host[0]}") != f"http://{host[0]}":
            return self.refuse(403, "Other pages are not served.")
        if scope["method"] not in METHODS:
            refused = self.refuse(405, "This page is only read: nothing can be sent to it.")
            refused.headers["Allow"] = ", ".join(METHODS)
            return refused
        if len(path.encode("utf-8", "replace")) + len(scope["query_string"]) > ADDRESS_MAX:
            return self.refuse(414, "The address is too long.")
        if path in OPEN:
            return None
        if path == "/" and scope["query_string"]:
            return self._exchange(scope, headers)
        if not self._known(headers, path):
            return self.refuse(401, "The key of this run is in the address that `projectmem serve` printed.")
        return None

    def _exchange(self, scope: Scope, headers: Headers) -> Response:
        """The key of the address for a cookie, at once, and on to an address without it."""
        try:
            given = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=FIELDS_MAX).get("token", [""])[0]
        except ValueError:
            given = ""
        if not _same(given, self.keys.token):
            return self.refuse(401, "The key in this address is not the one of this run: take the address printed last.")
        target = f"{self.keys.folder}/"
        if headers.get("sec-fetch-site", "none") == "none":
            made: Response = RedirectResponse(target, 303)
        else:  # a browser sends no strict cookie along a redirect that began on another page: from here it does
            link = f'<meta http-equiv="refresh" content="0;url={target}"><p><a href="{target}">Go on</a>'
            made = Response(f'<!doctype html><html lang="en"><title>projectmem</title>{link}', media_type="text/html")
        made.set_cookie(COOKIE, self.keys.session, path=target, httponly=True, samesite="strict")
        return made

    def _known(self, headers: Headers, path: str) -> bool:
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return False
        pairs = [pair.strip().partition("=") for pair in headers.get("cookie", "").split(";")]
        shown = [value for name, _, value in pairs if name == COOKIE]
        return any(_same(value, self.keys.session) for value in shown) and path.startswith(f"{self.keys.folder}/")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())

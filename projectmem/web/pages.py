"""The pages: which address shows what, how long it may take, and what is said where it cannot be shown."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from projectmem import logpages
from projectmem.errors import BadInputError, NotFoundError
from projectmem.web.asking import SHOWN, Asking, TooLongError
from projectmem.web.doors import OPEN, Doors, Keys
from projectmem.web.jobs import BusyError, Jobs, Pending
from projectmem.web.showing import environment, sections

if TYPE_CHECKING:
    from projectmem.place import Place

WAIT_S = 3.0  # that a reader waits before the page says that it is still being worked out
LOOK_S = 0.8  # the same for a part of a page that does without
GLANCE_S = 0.4  # that the log is searched for a part of a page
HEALTH_S, SHORT_HEALTH_S = (
    900.0,
    5.0,
)  # how long a look at everything is good: at a long log, which takes time, and at a short one
FIELD_MAX = 200  # characters of what is searched for in the log
QUESTION_MAX = 2_000
LIMITS = (50, 200, 1_000)
STATIC, KINDS = Path(__file__).parent / "static", {".css": "text/css", ".svg": "image/svg+xml"}
NAV = (
    ("", "Now"),
    ("failures", "Failures"),
    ("decisions", "Decisions"),
    ("log", "Log"),
    ("memory", "Memory"),
    ("health", "Health"),
    ("stats", "Numbers"),
)
WHAT_TO_DO = {
    400: "Change the address or what was typed.",
    401: "Open that address. Where it is lost, end `projectmem serve` and run it again: it prints another.",
    403: "Open the address that `projectmem serve` printed.",
    404: "Go back, or start at the first page.",
    503: "Ask again in a moment.",
    500: "Run the command of the same name; it says more. Details are in the terminal where the page runs.",
}


class Trouble:
    """Why a part of a page is missing."""

    __slots__ = ("trouble",)

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble


class Pages:
    """The page of one project. `now` gives microseconds since the epoch."""

    def __init__(
        self, place: Place, keys: Keys, now: Callable[[], int], tell: Callable[[str], None], waits: tuple[float, float]
    ) -> None:
        self.asking, self.keys, self.now, self.tell = Asking(place, now), keys, now, tell
        self.wait_s, self.look_s = waits
        self.jobs, self.templates = Jobs(), environment(keys.folder)
        self.project = Path(place.root).name

    def worked(self, name: Hashable, work: Callable[[], Any], wait_s: float | None = None, keep_s: float = 0.0) -> Any:
        """What the work gives, or Pending."""
        return self.jobs.ask(name, work, self.wait_s if wait_s is None else wait_s, keep_s)

    def part(self, name: Hashable, work: Callable[[], Any], keep_s: float = 0.0) -> Any:
        """The same for a part of a page, which is shown without it for a while, and with a word where it cannot be had."""
        try:
            return self.worked(name, work, self.look_s, keep_s)
        except BusyError:
            return Pending(0)
        except Exception as exc:
            if not isinstance(exc, (*_known(), OSError)):
                raise
            return Trouble(str(exc))

    def html(self, name: str, status: int = 200, **values: Any) -> Response:
        """A page of that template. A part of it that is still being worked out has it ask again by itself."""
        waits = any(isinstance(value, Pending) for value in values.values())
        page = self.templates.get_template(f"{name}.html")
        more = {"nav": NAV, "here": name, "project": self.project, "now": self.now(), "waits": waits}
        return HTMLResponse(page.render({**more, **values}), status)

    def refused(self, status: int, why: str) -> Response:
        """A page that says why there is none, and what to do."""
        page = self.templates.get_template("refused.html")
        inside = status not in (401, 403)
        text = page.render(status=status, why=why, todo=WHAT_TO_DO.get(status, WHAT_TO_DO[404]), inside=inside, nav=NAV, here="-")
        return HTMLResponse(text, status)

    def start(self, request: Request) -> Response:
        """What stands now, what was said lately, and whether all is well."""
        from projectmem.hook import health

        ask = self.asking
        self.jobs.begin("stats", ask.stats)
        newest = ask.log(logpages.Wanted(), 1, None)
        decided = ask.log(logpages.Wanted(kinds=("action.proposed",)), 5, None, GLANCE_S)
        trouble = ask.log(logpages.Wanted(kinds=("gate.degraded",)), 1, None, GLANCE_S)
        failures = self.part(("failures", False, 5), lambda: ask.failures(False, 5))
        counts = self.part("stats", ask.stats)
        looked = health.known(ask.place.home)
        shown: dict[str, Any] = {"newest": newest.events, "decided": decided.events, "trouble": trouble.events}
        return self.html("now", failures=failures, counts=counts, looked=looked, here="", **shown)

    def failures(self, request: Request) -> Response:
        """Failures with what the gate says of each."""
        every, limit = bool(_field(request, "all")), _limit(request)
        found = self.worked(("failures", every, limit), lambda: self.asking.failures(every, limit))
        return self.html("failures", found=found, every=every, limit=limit, limits=LIMITS)

    def decisions(self, request: Request) -> Response:
        """What the gate said, newest first, and what became of it."""
        verdict = _field(request, "verdict")
        if verdict not in ("", "allow", "warn", "ask", "deny"):
            raise BadInputError("There is no such verdict: it is allow, warn, ask or deny.")
        wanted = logpages.Wanted(kinds=("action.proposed",), session=_field(request, "session"), verdict=verdict)
        found = self.asking.log(wanted, SHOWN, _upto(request))
        ids = [event["id"] for event in found.events]
        became = self.part(("outcomes", *ids), lambda: self.asking.outcomes(ids)) if ids else {}
        return self.html("decisions", found=found, became=became, wanted=wanted, older=_older(found, wanted))

    def log(self, request: Request) -> Response:
        """Events, newest first."""
        kind = _field(request, "kind")
        wanted = logpages.Wanted((kind,) if kind else (), _field(request, "session"), _field(request, "q"))
        found = self.asking.log(wanted, SHOWN, _upto(request))
        return self.html("log", found=found, wanted=wanted, kind=kind, kinds=_kinds(), older=_older(found, wanted))

    def event(self, request: Request) -> Response:
        """One event: what it means, and all of it."""
        id = request.path_params["id"]
        found = self.worked(("event", id), lambda: self.asking.event(id))
        if isinstance(found, Pending):
            return self.html("event", found=found, here="log")
        event = found["event"]
        if event["id"] != id:
            return Response(status_code=303, headers={"Location": f"{self.keys.folder}/event/{event['id']}"})
        try:
            wait_s = self.look_s if self.asking.long() else None  # the record itself is there already
            told = self.worked(("explain", id), lambda: self.asking.explained(event), wait_s)
        except TooLongError as exc:
            told = exc
        said = None if isinstance(told, (Pending, TooLongError)) else sections(told)
        title, _, more = said[0].partition(event["id"]) if said else ("", "", "")
        shown = {"title": title.strip() or event["kind"], "more": more, "told": told, "said": said}
        return self.html("event", found=found, event=event, here=_section(event), **shown)

    def recompute(self, request: Request) -> Response:
        """One decision, recomputed from what was recorded."""
        id = request.path_params["id"]
        event = self.asking.event(id)
        if not event["recomputable"]:
            raise NotFoundError("This event is no decision of the gate: there is nothing to recompute.")
        try:
            found = self.worked(("recompute", id), lambda: self.asking.recomputed(event["event"]), keep_s=60.0)
        except TooLongError as exc:
            found = exc
        shown = {"found": found, "too_long": isinstance(found, TooLongError)}
        return self.html("recompute", event=event["event"], here="decisions", **shown)

    def memory(self, request: Request) -> Response:
        """What people and agents wrote down."""
        return self.html("memory", found=self.worked("memory", self.asking.memory))

    def recall(self, request: Request) -> Response:
        """A question to recall."""
        question = _field(request, "q", QUESTION_MAX)
        found = self.worked(("recall", question), lambda: self.asking.recalled(question)) if question else None
        return self.html("recall", found=found, question=question, here="memory")

    def health(self, request: Request) -> Response:
        """Whether hooks, log and projections are sound."""
        if _field(request, "again"):
            self.jobs.drop("health")
            return Response(status_code=303, headers={"Location": f"{self.keys.folder}/health"})
        ask = self.asking
        found = self.worked("health", ask.health, keep_s=HEALTH_S if ask.long() else SHORT_HEALTH_S)
        positions = ask.positions() if isinstance(found, Pending) else found["positions"]
        sealed = ask.log(logpages.Wanted(kinds=("checkpoint.sealed",)), 5, None, GLANCE_S)
        trouble = ask.log(logpages.Wanted(kinds=("gate.degraded",)), 10, None, GLANCE_S)
        mended = ask.log(logpages.Wanted(kinds=("log.recovered",)), 5, None, GLANCE_S)
        return self.html(
            "health", found=found, positions=positions, sealed=sealed, trouble=trouble, mended=mended, home=ask.place.home
        )

    def stats(self, request: Request) -> Response:
        """The counts."""
        return self.html("stats", counts=self.worked("stats", self.asking.stats))

    def failed(self, request: Request, exc: Exception) -> Response:
        """What went wrong, for people."""
        if isinstance(exc, HTTPException):
            return self.refused(exc.status_code, "There is no such page." if exc.status_code == 404 else str(exc.detail))
        if isinstance(exc, BadInputError):
            return self.refused(400, str(exc))
        if isinstance(exc, NotFoundError):
            return self.refused(404, str(exc))
        if isinstance(exc, BusyError):
            return self.refused(503, "Too much is being worked out already.")
        if isinstance(exc, (*_known(), OSError)):
            return self.refused(500, str(exc))
        self.tell(f"the page {request.url.path.removeprefix(self.keys.folder)} failed: {type(exc).__name__}: {exc}")
        return self.refused(500, f"This is a bug in projectmem ({type(exc).__name__}).")


def application(
    place: Place,
    keys: Keys,
    *,
    now: Callable[[], int],
    tell: Callable[[str], None] = lambda _: None,
    asked: Callable[[], None] = lambda: None,
    waits: tuple[float, float] = (WAIT_S, LOOK_S),
) -> ASGIApp:
    """The page as an ASGI application.

    tell  is told of bugs;  asked  of every request that got in;  waits  seconds that a page, and a part of one, is waited for
    """
    pages = Pages(place, keys, now, tell, waits)
    shows = {
        "/": pages.start,
        "/failures": pages.failures,
        "/decisions": pages.decisions,
        "/log": pages.log,
        "/event/{id}": pages.event,
        "/event/{id}/recompute": pages.recompute,
        "/memory": pages.memory,
        "/recall": pages.recall,
        "/health": pages.health,
        "/stats": pages.stats,
    }

    def guarded(show: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                return show(request)
            except Exception as exc:
                return pages.failed(request, exc)

        return answer

    def lost(request: Request, exc: Exception) -> Response:
        return pages.failed(request, exc)

    routes = [Route(f"{keys.folder}{path}", guarded(show)) for path, show in shows.items()]
    routes += [Route(path, _file(STATIC / path[1:])) for path in OPEN]
    return Doors(Starlette(routes=routes, exception_handlers={HTTPException: lost}), keys, pages.refused, asked)


def _file(path: Path) -> Callable[[Request], Response]:
    """A file of ours, read once."""
    data, kind = path.read_bytes(), KINDS[path.suffix]
    return lambda _: Response(data, media_type=kind)


def _field(request: Request, name: str, limit: int = FIELD_MAX) -> str:
    """A field of the address. Raises BadInputError for one that is too long."""
    value = request.query_params.get(name, "").strip()
    if len(value) > limit:
        raise BadInputError(f"`{name}` has {len(value)} characters: give at most {limit}.")
    return value


def _limit(request: Request) -> int:
    given = _field(request, "limit")
    return int(given) if given.isdigit() and int(given) in LIMITS else LIMITS[0]


def _upto(request: Request) -> dict[str, int] | None:
    """The place in the log that a page goes on from."""
    word = _field(request, "upto", logpages.WORD_MAX)
    place = logpages.place_of(word) if word else None
    if word and place is None:
        raise BadInputError("`upto` names no place in the log: go back to the first page of it.")
    return place


def _older(found: logpages.Page, wanted: logpages.Wanted) -> dict[str, str]:
    """The fields of the address of the next page, {} where there is none."""
    if not found.older:
        return {}
    fields = {"kind": "".join(wanted.kinds), "session": wanted.session, "q": wanted.text, "verdict": wanted.verdict}
    return {**fields, "upto": logpages.name_of(found.older)}


def _section(event: dict[str, Any]) -> str:
    """The page of the navigation that an event belongs to."""
    if event["kind"] == "action.proposed":
        return "decisions"
    data = event.get("data")
    return "failures" if isinstance(data, dict) and data.get("outcome") == "failed" else "log"


def _kinds() -> dict[str, list[str]]:
    """The kinds of events by family."""
    from projectmem.logview import KINDS

    found: dict[str, list[str]] = {}
    for kind in KINDS:
        found.setdefault(kind.partition(".")[0], []).append(kind)
    return found


def _known() -> tuple[type[Exception], ...]:
    from projectmem_logs.errors import LogError
    from projectmem_projections.errors import ProjectionError

    from projectmem.errors import ProjectmemError

    return (ProjectmemError, LogError, ProjectionError)


__all__ = ["Pages", "application"]

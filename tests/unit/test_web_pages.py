"""What the page says: the same as the command line, inert whatever is in the log, and clear where it cannot say it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.home import init_home
from projectmem_logs.reader import read_events

from projectmem import caller, logpages
from projectmem.cli import app as cli
from projectmem.cli import common
from projectmem.hook import entry
from projectmem.place import Place
from projectmem.record import record
from projectmem.web.showing import prose, sections
from tests.web_client import KEYS, Web

START = 1_796_100_000_000_000
SECOND = 1_000_000
ERROR = "Exit code 2\nError: Missing environment variable VITE_API_URL\nnpm error code 2"
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=alert(1)>'\"><svg/onload=alert(2)> {{1234*1000}} {% raw %}"
    " javascript:alert(3) </pre></textarea> &lt;b&gt; \u202egnp.exe \x1b[31mred\x07 \u2028"
)


class World:
    """A project with failures, decisions and memory, its page, and its command line, all at one time."""

    def __init__(self, place: Place) -> None:
        self.place, self.now, self.calls = place, START, 0

    def fire(self, event: str, session: str, **fields: Any) -> dict[str, Any] | None:
        """One event of Claude Code."""
        self.now += 20 * SECOND
        base = {"session_id": session, "transcript_path": "", "cwd": self.place.root, "hook_event_name": event}
        return entry.respond(["claude-code", event], json.dumps({**base, **fields}).encode(), self.now)

    def run(self, command: str, error: str = "", session: str = "one", ms: int = 95_000) -> None:
        """One call, as its harness tells it; one that is refused is not run."""
        self.calls += 1
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"toolu_{self.calls}"}
        said = (self.fire("PreToolUse", session, **call) or {}).get("hookSpecificOutput", {})
        if said.get("permissionDecision") == "deny":
            error = f"PreToolUse:Bash hook error: {said['permissionDecisionReason']}"
        elif error:
            self.fire("PostToolUseFailure", session, **call, error=error, is_interrupt=False, duration_ms=ms)
        self.fire("PostToolBatch", session, tool_calls=[{**call, "tool_response": error or "fine"}])

    def write(self, kind: str, **data: Any) -> dict[str, Any]:
        """Something written down by a person."""
        self.now += SECOND
        return record(self.place, kind, data, now=self.now, origin="human", actor=caller.actor())

    def web(self, **more: Any) -> Web:
        """Its page."""
        return Web(self.place.root, self.now, **more)

    def json(self, capsys: pytest.CaptureFixture[str], *args: str) -> Any:
        """What a command prints with --json."""
        cli.run([*args, "--root", self.place.root, "--json"])
        return json.loads(capsys.readouterr().out)

    def said(self, capsys: pytest.CaptureFixture[str], *args: str) -> str:
        """What a command prints."""
        cli.run([*args, "--root", self.place.root])
        return capsys.readouterr().out


@pytest.fixture
def world(place: Place, monkeypatch: pytest.MonkeyPatch) -> World:
    """Failures that stand, one that was cleared, refusals, an allowed call, and notes; commands tell the same time."""
    made = World(place)
    for session in ("one", "two"):
        for _ in range(2):
            made.run("npm run build", ERROR, session)
        made.run("cargo test", "Exit code 101\nerror[E0308]: mismatched types", session, ms=900)
    made.run("cargo test")
    made.run("pytest -q", "Exit code 1\nFAILED tests/test_a.py::test_b - assert 1 == 2")
    made.run("ls")
    made.write("note.recorded", text="Deploys go through the staging host", tags=[])
    made.write("decision.recorded", title="Use pnpm for the web package", text="The lock file is pnpm's.", supersedes="")
    monkeypatch.setattr(common, "now", lambda: made.now)
    return made


@pytest.fixture
def web(world: World) -> Web:
    """The page of that project."""
    return world.web()


def ids(text: str) -> list[str]:
    """Events that a page links to, in its order."""
    return list(dict.fromkeys(re.findall(rf'href="{KEYS.folder}/event/([0-9a-f-]{{36}})"', text)))


def test_failures_are_those_of_the_command(world: World, web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    """The same rows in the same order with the same verdict, count, class and remedy; `all` too."""
    for page, args in (("failures", ()), ("failures?all=1", ("--all",))):
        rows = world.json(capsys, "failures", *args)
        answer = web.get(page)
        cards = answer.text.split("<article")[1:]
        assert len(cards) == len(rows) > 1
        for card, row in zip(cards, rows, strict=True):
            assert ids(card)[0] == row["id"]
            assert f">{row['gate']}</span>" in card and f">{row['cls']}</span>" in card
            assert (f"{row['streak']} times" in card) is (row["streak"] > 1)
            assert row["decision"]["reason"].partition("\n")[0].replace("`", "") in answer.words.replace("`", "")
    assert "cleared" in web.get("failures?all=1").words and "cleared" not in web.get("failures").words


def test_decisions_are_those_of_the_command(world: World, web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    """Newest first, each with its verdict, and what became of it as the summaries have it; one verdict alone."""
    events = world.json(capsys, "log", "--kind", "action.proposed", "-n", "0")[::-1]
    answer = web.get("decisions")
    rows = answer.text.split('<li class="row ')[1:]
    verdicts = [event["data"]["decision"]["verdict"] for event in events]
    assert [ids(row)[0] for row in rows] == [event["id"] for event in events]
    assert [re.search(r">(\w+)</span>", row).group(1) for row in rows] == verdicts  # type: ignore[union-attr]
    assert {"ask", "warn"} <= set(verdicts)
    assert len(web.get("decisions?verdict=ask").text.split('<li class="row ')) - 1 == verdicts.count("ask")
    table = world.json(capsys, "sql", "SELECT id, outcome, followed FROM gate_outcomes")
    then = {row["id"]: row["outcome"] or row["followed"] for row in table}
    for row in rows:
        assert re.findall(r"then\s*<span[^>]*>([^<]*)</span>", row) == [then[ids(row)[0]]]


def test_the_log_is_that_of_the_command(world: World, web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it, and by kind, session and text."""
    every = world.json(capsys, "log", "-n", "0")[::-1]
    assert ids(web.get("log").text) == [event["id"] for event in every[:50]]
    notes = world.json(capsys, "log", "--kind", "note", "-n", "0")[::-1]
    assert ids(web.get("log?kind=note").text) == [event["id"] for event in notes]
    assert ids(web.get("log?session=two").text) == [e["id"] for e in every if e["actor"]["session"] == "two"]
    assert ids(web.get("log?q=STAGING").text) == [e["id"] for e in every if "staging" in json.dumps(e["data"])]


def test_older_pages_go_on_where_one_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """From link to link, with what was asked kept, also where a search stopped for its budget and found nothing yet."""
    monkeypatch.setattr("projectmem.web.pages.SHOWN", 7)
    every = list(read_events(world.place.home))[::-1]

    def walk(page: str) -> tuple[list[str], int]:
        found, pages = list[str](), 0
        while page:
            answer = world.web().get(page)
            found, pages = found + ids(answer.text), pages + 1
            page = next(iter(answer.links("upto=")), "")
        return found, pages

    assert walk("log") == ([event["id"] for event in every], -(-len(every) // 7))
    ones = [event["id"] for event in every if event["actor"]["session"] == "one"]
    assert walk("log?kind=action&session=one")[0] == ones
    asks = [e["id"] for e in every if (e["data"].get("decision") or {}).get("verdict") == "ask"]
    assert walk("decisions?verdict=ask")[0] == asks
    full = logpages.page
    monkeypatch.setattr(logpages, "page", lambda *args, **more: full(*args, **{**more, "bytes_max": 4_000}))
    found, pages = walk("log?q=staging")
    assert found == [event["id"] for event in every if "staging" in json.dumps(event["data"])] and pages > 3
    assert "Looked back to" in world.web().get("log?q=staging").words


def test_an_event_is_explained_in_the_words_of_the_command(world: World, web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    """For every event of the log: each line, the whole record with its hash; a short id leads to it."""
    for event in read_events(world.place.home):
        answer = web.get(f"event/{event['id']}")
        assert answer.status == 200
        told = world.said(capsys, "explain", event["id"])
        title = told.partition(event["id"])[0].strip() or event["kind"]
        assert f" {title} {event['id'][:18]} " in answer.words
        for line in re.sub(r"(?m)^\s*[>|] ", "", told).splitlines():
            words = re.sub(r"[`\s]+", "", re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]*", "", line))
            assert words in re.sub(r"[`\s]+", "", re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]*", "", answer.words)), line
        assert event["hash"] in answer.text and event["prev"] in answer.text
        shown = re.search(r"<pre[^>]*>(\{.*\})</pre>", answer.text, re.DOTALL)
        assert shown is not None
        from html import unescape

        assert json.loads(unescape(shown.group(1))) == world.json(capsys, "explain", event["id"])["event"]
    short = web.get(f"event/{event['id'][-12:]}")
    assert (short.status, short.headers["location"]) == (303, f"{KEYS.folder}/event/{event['id']}")


def test_a_whole_id_is_found_without_a_search_where_summaries_stand(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log is not read for one event; what the index does not know yet is searched for."""
    from projectmem import lookup

    web = world.web()
    web.get("stats")
    first, *_, last = read_events(world.place.home)
    world.write("note.recorded", text="newer than the summaries", tags=[])
    searched = list[str]()
    search = lookup.find_one
    monkeypatch.setattr(lookup, "find_one", lambda place, wanted: searched.append(wanted) or search(place, wanted))
    newest = list(read_events(world.place.home))[-1]
    for event in (first, last, newest):
        assert event["hash"] in web.get(f"event/{event['id']}").text
    assert searched == []
    assert web.get(f"event/{newest['id'][:-1]}{'0' if newest['id'][-1] != '0' else '1'}").status == 404
    assert len(searched) == 1


def test_every_decision_recomputes_as_replay_finds(world: World, web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    """Same, for decisions and calls without an objection; other events are no decisions."""
    report = world.json(capsys, "replay", "--verify")
    recomputed = 0
    for event in read_events(world.place.home):
        answer = web.get(f"event/{event['id']}/recompute")
        offered = "Recompute this decision" in web.get(f"event/{event['id']}").text
        assert answer.status == (200 if offered else 404)
        recomputed += offered
        assert not offered or "Same." in answer.words
    assert recomputed == report["decisions"]["same"] + report["without_candidate"]["same"] > 5


def test_a_decision_that_was_altered_is_different(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As replay says it: the page asks it, and does not judge."""
    event = next(e for e in read_events(world.place.home) if e["kind"] == "action.proposed")
    monkeypatch.setattr("projectmem.replay.recompute", lambda *_: ("different", "differs in verdict", "allow"))
    answer = world.web().get(f"event/{event['id']}/recompute")
    assert "Different." in answer.words and "differs in verdict" in answer.words
    monkeypatch.setattr("projectmem.replay.recompute", lambda *_: ("engine changed", "engine 1, now 2", ""))
    assert "Not comparable: engine changed" in world.web().get(f"event/{event['id']}/recompute").words


def test_numbers_are_those_of_the_command(world: World, web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    """Each count of `stats`, under its name."""
    found, words = world.json(capsys, "stats"), web.get("stats").words
    for counts in (found["outcomes"], found["classes"], found["failures"], found["by_kind"]):
        for name, count in counts.items():
            assert f"{name} {count:,}" in words, name
    for row in found["gate"]:
        numbers = [row[name] for name in ("count", "then_failed", "then_ok", "not_run", "heeded")]
        assert " ".join([row["verdict"], row["rule"] or "no rule", *map(str, numbers)]) in words
    start = web.get("").words
    assert f"{found['events']} events" in start and f"{sum(row['heeded'] for row in found['gate'])} refusals obeyed" in start


def test_recall_answers_as_the_command_or_abstains(world: World, web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    """The same items for the same reason; what is asked here is not recorded."""
    before = len(list(read_events(world.place.home)))
    answer = web.get("recall?q=where+do+deploys+go+through")
    asked = web.get("recall?q=sourdough+bread+recipe")
    assert len(list(read_events(world.place.home))) == before
    found = world.json(capsys, "recall", "where do deploys go through")
    assert ids(answer.text)[:1] == [item["id"] for item in found["items"]][:1] != []
    none = world.json(capsys, "recall", "sourdough bread recipe")
    assert none["abstained"] and none["why"] in asked.words and "Nothing relevant is recorded" in asked.words
    assert web.get("recall").status == 200


def test_memory_and_health(world: World, web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    """What was written down is listed once; health is what doctor finds."""
    memory = web.get("memory").words
    for text in ("Deploys go through the staging host", "Use pnpm for the web package", "The lock file is pnpm's."):
        assert memory.count(text) == 1
    answer = web.get("health")
    found = world.json(capsys, "doctor", "--no-fire")
    shown = re.sub(r"\s", "", answer.words)
    for check in found["checks"]:
        assert re.sub(r"[\s`]", "", f"{check['status']}{check['name']}{check['detail']}") in shown, check
    assert ("Something is wrong." in answer.words) is not found["ok"]
    head = list(read_events(world.place.home))[-1]
    assert head["stream"] in answer.text and head["hash"][:16] in answer.text
    assert web.get("health?again=1").status == 303


class Tags(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def test_hostile_text_is_inert_everywhere(world: World) -> None:
    """In commands, errors, sessions, notes, labels and questions: no tag, no handler, no address and no control of its own."""
    world.run(f"echo {HOSTILE!r} && false", f"Exit code 1\n{HOSTILE}", f"s{HOSTILE[:60]}")
    world.run(f"echo {HOSTILE!r} && false", f"Exit code 1\n{HOSTILE}", "other")
    world.write("note.recorded", text=HOSTILE, tags=[HOSTILE[:50]])
    world.write("decision.recorded", title=HOSTILE, text=HOSTILE, supersedes="")
    world.write("attempt.recorded", issue="", text=HOSTILE, outcome="failed", verifier=HOSTILE[:60])
    label = {"label": "fragile", "target": "path", "pattern": HOSTILE[:80], "effect": "warn", "reason": HOSTILE, "review_at": 0}
    world.write("label.set", **label)
    web = world.web()
    from urllib.parse import quote

    pages = ["", "failures?all=1", "decisions", "log", "memory", "stats", "health"]
    pages += [f"{page}={quote(HOSTILE)}"[:1500] for page in ("recall?q", "log?kind", "decisions?verdict")]
    pages += [f"{page}={quote(HOSTILE[:150])}" for page in ("log?q", "log?session", "decisions?session", "log?upto")]
    pages += [f"event/{event['id']}" for event in read_events(world.place.home)]
    pages += [f"event/{quote(HOSTILE[:60], safe='')}", quote(HOSTILE[:60], safe="")]
    seen = 0
    for page in pages:
        text = web.get(page).text
        found = Tags(text)
        assert not found.tags & {"script", "img", "svg", "iframe", "object", "style", "textarea", "b"}, page
        for name, value in found.attributes:
            assert not name.startswith("on") and name != "style", (page, name)
            if name in ("href", "src", "action"):
                assert value.startswith(("/", "#")) and not value.startswith("//"), (page, value)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", text), page
        assert "1234000" not in text, page
        seen += "owned" in text
    assert seen > 10
    assert web.told == []


BAD = {
    "log?kind=note.recordet": (400, "did you mean"),
    "log?upto=x": (400, "no place in the log"),
    "log?q=" + "x" * 201: (400, "at most 200"),
    "decisions?verdict=maybe": (400, "no such verdict"),
    "event/zzz": (400, "is not an id"),
    "event/0123456789ab": (404, "no event with id"),
    "event/0123456789ab/recompute": (404, "no event with id"),
    "nothing": (404, "no such page"),
    "": (200, "Now"),
    "failures?limit=-1": (200, "Failures"),
    "failures?limit=99999999999999999999": (200, "Failures"),
    "log?upto=nothing-5": (200, "Nothing in the log"),
    "log?q=%00%ff": (200, "Nothing in the log"),
}


def test_bad_input_is_answered_clearly(web: Web) -> None:
    """With what is wrong and what to do; never with a traceback."""
    for page, (status, words) in BAD.items():
        answer = web.get(page)
        assert (answer.status, words.lower() in answer.words.lower()) == (status, True), (page, answer.words)
        assert "Traceback" not in answer.text
    assert web.told == []


def test_a_bug_is_said_and_told_where_the_page_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 without a traceback; a page that cannot be read for want of the log says that."""

    def broken(*_: Any, **__: Any) -> None:
        raise TypeError("<b>half installed</b>")

    monkeypatch.setattr("projectmem.stats.stats", broken)
    web = world.web()
    answer = web.get("stats")
    assert answer.status == 500 and "bug in projectmem" in answer.words
    assert "half installed" not in answer.text and len(web.told) == 1 and "half installed" in web.told[0]

    def gone(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "/x")

    monkeypatch.setattr("projectmem.stats.stats", gone)
    assert "Permission denied" in world.web().get("stats").words


def test_a_part_that_cannot_be_had_does_not_take_the_page_with_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page shows the rest, and says why."""
    from projectmem_projections.errors import ProjectionError

    def broken(*_: Any, **__: Any) -> None:
        raise ProjectionError("the summaries are <b>elsewhere</b>")

    monkeypatch.setattr("projectmem.failures.failures", broken)
    answer = world.web().get("")
    assert answer.status == 200 and "cannot be shown: the summaries are <b>elsewhere</b>" in answer.words
    assert "times spoken" in answer.words and "http-equiv" not in answer.text
    assert world.web().get("failures").status == 500


def test_what_takes_long_says_so_and_asks_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page comes at once, without the part that is still being worked out; the next one has it."""
    import threading

    from projectmem.failures import failures

    go = threading.Event()

    def slow(*args: Any, **more: Any) -> Any:
        go.wait()
        return failures(*args, **more)

    monkeypatch.setattr("projectmem.failures.failures", slow)
    web = world.web(wait_s=0)
    for page in ("failures", ""):
        answer = web.get(page)
        assert answer.status == 200 and "being worked out" in answer.words and 'http-equiv="refresh"' in answer.text
    assert "npm run build" in web.get("").words, "what the gate said lately is known"
    go.set()
    answer = world.web().get("failures")
    assert 'http-equiv="refresh"' not in answer.text and "npm run build" in answer.words


def test_a_log_that_is_too_long_to_fold_says_which_command_does(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record itself is shown all the same."""
    monkeypatch.setattr("projectmem.web.asking.FOLD_MAX", 100)
    event = next(e for e in read_events(world.place.home) if e["kind"] == "action.proposed")
    answer = world.web().get(f"event/{event['id']}")
    assert f"projectmem explain {event['id']}" in answer.words and event["hash"] in answer.text
    assert "projectmem replay --verify" in world.web().get(f"event/{event['id']}/recompute").words


def test_what_was_erased_is_not_shown(world: World) -> None:
    """On no page: its place alone is."""
    from projectmem.forget import forget, selector

    event = next(e for e in read_events(world.place.home) if e["kind"] == "note.recorded")
    web = world.web()
    assert "staging host" in web.get("memory").words
    forget(world.place, selector(world.place, text="staging host"), reason="test", now=world.now, origin="human")
    for page in ("", "log", "memory", f"event/{event['id']}", "recall?q=deploys+staging+host"):
        assert "go through the staging" not in web.get(page).text, page
    assert "erased" in web.get(f"event/{event['id']}").words


def test_an_empty_project_has_a_page_for_everything(tmp_path: Path, place: Place) -> None:
    """Nothing is recorded, and nothing fails."""
    init_home(place.home, START)
    web = Web(place.root, START)
    for page, words in {
        "": "Nothing stands",
        "failures": "Nothing stands",
        "decisions": "Nothing in the log",
        "log": "Nothing in the log",
        "memory": "Nothing is written down",
        "recall?q=x": "Nothing relevant",
        "stats": "Nothing is recorded",
        "health": "None was taken yet",
    }.items():
        answer = web.get(page)
        assert answer.status == 200 and words in answer.words, (page, answer.words)


def test_explanations_become_sections_and_code() -> None:
    """Headings where lines below are indented; backticks and ids; nothing else is taken for markup."""
    title, blocks = sections("Failure x\n\nWhat failed\n  npm <b>\n    deeper\n\n`a` alone.\n\n  indented\n")
    assert title == "Failure x"
    assert blocks == [("What failed", ["npm <b>", "  deeper"]), ("", ["`a` alone."]), ("", ["indented"])]
    assert str(prose("run `a <b>` & see 01a22fde-be4c-70a7", "/f")) == (
        'run <code>a &lt;b&gt;</code> &amp; see <a class="id" href="/f/event/01a22fde-be4c-70a7">01a22fde-be4c-70a7</a>'
    )
    assert sections("one line") == ("one line", [])


def test_a_damaged_log_is_served_where_it_is_whole_and_said_to_be_damaged(world: World) -> None:
    """Every page comes, with a word about the damage where the command has one; health says what and what to do."""
    (segment,) = Path(world.place.home, "log").glob("*/*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"npm", b"npx", 1)
    segment.write_bytes(b"".join(lines))
    web = world.web()
    for page in ("", "failures", "decisions", "log", "memory", "stats"):
        answer = web.get(page)
        assert answer.status == 200 and "Traceback" not in answer.text, page
    health = web.get("health").words
    assert "Something is wrong." in health and "What to do:" in health
    assert "The log is damaged" in web.get("").words, "as soon as somebody looked"
    assert "damaged" in web.get("failures").words
    assert len(ids(web.get("log").text)) == len(list(read_events(world.place.home))[:50])
    assert web.told == []


def test_a_log_that_is_gone_is_an_answer_too(world: World) -> None:
    """Not a bug: it says that it is not there, or shows nothing."""
    import shutil

    web = world.web()
    assert web.get("").status == 200
    shutil.rmtree(world.place.home)
    for page in ("", "failures", "decisions", "log", "memory", "stats", "health", "recall?q=x", "event/0123456789ab"):
        answer = web.get(page)
        assert answer.status in (200, 404, 500) and "bug in projectmem" not in answer.words, (page, answer.words)
    assert web.told == []

"""Decisions as rules, through the commands and the real hook: proposed, tried on the past, in force, held back, ended."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.origin import accept
from projectmem_logs.store import init_home

from projectmem import caller, place
from projectmem.cli import app as cli
from projectmem.hook import entry
from projectmem.replay import replay_log

USAGE, COULD_NOT = 2, 3


class World:
    """One project; commands run as a person unless `agent` says otherwise."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.capsys, self.who, self.calls, self.err = root, capsys, "human", 0, ""
        monkeypatch.setattr(caller, "origin", lambda: self.who)

    def __call__(self, *args: str, code: int = 0) -> str:
        """Run a command, expect this exit code, return stdout."""
        found = cli.run(list(args))
        out, self.err = self.capsys.readouterr()
        assert found == code, f"{args}: exit {found}, {out}{self.err}"
        assert "Traceback" not in out + self.err
        return out

    def json(self, *args: str, code: int = 0) -> Any:
        """The same with --json, parsed."""
        return json.loads(self(*args, "--json", code=code))

    def hook(self, kind: str, command: str, call: str, session: str = "s1", **more: Any) -> Any:
        """One event of the harness."""
        raw = {
            "session_id": session, "cwd": str(self.root), "hook_event_name": kind, "tool_name": "Bash",
            "tool_input": {"command": command}, "tool_use_id": call, **more,
        }  # fmt: skip
        return entry.respond(["claude-code", kind], json.dumps(raw).encode(), time.time_ns() // 1000)

    def ran(self, command: str) -> str:
        """A call that went well; its id."""
        self.calls += 1
        call = f"c{self.calls}"
        self.hook("PreToolUse", command, call)
        response = {"stdout": "fine", "stderr": "", "interrupted": False}
        calls = [{"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": call, "tool_response": response}]
        raw = {"session_id": "s1", "cwd": str(self.root), "hook_event_name": "PostToolBatch", "tool_calls": calls}
        entry.respond(["claude-code", "PostToolBatch"], json.dumps(raw).encode(), time.time_ns() // 1000)
        return str(self.json("log", "--kind", "action.finished")[-1]["id"])

    def says(self, command: str) -> Any:
        """What the hook answers before a call, as data; None for nothing."""
        self.calls += 1
        answer = self.hook("PreToolUse", command, f"c{self.calls}", session=f"other{self.calls}")
        text = answer if isinstance(answer, (str, bytes)) else answer[0] if isinstance(answer, tuple) else answer
        return json.loads(text) if text else None


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    """An empty project."""
    for name in place.HARNESS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    init_home(str(tmp_path / ".projectmem-gate"), 1)
    accept(str(tmp_path / ".projectmem-gate"))
    monkeypatch.chdir(tmp_path)
    return World(tmp_path, capsys, monkeypatch)


def test_a_decision_becomes_a_rule_and_ends_with_it(world: World) -> None:
    """Read from its text, recorded with the decision, asked by the gate, explained, and ended by what supersedes it."""
    world.ran("pnpm install")
    out = world("rule", "add", "use pnpm here", "--yes")
    assert "commands `npm | npx | yarn | bun | bunx`, use `pnpm | pnpx`" in out
    assert "0 that went well and 0 that failed" in out
    assert world("check", "-c", "CI=1 npm ci", code=11).startswith("ask (decision)")
    world("check", "-c", "pnpm ci")
    world("check", "-c", "git commit -m 'use npm install'")
    rule = world.json("rule", "list")[0]
    assert (rule["state"], rule["does"], rule["why"], rule["origin"]) == ("in force", "ask", "", "human")
    new = world.json("record", "decision", "yarn it is", "--supersedes", rule["decision"])
    world("check", "-c", "npm ci")
    assert "no rule" in world("rule", "list")
    assert f"superseded by {new['id']}: yarn it is" in world("rule", "list", "--all")


def test_a_rule_is_found_by_the_id_that_is_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """`explain`, `confirm` and `clear` take what `rule list` and a warning print; a decision and its rule begin otherwise."""
    world("rule", "add", "use pnpm here", "--yes")
    rule = world.json("rule", "list")[0]
    shown = rule["id"][:18]
    assert not rule["decision"].startswith(shown)
    assert "use pnpm here" in world("explain", shown)
    world("rule", "confirm", shown, "--yes")
    world("rule", "clear", world.json("rule", "list")[0]["id"][:18])
    assert world.json("rule", "list") == []


def test_where_a_rule_and_its_decision_begin_alike_the_rule_is_meant(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in logs that were written with one time for both."""
    from projectmem import lookup

    world("rule", "add", "use pnpm here", "--yes")
    rule = world.json("rule", "list")[0]
    home = place.find(str(world.root))
    assert home is not None
    both = rule["id"][:13]  # the millisecond and nothing else
    if rule["decision"].startswith(both):
        assert lookup.find_one(home, both)["id"] == rule["id"]
    events = [{"id": rule["decision"], "kind": "decision.recorded"}, {"id": rule["id"], "kind": "label.set", "data": rule}]
    monkeypatch.setattr(lookup, "_scan", lambda *_: [dict(e) for e in events])
    assert lookup.find_one(home, both)["id"] == rule["id"]


def test_the_past_holds_a_rule_back(world: World) -> None:
    """More successes than the policy allows: it warns, says so with ids, and replay counts the same again."""
    ids = [world.ran(f"npm install pkg{'x' * i}") for i in range(4)]
    tried = world.json("rule", "check", "use pnpm here")["replay"]
    assert (tried["ok"], tried["failed"], tried["ids"]) == (4, 0, ids[::-1])
    assert "for now it warns" in world("rule", "add", "use pnpm here", "--effect", "deny", "--yes")
    assert "4 past calls that went well" in world("check", "-c", "npm ci", code=10)
    assert "4 past calls that went well" in world("rule", "list")
    assert "tried 1 rule on the past again: 1 same, 0 different" in world("replay", "--verify")
    policy = world.root / "p.toml"
    policy.write_text("[decisions]\ncontradicts = 4\n")
    world("policy", "accept", str(policy))
    world("check", "-c", "npm ci", code=12)
    policy.write_text('[decisions]\ncontradicts = 4\nstrongest = "ask"\n')
    world("policy", "accept", str(policy))
    world("check", "-c", "npm ci", code=11)


def test_a_changed_count_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that says another past than the log shows is `different`."""
    from projectmem import rules

    world.ran("npm install a")
    real = rules.past_of
    monkeypatch.setattr(rules, "past_of", lambda *a: _forged(real(*a)))
    world("rule", "add", "use pnpm here", "--yes")
    report = replay_log(str(world.root / ".projectmem-gate"), verify=True)
    assert not report.ok
    assert report.differences[0]["why"] == "the rule says it would have objected to 0 past successes"


def _forged(past: Any) -> Any:
    past.ok = 0
    return past


def test_examples_and_the_call_it_comes_from_must_match(world: World) -> None:
    """Else it is refused with the reason, and nothing is written."""
    id = world.ran("npm install left-pad")
    before = len(world.json("log", "--limit", "0"))
    wrong = (
        (("--command", "yarn", "--from", id), "does not cover the call it is made from, `npm install left-pad`"),
        (("--command", "npm install", "--example", "npm ci"), "does not cover its example `npm ci`"),
        (("--command", "npm", "--unlike", "npm publish"), "covers its example `npm publish`"),
        (("--path", "src/gen/**", "--example", "src/a.py"), "does not cover its example `src/a.py`"),
    )
    for args, why in wrong:
        world("rule", "add", "x y z", *args, "--yes", code=COULD_NOT)
        assert why in world.err
    assert len(world.json("log", "--limit", "0")) == before
    world("rule", "add", "no left-pad", "--command", "npm i left-pad", "--from", id, "--unlike", "npm ci", "--yes")
    rule = world.json("rule", "list")[0]
    assert rule["pattern"] == "npm install left-pad"
    assert [row["covers"] for row in rule["examples"]] == [False, True]
    causes = world.json("log", "--kind", "label.set")[0]["causes"]
    assert causes == [rule["decision"], id]


@pytest.mark.parametrize(
    "args",
    [
        ("we ship on Friday",), ("use pnpm unless in CI",), ("",), ("x", "--path", "**"), ("x", "--path", "a", "--tool", "b"),
        ("use pnpm", "--effect", "explode"), ("x", "--path", "a", "--instead", "b"), ("use pnpm", "--review", "5mo"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused(world: World, args: tuple[str, ...]) -> None:
    """With a message that says why."""
    world("rule", "add", *args, "--yes", code=USAGE)
    assert world.json("rule", "list", "--all") == []


def test_an_agents_rule_warns_until_a_person_confirms_it(world: World) -> None:
    """Whatever it asks for; an agent neither confirms nor clears."""
    world.who = "agent"
    world("rule", "add", "use pnpm here", "--effect", "deny")
    rule = world.json("rule", "list")[0]
    assert (rule["effect"], rule["does"], rule["origin"]) == ("warn", "warn", "agent")
    assert "an agent noted: " in world("check", "-c", "npm ci", code=10)
    for args in (("rule", "confirm", rule["id"]), ("rule", "clear", rule["id"])):
        world(*args, code=COULD_NOT)
        assert "person" in world.err
    world.who = "human"
    world("rule", "confirm", rule["id"], "--effect", "deny", "--yes")
    world("check", "-c", "npm ci", code=12)
    assert len(world.json("rule", "list")) == 1
    assert "replaced by a newer rule" in world("rule", "list", "--all")
    world.who = "agent"
    world.json("record", "decision", "anything goes", "--supersedes", rule["decision"])
    world("check", "-c", "npm ci", code=12)
    world.who = "human"
    world("rule", "clear", rule["decision"], "--reason", "enough")
    world("check", "-c", "npm ci")
    assert "cleared by" in world("rule", "list", "--all")


def test_generated_files_are_those_the_repository_marks(world: World) -> None:
    """`.gitattributes` says which; without it, what is usually named so."""
    assert world.json("rule", "check", "do not edit generated files")["pattern"].startswith("generated | ")
    (world.root / ".gitattributes").write_text("*.png binary\n/api/*.ts linguist-generated=true\nx.go  linguist-generated\n")
    world("rule", "add", "Don't edit generated files.", "--yes")
    assert world.json("rule", "list")[0]["pattern"] == "api/*.ts | x.go"
    world("check", "--file", "api/client.ts", "--old", "a", "--new", "b", code=11)
    world("check", "--file", "api/client.ts", code=11)  # the file alone: any write of it
    world("check", "--file", "api/client.ts", "--tool", "Edit", code=11)
    world("check", "-c", "echo x >> api/client.ts", code=11)
    world("check", "--file", "api/client.py", "--old", "a", "--new", "b")


def test_past_its_review_date_it_only_warns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so everywhere, until a person confirms it."""
    world("rule", "add", "use pnpm here", "--effect", "deny", "--review", "2d", "--yes")
    later = time.time_ns() + 3 * 86_400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert "due for review since" in world("check", "-c", "npm ci", code=10)
    assert "due for review since" in world("rule", "list")
    world("rule", "confirm", world.json("rule", "list")[0]["id"], "--yes")
    world("check", "-c", "npm ci", code=12)


def test_a_person_is_asked_whether_it_is_meant(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is no."""
    monkeypatch.setattr("typer.confirm", lambda text: False)
    world("rule", "add", "use pnpm here", code=COULD_NOT)
    assert world.json("rule", "list", "--all") == []


def test_the_hook_asks_once_and_the_log_replays(world: World) -> None:
    """Refused with the reason, passed when repeated, and every decision recomputes."""
    world("rule", "add", "use pnpm here", "--yes")
    refused = world.hook("PreToolUse", "npm ci", "a1", session="s9")
    assert "use pnpm here" in json.dumps(refused, default=str)
    time.sleep(2.1)
    world.hook("PreToolUse", "npm ci", "a2", session="s9")
    rules = [e["data"]["decision"]["rule"] for e in world.json("log", "--kind", "action.proposed")]
    assert rules == ["decision", "override"]
    report = world.json("replay", "--verify")
    assert report["decisions"]["same"] == 2
    assert report["rules"]["same"] == 1


def test_recording_a_decision_says_that_it_can_be_checked(world: World) -> None:
    """Where a clause can be read from it; --decision makes the rule of it."""
    id = world.json("record", "decision", "use pnpm here")["id"]
    world("record", "decision", "use yarn here")
    assert "projectmem rule add --decision" in world.err
    world("record", "decision", "we ship on Friday")
    assert world.err == ""
    world("rule", "add", "--decision", id, "--yes")
    assert world.json("rule", "list")[0]["decision"] == id
    assert len(world.json("log", "--kind", "decision")) == 3


def test_explain_says_which_rule_spoke_and_where_it_comes_from(world: World) -> None:
    """Of the decision that was made, and of the rule itself."""
    id = world.ran("npm install a")
    world("rule", "add", "use pnpm here", "--from", id, "--yes")
    rule = world.json("rule", "list")[0]
    world.hook("PreToolUse", "npm ci", "a1", session="s9")
    made = world.json("log", "--kind", "action.proposed")[0]["id"]
    text = world("explain", made)
    for line in (
        "The decision behind it\n  use pnpm here",
        f"it enforces decision {rule['decision'][:18]}",
        "it would have objected to 1 that went well (up to 3 are accepted)",
        "  wanted ask, does ask",
        "rule decision: a decision that the project made covers it",
        f"a person ends it with `projectmem rule clear {rule['id'][:18]}` or supersedes the decision",
        "repeat the call unchanged, and it passes once",
    ):
        assert line in text
    text = world("explain", rule["id"])
    assert f"made from: it covers `npm install a` ({id})" in text
    assert "It spoke 1 time" in text
    assert "State: in force" in text
    world("rule", "clear", rule["id"], "--reason", "enough")
    assert ": enough" in world("explain", rule["id"])


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("never run git push --force", "git push --force"),
        ("Do not use cargo", "cargo"),
        ("do not use curl.", "curl"),
        ("never run terraform apply", "terraform apply"),
    ],
)
def test_a_command_needs_no_backticks_where_it_is_plain(world: World, text: str, pattern: str) -> None:
    """Its first word is a program, and nothing but the command follows."""
    world("rule", "add", text, "--yes")
    assert world.json("rule", "list")[0]["pattern"] == pattern


@pytest.mark.parametrize("text", ["never run git push on Fridays", "do not use foobarbaz", "never run the tests twice"])
def test_where_it_is_not_the_message_says_how_to_write_it(world: World, text: str) -> None:
    """A sentence that goes on, or a word that is no program."""
    world("rule", "add", text, "--yes", code=USAGE)
    assert "backticks" in world.err

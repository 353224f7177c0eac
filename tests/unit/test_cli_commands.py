"""The command line in process: every command's happy path, JSON, exit codes, bad input; never a traceback."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.origin import accept
from projectmem_logs.store import init_home

from projectmem import caller, place
from projectmem.cli import app as cli
from projectmem.hook import entry

FAILED, USAGE, COULD_NOT, BUG = 1, 2, 3, 70
PATHS = [
    ("init",), ("uninit",), ("import",), ("hook",), ("doctor",), ("demo",), ("version",), ("check",), ("failures",), ("explain",),
    ("summary",), ("recall",),
    ("stats",), ("sql",), ("export",), ("embedder",),
    ("pin",), ("snooze",), ("dispute",), ("supersede",), ("review",), ("feedback",), ("log",), ("replay",),
    ("verify",), ("repair",), ("checkpoint",), ("prove",), ("forget",), ("rebuild",),
    ("mcp",), ("proxy",), ("serve",), ("watch",), ("backtest",),
    ("record",), ("record", "issue"), ("record", "hypothesis"), ("record", "attempt"), ("record", "fix"),
    ("record", "decision"), ("record", "note"), ("record", "label"), ("policy",), ("policy", "show"), ("policy", "validate"),
    ("policy", "path"),
    ("policy", "accept"),
    ("eval",), ("eval", "recall"), ("audit",), ("audit", "recall"), ("calibrate",),
    ("rule",), ("rule", "add"), ("rule", "check"), ("rule", "list"), ("rule", "confirm"), ("rule", "clear"),
]  # fmt: skip
WITHOUT_ROOT = {("hook",), ("demo",), ("version",), ("backtest",), ("record",), ("policy",), ("rule",), ("eval",),
                ("eval", "recall"), ("audit",)}  # fmt: skip
READING = [
    ("failures",), ("failures", "--all"), ("log",), ("log", "--kind", "action"), ("stats",), ("sql",), ("sql", "FROM events"),
    ("summary",), ("replay",),
    ("replay", "--verify"),
    ("verify",), ("repair",), ("policy", "show"), ("policy", "path"), ("check", "--command", "ls"), ("version",),
]  # fmt: skip


class Cli:
    """Runs commands in one project, keeping what they print."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.out = self.err = ""

    def __call__(self, *args: str, code: int = 0) -> str:
        """Run one command, expect this exit code, return stdout."""
        found = cli.run(list(args))
        captured = self.capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        assert found == code, f"{args}: exit {found}, {self.out}{self.err}"
        assert "Traceback" not in self.out + self.err
        return self.out

    def json(self, *args: str, code: int = 0) -> Any:
        """The same with --json, parsed."""
        return json.loads(self(*args, "--json", code=code))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """A project with one failed build that stands, driven through the real hook. The caller is an agent (no terminal)."""
    for name in place.HARNESS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    init_home(str(tmp_path / ".projectmem-gate"), 1)
    accept(str(tmp_path / ".projectmem-gate"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "price.py").write_text("broken")
    build(tmp_path)
    return Cli(tmp_path, capsys)


def build(root: Path, call: str = "t1", command: str = "make build", said: str = "price.py:2: error: \x1b[31mred\x1b[0m") -> None:
    """A build that fails just now."""
    raw = {
        "session_id": "s1", "cwd": str(root), "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
        "tool_input": {"command": command}, "tool_use_id": call, "error": f"Exit code 2\n{said}\nmake: *** Error 1",
        "duration_ms": 60_000,
    }  # fmt: skip
    entry.respond(["claude-code", "PostToolUseFailure"], json.dumps(raw).encode(), time.time_ns() // 1000)


def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person at a terminal."""
    monkeypatch.setattr(caller, "origin", lambda: "human")


def failure_id(run: Cli) -> str:
    """The id of the failed build."""
    return str(run.json("log", "--kind", "action.finished")[0]["id"])


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_has_help_root_and_exit_codes(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """`-h` and `--help` at every level say what it does, how to name the project, and what the exit code means."""
    for flag in ("-h", "--help"):
        assert cli.run([*path, flag]) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"Usage: projectmem {' '.join(path)}")
        assert "Exit code" in text
        assert ("--root" in text) == (path not in WITHOUT_ROOT)


def test_help_names_values_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """No types of the program in it, and no default that is a remark in brackets."""
    for path in PATHS:
        cli.run([*path, "-h"])
        text = capsys.readouterr().out
        assert not re.search(r"<\w", text) and "[default: (" not in text, path
    cli.run(["log", "-h"])
    assert "--limit N " in capsys.readouterr().out


def test_no_command_is_missing_from_this_test_or_from_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """A new command must be listed above; the top help lists each with one whole line about it."""
    app = cli.app
    names = {(c.name or c.callback.__name__,) for c in app.registered_commands if c.callback}
    for sub in app.registered_groups:
        assert sub.typer_instance is not None
        names |= {(str(sub.name),)}
        names |= {(str(sub.name), c.name or c.callback.__name__) for c in sub.typer_instance.registered_commands if c.callback}
    assert names == set(PATHS)
    cli.run(["--help"])
    text = capsys.readouterr().out
    assert "..." not in text.split("Commands:")[1], "a first line that is cut off in the list: shorten it"
    for path in PATHS:
        if len(path) == 1:
            assert f"\n  {path[0]} " in text
    for group in {path[0] for path in PATHS if len(path) > 1}:
        cli.run([group, "--help"])
        text = capsys.readouterr().out
        assert "..." not in text.split("Commands:")[1].split("Exit code")[0], group


@pytest.mark.parametrize("args", READING, ids=" ".join)
def test_reading_commands_print_json_and_text(run: Cli, args: tuple[str, ...]) -> None:
    """--json on every command that reads: one document; without it, text for people. Nothing drives a terminal."""
    assert run.json(*args) is not None
    text = run(*args)
    assert text.strip() or run.err.strip()
    assert "\x1b" not in text + run.err


def test_check_answers_with_its_exit_code(run: Cli) -> None:
    """10 and 11 with the reason, 0 for what is not on record; nothing is recorded by asking."""
    before = len(run.json("log", "--limit", "0"))
    spoken = cli.run(["check", "--command", "make  build"])
    text = run.capsys.readouterr().out
    assert spoken in (10, 11)
    assert text.startswith(("warn", "ask"))
    assert "make build" in text
    assert run.json("check", "--command", "make build", code=spoken)["verdict"] in ("warn", "ask")
    same = json.dumps({"command": "make build"})
    assert run.json("check", "--tool", "Bash", "--input", same, code=spoken)["record"]
    assert run("check", "--command", "make other").startswith("allow") and not run.err
    assert run("check", "--file", "price.py").startswith("allow")
    (run.root / "price.py").write_text("mended")
    assert run("check", "--command", "make build") == "allow\n"
    assert run.err.startswith("silent about `make build`, which failed ") and "price.py" in run.err and "explain 0" in run.err
    assert len(run.json("log", "--limit", "0")) == before
    call = {
        "tool_name": "Bash",
        "tool_input": {"command": "make build"},
        "tool_use_id": "t2",
        "tool_response": {"stdout": "built"},
    }
    raw = {"session_id": "s1", "cwd": str(run.root), "hook_event_name": "PostToolBatch", "tool_calls": [call]}
    entry.respond(["claude-code", "PostToolBatch"], json.dumps(raw).encode(), time.time_ns() // 1000)
    assert run("check", "--command", "make build") == "allow\n" and not run.err, "it works: there is nothing to be silent about"


def test_check_from_a_subfolder_is_another_action(run: Cli) -> None:
    """--cwd is where the call would start."""
    (run.root / "sub").mkdir()
    assert run("check", "--command", "make build", "--cwd", "sub").startswith("allow")
    assert cli.run(["check", "--command", "cd .. && make build", "--cwd", "sub"]) in (10, 11)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "exactly one of"), (("--command", "x", "--file", "y"), "exactly one of"), (("--input", "{}"), "name the tool"),
        (("--tool", "Bash", "--input", "{bad"), "not JSON"), (("--tool", "Bash", "--input", "[1]"), "JSON object"),
    ],
)  # fmt: skip
def test_check_says_what_it_needs(run: Cli, args: tuple[str, ...], said: str) -> None:
    """Bad input is an error with a way on."""
    run("check", *args, code=USAGE)
    assert said in run.err


def test_recording_says_where_it_landed(run: Cli) -> None:
    """Each kind; the event comes back with --json, the place without."""
    text = run("record", "note", "remember this", "--tag", "a", "--tag", "b")
    assert str(run.root / ".projectmem-gate") in text
    issue = run.json("record", "issue", "the build is red", "--path", "price.py")["data"]["issue"]
    assert run.json("record", "hypothesis", "a typo", "--issue", issue[:6])["data"]["issue"] == issue
    assert (
        run.json("record", "attempt", "added a bracket", "--outcome", "worked", "--verifier", "make")["data"]["outcome"]
        == "worked"
    )
    assert run.json("record", "fix", "the bracket", "--issue", issue)["data"]["verifier"] == "none"
    first = run.json("record", "decision", "use make", "because")["id"]
    assert run.json("record", "decision", "use ninja", "--supersedes", first)["data"]["supersedes"] == first
    assert run.json("record", "issue", "--close", issue[:8], "--resolution", "done")["kind"] == "issue.closed"
    assert all(e["actor"]["origin"] == "agent" for e in run.json("log", "--kind", "note", "--kind", "issue", "--kind", "fix"))


ABSENT = ("issues", "no event", "no recorded failure", "no policy file", "not a folder", "does not exist")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("record", "note", "  "), "empty"), (("record", "issue"), "empty"),
        (("record", "attempt", "x", "--outcome", "maybe"), "worked, failed"),
        (("record", "fix", "x", "--issue", "nope"), "issues"), (("explain", "zz"), "not an id"),
        (("explain", "0" * 12), "no event"),
        (("snooze", "0" * 12), "no recorded failure"), (("snooze", "0" * 12, "--for", "5mo"), "not a length of time"),
        (("log", "--kind", "nonsense"), "not a kind"), (("log", "--since", "soon"), "not a time"),
        (("feedback", "0" * 12, "--useful"), "no event"),
        (("policy", "validate", "nowhere.toml"), "no policy file"), (("--root", "/nonexistent", "failures"), "not a folder"),
        (("backtest", "nowhere.jsonl"), "does not exist"), (("backtest", ".", "--format", "csv"), "not a format"),
        (("init", "--harness", "emacs"), "unknown harness"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_message(run: Cli, args: tuple[str, ...], said: str) -> None:
    """What happened and what to do, on stderr, nothing on stdout; exit 2 for an argument that cannot be used at all, 3 for one
    that names what is not there."""
    run(*args, code=COULD_NOT if said in ABSENT else USAGE)
    assert run.out == ""
    assert said in run.err
    assert run.err.startswith("projectmem: ")


@pytest.mark.parametrize(
    "args", [("nonsense",), ("log", "--limit", "x"), ("explain",), ("record", "attempt", "x"), ("log", "--nope")]
)
def test_wrong_usage_is_exit_two(run: Cli, args: tuple[str, ...]) -> None:
    """The usage line and where help is."""
    run(*args, code=USAGE)
    assert "Usage:" in run.err
    assert "-h" in run.err


def test_without_a_log_every_command_says_init(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder that was never set up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(place, "find", lambda cwd: None)
    run = Cli(tmp_path, capsys)
    for args in (("failures",), ("log",), ("verify",), ("stats",), ("record", "note", "x"), ("check", "-c", "ls")):
        run(*args, code=COULD_NOT)
        assert "projectmem init" in run.err


@pytest.mark.parametrize(
    "args",
    [("pin", "ID"), ("review", "ID"), ("record", "label", "fragile", "--path", "x"), ("policy", "accept")],
    ids=lambda a: a[0],
)
def test_an_agent_is_refused_what_is_a_persons(run: Cli, args: tuple[str, ...]) -> None:
    """With a message that says so; nothing is written."""
    id = failure_id(run)
    before = len(run.json("log", "--limit", "0"))
    run(*(id if a == "ID" else a for a in args), code=COULD_NOT)
    assert "person" in run.err
    assert len(run.json("log", "--limit", "0")) == before


def test_a_person_pins_reviews_labels_and_accepts(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the gate goes by it."""
    id = failure_id(run)
    person(monkeypatch)
    assert "until" not in run("pin", id, "--review", "30d")
    assert run.json("failures")[0]["pinned"] is True
    run("review", id, "--next", "60d")
    run("record", "label", "protected", "--path", "price.py", "--effect", "ask", "--reason", "careful")
    assert "careful" in run("check", "--file", "price.py", "--old", "a", "--new", "b", code=11)
    label = run.json("log", "--kind", "label.set")[-1]["id"]
    run("record", "label", "--clear", label)
    run("check", "--file", "price.py", "--old", "a", "--new", "b")
    run("record", "label", "protected", "--command", "rm -rf /srv", "--effect", "ask")
    run("check", "--command", "rm -r -f /srv", code=11)
    for wrong in (
        ("record", "label", "holy", "--path", "x"),
        ("record", "label", "fragile"),
        ("record", "label", "fragile", "--tool", "x", "--path", "y"),
    ):
        run(*wrong, code=USAGE)
    run.capsys.readouterr()


def test_policy_show_says_where_the_file_is_and_whether_it_is_in_force(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    file = run.root / ".projectmem-gate" / "policy.toml"

    def shown() -> str:
        (line,) = [line for line in run("policy", "show").splitlines() if line.strip().startswith("file ")]
        assert str(file) in line
        return line

    assert "(not there" in shown()
    file.write_text('mode = "observe"\n')
    assert "differs from what is in force: `projectmem policy accept`" in shown()
    person(monkeypatch)
    run("policy", "accept")
    assert "(as in force)" in shown()
    file.write_text(file.read_text() + "[recall]\nmin_items = 'x'\n")
    assert "(cannot be used: " in shown()
    file.unlink()
    run("policy", "validate", "nope", code=3)
    assert "name one that exists" in run.err and "shipped defaults" not in run.err


def test_a_policy_is_shown_as_it_is_written(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys as in the file, lengths of time with their unit, classes in groups, rules with what they say."""
    rows = dict(line.strip().split("  ", 1) for line in run("policy", "show").splitlines()[1:])
    assert {key.strip(): value.strip() for key, value in rows.items()}.items() >= {
        "ask.by": "agent",
        "cost.turn": "15 s",
        "decisions.window": "30 days",
        "ttl.ask": "24 h; network, lock: 10 min; resource: 60 min; unknown cause: not at all",
        "cooldown": "network, lock: 10 min",
    }.items()
    file = run.root / "mine.toml"
    file.write_text('[[rule]]\nname = "pm"\ntarget = "command"\npattern = "npm"\neffect = "deny"\nreason = "use pnpm"\n')
    person(monkeypatch)
    run("policy", "accept", str(file))
    assert "rule pm                deny command `npm`: use pnpm" in run("policy", "show")


def test_a_policy_is_shown_checked_and_accepted(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error names file, line and key; what is accepted is in force."""
    file = run.root / "mine.toml"
    file.write_text('mode = "observe"\n\n[deny]\nafer = 3\n')
    run("policy", "validate", str(file), code=COULD_NOT)
    assert f"{file}:4" in run.err
    assert "did you mean `after`" in run.err
    file.write_text('mode = "observe"\n')
    assert "is valid" in run("policy", "validate", str(file))
    default = run.json("policy", "show")
    assert default["source"] == "shipped defaults"
    person(monkeypatch)
    run("policy", "accept", str(file))
    shown = run.json("policy", "show")
    assert shown["policy"]["mode"] == "observe"
    assert shown["hash"] != default["hash"]
    file.write_bytes(b"\xff\xfe")
    run("policy", "accept", str(file), code=COULD_NOT)
    assert "UTF-8" in run.err


def test_dispute_snooze_supersede_and_feedback(run: Cli) -> None:
    """An agent may say that a record is wrong; each says where it landed and what follows."""
    id = failure_id(run)
    assert "silent until" in run("snooze", id, "--for", "30m")
    assert run.json("failures")[0]["state"] == "snoozed"
    note = run.json("record", "note", "use ninja")["id"]
    assert run.json("supersede", id, "--by", note)["events"][0]["data"]["by_event"] == note
    assert run.json("failures") == []
    assert run.json("failures", "--all")[0]["state"] == "superseded"
    build(run.root, "t2")
    assert len(run.json("failures")) == 1
    run("dispute", id[:18], "--reason", "flaky disk")
    assert "not useful" in run("feedback", id, "--useless", "--note", "noise")
    assert run.json("failures") == []
    assert "flaky disk" in run("log", "--kind", "record")


def test_what_was_done_is_said_in_words(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second dispute, a snooze's reason once, counts with their nouns, a label as it reads."""
    id = failure_id(run)
    run("snooze", id)
    assert "(snoozed)" in run("failures")
    assert "state: snoozed, by " in run("explain", id)
    run("dispute", id)
    assert f"{id} was disputed already" in run("dispute", id)
    assert "(disputed by agent)" in run("failures", "--all")
    assert len(run.json("log", "--kind", "record.disputed")) == len(
        {e["data"]["key"] for e in run.json("log", "--kind", "record.disputed")}
    )
    assert "effect warn: " in run("rule", "add", "use pnpm here", "--yes")
    person(monkeypatch)
    run("record", "label", "protected", "--path", "infra/**", "--reason", "ask-ops")
    assert "- protected path infra/**: ask-ops (" in run("summary")
    run("pin", id)
    assert "was disputed already" not in run("dispute", id)
    counted = run("rebuild").splitlines()[1]
    assert " events, 1 call, 0 open failures; " in counted and counted.endswith(" MB")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("feedback", "ID"), USAGE, "--useful or --useless"),
        (("checkpoint", "--to", "gone/dir/x"), COULD_NOT, "the folder {root}/gone/dir does not exist"),
        (("calibrate", "nope"), USAGE, "nope does not exist"),
        (("prove", "--check", "nope"), COULD_NOT, "nope does not exist"),
        (("backtest", "."), COULD_NOT, "no transcripts in"),
    ],
)
def test_what_is_missing_is_named_without_a_number(run: Cli, args: tuple[str, ...], code: int, said: str) -> None:
    run(*(failure_id(run) if arg == "ID" else arg for arg in args), code=code)
    assert said.format(root=run.root) in run.err
    assert "Errno" not in run.err and ".tmp" not in run.err


def test_explain_shows_escapes_as_text(run: Cli) -> None:
    """The failing program printed an escape sequence: it is shown, not obeyed."""
    text = run("explain", failure_id(run))
    assert "\x1b" not in text
    assert "What the gate says now" in text


def test_an_event_with_escapes_cannot_forge_lines(run: Cli) -> None:
    """One event, one line, in log and failures."""
    build(run.root, "t9", command="make\u202e evil\x1b]0;title\x07 x", said="a\x9b2Jb")
    for args in (("log",), ("failures",), ("stats",), ("failures", "--all")):
        text = run(*args)
        assert not [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"]


def test_a_damaged_log_is_said_and_the_rest_is_served(run: Cli) -> None:
    """verify exits 1 with where and what to do; reading goes on and says that something is missing."""
    run("record", "note", "after")
    (segment,) = (run.root / ".projectmem-gate" / "log").rglob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b"make build", b"make bread", 1))
    run("verify", code=FAILED)
    assert "DAMAGED" in run.out
    assert "what to do" in run.out
    assert run.json("verify", code=FAILED)["problems"]
    text = run("log")
    assert "make bread" not in text
    assert "damage" in run.err


def test_repair_shows_first_and_then_does_it(run: Cli) -> None:
    """A dry run changes nothing and exits 1; --apply leaves a whole log and says what was done."""
    (segment,) = (run.root / ".projectmem-gate" / "log").rglob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b"\n", b"\r\n"))
    before = segment.read_bytes()
    assert "would:" in run("repair", code=FAILED) and segment.read_bytes() == before
    assert "done:" in run("repair", "--apply")
    run("verify")
    assert "nothing to repair" in run("repair")
    segment.write_bytes(segment.read_bytes().replace(b"make build", b"make bread", 1))
    assert "only a backup" in run("repair", "--apply", code=FAILED)
    assert run.json("repair", code=FAILED)["ok"] is False


def test_replay_exit_code_tells(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 while every decision is the same, 1 as soon as one is not."""
    assert run.json("replay", "--verify")["ok"] is True
    from projectmem import replay

    monkeypatch.setattr(replay.Report, "ok", property(lambda self: False))
    run("replay", "--verify", code=FAILED)


def test_a_bug_is_one_line_and_a_file(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a traceback on the screen; the details are kept, without secrets."""
    secret = "ghp_" + "Zz9Yy8Xx7Ww6" * 3

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"boom \x1b[2J {secret}")

    monkeypatch.setattr("projectmem.stats.stats", broken)
    run("stats", code=BUG)
    assert run.err.count("\n") == 1
    assert "this is a bug" in run.err
    assert "\x1b" not in run.err
    details = (run.root / ".projectmem-gate" / "errors.log").read_text()
    assert "RuntimeError: boom" in details
    assert secret not in details
    assert secret not in run.err


def test_interrupt_and_broken_pipe_are_quiet(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """130 and 141, no traceback."""

    def raising(exc: type[BaseException]) -> Any:
        def stats(*_: object, **__: object) -> None:
            raise exc

        return stats

    monkeypatch.setattr("projectmem.stats.stats", raising(KeyboardInterrupt))
    run("stats", code=130)
    monkeypatch.setattr(cli, "_silence_stdout", lambda: None)
    monkeypatch.setattr("projectmem.stats.stats", raising(BrokenPipeError))
    run("stats", code=141)
    assert run.err == ""


def test_root_works_before_and_after_the_command(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """From anywhere."""
    monkeypatch.chdir("/")
    assert run.json("--root", str(run.root), "failures") == run.json("failures", "--root", str(run.root))
    assert len(run.json("failures", "--root", str(run.root))) == 1

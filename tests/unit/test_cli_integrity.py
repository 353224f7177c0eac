"""`verify --checkpoint`, `checkpoint` and `prove`, in process, on a real log inside a git repository."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.store import init_home

from projectmem import place
from projectmem.cli import app as cli

USAGE, COULD_NOT = 2, 3


class Cli:
    """Runs commands in one repository, keeping what they print."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.out = self.err = ""
        found = place.locate(str(root))
        assert found is not None
        self.home = Path(found.home)

    def __call__(self, *args: str, code: int = 0) -> str:
        """Run one command, expect this exit code, return stdout."""
        found = cli.run(list(args))
        captured = self.capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        assert found == code, f"{args}: exit {found}, {self.out}{self.err}"
        return self.out

    def json(self, *args: str, code: int = 0) -> Any:
        """The same with --json, parsed."""
        return json.loads(self(*args, "--json", code=code))

    def cut(self) -> None:
        """Take the newest event away, as if it had never been."""
        (path,) = self.home.glob("log/*/*.jsonl")
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """A repository with one commit, and a log with three notes."""
    for name in place.HARNESS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for args in ("config user.email a@example.com", "config user.name A", "commit -q --allow-empty -m one"):
        subprocess.run(["git", "-C", str(root), *args.split()], check=True)
    init_home(str(root / ".git" / "projectmem"), 1)
    monkeypatch.chdir(root)
    made = Cli(root, capsys)
    for i in range(3):
        made("record", "note", f"note {i}")
    return made


def test_a_checkpoint_kept_in_a_file_shows_a_cut_tail(run: Cli, tmp_path: Path) -> None:
    """The log by itself verifies; held against the file it does not, and the file is never overwritten then."""
    kept = str(tmp_path / "kept")
    assert "sealed 3 events" in run("checkpoint", "--to", kept)
    run("record", "note", "later")
    assert "checkpoint consistent" in run("verify", "--checkpoint", kept)
    run("checkpoint", "--to", kept)
    before = Path(kept).read_bytes()
    run.cut()
    run.cut()
    run.cut()
    gate = Path.cwd() / ".git" / "projectmem" / "projections" / "gate.sqlite"
    gate.unlink(missing_ok=True)  # which would remember
    assert run.json("verify")["ok"]
    found = run.json("verify", "--checkpoint", kept, code=1)
    assert not found["ok"] and found["checkpoints"][0]["state"] == "cut" and "problems" in found
    assert "checkpoint CUT" in run("verify", "--checkpoint", kept, code=1)
    run("checkpoint", "--to", kept, code=COULD_NOT)
    assert "says otherwise" in run.err and Path(kept).read_bytes() == before
    for i in range(9):
        run("record", "note", f"forged {i}")
    assert "checkpoint FORKED" in run("verify", "--checkpoint", kept, code=1)


def test_a_signed_checkpoint_is_checked_with_its_public_key_alone(run: Cli, tmp_path: Path) -> None:
    """With the key that was printed; a changed note or another key is said."""
    kept, key = tmp_path / "kept", tmp_path / "secret"
    printed = run.json("checkpoint", "--to", str(kept), "--key", str(key))
    assert printed["key"].startswith("projectmem-gate/") and (key.stat().st_mode & 0o777) == 0o600
    seed = key.read_text().strip().split("+", 4)[-1]  # base64 may hold a plus itself
    assert len(seed) == 44 and seed not in run.out + run.err
    assert "signature: good" in run("verify", "--checkpoint", str(kept), "--key", printed["key"])
    assert "signature: not checked" in run("verify", "--checkpoint", str(kept))
    stranger = run.json("checkpoint", "--sign")["key"]
    assert "not known here" in run("verify", "--checkpoint", str(kept))
    assert "NOT by the key you gave" in run("verify", "--checkpoint", str(kept), "--key", stranger, code=1)
    signed = kept.read_text()
    key_at = signed.rindex(" ") + 1
    for changed in (signed[: signed.index("\n\n") + 2], signed[:key_at] + "AAAA" + signed[key_at + 4 :]):
        (tmp_path / "stripped").write_text(changed)
        found = run.json("verify", "--checkpoint", str(tmp_path / "stripped"), "--key", printed["key"], code=1)
        assert not found["ok"] and found["checkpoints"][0]["state"] == "consistent" and not found["checkpoints"][0]["ok"]
        assert "UNPROVEN" in run("verify", "--checkpoint", str(tmp_path / "stripped"), "--key", printed["key"], code=1)
    text = kept.read_text()
    (tmp_path / "changed").write_text(text.replace("\n3\n", "\n2\n", 1))
    assert "signature: BAD" in run("verify", "--checkpoint", str(tmp_path / "changed"), "--key", printed["key"], code=1)
    (tmp_path / "broken").write_text(text.replace("\n3\n", "\nmany\n", 1))
    run("verify", "--checkpoint", str(tmp_path / "broken"), code=COULD_NOT)
    assert "decimal number" in run.err
    run("verify", "--checkpoint", str(tmp_path / "none"), code=COULD_NOT)
    assert "no checkpoint in" in run.err


def test_checkpoints_in_git_notes(run: Cli) -> None:
    """Appended to the note on HEAD; each one that was ever kept is held against the log."""
    run("checkpoint", "--to", "git-note")
    run("record", "note", "later")
    run("checkpoint", "--to", "git-note")
    assert len(run.json("verify", "--checkpoint", "git-note")["checkpoints"]) == 2
    run.cut()
    run.cut()
    states = [c["state"] for c in run.json("verify", "--checkpoint", "git-note", code=1)["checkpoints"]]
    assert states == ["consistent", "cut"]
    run("checkpoint", "--to", "git-note", code=COULD_NOT)


def test_proofs_can_be_checked_without_the_log(run: Cli, tmp_path: Path) -> None:
    """Inclusion and consistency, as files; their roots are the checkpoints' roots."""
    old = run.json("checkpoint", "--to", str(tmp_path / "old"))
    run("record", "note", "later")
    new = run.json("checkpoint", "--to", str(tmp_path / "new"))
    event = run.json("log", "--kind", "note")[1]
    proof = run.json("prove", event["id"], "--size", "3")
    assert proof["root"] == old["checkpoints"][0]["root"] and proof["leaf"] == event["hash"]
    grown = run.json("prove", "--consistency", str(tmp_path / "old"), str(tmp_path / "new"))
    assert [grown[n]["root"] for n in ("old", "new")] == [c["checkpoints"][0]["root"] for c in (old, new)]
    assert run.json("prove", "--consistency", "3", "5")["path"] == grown["path"]
    for made in (proof, grown, [proof, grown]):
        (tmp_path / "proof").write_text(json.dumps(made))
        assert "holds" in run("prove", "--check", str(tmp_path / "proof"))
    (tmp_path / "proof").write_text(json.dumps({**proof, "index": 0}))
    assert "does NOT hold" in run("prove", "--check", str(tmp_path / "proof"), code=1)
    (tmp_path / "proof").write_text("[")
    run("prove", "--check", str(tmp_path / "proof"), code=USAGE)
    for args, code in ((("prove",), USAGE), (("prove", event["id"], "--check", "x"), USAGE),
                       (("prove", event["id"], "--size", "1"), COULD_NOT), (("prove", "--consistency", "5", "3"), COULD_NOT),
                       (("prove", "--consistency", "3", "99"), COULD_NOT)):  # fmt: skip
        run(*args, code=code)
    assert "record 2 of 6" in run("prove", event["id"])


def test_a_checkpoint_is_an_event_of_the_log(run: Cli) -> None:
    """With the sizes and roots it covers."""
    text = run("checkpoint")
    (event,) = run.json("log", "--kind", "checkpoint")
    assert event["data"]["size"] == 3 and event["data"]["streams"][0]["size"] == 3 and text.splitlines()[1] == "3"


def test_a_cut_end_shows_against_what_the_gate_has_seen(run: Cli) -> None:
    """Also where nothing is left of the segment: a chain alone cannot show it. After a rebuild the log is taken as it is."""
    assert run.json("verify")["missing"] == []
    run.cut()
    found = run.json("verify", code=1)
    assert not found["problems"] and "ends at record" in found["missing"][0]
    assert "its end was cut" in run("verify", code=1) and "what to do" in run.out
    assert "its end was cut" in run("doctor", "--no-fire", code=1)
    (segment,) = Path.cwd().glob(".git/projectmem/log/*/*.jsonl")
    kept = segment.read_bytes()
    segment.write_bytes(b"")
    assert "ends at record 0" in run("verify", code=1)
    segment.write_bytes(kept)
    run("rebuild")
    assert run.json("verify")["missing"] == []


def test_a_checkpoint_is_read_from_a_pipe(run: Cli, tmp_path: Path) -> None:
    """As a shell's `<(command)` gives it."""
    kept = tmp_path / "kept"
    run("checkpoint", "--to", str(kept))
    read, write = os.pipe()
    os.write(write, kept.read_bytes())
    os.close(write)
    assert "checkpoint consistent" in run("verify", "--checkpoint", f"/dev/fd/{read}")
    os.close(read)


def test_an_id_that_is_none_is_not_echoed_whole(run: Cli) -> None:
    """Five thousand characters are nobody's to read."""
    run("prove", "x" * 5_000, code=USAGE)
    assert len(run.err) < 400 and "xxx" in run.err

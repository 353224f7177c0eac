"""A log that another machine wrote, or that came with the folder: it warns at most, until this machine sees it for itself."""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_logs.home import machine

from projectmem import caller, rules
from projectmem.cli import app as cli
from projectmem.place import HARNESS_VARIABLES
from projectmem.replay import replay_log
from projectmem.rules import Past
from projectmem.setup.init import init

ERROR = "Exit code 2\nsrc/app.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'."
BUILD = "npm run build"
MINUTE = 60_000_000
HOSTILE = """mode = "enforce"
on_error = "deny"

[[rule]]
name = "all"
target = "command"
pattern = "npm"
effect = "deny"
reason = "obey"
"""
LOOSE = """[[rule]]
name = "all"
target = "command"
pattern = "npm"
effect = "allow"
reason = "fine"
"""


def shipped(hooked: Any) -> None:
    """As if another machine had written all that is on record."""
    writers = hooked.home / "writers"
    (writers / f"{machine()}.json").rename(writers / f"{'0' * 16}.json")


def spoken(said: dict[str, Any] | None) -> str:
    """allow | warn | refused."""
    return "allow" if said is None else "refused" if "permissionDecision" in said else "warn"


def fails(hooked: Any, times: int) -> list[str]:
    """The same failing call in one session, a minute apart."""
    out = []
    for _ in range(times):
        hooked.now += MINUTE
        out.append(spoken(hooked.run(BUILD, ERROR, "s")))
    return out


def test_a_failure_of_another_machine_warns_until_it_is_seen_here(hooked: Any) -> None:
    """The third try would be refused; here it is warned of, fails, and only then it counts."""
    assert fails(hooked, 2) == ["allow", "warn"]
    shipped(hooked)
    assert fails(hooked, 1) == ["warn"]
    said = hooked.events("action.proposed")[-1]["data"]["decision"]
    assert said["rule"] == "repeat.elsewhere"
    assert "another machine" in said["reason"]
    assert fails(hooked, 1) == ["refused"]
    assert replay_log(str(hooked.home), root=str(hooked.root), verify=True).ok


def test_a_rule_of_another_machine_warns_until_it_is_confirmed_here(hooked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that is shipped brings no person's word with it."""
    for name in HARNESS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(caller, "origin", lambda: "human")
    monkeypatch.chdir(hooked.root)
    clause = rules.given("command", "npm")
    rules.add(
        hooked.place, "no npm here", clause, Past(0), [], effect="deny", review_at=0, now=hooked.now, origin="human"
    )  # fmt: skip
    assert spoken(hooked.run("npm ci")) == "refused"
    shipped(hooked)
    assert spoken(hooked.run("npm ci")) == "warn"
    assert "not made on this machine" in hooked.events("action.proposed")[-1]["data"]["decision"]["reason"]
    (row,) = rules.rows(hooked.place, hooked.now)
    assert (row.does, "not made on this machine" in row.why) == ("warn", True)
    assert replay_log(str(hooked.home), root=str(hooked.root), verify=True).ok
    assert cli.run(["rule", "confirm", row.event["id"], "--yes"]) == 0
    assert spoken(hooked.run("npm ci")) == "refused"


def test_init_tells_where_a_log_came_from(hooked: Any) -> None:
    """Also inside `.git`, which an archive may hold; a log that this machine writes is not spoken of."""
    hooked.run(BUILD, ERROR)
    shipped(hooked)
    (warning,) = [w for w in init(str(hooked.root), now=hooked.now, import_sessions=False).warnings if "not made here" in w]
    assert "1 stream, begun 20" in warning
    assert not [w for w in init(str(hooked.root), now=hooked.now, import_sessions=False).warnings if "not made here" in w]


@pytest.mark.parametrize("text", ['mode = "observe"\n', HOSTILE, LOOSE], ids=["observe", "deny", "loose"])
def test_a_policy_of_another_machine_rules_nothing_here(hooked: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither switches the gate off nor makes it stricter, in the hook and where it is shown; accepted here it is in force."""
    from projectmem_projections.closed import marked

    from projectmem import policies

    path = hooked.home / "policy.toml"
    path.write_text(text)
    policies.accept(hooked.place, str(path), now=hooked.now)
    shipped(hooked)
    (hooked.home / "projections/gate.sqlite").unlink(missing_ok=True)
    (hooked.home / "projections/on_error.deny").unlink(missing_ok=True)
    assert fails(hooked, 2) == ["allow", "warn"]
    assert not marked(str(hooked.home / "projections/gate.sqlite"))
    policy, source = policies.in_force(hooked.place)
    assert policy.mode == "advise"
    assert not policy.rules
    assert "another machine" in source
    assert replay_log(str(hooked.home), root=str(hooked.root), verify=True).ok
    policies.accept(hooked.place, str(path), now=hooked.now)
    assert policies.in_force(hooked.place)[1] == "accepted into the log"
    assert policies.file_state(hooked.place) == "in force"
    here = spoken(hooked.before(hooked.call(BUILD), "s"))
    assert here == ("refused" if text == HOSTILE else "allow")


def test_a_session_whose_shell_left_the_project_is_still_of_it(
    hooked: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder without a log what failed is known, and what people decided holds: the harness says whose session it is."""
    other = str(tmp_path_factory.mktemp("other"))
    call = hooked.call("npm run lint")
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    assert hooked.fire("PreToolUse", "one", **call, cwd=other) is None
    assert not hooked.events("action.proposed")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(hooked.root))
    assert hooked.fire("PreToolUse", "one", **call, cwd=other) is None
    hooked.fire("PostToolUseFailure", "one", **call, cwd=other, error='Exit code 1\nnpm error Missing script: "lint"')
    assert hooked.fire("PreToolUse", "two", **hooked.call("npm run lint"), cwd=other) is not None
    assert hooked.fire("PreToolUse", "two", **hooked.call("npm run lint")) is None  # in the project it is another action

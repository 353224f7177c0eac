"""Policy as people write it: defaults, every error with file, line and key, and units that cannot be misread."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from projectmem_gate import rules
from projectmem_gate.identify import identify
from projectmem_gate.policy import DAY, DEFAULT, HOUR, MINUTE, SECOND, Policy, PolicyError, Rule
from projectmem_gate.policy_text import DEFAULT_TOML, parse, parse_duration


def test_the_shipped_text_is_the_shipped_policy() -> None:
    """What the hook uses without reading TOML is what the text says; its commented example is a valid rule."""
    assert parse(DEFAULT_TOML) == DEFAULT
    assert parse("") == DEFAULT
    example = "\n".join(line.removeprefix("# ") for line in DEFAULT_TOML.split("[[rule]]")[1].splitlines())
    assert [r.name for r in parse("[[rule]]" + example).rules] == ["generated"]


def test_the_example_on_the_page_is_a_policy() -> None:
    page = Path(__file__).resolve().parents[2] / "gate" / "README.md"
    example = page.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    found = parse(example)
    assert (found.mode, found.ask_by, found.ttl_warn["network"]) == ("enforce", "person", 30 * MINUTE)
    assert [(rule.name, rule.effect) for rule in found.rules] == [("generated", "deny")]


def test_values_are_taken() -> None:
    """Every setting reaches the policy; a changed default TTL leaves classes with their own shipped value alone."""
    text = """
mode = "enforce"
on_error = "deny"
ask = { by = "person", after = 4 }
[deny]
after = 9
[cost]
turn = "1m"
margin = 5000
[floor]
warn = 1
ask = 999
[ttl.warn]
default = "2h"
test = "3d"
[ttl.ask]
auth = "1w"
[cooldown]
lock = "30s"
[[rule]]
name = "pm"
target = "command"
pattern = "npm install"
effect = "deny"
reason = "use pnpm here"
review = "2027-06-01"
"""
    got = parse(text)
    assert (got.mode, got.on_error, got.ask_by, got.ask_after, got.deny_after) == ("enforce", "deny", "person", 4, 9)
    assert (got.turn_us, got.margin, got.floor_warn, got.floor_ask) == (MINUTE, 5000, 1, 999)
    assert (got.ttl_warn["build"], got.ttl_warn["test"], got.ttl_warn["network"]) == (2 * HOUR, 3 * DAY, 10 * MINUTE)
    assert (got.ttl_ask["auth"], got.cooldown["lock"], got.cooldown["network"]) == (7 * DAY, 30 * SECOND, 10 * MINUTE)
    assert got.rules == (Rule("pm", "command", "npm install", "deny", "use pnpm here", "2027-06-01"),)


@pytest.mark.parametrize("typed", ["rm -rf /srv", "rm -fr /srv", "git push -f", "npm i", "git clean -fd | rm -rf /srv"])
def test_a_command_written_by_hand_covers_itself(typed: str) -> None:
    """Whatever short options it is written with: actions are kept in one spelling."""
    (rule,) = parse(f'[[rule]]\nname = "r"\ntarget = "command"\npattern = "{typed}"\neffect = "deny"').rules
    action = identify("Bash", {"command": typed.rpartition(" | ")[2]}, root="/r", cwd="/r")
    assert rules.matches(rule.target, rule.pattern, action, action.parts[0])
    other = identify("Bash", {"command": "ls -la"}, root="/r", cwd="/r")
    assert not rules.matches(rule.target, rule.pattern, other, other.parts[0])


ERRORS = [
    ('mode = "advice"', "p.toml:1: mode: `advice` is not one of observe, advise, enforce; did you mean `advise`?"),
    ('\nmoed = "advise"', "p.toml:2: moed: unknown key; did you mean `mode`?"),
    ("[ask]\n\nafter = 0", "p.toml:3: ask.after: `0` is not a whole number from 1 to 100"),
    ("[ask]\nafter = true", "p.toml:2: ask.after: `True` is not a whole number from 1 to 100"),
    ("ask.after = 1.5", "p.toml:1: ask.after: `1.5` is not a whole number from 1 to 100"),
    ("x = 1", "p.toml:1: x: unknown key (known: ask, cooldown, cost, decisions, deny, floor, mode, on_error, rule, ttl)"),
    ('[ttl.warn]\ntest = "1d"\ntets = "1d"', "p.toml:3: ttl.warn.tets: unknown failure class; did you mean `test`?"),
    ('# c\n[cooldown]\nnetwork = "5mo"', "p.toml:3: cooldown.network: `5mo` is not a duration: write a whole number and one of"),
    ('[cooldown]\ntest = "1m"', "p.toml:2: cooldown.test: unknown failure class (known: network, lock)"),
    ("[cost]\nturn = 15", "p.toml:2: cost.turn: `15` is not a duration"),
    ("ask = 3", "p.toml:1: ask: must be a table"),
    ("[ttl]\nwarn = 3", "p.toml:2: ttl.warn: must be a table of durations"),
    ("[ttl]\nwran = 3", "p.toml:2: ttl.wran: unknown key; did you mean `warn`?"),
    ("mode = \n", "p.toml:1: not valid TOML"),
    ("[ask]\nafter = 2\nafter = 3", "p.toml:3: not valid TOML"),
    ("rule = 3", "p.toml:1: rule: must be written as [[rule]]"),
    ('[[rule]]\nname = "a"', "p.toml:1: rule.target: is missing"),
    ('[[rule]]\nname = "a"\ntarget = "path"\npattern = "**"\neffect = "deny"', "p.toml:4: rule.pattern: `**` matches everything"),
    (
        '[[rule]]\nname = "a"\ntarget = "path"\npattern = "x"\neffect = "deny"\n\n[[rule]]\nname = "b"\ntarget = "pth"',
        "p.toml:9: rule.target: `pth` is not one of path, command, tool; did you mean `path`?",
    ),
    (
        '[[rule]]\nname = "a"\ntarget = "path"\npattern = "x"\neffect = "deny"\n' * 2,
        "p.toml:7: rule.name: `a` is used twice",
    ),
    ('[[rule]]\nnmae = "a"', "p.toml:2: rule.nmae: unknown key; did you mean `name`?"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_errors_name_file_line_and_key(text: str, message: str) -> None:
    """One line a person can act on."""
    with pytest.raises(PolicyError) as caught:
        parse(text, "p.toml")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "micros"),
    [("0s", 0), ("90s", 90 * SECOND), ("10m", 10 * MINUTE), ("2h", 2 * HOUR), ("1d", DAY), ("1w", 7 * DAY)],
)
def test_durations(text: str, micros: int) -> None:
    """A whole number and one unit."""
    assert parse_duration(text) == micros


@pytest.mark.parametrize("text", ["5mo", "5", "", "m", "1.5h", "-1h", "1 h", "1h30m", "1H", 5, None, "99999w", "\u0661m", "5m\n"])
def test_durations_that_could_be_misread_are_refused(text: object) -> None:
    """`5m` is minutes; months, bare numbers and mixtures are errors."""
    with pytest.raises(ValueError, match=r"duration|ten years"):
        parse_duration(text)


def test_the_hash_is_of_what_it_says() -> None:
    """Comments and layout do not count; values do."""
    assert parse("# hello\n\nmode='advise'").hash == DEFAULT.hash
    assert parse("mode='enforce'").hash != DEFAULT.hash
    assert Policy.from_data(json.loads(json.dumps(DEFAULT.to_data()))).hash == DEFAULT.hash
    assert Policy.from_data({"mode": "enforce", "of_tomorrow": 1}).mode == "enforce"


ALLOWED = (
    "projectmem_gate", "re", "enum", "types", "functools", "collections", "operator", "keyword", "reprlib", "copyreg", "json",
    "zlib", "_", "heapq", "sre", "abc", "importlib", "warnings", "contextlib", "encodings", "codecs",
)  # fmt: skip


@pytest.mark.parametrize("module", ["decide", "outcome", "history", "policy", "reason"])
def test_the_hook_can_afford_the_judgement(module: str) -> None:
    """No TOML, logging, dataclasses, typing or hashing comes in with it, and no pattern is compiled while importing."""
    gate = str(Path(__file__).resolve().parents[2] / "gate")
    program = (
        f"import sys, re, json; sys.path[:0] = [{gate!r}]; before = set(sys.modules); old = re.compile; count = []\n"
        "re.compile = lambda *a: count.append(a) or old(*a)\n"
        f"import projectmem_gate.{module}\n"
        "print(json.dumps([sorted(set(sys.modules) - before), len(count)]))"
    )
    run = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, check=True, text=True)
    loaded, compiled = json.loads(run.stdout)
    assert [m for m in loaded if not m.startswith(ALLOWED)] == []
    assert not {"typing", "dataclasses", "tomllib", "hashlib", "logging", "subprocess", "pathlib", "datetime"}.intersection(
        loaded
    )
    assert "projectmem_gate.policy_text" not in loaded
    assert compiled == 0

"""Rules, labels and decisions: one matcher, what each may do, and what holds it back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_gate import rules
from projectmem_gate.clauses import as_typed, propose
from projectmem_gate.decide import decide
from projectmem_gate.hints import raw_words
from projectmem_gate.identify import identify
from projectmem_gate.model import Action, Decision, Session
from projectmem_gate.policy import DAY, Policy, Rule
from projectmem_gate.rule_words import may_cover

NOW = 1_800_000_000_000_000
CLAUSE: dict[str, Any] = {
    "id": "0190aaaa-0000-7000-8000-000000000001",
    "origin": "human",
    "label": "rule",
    "target": "command",
    "pattern": "npm | npx | yarn",
    "instead": "pnpm",
    "effect": "deny",
    "reason": "use pnpm here",
    "decision": "d1",
    "hits": 0,
    "review_at": 0,
}
GENERATED = CLAUSE | {"target": "path", "pattern": "src/gen/** | *.lock", "instead": "", "reason": "do not edit generated files"}


def sh(command: str) -> Action:
    """A shell call."""
    return identify("Bash", {"command": command}, root="/r", cwd="/r")


def say(action: Action, label: dict[str, Any], policy: Policy | None = None, now: int = NOW) -> Decision:
    """The gate's answer where one label stands and nothing failed."""
    return decide(action, [], {}, Session("s1"), policy or Policy(), now, labels=[label])


@pytest.mark.parametrize(
    "command",
    [
        "npm install", "npm i left-pad", "sudo npm ci", "FOO=1 npm run build", "cd web && npm test", "time yarn", "npx jest",
        "CI=1 sudo npx jest", "bash -c 'npm i'", "ls; yarn add x", "n\\pm i", '"npm" i', "timeout 9 npm ci", "npm i || true",
    ],
)  # fmt: skip
def test_a_decision_for_a_program_covers_every_spelling(command: str) -> None:
    """By program, subcommand and wrapper, in any part of a chain."""
    got = say(sh(command), CLAUSE)
    assert (got.verdict, got.rule, got.record) == ("deny", "human.deny", CLAUSE["id"])
    assert "use pnpm here" in got.reason
    assert "Use `pnpm` instead." in got.reason


@pytest.mark.parametrize(
    "command",
    [
        "pnpm install", "git commit -m 'npm install'", "grep npm package.json", "cat npm", "echo npm install",
        "ls node_modules/npm", "npmx i", "ssh host 'npm install'", "vi yarn.lock", "pnpm run npm",
    ],
)  # fmt: skip
def test_and_no_mention(command: str) -> None:
    """Texts that speak of it, other programs, other machines."""
    assert say(sh(command), CLAUSE).verdict == "allow"


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("npm install -g pnpm", "allow"),
        ("npm view left-pad versions", "allow"),
        ("npm -v", "allow"),
        ("npm login", "allow"),
        ("npm config get registry", "allow"),
        ("sudo npm publish", "allow"),
        ("cd web && yarn --version", "allow"),
        ("npm ci", "deny"),
        ("npm run config", "deny"),
        ("npm test -- --version", "deny"),
        ("npm exec view", "deny"),
        ("yarn", "deny"),
        ("yarn --frozen-lockfile", "deny"),
        ("yarn build", "deny"),
        ("npm init -y", "deny"),
    ],
)
def test_a_decision_for_a_manager_is_about_the_projects_work(command: str, verdict: str) -> None:
    """Not about what is looked up, published or installed for the machine, unless the pattern says so itself."""
    assert say(sh(command), CLAUSE).verdict == verdict
    assert say(sh("npm publish"), CLAUSE | {"pattern": "npm | npm publish"}).verdict == "deny"
    assert say(sh("npm publish"), CLAUSE | {"pattern": "npm", "instead": ""}).verdict == "deny"
    assert say(sh("npm login"), CLAUSE | {"label": "protected"}).verdict == "deny"


@pytest.mark.parametrize(
    ("said", "commands"),
    [
        ("git commit --no-verify", ("git commit -m x --no-verify", "git commit -nm x", "git -C sub commit -n -m 'a b'")),
        ("git commit -n", ("git commit --no-verify -am x",)),
        ("docker compose down -v", ("docker compose -p x down -v", "docker compose down --volumes --remove-orphans")),
        ("docker compose down -v", ("docker --context prod compose -f a.yml down -v", "docker-compose down -v")),
        ("rm -rf /data", ("rm -fr /data", "rm -r -f /data", "sudo rm -rf /data/", "rm --dir -rf /data /tmp/x")),
        ("rm -rf build", ("rm -rfv build", "rm -rf ./build")),
        ("rm -rf /", ("rm -rf /", "sudo rm -rf --no-preserve-root /")),
        ("git push --force", ("git push origin main -f", "CI=1 git push -uf origin main")),
        ("git push origin main", ("git push -u origin main", "git push --force origin main")),
        ("docker run --privileged", ("docker run -it --rm --privileged ubuntu bash",)),
        ("psql -c", ("psql -h x -c 'drop table y'", "psql --command 'select 1' db")),
        ("python -c", ("python3 -c 'print(1)'",)),
        ("git clean -fdx", ("git clean -xdf", "git clean -fd -x", "git clean -ffdx -e keep")),
        ("chmod -R 777", ("chmod 777 -R src", "chmod -vR 777 .")),
    ],
)
def test_a_decision_about_an_option_covers_it_among_others(said: str, commands: tuple[str, ...]) -> None:
    """A rule that holds for the very same words alone protects nothing. What is kept is canonical, and so is what is run."""
    clause, why = propose(f"never run `{said}`")
    assert clause, why
    label = CLAUSE | {"pattern": clause.pattern, "instead": ""}
    for command in (said, *commands):
        assert say(sh(command), label).verdict == "deny", command


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("git commit --no-verify", "git commit -m 'no --no-verify please'"),
        ("git commit --no-verify", 'git commit -m "it\'s --no-verify"'),
        ("git commit --no-verify", "git commit -m x"),
        ("git commit --no-verify", "git push --no-verify"),
        ("docker compose down -v", "docker compose down"),
        ("rm -rf /data", "rm -rf data"),
        ("rm -rf /data", "rm -rf /data2"),
        ("rm -rf /data", "ls -rf /data"),
        ("rm -rf /", "rm -rf ./build"),
        ("npm test --force", "npm test -- --force"),
        ("docker run --privileged", "docker run ubuntu --privileged"),
        ("python -c", "python a.py -c x"),
        ("git push origin main", "git push origin dev"),
        ("git push origin main", "git push -o main origin"),
        ("psql -c", "psql -f a.sql"),
        ("git clean -fdx", "git clean -fd"),
        ("git push --force", "git push --force-with-lease"),
    ],
)
def test_and_nothing_that_lacks_it(said: str, command: str) -> None:
    """Another option, another path, a text that mentions it, what is handed on to another program."""
    clause, why = propose(f"never run `{said}`")
    assert clause, why
    assert say(sh(command), CLAUSE | {"pattern": clause.pattern, "instead": ""}).verdict == "allow"


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("terraform apply", "terraform apply -auto-approve"),
        ("tofu destroy", "cd infra && tofu destroy"),
        ("gh pr merge", "gh pr merge 3 --squash"),
        ("aws s3 rm", "aws s3 rm s3://bucket/x --recursive"),
        ("curl", "curl -X POST https://example.invalid/x"),
    ],
)
def test_a_decision_covers_what_runs_here_and_acts_elsewhere(pattern: str, command: str) -> None:
    """A program that changes something on another machine is run on this one; at the other end of an `ssh` it is not."""
    clause = CLAUSE | {"pattern": pattern, "instead": ""}
    assert say(sh(command), clause).verdict == "deny"
    assert say(sh(f"ssh host '{command}'"), clause).verdict == "allow"
    assert say(sh(f"docker exec box sh -c '{command}'"), clause).verdict == "allow"
    assert say(sh(f"ssh host 'for x in a b; do {command}; done'"), clause).verdict == "allow"


def test_what_is_asked_for_instead_never_speaks() -> None:
    """`uv run pytest` is what was asked for, though its family is the same."""
    wrapped = CLAUSE | {"pattern": "pytest", "instead": "uv run pytest", "reason": "run the tests with uv"}
    assert say(sh("pytest -q"), wrapped).verdict == "deny"
    assert say(sh("python -m pytest -q"), wrapped).verdict == "deny"
    assert say(sh("uv run pytest -q"), wrapped).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/a/b/ src/gen/a.py",
        "echo x > src/gen/deep/b.py",
        "mv a poetry.lock",
        "rm src/gen/a",
        "cp a src/gen/",
        "mv src/gen/a x",
    ],
)
def test_a_decision_for_files_covers_what_writes_them(command: str) -> None:
    """Editors, redirections and moves; not reads."""
    assert say(sh(command), GENERATED).verdict == "deny"
    edit = identify("Edit", {"file_path": "/r/src/gen/a.py", "old_string": "a", "new_string": "b"}, root="/r", cwd="/r")
    assert say(edit, GENERATED).verdict == "deny"
    for reads in ("cat src/gen/a.py poetry.lock", "cp -r src/gen /tmp/q", "rsync -a src/gen/ /tmp/q/", "ln -s src/gen/a x"):
        assert say(sh(reads), GENERATED).verdict == "allow"


@pytest.mark.parametrize(
    ("changed", "policy", "verdict", "says"),
    [
        ({"origin": "agent"}, {}, "warn", "an agent noted"),
        ({"origin": "import"}, {}, "warn", "an agent noted"),
        ({"hits": -1}, {}, "warn", "not tried on past actions"),
        ({"hits": None}, {}, "warn", "not tried on past actions"),
        ({"hits": 3}, {}, "deny", "a person decided: use pnpm here\nUse `pnpm` instead.\n`"),
        ({"hits": 4}, {}, "warn", "4 past calls that went well"),
        ({"hits": 4}, {"contradicts": 4}, "deny", "a person decided: use pnpm here\nUse `pnpm` instead.\n`"),
        ({}, {"strongest": "ask"}, "ask", "the policy lets decisions ask at most"),
        ({"effect": "ask", "hits": 0}, {"strongest": "warn"}, "warn", "the policy lets decisions warn at most"),
        ({"effect": "warn", "hits": 9}, {}, "warn", "a person decided: use pnpm here\nUse `pnpm` instead.\n`"),
        ({"review_at": NOW + 1}, {}, "deny", "a person decided: use pnpm here\nUse `pnpm` instead.\n`"),
        ({"review_at": NOW}, {}, "warn", "due for review since 2027-01-15"),
        ({"label": "protected", "hits": -1, "review_at": NOW}, {}, "warn", "due for review"),
        ({"label": "protected", "hits": -1}, {"strongest": "warn"}, "deny", "until they clear it"),
    ],
)  # fmt: skip
def test_what_holds_a_decision_back(changed: dict[str, Any], policy: dict[str, Any], verdict: str, says: str) -> None:
    """Its origin, what it would have done in the past, the policy, its review date: said in the reason."""
    got = say(sh("npm ci"), CLAUSE | changed, Policy(**policy))
    assert got.verdict == verdict
    assert says in got.reason
    assert len(got.reason) <= 580


def test_a_rule_of_the_policy_past_its_review_date_only_warns() -> None:
    """The day itself is past it; a wrong date in stored data is none."""
    rule = Rule("pm", "command", "npm", "deny", "use pnpm", "2027-01-15")
    day = rules.day_us("2027-01-15")
    before, after = (say(sh("npm ci"), {}, Policy(rules=[rule]), at) for at in (day - 1, day))
    assert (before.verdict, after.verdict) == ("deny", "warn")
    assert "due for review since 2027-01-15" in after.reason
    odd = Rule("pm", "command", "npm", "deny", "", "someday")
    assert say(sh("npm ci"), {}, Policy(rules=[odd])).verdict == "deny"


@given(st.dates(min_value=date(1970, 1, 2)))
def test_dates_are_those_of_the_calendar(day: date) -> None:
    """Both ways, and at the last microsecond of the day."""
    us = rules.day_us(day.isoformat())
    assert us == int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000
    assert rules.date(us) == rules.date(us + DAY - 1) == day.isoformat()


def test_a_file_is_written_by_an_mcp_server_too() -> None:
    """By its full path in the project; elsewhere it is a call of that server."""
    for name, more in (("edit_file", {"edits": [{"oldText": "a", "newText": "b"}]}), ("write_file", {"content": "x"})):
        tool = f"mcp__filesystem__{name}"
        assert say(identify(tool, {"path": "/r/src/gen/a.py", **more}, root="/r", cwd="/r"), GENERATED).verdict == "deny"
        assert identify(tool, {"path": "/other/a.py", **more}, root="/r", cwd="/r").parts[0].kind == "mcp"


def test_a_rule_for_a_server_s_tool_covers_the_name_that_tells_no_server() -> None:
    """Gemini CLI calls it `mcp_github_create_issue`; a rule for another server does not."""
    call = identify("mcp_github_create_issue", {"title": "t"}, root="/r", cwd="/r")
    for pattern, verdict in (
        ("mcp__github__create_issue", "deny"),
        ("mcp__github__*", "deny"),
        ("mcp_github_*", "deny"),
        ("mcp__gitlab__*", "allow"),
    ):
        assert say(call, {}, Policy(rules=[Rule("gh", "tool", pattern, "deny", "no")])).verdict == verdict, pattern
        rule = {"target": "tool", "pattern": pattern, "effect": "deny"}
        assert may_cover([rule], call.tool, {"title": "t"}, frozenset(("title", "t")), frozenset()) == (verdict == "deny")


def test_a_rule_for_a_command_of_powershell_is_read_in_any_case() -> None:
    call = identify("powershell", {"command": "Remove-Item -Recurse dist"}, root="/r", cwd="/r")
    for pattern in ("Remove-Item", "remove-item"):
        assert say(call, {}, Policy(rules=[Rule("rm", "command", pattern, "deny", "no")])).verdict == "deny"


def test_programs_that_are_known_need_no_backticks() -> None:
    """What has a table or subcommands here; any other word may be one of the language."""
    for text, pattern in (("do not use curl or wget", "curl | wget"), ("never use cargo", "cargo"), ("avoid sudo", "sudo")):
        clause, why = propose(text)
        assert clause is not None, why
        assert (clause.target, clause.pattern) == ("command", pattern)
    clause, why = propose("never use globals")
    assert clause is None
    assert "backticks" in why


def test_our_own_module_passes_a_denial_of_python() -> None:
    denied = Policy(rules=[Rule("py", "command", "python", "deny", "no")])
    assert say(sh("python -m projectmem.cli doctor"), {}, denied).rule == "repair"
    assert say(sh("python -m projectmems"), {}, denied).verdict == "deny"


@pytest.mark.parametrize(
    ("target", "pattern", "command", "covered"),
    [
        ("command", "git checkout -- .", "git checkout .", True),
        ("command", "git checkout .", "sudo git checkout -- .", True),
        ("command", "git checkout -- src", "git checkout src", False),  # a branch, for all one knows
        ("command", "git checkout -- .", "git checkout .github", False),
        ("command", "rm ~/x", 'rm -rf "$HOME/x"', True),
        ("command", "rm $HOME/x", "rm -fr ~/x", True),
        ("command", "rm ~", "rm -rf ${HOME}", True),
        ("command", "rm ~/x", "rm -rf $HOMES/x", False),
        ("path", "~/x/**", "cat > $HOME/x/a <<EOF\ny\nEOF", True),
        ("path", "$HOME/x/**", "cat > $HOME/x/a <<EOF\ny\nEOF", True),
    ],
)
def test_two_spellings_of_the_same_place_are_one(target: str, pattern: str, command: str, covered: bool) -> None:
    """A shell knows the home folder by two names, git the whole work tree."""
    label = CLAUSE | {"target": target, "pattern": pattern, "instead": ""}
    assert (say(sh(command), label).verdict != "allow") == covered
    assert not covered or may_cover([label], "Bash", {"command": command}, raw_words({"command": command}), frozenset())


@pytest.mark.parametrize(
    ("pattern", "command", "covered"),
    [
        ("gen/**", "rm gen/*.py", True),
        ("gen/a.py", "rm gen/*", True),
        ("gen/a.py", "rm gen/*.ts", False),
        ("gen/a.py", "rm -rf gen", True),
        ("gen/a.py", "mv gen old", True),
        ("gen/a.py", "cp b.py gen", False),
        ("gen/*.py", "cp b.py gen/", True),
        ("*.lock", "rm *.lock", True),
        ("*.lock", "rm -rf build/*", False),
        ("**/*.lock", "rm -rf build/*", False),
        ("gen/**", "rm *.py", False),
        ("gen/**", 'for f in gen/*.py; do sed -i s/a/b/ "$f"; done', True),
        ("gen/**", 'for f in gen/*.py; do cat "$f" > out/x; done', False),
        ("gen/**", "for f in gen/a.py src/b.py; do echo x > $f; done", True),
        ("gen/**", "find gen -name '*.py' -delete", True),
        ("gen/**", "find . -name __pycache__ -exec rm -rf {} +", False),
        ("gen/**", "find gen -name '*.py' -exec grep x {} +", False),
        ("gen/**", "git ls-files gen | xargs rm", True),
        ("gen/**", "ls gen | xargs wc -l", False),
        ("gen/**", "grep -rl X gen | xargs sed -i s/X/Y/", True),
        ("gen/**", "grep -rl X . | xargs sed -i s/X/Y/", False),
        ("gen/**", "perl -0pi -e 's/1/2/' gen/a.py", True),
        ("gen/**", "dd if=a.py of=gen/a.py", True),
        ("gen/**", "jq . a.json | sponge gen/a.json", True),
        ("gen/**", "tar xf a.tar -C gen", True),
        ("gen/**", "tar czf a.tgz gen", False),
        ("gen/**", "black gen", True),
        ("gen/**", "black --check gen", False),
        ("infra/**", "terraform -chdir=infra fmt", True),
        ("gen/**", "cp gen/*.py /srv/x/", False),
    ],
)
def test_a_rule_for_files_covers_patterns_lists_and_folders(pattern: str, command: str, covered: bool) -> None:
    """What a command writes under no plain name is told by the pattern that it fits, where a folder is named."""
    label = GENERATED | {"pattern": pattern}
    assert (say(sh(command), label).verdict == "deny") is covered


@pytest.mark.parametrize(
    ("command", "covered"),
    [("Set-Content -Path gen\\a.py -Value x", True), ("Remove-Item gen\\*.py", True), ("ri -Recurse gen", True),
     ("Copy-Item b.py gen\\a.py", True), ("Copy-Item gen\\a.py b.py", False), ("Get-Content gen\\a.py", False)],
)  # fmt: skip
def test_a_rule_for_files_covers_powershell(command: str, covered: bool) -> None:
    """Its own commands by what they write, under their aliases too."""
    action = identify("PowerShell", {"command": command}, root="/r", cwd="/r")
    assert (say(action, GENERATED | {"pattern": "gen/**"}).verdict == "deny") is covered


@pytest.mark.parametrize(
    ("said", "command", "covered"),
    [
        ("rm -rf build/*", "rm -rf build/*", True),
        ("rm -rf build/*", "rm -r --force ./build/x", True),
        ("rm -rf build/*", "rm -rf src/x", False),
        ("npm i *", "npm install left-pad", True),
        ("rails db:reset", "RAILS_ENV=test bin/rails db:reset", True),
        ("eslint", "node_modules/.bin/eslint src", True),
        ("rails", "other/rails x", False),
        ("bin/rails", "rails x", False),
    ],
)
def test_a_command_as_a_person_types_it(said: str, command: str, covered: bool) -> None:
    """With a `*` in it too, and where the program lies in a folder of programs."""
    label = CLAUSE | {"pattern": as_typed(said), "instead": ""}
    assert (say(sh(command), label).verdict == "deny") is covered

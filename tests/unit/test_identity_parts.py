"""Parts, joins, families, paths, variants and what cannot be parsed."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from projectmem_gate import bash_tree
from projectmem_gate.hints import raw_words
from projectmem_gate.identify import MAX_INPUT, identify
from projectmem_gate.model import Action
from projectmem_logs.redact import Redactor

ROOT = "/srv/acme"
GATE = Path(__file__).resolve().parents[2] / "gate"


def sh(command: str, cwd: str = ROOT, **more: object) -> Action:
    return identify("Bash", {"command": command}, root=ROOT, cwd=cwd, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "families", "joins"),
    [
        ("npm ci && npm run lint", ["npm ci", "npm run lint"], ["&&"]),
        ("a; b & c || d && e | f", ["a", "b", "c", "d", "e", "f"], [";", "&", "||", "&&", "|"]),
        ("cd web && npm test; echo done", ["cd", "npm test", "echo"], ["&&", ";"]),
        ("make a\nmake b", ["make a", "make b"], [";"]),
        ("npm test 2>&1 | tail -5 && git push", ["npm test", "git push"], ["&&"]),
        ("curl http://x | jq .a | head", ["curl", "jq"], ["|"]),
        ("if make a; then make b; else make c; fi", ["make a", "make b", "make c"], [";", ";"]),
        ("for x in a b; do make $x || break; done", ["make", "break"], ["||"]),
        ("find . -name x -exec rm {} \\;", ["rm", "find"], [";"]),
        ("ls | xargs rm", ["ls", "rm"], ["|"]),
        ("python -m pytest tests", ["pytest"], []),
        ("uv run pytest", ["pytest"], []),
        ("sudo npm install -g x", ["npm install"], []),
        ("python reproduce.py", ["python reproduce.py"], []),
        ("python manage.py migrate", ["python manage.py migrate"], []),
        ("docker compose up -d", ["docker compose up"], []),
        ("gh pr create --title x", ["gh pr create"], []),
        ("cat > a.py <<'EOF' && python a.py\nx\nEOF", ["edit a.py", "python a.py"], ["&&"]),
        ("git commit -m \"$(cat <<'EOF'\nx\nEOF\n)\" && git push", ["git commit", "git push"], ["&&"]),
        ("ssh h 'cd /x && make all'", ["cd", "make all"], ["&&"]),
        ("diff <(sort a) <(sort b)", ["diff"], []),
    ],
)
def test_segments(command: str, families: list[str], joins: list[str]) -> None:
    """Every command in command position is a part, in order, with the operators between them."""
    action = sh(command)
    assert [p.family for p in action.parts] == families
    assert list(action.joins) == joins
    assert action.parsed


@pytest.mark.parametrize("command", ["cd x", "echo hi", "export A=1", "sleep 5", "[ -f x ]", "pwd; true", ":", "X=1"])
def test_trivial_alone(command: str) -> None:
    """A call of nothing but trivial commands still has an identity."""
    action = sh(command)
    assert all(p.trivial or p.family for p in action.parts)
    assert len(action.key) == 32


def test_whole_call_is_its_only_serious_part() -> None:
    """Trivial neighbours do not make another action."""
    plain = sh("make docs")
    around = sh('cd . && echo start; make docs; echo "EXIT $?"')
    assert around.key == plain.key
    assert plain.key == plain.parts[0].key
    assert [p.trivial for p in around.parts] == [True, True, False, True]
    assert around.keys == (plain.key,)


def test_paths_are_named_from_the_root() -> None:
    """Whatever the directory and the spelling; outside the root they are absolute; refs and URLs are none."""
    assert sh("pytest ../tests/test_a.py::t", cwd=ROOT + "/web").parts[0].paths == ("tests/test_a.py",)
    assert sh("cat /etc/hosts ./a.py").parts[0].paths == ("/etc/hosts", "a.py")
    assert sh("git diff origin/main -- src/a.py").parts[0].paths == ("src/a.py",)
    assert sh("git push origin feat/x").parts[0].paths == ()
    assert sh("curl https://example.com/a.json").parts[0].paths == ()
    assert sh("sed -i 's/a/b/' src/a.py").parts[0].paths == ("src/a.py",)


def test_action_records_where_it_starts() -> None:
    """cwd is the call's, not the command's."""
    assert sh("cd web && make").cwd == "."
    assert sh("make", cwd=ROOT + "/web").cwd == "web"
    assert sh("make", cwd="/tmp/x").cwd == "/tmp/x"
    assert identify("exec_command", {"cmd": "make", "workdir": ROOT + "/api"}, root=ROOT, cwd=ROOT).cwd == "api"


def test_variant_keeps_what_the_key_leaves_out() -> None:
    """Another filter or another verbosity is the same action, and is told apart where it matters."""
    a, b, c = sh("pytest -q x.py | tail -5"), sh("pytest x.py 2>&1 | head"), sh("pytest x.py")
    assert a.key == b.key == c.key
    assert [x.parts[0].variant for x in (a, b, c)] == ["-q | tail -5", "| head", ""]
    old = {"file_path": "a.py", "old_string": "x\ny", "new_string": "x\nz"}
    one = identify("Edit", old, root=ROOT, cwd=ROOT)
    two = identify("Edit", {**old, "old_string": "y", "new_string": "z"}, root=ROOT, cwd=ROOT)
    assert one.key == two.key
    assert one.parts[0].variant != two.parts[0].variant


def test_kin_is_the_other_launcher() -> None:
    """`pytest x` and `python -m pytest x` name each other, and either's hint words occur in both; nothing else has kin."""
    one, two = sh("pytest -q tests/test_a.py"), sh("python3 -m pytest tests/test_a.py")
    assert one.key != two.key
    assert one.parts[0].kin == two.key
    assert two.parts[0].kin == one.key
    assert "python" not in two.parts[0].words
    for command in ("npm test", "python a.py", "tsc", "npx tsc", "python -m", "uname -m", "frob -m x"):
        assert sh(command).parts[0].kin == ""
        assert sh(command).parsed


@pytest.mark.parametrize("command", ["echo )(", "if true; then", "foo 'unclosed", "a && && b", "cat <<EOF\nno end"])
def test_unparsed_commands_are_matched_verbatim(command: str) -> None:
    """Equal to themselves only, and said to be unparsed."""
    action = sh(command)
    assert action.key == sh(command).key
    assert action.key != sh(command + " x").key
    if not action.parsed:
        assert len(action.parts) == 1
        assert set(action.parts[0].words) <= raw_words({"command": command})


def test_unparsed_command_shows_what_it_writes() -> None:
    """From the partial tree."""
    action = sh("rm src/a.py && foo 'unclosed")
    assert not action.parsed
    assert ("edit", "src/a.py") in action.parts[0].effects


def test_long_commands_are_matched_by_hash() -> None:
    """Beyond the limit nothing is parsed."""
    long = "echo " + "x" * MAX_INPUT
    action = sh(long)
    assert not action.parsed
    assert action.key == sh(long).key != sh(long + "y").key


def test_trimmed_input_is_identified_by_its_hash() -> None:
    """A transcript cut the text: the hash of the whole stands for it, effects come from what is left."""
    cut = "cat > a.py <<'EOF'\nimport os\n...[+5776]"
    one, two = sh(cut, input_sha="1" * 16), sh(cut, input_sha="2" * 16)
    assert one.key != two.key
    assert one.key == sh(cut, input_sha="1" * 16).key
    assert ("edit", "a.py") in one.parts[0].effects
    edit = {"file_path": "a.py", "old_string": "x...[+9]", "new_string": "y"}
    keys = {identify("Edit", edit, root=ROOT, cwd=ROOT, input_sha=s).key for s in ("1" * 16, "2" * 16)}
    assert len(keys) == 2
    whole = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    assert identify("Edit", whole, root=ROOT, cwd=ROOT, input_sha="1").key == identify("Edit", whole, root=ROOT, cwd=ROOT).key


def test_redaction_marks_are_words() -> None:
    """`<secret:...>` is no redirection."""
    action = sh("curl -H 'A: <secret:0a1b2c3d4e5f>' http://x && export T=<secret:0a1b2c3d4e5f>; deploy")
    assert action.parsed
    assert [p.family for p in action.parts] == ["curl", "export", "deploy"]
    assert action.parts[2].key != sh("deploy").parts[0].key


def test_a_mark_in_a_label_is_not_marked_again() -> None:
    """It reads as in the log, wherever it is shown."""
    raw = "TOKEN=hunter2Xq9zz mysql --password=hunter2Xq9zz x && npm publish --otp secret_abc"
    marked = Redactor(b"k" * 32).text(raw)
    mark = marked[marked.index("<secret:") : marked.index(">") + 1]
    action = sh(marked)
    assert action.text.count(mark) == 2
    assert "secret_abc" in action.text
    assert Redactor(b"another" * 5).text(action.text) == action.text


@pytest.mark.parametrize(
    ("root", "spellings"),
    [
        (
            "C:\\srv\\acme",
            ["src/App.py", "src\\App.py", "C:\\srv\\acme\\src\\app.py", "/c/srv/acme/src/app.py", "c:/SRV/acme/src/app.py"],
        ),
        ("/srv/acme", ["src/app.py", "./src/app.py", "/srv/acme/src/app.py", "/srv/acme/web/../src/app.py"]),
        ("/private/tmp/acme", ["src/app.py", "/tmp/acme/src/app.py", "/private/tmp/acme/src/app.py"]),
    ],
)
def test_spellings_of_one_path(root: str, spellings: list[str]) -> None:
    """Drives, backslashes, MSYS, firm links."""
    keys = {identify("Edit", {"file_path": p, "old_string": "a", "new_string": "b"}, root=root, cwd=root).key for p in spellings}
    assert len(keys) == 1


def test_case_and_unicode_form_fold_only_where_the_file_system_does() -> None:
    """As a policy of the caller."""
    nfc, nfd = "caf\u00e9.py", "cafe\u0301.py"

    def key(path: str, **policy: bool) -> str:
        return identify("Read", {"file_path": path}, root=ROOT, cwd=ROOT, **policy).key  # type: ignore[arg-type]

    assert key("A.py") != key("a.py")
    assert key("A.py", fold_case=True) == key("a.py", fold_case=True)
    assert key(nfc) != key(nfd)
    assert key(nfc, fold_unicode=True) == key(nfd, fold_unicode=True)


def test_symlinks_and_worktrees() -> None:
    """What needs the disk comes in as a function; other worktrees are the same project."""

    def resolve(path: str) -> str:
        return path.replace("/home/me/link", ROOT)

    edit = {"file_path": "/home/me/link/a.py", "old_string": "a", "new_string": "b"}
    plain = {**edit, "file_path": ROOT + "/a.py"}
    assert identify("Edit", edit, root=ROOT, cwd=ROOT, resolve=resolve).key == identify("Edit", plain, root=ROOT, cwd=ROOT).key
    there = identify("Bash", {"command": "cd /wt/feature && make docs"}, root=ROOT, cwd=ROOT, worktrees=["/wt/feature"])
    assert there.key == sh("make docs").key

    def broken(path: str) -> str:
        raise OSError(path)

    assert identify("Edit", plain, root=ROOT, cwd=ROOT, resolve=broken).parts[0].paths == ("a.py",)


def test_code_mode_calls_are_seen() -> None:
    """String literals in the script are the actions; a script without literals is another tool."""
    one = {"input": 'const r = await tools.exec_command({cmd: "make docs", workdir: "/srv/acme/web"}); text(r.output)'}
    assert identify("exec", one, root=ROOT, cwd=ROOT).key == sh("cd web && make docs").key
    two = {"input": 'await Promise.all([tools.exec_command({cmd:\'make a\'}), tools.exec_command({"cmd":"rm x.py"})])'}
    action = identify("exec", two, root=ROOT, cwd=ROOT)
    assert [p.family for p in action.parts] == ["make a", "rm"]
    assert ("edit", "x.py") in action.parts[1].effects
    assert identify("exec", {"input": "text(ALL_TOOLS.length)"}, root=ROOT, cwd=ROOT).kind == "other"


def test_escalation_is_part_of_every_key() -> None:
    """Outside the sandbox it is another action, in all its parts."""
    plain = identify("shell", {"command": ["bash", "-lc", "make a && make b"]}, root=ROOT, cwd=ROOT)
    away = identify(
        "shell", {"command": ["bash", "-lc", "make a && make b"], "with_escalated_permissions": True}, root=ROOT, cwd=ROOT
    )
    assert away.escalated
    assert not plain.escalated
    assert not set(plain.keys) & set(away.keys)


def test_no_parser_means_verbatim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tree-sitter the gate still matches exact repeats."""
    monkeypatch.setattr("projectmem_gate.shell.parse", lambda source: None)
    action = sh("npm run build && npm test")
    assert not action.parsed
    assert action.key == sh("npm run build && npm test").key


def test_a_second_thread_waits_for_the_parser_and_matches_nothing_verbatim(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resident hook's first calls come at once: each is parsed, whoever loads the parser."""
    begun, let, real = threading.Event(), threading.Event(), bash_tree._load
    loads = []

    def load() -> object:
        loads.append(1)
        begun.set()
        assert let.wait(60)
        return real()

    monkeypatch.setattr(bash_tree, "_tried", False)
    monkeypatch.setattr(bash_tree, "_parser", None)
    monkeypatch.setattr(bash_tree, "_load", load)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(bash_tree.parse, b"a && b")
        assert begun.wait(60)
        second = pool.submit(bash_tree.parse, b"c | d")
        with pytest.raises(TimeoutError):  # it waits; what it must not do is to answer before there is a parser
            second.result(0.05)
        let.set()
        assert [one.result().type for one in (first, second)] == ["program", "program"]
    assert loads == [1]


def test_loading_the_parser_leaves_no_stand_ins_behind() -> None:
    """`re` and `enum` are themselves again, and the parser's own package still imports."""
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from projectmem_gate.bash_tree import parse\n"
        "assert parse(b'a && b').type == 'program'\n"
        "import re, enum, tree_sitter\n"
        "assert re.compile('a').match('a') and enum.IntEnum('X', 'A').A == 1 and tree_sitter.Parser\n"
    )
    paths = [p for p in sys.path if p.endswith(("gate", "site-packages"))]
    subprocess.run([sys.executable, "-I", "-S", "-c", code, str(GATE), *paths], check=True)


def test_nothing_falls_back_to_verbatim_by_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """identify never raises, so an error inside would hide: odd but legal commands must not take that way out."""

    def fail(*args: object) -> Action:
        raise AssertionError("internal error hidden")

    monkeypatch.setattr("projectmem_gate.identify._verbatim", fail)
    for command in (
        "python -m", "uname -m", "git -C", "npm --prefix", "make -C", "docker compose", "xargs", "ssh h", "sudo",
        "env", "time", "cd", "find -exec", "bash -c", "eval", "tee", "cat", "> f", "< f", "timeout", "nice -n", "npx",
        "uv run", "kubectl exec p --", "-", "''", "a=1", "export", "popd", "cd -", "for x in; do :; done",
        "f() { :; }; f", "[ ]", "git checkout --", "git -c", "sed -i", "pip -m", "curl -o", "su -c", "flock",
        "env -u", "docker run", "gh api", "python -", "node -e", "! ", "while :; do break; done", "(( 1 ))",
    ):  # fmt: skip
        for text in (command, f"cd x && {command} | tail", f"sudo {command} > out"):
            assert sh(text).key


@pytest.mark.parametrize("path", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/stderr"])
def test_what_a_process_calls_its_own_is_no_other_file(path: str) -> None:
    """`go run /dev/stdin` is the same command whatever the standard input of the hook or the import is."""

    def key(pipe: int) -> str:
        def resolve(asked: str) -> str:
            return asked.replace(path, f"/proc/9/fd/pipe:[{pipe}]")

        return sh(f"go run {path}", resolve=resolve).key

    assert key(1) == key(2)

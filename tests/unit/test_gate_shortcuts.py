"""What the gate does not look at twice, or not at all, gives what the long way gives."""

from __future__ import annotations

import random

import pytest
from projectmem_gate import blame, commands, known, launchers, lines, outcome, payloads, signature, telling, wrappers
from projectmem_gate.identify import identify
from projectmem_gate.known import KnownRoots
from projectmem_gate.lines import rx, tail_lines
from projectmem_gate.model import Part, Value
from projectmem_gate.paths import Roots
from projectmem_gate.words import ACTIVE_END, GLOB, is_static

SEEN = "abc é\u00a0\u2028\ud800\n\t\x00\x01\x02\x05\x07\x08\x1b*"
LINES = [
    "FAILED b.py::test_x - assert",
    "ok",
    "make: *** [all] Error 2",
    "x.go:1:2: no",
    "error TS1: x",
    "FAIL",
    "panic: x",
    "1 failed in 2s",
]


def test_a_word_without_marks_is_known_by_one_look() -> None:
    """Printable characters are no marks; of others each is looked at."""
    chance = random.Random(5)
    for _ in range(5_000):
        word = "".join(chance.choices(SEEN, k=chance.randrange(6)))
        assert is_static(word) is not any(c < ACTIVE_END for c in word)
        assert commands._marked(word) is any(c < ACTIVE_END and c != GLOB for c in word)


def test_the_rules_of_groups_are_chosen_once() -> None:
    """In any order, of any groups, also after more of them than are kept."""
    chance = random.Random(6)
    groups = sorted({group for group, _, _ in telling.RULES})
    for n in range(1_500):
        wanted = chance.sample(groups, chance.randrange(4)) + ["none"] * (n % 2)
        text = "\n".join(chance.choices(LINES, k=3))
        rules = [(needles, pattern) for group, needles, pattern in telling.RULES if group in wanted]
        assert telling.tells(wanted, text) is any(any(n in text for n in needles) and rx(p).search(text) for needles, p in rules)
    assert len(telling._CHOSEN) <= 1_001


def test_the_lines_of_an_output_that_is_asked_about_again_are_the_callers_own() -> None:
    """Who changes the list that he was given changes nobody else's."""
    first = signature.telling_lines("a\nmake: *** [all] Error 2\n")
    assert first == ["make: *** [all] Error 2"]
    first.clear()
    assert signature.telling_lines("a\nmake: *** [all] Error 2\n") == ["make: *** [all] Error 2"]
    assert signature.telling_lines("panic: b\n") == ["panic: b"] and signature.telling_lines("") == []


def test_what_a_shell_could_not_run_is_found_among_any_lines() -> None:
    """Lines that are no complaint change nothing, wherever they stand."""
    said = {
        "sh: 1: foo: not found": "foo",
        "bash: line 3: foo: command not found": "foo",
        "zsh:1: command not found: foo": "foo",
        "zsh: no such file or directory: ./foo": "./foo",
        "foo: command not found": "foo",
        "(eval):1: foo: not found": "",
        "foo not found": "",
        "ls: foo: No such file": "",
    }
    chance = random.Random(7)
    for line, named in said.items():
        assert blame.shell_error(line) == named
        for _ in range(50):
            around = chance.choices(["", "ok", "a: b", "$ foo", "\t", "it was not to be found", "line 3:", "sh:"], k=6)
            at = chance.randrange(7)
            assert blame.shell_error("\n".join([*around[:at], line, *around[at:]])) == named


def test_a_line_that_tells_is_seen_among_others() -> None:
    """What is looked for in all lines at once is in none of them where it is not there."""
    chance = random.Random(8)
    more = ["npm ERR! 404 ", "npm ERR! 404 x", "● Console", "● a", "\u00d7 b", "E: c", '"error": "x"', "* code: 2", "[E]", " "]
    for _ in range(2_000):
        of = chance.choices(LINES + more, k=chance.randrange(1, 5))
        for _, pattern in signature._TELLING:
            if any(rx(pattern).search(line) for line in of):
                assert rx(pattern).search("\n".join(of))


def test_the_last_line_and_the_rest_of_a_traceback() -> None:
    """Blank lines, blanks at the end of lines and every other character that ends none."""
    chance = random.Random(9)
    some = ["", " ", "\t", "    x()", '  File "a.py"', "a.B: c", "KeyError", "KeyError ", "ValueError: x", "\x0b", "a\x85b", "é"]
    for _ in range(5_000):
        text = "\n".join(chance.choices(some, k=chance.randrange(5)))
        kept = [line for line in text.split("\n") if line.strip()]
        assert lines.last_line(text) == (kept[-1] if kept else "")
        whole = len(kept) > 1 and telling.is_exception(kept[-1]) and all(k.startswith(("    ", '  File "')) for k in kept[:-1])
        assert telling._is_rest_of_traceback(text) is whole


def test_words_of_failure_are_found_in_all_of_a_text() -> None:
    """Across lines too, as the lines are one text then; and in the last ones alone."""
    chance = random.Random(10)
    some = ["", "not", "found", "No", "such", "no such", "Errors", "ok", "DENIED", "  ", "***", "İ", "fai", "led", "Fail"]
    words = ("error", "fail", "fatal", "not found", "no such", "cannot", "denied", "traceback", "***", "panic")
    for _ in range(5_000):
        text = "\n".join(chance.choices(some, k=chance.randrange(6)))
        for count in (3, len(text)):
            shown = " ".join(tail_lines(text, count)).lower()
            assert outcome._looks_failed(text, count) is any(word in shown for word in words)


def test_programs_that_carry_no_other_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their name, whatever stands behind it, and so are those that start no other."""
    names = ["git", "make", "uv", "tool", "run", "bun", "x", "nix", "mise", "sudo", "pnpx", "npx", "BASH.exe", "/bin/sh", "zsh",
             "pwsh", "su", "fish", "xargs", "gxargs", "find", "fd", "docker", "kubectl", "ssh", "nix-shell", "eval", "a/uv",
             "timeout", *launchers.KEPT, *launchers.TWO_WORDS]  # fmt: skip
    rest = ["-c", "run", "exec", "x", "-exec", "ls", ";", "sh", "--", "-D", "a", "develop", "tool", "-command", "dlx"]
    chance = random.Random(11)
    for _ in range(5_000):
        argv = [chance.choice(names), *chance.choices(rest, k=chance.randrange(6))]
        short = wrappers.kept(list(argv))
        with monkeypatch.context() as patch:
            patch.setattr(wrappers, "STARTERS", names)
            assert wrappers.kept(list(argv)) == short
        if not wrappers.may_carry(argv[0]):
            assert argv[0] != "eval" and wrappers.shell_payload(argv) is None and wrappers.ssh(argv) is None
            assert wrappers.container(argv) is None and wrappers.xargs(argv) is None and wrappers.find_commands(argv) == []


def test_what_moves_a_shell_is_followed_by_all_its_names() -> None:
    """In PowerShell's spellings too; any other program moves nothing."""
    for command in (
        "cd a",
        "pushd a",
        "chdir a",
        "Set-Location a",
        "push-LOCATION a",
        "pushd b; popd; cd a",
        "cd a; Pop-Location",
    ):
        parts = identify("Bash", {"command": f"{command}; make"}, root="/r", cwd="/r").parts
        assert parts[-1].text == "make  # in a", command
    assert identify("Bash", {"command": "git a; make"}, root="/r", cwd="/r").parts[-1].text == "make"
    assert {"source", ".", "nvm"} <= payloads._MOVING


def test_the_words_of_a_part_are_kept_for_the_next_who_asks() -> None:
    """Also after more of them than are kept."""
    for n in range(600):
        part = Part("k", "sh", "f", f"A=1 sudo -u x timeout {n} make -j{n % 7}")
        assert lines.command_words(part) == lines._looked_through(part.text.split()) == ["make", f"-j{n % 7}"]
    assert len(lines._words) <= lines._WORDS_KEPT


def test_a_part_as_data_is_what_every_value_is() -> None:
    """Its fields by name, tuples as lists; a limit only where there is one."""
    for limit in (0, -1, 5):
        part = Part("k", "sh", "f", "t", ("a",), ("p", "q"), (("edit", "p"), ("env", "")), True, "v", "kin", "u", limit)
        data = Value.to_data(part)
        assert part.to_data() == (data if limit else {name: value for name, value in data.items() if name != "limit"})
        assert list(part.to_data()) == [name for name in Part.__slots__ if limit or name != "limit"]


def test_roots_that_remember_name_files_as_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Symlinks, moves and names as they are written too, and after more names than are kept."""
    monkeypatch.setattr(known, "KEPT", 20)
    chance = random.Random(12)
    named = {"resolve": lambda path: path.replace("/link", "/real"), "renames": {"new": "old", "b.py": "a.py"}}
    one, other = KnownRoots("/r", ["/w"], **named), Roots("/r", ["/w"], **named)
    for _ in range(3_000):
        path = "/".join(chance.choices(["a", "b.py", "new", "..", ".", "link", "/r", "/w"], k=chance.randrange(1, 4)))
        cwd = chance.choice([".", "a", "/x", "?$D"])
        assert one.name(path, cwd, real := chance.random() < 0.5) == other.name(path, cwd, real)
        assert one.literal(path, cwd) == other.literal(path, cwd)
        assert one.seen_from(path, cwd) == other.seen_from(path, cwd)
    assert len(one._names) <= 20


def test_lines_with_a_mark_are_those_of_a_split() -> None:
    """In order, each once, wherever in them the marks stand and however many."""
    chance = random.Random(13)
    marks = ("not found", "o such file")
    for _ in range(3_000):
        text = "\n".join("".join(chance.choices([*marks, "", "a", "not", " found"], k=3)) for _ in range(chance.randrange(5)))
        assert lines.lines_with(text, marks) == [line for line in text.split("\n") if any(mark in line for mark in marks)]

"""What the gate does not look at twice, or not at all, gives what the long way gives."""

from __future__ import annotations

import random

from projectmem_gate import blame, commands, signature, telling
from projectmem_gate.lines import rx
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

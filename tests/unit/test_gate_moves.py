"""Files that were moved: what `git mv` says, what follows from several moves, and what still finds a record."""

from __future__ import annotations

import pytest
from projectmem_gate import freshness, moves
from projectmem_gate.hints import raw_words
from projectmem_gate.history import Record
from projectmem_gate.identify import identify


def moved(command: str, cwd: str = "/srv/acme") -> list[str]:
    """The moves that a command's effects tell, as `old -> new`."""
    action = identify("Bash", {"command": command}, root="/srv/acme", cwd=cwd)
    found = [subject for part in action.parts for kind, subject in part.effects if kind == moves.TYPE]
    return [subject.replace("\t", " -> ") for subject in found]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("git mv src/a.py src/b.py", ["src/a.py -> src/b.py"]),
        ("git mv ./src/a.py lib/", ["src/a.py -> lib/a.py"]),
        ("git mv src/a.py lib", ["src/a.py -> lib/a.py"]),
        ("git mv src lib", ["src -> lib"]),
        ("git mv a.py b.py lib", ["a.py -> lib/a.py", "b.py -> lib/b.py"]),
        ("cd src && git mv a.py b.py", ["src/a.py -> src/b.py"]),
        ("git -C src mv a.py b.py", ["src/a.py -> src/b.py"]),
        ("git mv -v a.py b.py", ["a.py -> b.py"]),
        ("git mv -f a.py b.py", []),  # it may overwrite
        ("git mv -n a.py b.py", []),
        ("git mv *.py lib", []),
        ("git mv $F b.py", []),
        ("git mv a.py", []),
        ("git mv a.py /tmp/a.py", []),
        ("mv a.py b.py", []),  # mostly a new content for b.py
        ("git add a.py b.py", []),
    ],
)
def test_what_a_move_says(command: str, found: list[str]) -> None:
    """Only where it cannot overwrite and names are plain."""
    assert moved(command) == found


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (["a b"], {"b": "a"}),
        (["a b", "b c"], {"c": "a"}),
        (["a b", "b a"], {}),
        (["a b", "c d"], {"b": "a", "d": "c"}),
        (["d/a d/b", "d e"], {"e/b": "d/a", "e": "d"}),
        (["d e", "e/a e/b"], {"e": "d", "e/b": "e/a"}),
        ([" b", "a ", ""], {}),
    ],
)
def test_several_moves(steps: list[str], found: dict[str, str]) -> None:
    """Each name now leads to the first before; what was moved back is as if it never was."""
    assert moves.renames([step.replace(" ", moves.BETWEEN) for step in steps]) == found


def test_an_edit_of_a_moved_file_is_the_edit_of_the_file_it_was() -> None:
    """By its new name, also in a folder that was moved; `now` is the way back."""
    edit = {"old_string": "x", "new_string": "y"}
    before = identify("Edit", {"file_path": "src/a.py", **edit}, root="/w", cwd="/w")
    for steps, name in (
        (["src/a.py\tlib/b.py"], "lib/b.py"),
        (["src\tlib"], "lib/a.py"),
        (["src\tlib", "lib/a.py\tlib/c.py"], "lib/c.py"),
    ):
        known = moves.renames(steps)
        after = identify("Edit", {"file_path": f"/w/{name}", **edit}, root="/w", cwd="/w", renames=known)
        assert after.key == before.key
        assert moves.now("src/a.py", known) == name
        words = moves.words(raw_words({"file_path": f"/w/{name}"}), steps)
        assert set(before.parts[0].words) <= words
    assert moves.now("other.py", {"b": "a"}) == "other.py"
    assert moves.words(frozenset({"x"}), ["src/a.py\tlib/bold.py"]) == {"x"}
    decomposed = moves.words(raw_words({"file_path": "cafe\u0301.py"}), ["src/menu.py\tsrc/caf\u00e9.py"])
    assert "menu" in decomposed, "one name in two spellings"


@pytest.mark.parametrize(
    ("cls", "error", "move", "state"),
    [
        ("usage", "error: unrecognized arguments: --zz", ("tests/test_app.py", "tests/test_b.py"), "same"),
        ("usage", "error: unrecognized arguments: --zz", ("tests", "checks"), "same"),
        ("usage", "can't open file 'conf.py': No such file", ("old.py", "conf.py"), "changed"),  # what it misses is there now
        ("test", "FAILED test_app.py::test_total", ("tests/test_app.py", "tests/test_b.py"), "changed"),  # what imports it?
    ],
)
def test_a_move_that_is_followed_is_no_change_to_a_wrong_command(cls: str, error: str, move: tuple[str, str], state: str) -> None:
    """The command goes by the new name now, and is as wrong as before. An edit of the file afterwards is a change."""
    at = 10**15
    known = {"text": "python tests/test_app.py --zz", "family": "python", "paths": ["tests/test_app.py"], "session": "s1"}
    failed = Record("k", "id", at, cls=cls, sig=error, excerpt=error, **known)
    changes = [
        ["edit", move[0], at + 1],
        ["edit", move[1], at + 1],
        ["git", "mv", at + 1],
        ["move", moves.BETWEEN.join(move), at + 1],
    ]
    facts = {"head": "same", "deps": "same", "files": "same", "changes": changes}
    assert freshness.judge(failed, facts, at + 2, session="s1")[0] == state
    facts["changes"] = [*changes, ["edit", "tests/test_app.py", at + 2]]
    assert freshness.judge(failed, facts, at + 3, session="s1")[0] == "changed"

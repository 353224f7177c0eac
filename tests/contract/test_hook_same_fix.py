"""A fix that failed, proposed again by another tool, through the hook as it is called: the files on disk show it."""

from __future__ import annotations

from typing import Any

import pytest

from projectmem.check import check_action
from projectmem.replay import replay_log

ERROR = "Exit code 1\nFAILED tests/test_app.py::test_total - assert 3 == 4\n1 failed in 0.10s"
TEST = "pytest tests/test_app.py"
APP = "import os\n\n\ndef total(n):\n    a = 1\n    return n + a\n\n\ndef other(n):\n    return n\n"
FIXED = APP.replace("a = 1", "a = 7")
HUNK = "@@ -4,3 +4,3 @@\n def total(n):\n-    a = 1\n+    a = 7\n     return n + a\n"
PATCH = "--- a/src/app.py\n+++ b/src/app.py\n" + HUNK


def call(hooked: Any, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    hooked.calls += 1
    return {"tool_name": tool, "tool_input": given, "tool_use_id": f"toolu_{hooked.calls}"}


def shell(hooked: Any, command: str) -> dict[str, Any]:
    return call(hooked, "Bash", {"command": command})


def edit(hooked: Any, old: str = "    a = 1", new: str = "    a = 7", file: str = "src/app.py") -> dict[str, Any]:
    return call(hooked, "Edit", {"file_path": str(hooked.root / file), "old_string": old, "new_string": new})


def write(hooked: Any, content: str = FIXED) -> dict[str, Any]:
    return call(hooked, "Write", {"file_path": str(hooked.root / "src/app.py"), "content": content})


def done(hooked: Any, one: dict[str, Any], content: str) -> None:
    """The call goes well, and leaves this in the file."""
    assert hooked.before(one) is None
    (hooked.root / "src/app.py").write_text(content)
    hooked.batch([(one, "")])


def failed(hooked: Any, one: dict[str, Any], back: dict[str, Any] | None) -> None:
    """The test fails, the call is made, it fails alike, the file is put back: by a call, or by somebody else."""
    (hooked.root / "src").mkdir()
    (hooked.root / "src/app.py").write_text(APP)
    hooked.run(TEST, ERROR)
    done(hooked, one, FIXED)
    hooked.run(TEST, ERROR)
    if back is None:
        (hooked.root / "src/app.py").write_text(APP)
    else:
        done(hooked, back, APP)


def speaks(hooked: Any, one: dict[str, Any]) -> bool:
    said = hooked.before(one, "two")
    return said is not None and "this fix was tried and failed" in said["additionalContext"]


SCRIPT = """python3 - <<'EOF'
from pathlib import Path
p = Path("src/app.py")
text = p.read_text(encoding="utf-8")
old = \'\'\'def total(n):
    a = 1
\'\'\'
assert old in text, "gone"  # it's there
text = text.replace(old, old.replace("1", "7"), 1)
p.write_text(text, encoding="utf-8")
print(f"{p} done")
EOF"""
AGAIN = {
    "sed": "sed -i 's/a = 1/a = 7/' src/app.py",
    "sed, a copy kept": "sed -i.bak -E 's|a = [0-9]+$|a = 7|' ./src/app.py && rm src/app.py.bak",
    "sed by its line": "cd src && sed -i '5s/1/7/' app.py",
    "perl": "perl -pi -e 's/a = 1/a = 7/' src/app.py",
    "a here-document": f"cat > src/app.py <<'EOF'\n{FIXED}EOF",
    "tee": f"tee src/app.py > /dev/null <<'EOF'\n{FIXED}EOF",
    "a patch in place": f"git apply <<'EOF'\n{PATCH}EOF",
    "a patch in a file": "git apply fix.patch",
    "patch": "patch -p1 < fix.patch",
    "perl, the file as a whole": "perl -0777 -pi -e 's/total\\(n\\):\\n    a = 1/total(n):\\n    a = 7/' src/app.py",
    "perl, with the flags in another order": "perl -i -0pe 's/a = 1/a = 7/' src/app.py",
    "code": "python3 -c \"p='src/app.py';t=open(p).read();open(p,'w').write(t.replace('a = 1','a = 7'))\"",
    "a script": SCRIPT,
    "a script by the module's name": SCRIPT.replace("from pathlib import Path", "import pathlib").replace(
        "Path(", "pathlib.Path("
    ),
    "a script that is told where": SCRIPT.replace("python3", "cd src && python3").replace("src/app.py", "app.py"),
    "with its test behind it": "sed -i 's/a = 1/a = 7/' src/app.py && pytest tests/test_app.py",
}
OTHER = {
    "another value": "sed -i 's/a = 1/a = 8/' src/app.py",
    "one line more": "sed -i 's/a = 1/a = 7/; s/import os/import sys/' src/app.py",
    "another file": "sed -i 's/a = 1/a = 7/' src/b.py",
    "another file besides": "sed -i 's/a = 1/a = 7/' src/app.py src/b.py",
    "what is not understood besides": "sed -i 's/a = 1/a = 7/' src/app.py && python -c \"open('src/b.py', 'w')\"",
    "perl, another value": "perl -0777 -pi -e 's/a = 1/a = 8/' src/app.py",
    "code, another value": "python3 -c \"p='src/app.py';t=open(p).read();open(p,'w').write(t.replace('a = 1','a = 8'))\"",
    "a script that does more": SCRIPT.replace("print(", "Path('src/b.py').write_text('x')\nprint("),
    "a script that is not understood": SCRIPT.replace("text = text.replace", "text = text.upper().replace"),
    "only looked at": "sed 's/a = 1/a = 7/' src/app.py",
    "a patch that is only checked": "git apply --check fix.patch",
}


@pytest.mark.parametrize("command", AGAIN.values(), ids=AGAIN)
def test_a_failed_edit_again_by_the_shell(hooked: Any, command: str) -> None:
    """Whatever writes the same change; the log replays to the same bytes."""
    failed(hooked, edit(hooked), edit(hooked, "    a = 7", "    a = 1"))
    (hooked.root / "fix.patch").write_text(PATCH)
    assert speaks(hooked, shell(hooked, command))
    assert replay_log(str(hooked.home), root=str(hooked.root), verify=True).ok


@pytest.mark.parametrize("command", OTHER.values(), ids=OTHER)
def test_another_fix_by_the_shell_is_not_spoken_of(hooked: Any, command: str) -> None:
    """Nor what changes nothing."""
    failed(hooked, edit(hooked), edit(hooked, "    a = 7", "    a = 1"))
    (hooked.root / "fix.patch").write_text(PATCH)
    (hooked.root / "src/b.py").write_text("a = 1\n")
    assert not speaks(hooked, shell(hooked, command))


@pytest.mark.parametrize("how", ["write", "sed", "python", "patch", "here-document"])
@pytest.mark.parametrize("back", ["checkout", "write", "person"])
def test_what_failed_by_another_tool_again_as_an_edit(hooked: Any, how: str, back: str) -> None:
    """What the files held when the call had run is on record; who put them back does not matter."""
    (hooked.root / "fix.patch").write_text(PATCH)
    code = "python - <<'EOF'\nopen('src/app.py', 'w').write(open('src/app.py').read().replace('a = 1', 'a = 7'))\nEOF"
    first = {"sed": AGAIN["sed"], "python": code, "patch": "git apply fix.patch", "here-document": AGAIN["a here-document"]}
    one = write(hooked) if how == "write" else shell(hooked, first[how])
    undo = {"checkout": shell(hooked, "git checkout -- src/app.py"), "write": write(hooked, APP), "person": None}[back]
    failed(hooked, one, undo)
    assert speaks(hooked, edit(hooked))
    assert speaks(hooked, shell(hooked, AGAIN["sed"]))
    assert speaks(hooked, write(hooked))
    assert not speaks(hooked, edit(hooked, new="    a = 9"))
    assert replay_log(str(hooked.home), root=str(hooked.root), verify=True).ok


def test_a_failed_edit_of_a_file_that_was_moved(hooked: Any) -> None:
    """By its new name, also once it was edited and put back there; another edit of it is another fix."""
    failed(hooked, edit(hooked), edit(hooked, "    a = 7", "    a = 1"))
    move = shell(hooked, "git mv src/app.py src/core.py")
    assert hooked.before(move) is None
    (hooked.root / "src/app.py").rename(hooked.root / "src/core.py")
    hooked.batch([(move, "")])
    assert speaks(hooked, edit(hooked, file="src/core.py"))
    assert speaks(hooked, shell(hooked, "sed -i 's/a = 1/a = 7/' src/core.py"))
    assert not speaks(hooked, edit(hooked, new="    a = 9", file="src/core.py"))
    assert replay_log(str(hooked.home), root=str(hooked.root), verify=True).ok


def test_a_failed_edit_again_through_a_linked_folder(hooked: Any) -> None:
    """By the name of the link, in a shell command and in an edit."""
    (hooked.root / "lnk").symlink_to("src")
    failed(hooked, edit(hooked), edit(hooked, "    a = 7", "    a = 1"))
    assert speaks(hooked, edit(hooked, file="lnk/app.py"))
    assert speaks(hooked, shell(hooked, "sed -i 's/a = 1/a = 7/' lnk/app.py"))


def test_check_says_the_same(hooked: Any) -> None:
    """`projectmem check` of a command that amounts to the failed edit."""
    failed(hooked, edit(hooked), edit(hooked, "    a = 7", "    a = 1"))
    asked = {"cwd": str(hooked.root), "now": hooked.now}
    for command, verdict in (("sed -i 's/a = 1/a = 7/' src/app.py", "warn"), ("sed -i 's/a = 1/a = 8/' src/app.py", "allow")):
        assert check_action(hooked.place, tool="Bash", tool_input={"command": command}, **asked).verdict == verdict


def test_several_hunks_in_one_write(hooked: Any) -> None:
    """Two edits in one call; the whole file with both is the same, with one of them it is not."""
    (hooked.root / "src").mkdir()
    (hooked.root / "src/app.py").write_text(APP)
    rows = [{"old_string": "a = 1", "new_string": "a = 7"}, {"old_string": "    return n\n", "new_string": "    return -n\n"}]
    both = FIXED.replace("    return n\n", "    return -n\n")
    many = call(hooked, "MultiEdit", {"file_path": str(hooked.root / "src/app.py"), "edits": rows})
    hooked.run(TEST, ERROR)
    done(hooked, many, both)
    hooked.run(TEST, ERROR)
    done(hooked, shell(hooked, "git checkout -- src/app.py"), APP)
    assert speaks(hooked, write(hooked, both))
    assert speaks(hooked, shell(hooked, "sed -i 's/a = 1/a = 7/; s/return n$/return -n/' src/app.py"))
    assert not speaks(hooked, write(hooked, both + "x = 1\n"))


def test_the_same_lines_at_another_place_are_another_fix(hooked: Any) -> None:
    """While the first is still in the file: the line that failed once may be right further down."""
    text = "def f():\n    return None\n\n\ndef g():\n    return None\n"
    (hooked.root / "src").mkdir()
    (hooked.root / "src/app.py").write_text(text)
    hooked.run(TEST, ERROR)
    first = "def f():\n    return None"
    now = text.replace(first, "def f():\n    return []")
    done(hooked, edit(hooked, first, "def f():\n    return []"), now)
    hooked.run(TEST, ERROR)
    assert not speaks(hooked, edit(hooked, "def g():\n    return None", "def g():\n    return []"))
    assert not speaks(hooked, shell(hooked, "sed -i '6s/None/[]/' src/app.py"))
    (hooked.root / "src/app.py").write_text(text)  # a person takes it back
    assert speaks(hooked, shell(hooked, "sed -i '2s/None/[]/' src/app.py"))

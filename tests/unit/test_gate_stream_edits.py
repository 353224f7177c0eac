"""What simple programs of sed and perl make of a text, as GNU sed and perl did it; and which commands rewrite what."""

from __future__ import annotations

import pytest
from projectmem_gate import rewrites, stream_edits
from projectmem_gate.paths import Roots

TEXT = "import os\n\n\ndef total(n):\n    a = 1\n    return n + a\n"
LINES = TEXT.split("\n")


def changed(line: int, new: str | None) -> str:
    """The text with another line at that number, or without it."""
    return "\n".join([*LINES[: line - 1], *([] if new is None else [new]), *LINES[line:]])


@pytest.mark.parametrize(
    ("scripts", "extended", "made"),
    [
        (["s/a = 1/a = 7/"], False, changed(5, "    a = 7")),
        (["s|a = [0-9]+$|a = 7|"], True, changed(5, "    a = 7")),
        (["s|a = [0-9]+$|a = 7|"], False, TEXT),
        (["5s/1/7/"], False, changed(5, "    a = 7")),
        (["4,5s/1/7/"], False, changed(5, "    a = 7")),
        (["1,3s/1/7/"], False, TEXT),
        (["5d"], False, changed(5, None)),
        (["$d"], False, changed(6, None)),
        (["/a = 1/d"], False, changed(5, None)),
        (["/def/s/n/m/g"], False, changed(4, "def total(m):")),
        (["s/\\(n\\) + a/\\1 - a \\& &/"], False, changed(6, "    return n - a & n + a")),
        (["s/(n) \\+ a/\\1 - a/"], True, changed(6, "    return n - a")),
        (["s/[[:space:]]*RETURN/  back/I"], False, changed(6, "  back n + a")),
        (["s/a\\|1/Y/g;s/imYport/x/"], False, "import os\n\n\ndef totYl(n):\n    Y = Y\n    return n + Y\n"),
        (["s/import/# &/", "s#os$#sys#"], False, changed(1, "# import sys")),
        (["s/a = 1/a = 1\\n    b = 2/"], False, changed(5, "    a = 1\n    b = 2")),
        (["s/[]a]/Z/2"], False, None),
        (["2!d"], False, None),
        (["s/a/b/w out"], False, None),
        (["s/a/b/e"], False, None),
        (["y/abc/xyz/"], False, None),
        (["5a\\", "x"], False, None),
        (["s/a/b"], False, None),
        (["s/\\(a\\)/\\2/"], False, None),
        (["s/(a+)+$/x/"], True, None),
        (["s/a*a*a*a*a*a*b/x/"], False, None),
        ([], False, None),
    ],
)
def test_a_program_of_sed(scripts: list[str], extended: bool, made: str | None) -> None:
    """As GNU sed does it, or not at all."""
    assert stream_edits.sed(scripts, TEXT, extended=extended) == made


@pytest.mark.parametrize(
    ("script", "made"),
    [
        ("s/a = 1/a = 7/", changed(5, "    a = 7")),
        ("s/(\\w+) = 1$/$1 = 7/;", changed(5, "    a = 7")),
        ("s{a}{b}", None),
        ("s/$x/b/", None),
        ("s/a/$x/", None),
        ("print", None),
    ],
)
def test_a_program_of_perl(script: str, made: str | None) -> None:
    """The same for `perl -pi -e`."""
    assert stream_edits.perl(script, TEXT) == made


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("sed -i 's/a/b/' src/app.py", ["sed src/app.py"]),
        ("cd src && sed -Ei.bak -e 's/a/b/' app.py ./b.py", ["sed src/app.py", "sed src/b.py"]),
        ("sed -i '' 's/a/b/' app.py", ["sed app.py"]),
        ("sed 's/a/b/' app.py", []),
        ("sed -n -i 's/a/b/p' app.py", []),
        ('sed -i "s/a/$B/" app.py', []),
        ("perl -pi -e 's/a/b/' app.py", ["perl app.py"]),
        ("perl -0777 -pi -e 's/a/b/' app.py", []),
        ("cat > a.py <<'EOF'\nx\nEOF", ["write a.py"]),
        ("tee -a a.py <<'EOF'\nx\nEOF", ["append a.py"]),
        ("echo x > a.py", ["write a.py"]),
        ("echo $X > a.py", []),
        ("cat b.py > a.py", []),
        ("git apply fix.patch", ["patch fix.patch"]),
        ("git apply --check fix.patch", []),
        ("patch -p1 < ../fix.patch", ["patch /fix.patch"]),
        ("patch app.py fix.patch", []),
        ("ssh host \"sed -i 's/a/b/' app.py\"", []),
        ("git commit -m \"sed -i 's/a/b/' app.py\"", []),
    ],
)
def test_which_files_a_command_rewrites(command: str, found: list[str]) -> None:
    """In command position, on this machine, with words that the shell does not change."""
    steps = rewrites.steps(command, Roots("/w"), ".")
    assert [f"{step.how} {step.path}" for step in steps] == found


def test_a_patch_the_other_way_round() -> None:
    """With -R its hunks are turned, with -p folders are taken off, and new files are left alone."""
    patch = "--- a/x/app.py\n+++ b/x/app.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    assert rewrites.hunks_of(patch, 1, reverse=False) == [("x/app.py", [("one\ntwo", "one\nthree")])]
    assert rewrites.hunks_of(patch, 2, reverse=True) == [("app.py", [("one\nthree", "one\ntwo")])]
    assert rewrites.hunks_of(patch.replace("a/x/app.py", "/dev/null"), 1, reverse=False) is None

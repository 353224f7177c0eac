"""What simple programs of sed and perl make of a text, as GNU sed and perl did it; and which commands rewrite what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_gate import python_edits, rewrites, stream_edits
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
        ("perl -0777 -pi -e 's/a/b/' app.py", ["perl app.py"]),
        ("perl -0pi.bak -e 's/a/b/' app.py", ["perl app.py"]),
        ("perl -i -0777 -pe 's/a/b/' app.py", ["perl app.py"]),
        ("perl -00 -pi -e 's/a/b/' app.py", []),
        ("perl -0777 -ne 's/a/b/' app.py", []),
        ("perl -pie 's/a/b/' app.py", []),
        ("python3 -c \"open('a.py', 'w').write('x')\"", ["code "]),
        ("python3 -c \"print(open('a.py').read())\"", []),
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


def test_perl_on_the_file_as_a_whole() -> None:
    """What lies over the end of a line is found; what is not understood is not done."""
    assert stream_edits.perl("s/\\):\\n    a = 1/):\\n    a = 7/", TEXT, whole=True) == TEXT.replace("a = 1", "a = 7")
    assert stream_edits.perl("s/\\):\\n    a = 1/):\\n    a = 7/", TEXT) == TEXT
    assert stream_edits.perl("s/(?=x)//", TEXT, whole=True) is None


def test_flags_of_perl_on_the_file_as_a_whole() -> None:
    """Without `g` once in all, `.` and `^` over lines as the flags say."""
    assert stream_edits.perl("s/a/b/", "a\na\n", whole=True) == "b\na\n"
    assert stream_edits.perl("s/a/b/", "a\na\n") == "b\nb\n"
    assert stream_edits.perl("s/^a/b/gm", "a\na\n", whole=True) == "b\nb\n"
    assert stream_edits.perl("s/x.*y/z/s", "x\n\ny\n", whole=True) == "z\n"
    assert stream_edits.perl("s/a/b/", "a" * 40_000, whole=True) is None


FILE = "def total(n):\n    a = 1\n    return n + a\n"
READS = "s = open('app.py').read()\n"
LEFT = {"app.py": FILE.replace("a = 1", "a = 7")}


@pytest.mark.parametrize(
    ("program", "left"),
    [
        ("p='app.py';t=open(p).read();open(p,'w').write(t.replace('a = 1','a = 7'))", LEFT),
        ("from pathlib import Path\np = Path('app.py')\np.write_text(p.read_text().replace('a = 1', 'a = ' + '7'))", LEFT),
        (
            "with open('app.py') as f:\n    s = f.read()\nwith open('app.py', 'w') as f:\n    f.write(s.replace('1', '7', 1))",
            LEFT,
        ),
        ('old = """    a = 1\n"""\n' + READS + "open('app.py', 'w').write(s.replace(old, '    a = 7\\n'))", LEFT),
        (
            READS
            + "s = s.replace(\n    'a = 1',\n    r'a = 7',  # 'quoted\n)\nopen('app.py', mode='w', encoding='utf-8').write(s)",
            LEFT,
        ),
        ("open('new.py', 'w').write('x = (1)\\n')", {"new.py": "x = (1)\n"}),
        ("print(f'{1}')\nassert True", {}),
        # what is not understood
        (READS + "s = s.upper()\nopen('app.py', 'w').write(s)", None),
        (READS + "if 'a' in s: s = s.replace('1', '7')\nopen('app.py', 'w').write(s)", None),
        (READS + "for x in 'ab':\n    s = s.replace(x, '7')\nopen('app.py', 'w').write(s)", None),
        (READS + "open('app.py', 'a').write(s)", None),
        (READS + "open('app.py').write(s)", None),
        (READS + "s = f'{s}'\nopen('app.py', 'w').write(s)", None),
        (READS + "s = s * 2\nopen('app.py', 'w').write(s)", None),
        (READS + "open('app.py', 'w').write(s[3:])", None),
        ("s = open('gone.py').read()\nopen('app.py', 'w').write(s)", None),
        ("import os\nos.remove('app.py')", None),
        ("open('app.py', 'w').write('\\x41')", None),
        ("open('app.py', 'w').write('", None),
        ("(", None),
    ],
)
def test_what_a_small_program_leaves_in_files(program: str, left: dict[str, str] | None) -> None:
    """Literals, reading, `replace` and writing of whole texts; None as soon as there is anything else."""
    assert python_edits.written(program, lambda path: FILE if path == "app.py" else "") == left


@given(st.text(alphabet="abps=.()'\"\\\n,;#: openwritreplcd", max_size=120))
def test_no_program_is_too_odd_to_read(program: str) -> None:
    """Whatever the text, there is an answer."""
    found = python_edits.written(program, lambda path: "x")
    assert found is None or all(isinstance(text, str) for text in found.values())

"""Identity under every input: never raises, deterministic, blind to quoting, spacing and filters; hint words always occur."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from projectmem_gate.edits import read_patch
from projectmem_gate.hints import ANY, raw_words
from projectmem_gate.identify import identify
from projectmem_gate.model import Action

ROOT = "/srv/acme"
REPO = Path(__file__).resolve().parents[2]

_WORD = st.text(st.sampled_from("abcdefgxyzABZ019._-+:@%,=^"), min_size=1, max_size=10).filter(lambda w: w[0] not in "-=.,+%^:@")
_ARG = st.one_of(
    _WORD,
    st.sampled_from(
        ["src/a.py", "./b.py", "--flag", "-x", "--name=value", "a b", "it's", 'say "x"', "*.py", "$HOME", "~/x", "", "a\\b", "é"]
    ),
)
_PROGRAM = st.sampled_from(
    ["npm", "git", "frob", "pytest", "docker", "go", "make", "cargo", "python", "./run.sh", "kubectl", "grep"]
)
_FILTERS = st.sampled_from(
    [
        "",
        " | tail -20",
        " | head -5",
        " 2>&1",
        " 2>&1 | tail -3",
        " | grep -i error | head",
        " > /tmp/out.txt 2>&1",
        " | tee log",
        " |& cat",
        "; echo done",
        " || true",
    ]
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=8).map(lambda b: b.decode("latin-1")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
_TOOLS = st.sampled_from(
    ["Bash", "exec_command", "shell", "Edit", "MultiEdit", "Write", "apply_patch", "mcp__a__b", "mcp_", "WebFetch", "Read",
     "Grep", "exec", "str_replace_editor", "NotebookEdit", "edit", "create", "open", "", "unknown", "TodoWrite", "powershell"]
)  # fmt: skip
_FIELDS = st.sampled_from(
    [
        "command",
        "cmd",
        "input",
        "patch",
        "file_path",
        "path",
        "old_string",
        "new_string",
        "content",
        "edits",
        "url",
        "workdir",
        "old_str",
        "insert_line",
    ]
)
_SHELL_SOUP = st.text(st.sampled_from("ab /.-'\"\\$`(){}[]<>|&;*?~#=!\n\tEOF1é\u0301\ud800\x01\x05"), max_size=60)


def _sh(command: str, cwd: str = ROOT) -> Action:
    return identify("Bash", {"command": command}, root=ROOT, cwd=cwd)


def _quote_otherwise(word: str) -> str:
    """The same word, every character quoted on its own."""
    return "".join(f"'{c}'" if c != "'" else '"\'"' for c in word) or "''"


@given(_PROGRAM, st.lists(_ARG, max_size=5), _FILTERS)
def test_quoting_spacing_and_filters_do_not_matter(program: str, args: list[str], tail: str) -> None:
    """Two quotings of the same words, other blanks, any output filter: one key."""
    one = " ".join([program, *map(shlex.quote, args)])
    two = "  \t".join([program, *map(_quote_otherwise, args)])
    three = " \\\n ".join([program, *map(shlex.quote, args)]) + " "
    key = _sh(one).key
    assert _sh(two).key == key
    assert _sh(three).key == key
    assert _sh(one + tail).key == key
    assert identify("exec_command", {"cmd": ["bash", "-lc", one + tail]}, root=ROOT, cwd=ROOT).key == key
    assert identify("shell", {"command": [program, *args]}, root=ROOT, cwd=ROOT).key == key


@given(_PROGRAM, st.lists(_ARG, max_size=4), st.lists(_ARG, max_size=4))
def test_different_words_of_an_unknown_program_are_different_actions(program: str, a: list[str], b: list[str]) -> None:
    """For a program without an option table nothing but path spelling is folded."""
    clean = [[w for w in words if "/" not in w] for words in (a, b)]
    left, right = (" ".join(["frob", *map(shlex.quote, words)]) for words in clean)
    assert (_sh(left).key == _sh(right).key) == (clean[0] == clean[1])


@given(_PROGRAM, st.lists(_ARG, max_size=4), st.sampled_from(["web", "./web", "/srv/acme/web", "web/", "web/x/.."]))
def test_cd_is_the_working_directory(program: str, args: list[str], directory: str) -> None:
    """`cd X && cmd` is cmd in X."""
    command = " ".join([program, *map(shlex.quote, args)])
    assert _sh(f"cd {directory} && {command}").key == _sh(command, cwd=ROOT + "/web").key


@given(
    _PROGRAM, st.lists(_ARG, max_size=5), _FILTERS, st.sampled_from(["", "cd web && ", "NO_COLOR=1 ", "time ", "X=1 ", "uv run "])
)
def test_hint_words_occur_in_every_spelling(program: str, args: list[str], tail: str, head: str) -> None:
    """In the raw JSON text, in the parsed value, and however the words are quoted."""
    spellings = [{"command": head + " ".join([program, *map(quote, args)]) + tail} for quote in (shlex.quote, _quote_otherwise)]
    actions = [identify("Bash", s, root=ROOT, cwd=ROOT) for s in spellings]
    for action in actions:
        for given_input in spellings:
            for raw in (given_input, json.dumps(given_input), json.dumps(given_input, ensure_ascii=False).encode()):
                words = raw_words(raw)
                for part in action.parts:
                    if not part.trivial or len(action.parts) == 1:
                        assert ANY in words or set(part.words) <= words


@settings(max_examples=400)
@given(_TOOLS, _JSON)
@example("Bash", {"command": "\ud800"})
@example("Bash", {"command": None})
@example("Edit", {"edits": [None, {"old_string": 3}]})
@example("apply_patch", {"patch": "*** Begin Patch\n*** Update File: \n@@"})
def test_never_raises_on_any_json(tool: str, value: Any) -> None:
    """Any tool, any value, with or without a sensible directory."""
    for root, cwd in ((ROOT, ROOT), ("", ""), ("C:\\x", "/c/x")):
        action = identify(tool, value, root=root, cwd=cwd)
        assert len(action.key) == 32
        assert action.parts
        assert len(action.joins) == len(action.parts) - 1
        json.dumps(action.to_data())


@settings(max_examples=400)
@given(_TOOLS, st.dictionaries(_FIELDS, st.one_of(_SHELL_SOUP, st.lists(_SHELL_SOUP, max_size=3)), max_size=4))
def test_never_raises_on_soup(tool: str, value: dict[str, Any]) -> None:
    """Half-closed quotes, here-documents, marks, lone surrogates in the fields that are read. The same again: the same key."""
    one = identify(tool, value, root=ROOT, cwd=ROOT)
    assert one == identify(tool, value, root=ROOT, cwd=ROOT)
    for part in one.parts:
        assert len(part.text) <= 400
        assert len(part.words) <= 3
    words = raw_words(value)
    assert ANY in words or all(set(p.words) <= words for p in one.parts)


@given(_SHELL_SOUP)
def test_patches_of_any_text_are_read_or_refused(text: str) -> None:
    """read_patch never raises."""
    for prefix in ("", "*** Begin Patch\n*** Update File: a\n", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n"):
        assert isinstance(read_patch(prefix + text), list)


@given(st.text(max_size=60))
def test_literal_text_cannot_forge_a_mark(text: str) -> None:
    """Control characters in quotes never make a literal equal to an expansion or a glob."""
    quoted = _sh("frob " + shlex.quote(text)).key
    for active in ("frob *", "frob $X", 'frob "$X"', "frob $(x)", "frob ~"):
        assert quoted != _sh(active).key


@given(
    st.lists(st.sampled_from(["a = 1", "b = 2", "", "  c()", "d"]), max_size=6),
    st.integers(0, 5),
    st.sampled_from(["x", "y = 1", ""]),
)
def test_context_around_a_change_does_not_matter(lines: list[str], at: int, added: str) -> None:
    """An edit is its removed and added lines, however much context the tool shows."""
    old = [*lines[:at], "OLD", *lines[at:]]
    new = [*lines[:at], added or "NEW", *lines[at:]]
    whole = identify(
        "Edit", {"file_path": "a.py", "old_string": "\n".join(old), "new_string": "\n".join(new)}, root=ROOT, cwd=ROOT
    )
    least = identify("Edit", {"file_path": "a.py", "old_string": "OLD", "new_string": added or "NEW"}, root=ROOT, cwd=ROOT)
    hunk = "\n".join([*(" " + x for x in lines[:at]), "-OLD", "+" + (added or "NEW"), *(" " + x for x in lines[at:])])
    patch = identify(
        "apply_patch", {"patch": f"*** Begin Patch\n*** Update File: a.py\n@@\n{hunk}\n*** End Patch"}, root=ROOT, cwd=ROOT
    )
    assert whole.key == least.key == patch.key


def test_keys_do_not_depend_on_the_process() -> None:
    """The same keys under another hash seed, locale and time zone."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from projectmem_gate.identify import identify\n"
        "command = 'A=1 B=2 docker build -t x --no-cache . | tail'\n"
        "print(identify('Bash', {'command': command}, root='/srv/acme', cwd='/srv/acme').key)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, str(REPO / "gate")],
            capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone},
        ).stdout
        for seed, locale, zone in (("0", "C", "UTC"), ("1", "C.UTF-8", "Asia/Tokyo"), ("77", "POSIX", "America/New_York"))
    }  # fmt: skip
    assert len(seen) == 1


def test_identity_imports_little_and_loads_the_parser_without_its_packages() -> None:
    """The hook's allow-list, in a bare interpreter."""
    site = [p for p in sys.path if p.endswith("site-packages")]
    code = (
        "import sys\nsys.path[:0] = [sys.argv[1]]; sys.path += sys.argv[2:]\n"
        "from projectmem_gate.identify import identify\n"
        "a = identify('Bash', {'command': 'cd x && npm test | tail'}, root='/r', cwd='/r')\n"
        "assert a.parsed\n"
        "print(' '.join(sorted(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(REPO / "gate"), *site], capture_output=True, text=True, check=True
    )
    loaded = set(out.stdout.split())
    heavy = {
        "typing",
        "dataclasses",
        "logging",
        "subprocess",
        "pathlib",
        "importlib.resources",
        "importlib.metadata",
        "tempfile",
        "inspect",
    }
    assert not loaded & (heavy | {"tree_sitter", "tree_sitter_bash", "hashlib", "unicodedata", "asyncio", "pydantic"})

"""House rules as a test: sizes, opening docstrings, and calls that only one module may make."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

REPO = Path(__file__).resolve().parents[2]
PACKAGES = ("projectmem", "logs/projectmem_logs", "gate/projectmem_gate", "projections/projectmem_projections")
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
REFERENCE_LINES_MAX = 150

# What is called -> the only modules that may call it, and why.
ONLY_IN: dict[str, tuple[set[str], str]] = {
    "os.environ": ({"projectmem/place.py"}, "one module reads the environment"),
    "os.getenv": ({"projectmem/place.py"}, "one module reads the environment"),
    "os.fsync": ({"logs/projectmem_logs/files.py"}, "one module decides durability"),
    "os.fdatasync": ({"logs/projectmem_logs/files.py"}, "one module decides durability"),
    "os.replace": ({"logs/projectmem_logs/files.py"}, "one module decides durability"),
    "os.rename": ({"logs/projectmem_logs/files.py"}, "one module decides durability"),
    "os.truncate": ({"logs/projectmem_logs/files.py"}, "one module decides durability"),
    "os.ftruncate": ({"logs/projectmem_logs/files.py"}, "one module decides durability"),
    "fcntl.flock": ({"logs/projectmem_logs/files.py"}, "one module takes locks"),
    "eval": (set(), "never"),
    "exec": ({"projectmem/hook/bundled.py"}, "only an importer runs the code that it loads"),
    "os.system": (set(), "never"),
    "pickle.loads": (set(), "never"),
}
# Nothing printed may come from anywhere but the command line's own modules.
PRINTERS = ("projectmem/cli/", "projectmem/output.py", "projectmem/demo.py")


def _sources() -> list[Path]:
    return sorted(p for package in PACKAGES for p in (REPO / package).rglob("*.py"))


def _name(path: Path) -> str:
    return path.relative_to(REPO).as_posix()


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def _uses(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield _dotted(node.func), node.lineno
        elif isinstance(node, ast.Attribute):
            yield _dotted(node), node.lineno


@pytest.mark.parametrize("path", _sources(), ids=_name)
def test_source_file_keeps_the_house_rules(path: Path) -> None:
    """Every module is short, opens with what it is for, and leaves privileged calls to their one module."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    name = _name(path)
    wrong = []
    if text.count("\n") > FILE_LINES_MAX:
        wrong.append(f"{text.count(chr(10))} lines, at most {FILE_LINES_MAX}: split it by reason to exist")
    if text.strip() and not ast.get_docstring(tree):
        wrong.append("does not open with a docstring that says what it is for")
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                wrong.append(f"line {node.lineno}: function `{node.name}` has {length} lines, at most {FUNCTION_LINES_MAX}")
    for used, line in _uses(tree):
        allowed, why = ONLY_IN.get(used, (None, ""))
        if allowed is not None and name not in allowed:
            wrong.append(f"line {line}: `{used}` belongs to {', '.join(sorted(allowed)) or 'nobody'} ({why})")
        if used == "print" and not name.startswith(PRINTERS):
            wrong.append(f"line {line}: only the command line prints")
    assert not wrong, f"{name}:\n  " + "\n  ".join(wrong)


def test_no_two_modules_import_each_other() -> None:
    """Imports have an order, those inside functions too (what only types need does not count)."""
    names = [package.rpartition("/")[2] for package in PACKAGES]
    graph = grimp.build_graph(*names, exclude_type_checking_imports=True, cache_dir=None)
    try:
        order = list(TopologicalSorter({m: graph.find_modules_directly_imported_by(m) for m in graph.modules}).static_order())
    except CycleError as exc:
        pytest.fail(f"a circle: {' <- '.join(exc.args[1])}")
    assert len(order) >= len(_sources()) - len(names)


@pytest.mark.parametrize("name", ["reference_gate.py", "reference_rules.py"])
def test_the_naive_references_stay_small(name: str) -> None:
    """What the gate is checked against must be plain enough to be right at a glance."""
    assert len((REPO / "tests" / name).read_text(encoding="utf-8").splitlines()) <= REFERENCE_LINES_MAX


def test_no_tracked_file_names_an_index_host_or_a_machine_path() -> None:
    """Requirements carry hashes and no hosts; nothing committed carries a path of the machine it was written on."""
    tracked = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True, check=True).stdout.split()
    wrong = []
    for name in tracked:
        path = REPO / name
        if path.suffix in {".npz", ".gz", ".png"} or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if name.startswith("requirements") and ("http://" in text or "https://" in text):
            wrong.append(f"{name} names a host")
        if str(REPO) in text:
            wrong.append(f"{name} holds the path of this checkout")
        if name.endswith((".lock", "lock.json")):
            wrong.append(f"{name}: lock files that name hosts stay out of the repository")
    assert not wrong, "\n".join(wrong)


def test_requirements_are_pinned_and_hashed() -> None:
    """Every requirement has an exact version and at least one hash."""
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-minilm.txt", "requirements-formats.txt"):
        logical = (REPO / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
        lines = [line for line in logical if line.strip() and not line.lstrip().startswith("#")]
        assert len(lines) > 5
        assert not [line for line in lines if "==" not in line or "--hash=sha256:" not in line], name

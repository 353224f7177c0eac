"""The bundle of the hook's compiled code: served while the sources are as they were, and never in the way."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from projectmem.hook.bundled import Bundle
from projectmem.setup import bundle, compiled
from projectmem.setup.command import interpreter, loader, package_folders
from tests.patience import PATIENCE

LOADED_BY = "import sys, projectmem.hook.pipeline as p; print(type(p.__loader__).__name__, p.__file__)"


def _run(program: str) -> str:
    done = subprocess.run(
        [interpreter(), "-I", "-S", "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stderr == ""
    return done.stdout.strip()


def _registered(monkeypatch: pytest.MonkeyPatch, file: Path) -> str:
    """The registered program, reading this bundle, and telling where a module of the hook came from instead of running."""
    monkeypatch.setattr(bundle, "path", lambda: file)
    program = loader(package_folders()).replace("    run()\n", f"    {LOADED_BY}\n")
    start = f"sys.path[-{len(package_folders())}] + {bundle.PREFIX!r}"
    assert start in program
    return program.replace(start, repr(str(file.parent / "hook.")))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where a bundle goes."""
    return tmp_path / f"hook.{sys.implementation.cache_tag}.bundle"


def test_the_registered_command_is_served_by_the_bundle(monkeypatch: pytest.MonkeyPatch, target: Path) -> None:
    """Every module of the hook comes from it, with its own source's path."""
    program = _registered(monkeypatch, target)
    assert _run(program).startswith("SourceFileLoader ")
    modules = compiled.hook_modules()
    bundle.write(modules)
    assert bundle.fresh(modules)
    kind, path = _run(program).split(" ", 1)
    assert (kind, path) == ("Bundle", str(modules["projectmem.hook.pipeline"]))


@pytest.mark.parametrize("damage", ["empty", "cut", "other version", "garbage"])
def test_what_is_not_a_bundle_is_passed_over(monkeypatch: pytest.MonkeyPatch, target: Path, damage: str) -> None:
    """The hook is then imported the usual way."""
    program = _registered(monkeypatch, target)
    modules = compiled.hook_modules()
    bundle.write(modules)
    whole = target.read_bytes()
    damaged = {"empty": b"", "cut": whole[:600], "other version": b"\x01\x02\r\n" + whole[4:], "garbage": whole[:4] + b"\xff" * 9}
    target.write_bytes(damaged[damage])
    assert not bundle.fresh(modules)
    assert _run(program).startswith("SourceFileLoader ")


def test_a_changed_source_is_imported_from_the_source(tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another time or size is another file, as with a `.pyc`; a new module is missed by `fresh`."""
    monkeypatch.setattr(bundle, "path", lambda: target)
    package = tmp_path / "projectmem_trial"
    package.mkdir()
    sources = {"projectmem_trial": package / "__init__.py", "projectmem_trial.one": package / "one.py"}
    for source in sources.values():
        source.write_text("X = 1\n")
    bundle.write(sources)
    assert bundle.fresh(sources)
    before = sources["projectmem_trial.one"].stat()
    sources["projectmem_trial.one"].write_text("X = 2\n")
    os.utime(sources["projectmem_trial.one"], ns=(before.st_atime_ns, before.st_mtime_ns + 2_000_000_000))
    assert not bundle.fresh(sources)
    bundle.write(sources)
    assert bundle.fresh(sources)
    assert not bundle.fresh({**sources, "projectmem_trial.two": package / "two.py"})
    sources["projectmem_trial.one"].unlink()
    assert not bundle.fresh(sources)


def test_a_compiled_file_is_taken_only_where_it_was_made_of_the_source(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To compile all modules again takes most of a second; but one of another time or size, or cut, counts for nothing."""
    monkeypatch.setattr(bundle, "path", lambda: target)
    source = tmp_path / "trial.py"
    source.write_text("MARK = 'made of the source'\n")
    cached = Path(py_compile.compile(str(source), doraise=True) or "")
    whole = cached.read_bytes()
    for kept, head in (
        (b"of the pyc'", whole[:16]),
        (b"made of the source", whole[:8] + b"\1" * 4 + whole[12:16]),
        (b"made of", b""),
    ):
        cached.write_bytes(head and head + whole[16:].replace(b"made of the source", b"made of the pyc'  "))
        bundle.write({"trial": source})
        assert kept in target.read_bytes()


def test_other_modules_are_none_of_its_business() -> None:
    """A prefix of a bundled name, or a standard module, is not served."""
    served = Bundle(open(os.devnull, "rb"), "\nprojectmem.one\t/x\tm\t1\t1\t0\t1\n", 0)  # noqa: SIM115
    assert all(served.find_spec(name) is None for name in ("json", "projectmem", "projectmem.on", "projectmem.one"))
    served.file.close()

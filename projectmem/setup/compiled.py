"""Compiles what the hook imports. Installers such as uv leave no `.pyc`, and compiling takes longer than all the hook does."""

from __future__ import annotations

import py_compile
from importlib.util import cache_from_source, find_spec
from pathlib import Path

from projectmem.setup.command import PACKAGES

# Sub-packages that no hook imports.
_SKIPPED = ("cli", "backtest", "importers", "setup", "data")


def hook_sources() -> list[Path]:
    """Every source file of our packages that a hook may import."""
    found: list[Path] = []
    for name in PACKAGES:
        spec = find_spec(name)
        for root in (spec.submodule_search_locations or ()) if spec else ():
            top = Path(root)
            found += [p for p in sorted(top.rglob("*.py")) if not set(p.relative_to(top).parts) & set(_SKIPPED)]
    return found


def compile_hook() -> list[str]:
    """Compile what is not compiled yet; returns what could not be (for example, in an installation of another user)."""
    failed = []
    for path in hook_sources():
        target = Path(cache_from_source(str(path)))
        try:
            if not target.exists() or target.stat().st_mtime < path.stat().st_mtime:
                py_compile.compile(str(path), doraise=True)
        except (OSError, py_compile.PyCompileError) as exc:
            failed.append(f"{path}: {exc}")
    return failed


def uncompiled() -> list[Path]:
    """Sources of the hook without a compiled file."""
    return [p for p in hook_sources() if not Path(cache_from_source(str(p))).exists()]

"""Compiles what the hook imports, twice: a `.pyc` for each file (installers such as uv leave none, and compiling takes longer
than all the hook does), and one bundle of them all, which is faster still.
"""

from __future__ import annotations

import py_compile
from importlib.util import cache_from_source, find_spec
from pathlib import Path

from projectmem.setup import bundle
from projectmem.setup.command import PACKAGES

# Sub-packages that no hook imports.
_SKIPPED = ("cli", "backtest", "exporters", "importers", "serve", "setup", "web", "data")


def hook_modules() -> dict[str, Path]:
    """Every module of our packages that a hook may import: {full name: source}."""
    found: dict[str, Path] = {}
    for name in PACKAGES:
        spec = find_spec(name)
        for root in (spec.submodule_search_locations or ()) if spec else ():
            top = Path(root)
            for path in sorted(top.rglob("*.py")):
                parts = path.relative_to(top).with_suffix("").parts
                if not set(parts) & set(_SKIPPED):
                    found[".".join((name, *parts)).removesuffix(".__init__")] = path
    return found


def compile_hook() -> list[str]:
    """Compile what is not compiled yet; returns what could not be (for example, in an installation of another user)."""
    failed = []
    modules = hook_modules()
    for path in modules.values():
        target = Path(cache_from_source(str(path)))
        try:
            if not target.exists() or target.stat().st_mtime < path.stat().st_mtime:
                py_compile.compile(str(path), doraise=True)
        except (OSError, py_compile.PyCompileError) as exc:
            failed.append(f"{path}: {exc}")
    try:
        bundle.write(modules)
    except (OSError, SyntaxError) as exc:
        failed.append(f"{bundle.path()}: {exc}")
    return failed


def uncompiled() -> list[Path]:
    """Sources of the hook without a compiled file, and the bundle where it is not made of the sources as they are."""
    modules = hook_modules()
    missing = [path for path in modules.values() if not Path(cache_from_source(str(path))).exists()]
    return missing if bundle.fresh(modules) else [*missing, bundle.path()]

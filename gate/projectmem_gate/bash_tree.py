"""[H] The bash parser: tree-sitter's C modules, loaded late and without their packages' Python code.

Importing `tree_sitter` and `tree_sitter_bash` the normal way costs about 17 ms (they pull in importlib.resources);
loading the two extension modules straight from their files costs about 1 ms. No parser at all is not an error: `parse`
returns None and the command is matched verbatim.
"""

from __future__ import annotations

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What the binding takes from Python modules for its queries and its log, neither of which is used here: stood in for while it
# loads, because importing them costs a hook process 6 ms.
_UNUSED = {"re": "compile", "enum": "IntEnum"}

_parser: Any = None
_tried = False
_loading = _thread.allocate_lock()  # a thread that came second must not take a parser that is still being loaded for none


def _extension(package: str) -> Any:
    """The `_binding` extension module of `package`, from the first folder on sys.path that has one, or None."""
    name = package + "._binding"
    if name in sys.modules:
        return sys.modules[name]
    import _imp
    from _frozen_importlib import ModuleSpec  # the names importlib.machinery re-exports, without importing importlib
    from _frozen_importlib_external import ExtensionFileLoader

    for folder in sys.path:
        for suffix in _imp.extension_suffixes():
            path = os.path.join(folder or ".", package, "_binding" + suffix)
            if os.path.isfile(path):
                spec = ModuleSpec(name, ExtensionFileLoader(name, path), origin=path)
                spec.has_location = True
                module = _imp.create_dynamic(spec)
                _imp.exec_dynamic(module)
                return module
    return None


def _load() -> Any:
    stubs = [name for name in _UNUSED if name not in sys.modules]
    for name in stubs:
        sys.modules[name] = stub = type(sys)(name)
        setattr(stub, _UNUSED[name], lambda *args, **named: type(sys)("unused"))
    try:
        core, bash = _extension("tree_sitter"), _extension("tree_sitter_bash")
        if core is not None and bash is not None:
            return core.Parser(core.Language(bash.language()))
    except Exception:  # a foreign build of the extension: the packages' own import may still work
        core = None
    finally:
        for name in stubs:
            del sys.modules[name]
    try:
        import tree_sitter
        import tree_sitter_bash

        return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    except Exception:
        return None


def parse(source: bytes) -> Any:
    """The root node of `source` as bash, or None where there is no parser. Never raises."""
    global _parser, _tried
    if not _tried:
        with _loading:
            if not _tried:
                _parser, _tried = _load(), True
    if _parser is None:
        return None
    try:
        return _parser.parse(source).root_node
    except Exception:
        return None

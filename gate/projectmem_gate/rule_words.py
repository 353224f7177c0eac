"""[H] The words that a call must hold for a rule, a label or a decision's clause to cover it: the hook's first look at them.

Like hint words (hints.py): where one of them is missing from a call, the rule is certain not to speak, and nothing is parsed.
Only words that no spelling can do without are among them. A rule of which nothing is certain has none, and is always looked at.
"""

from __future__ import annotations

from projectmem_gate.hints import ANY, runs
from projectmem_gate.rules import OR, names_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

# First words of a command's canonical text that another spelling may do without.
_UNSURE_PROGRAMS = frozenset(
    "edit write patch bunx uvx test cat tee source apply_patch sh bash zsh dash ksh fish pwsh powershell cmd".split()
)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_RELAYS = ("other", "code")  # kinds of tools whose input may be a call of another tool
_LOOKS = ("read", "search")  # kinds of tools that write nothing
_FILE_TOOLS = ("edit", "write", "patch", "notebook")


def may_cover(
    rules: Iterable[Mapping[str, Any]], tool: str, tool_input: Any, words: frozenset[str], named: frozenset[str]
) -> bool:
    """Whether one of the rules or labels may cover a call of `tool`. False is certain.

    words  `raw_words` of its input;  named  words of its folder and of the real names of the files that a file tool names
    """
    return any(_may(rule, tool, tool_input, words, named) for rule in rules)


def _may(rule: Mapping[str, Any], tool: str, tool_input: Any, words: frozenset[str], named: frozenset[str]) -> bool:
    target, pattern = rule.get("target"), rule.get("pattern")
    if "label" not in rule and rule.get("effect") == "allow":
        return False  # a policy's exception: it never objects
    if not isinstance(target, str) or not isinstance(pattern, str) or ANY in words or ANY in named:
        return True
    held = words
    if target in ("tool", "path"):
        from projectmem_gate.tools import kind_of

        kind = kind_of(tool)
    if target == "tool":
        if kind not in _RELAYS:
            return any(names_tool(one.strip(), tool) for one in pattern.split(OR))
        held = words | set(runs(tool))
    elif target == "path":
        if kind in _LOOKS:
            return False
        if kind not in _FILE_TOOLS or not isinstance(tool_input, dict) or "command" in tool_input:
            return True  # a shell has its own ways to say where it writes
        held = words | named
    return any(must <= held for must in sure(target, pattern))


def sure(target: str, pattern: str) -> list[frozenset[str]]:
    """Of each alternative of a pattern the words that every call holds which it covers; none of them: any call may be one."""
    found = {"command": _command, "tool": _tool, "path": _path}.get(target)
    return [found(one.strip()) if found else frozenset() for one in pattern.split(OR)]


def _command(pattern: str) -> frozenset[str]:
    """The program, and its subcommand where that has no other name."""
    words = pattern.split()
    if words[:1] == ["pnpm"] and (not words[1:] or words[1] == "dlx" or not _PLAIN.issuperset(words[1])):
        return frozenset()  # `pnpx` holds neither
    if not words or not _PLAIN.issuperset(words[0]) or not words[0][0].isalpha() or words[0] in _UNSURE_PROGRAMS:
        return frozenset()
    from projectmem_gate.option_tables import SUBCOMMANDS, UNSURE_WORDS
    from projectmem_gate.option_tables_tools import ALIASED

    if words[0].lower() in ALIASED:
        return frozenset()
    out = runs(words[0])
    second = words[1] if len(words) > 1 and words[0] in SUBCOMMANDS else ""
    if second.isalpha() and second.isascii() and second not in UNSURE_WORDS and words[:2] != ["mise", "exec"]:
        out += runs(second)
    return _certain(out)


def _tool(pattern: str) -> frozenset[str]:
    """The letters of the tool's name; `mcp` is put before names that come in two fields."""
    return _certain(_literal(pattern)) - {"mcp"}


def _path(pattern: str) -> frozenset[str]:
    """The letters of the components of a path."""
    return _certain(
        run for component in pattern.replace("\\", "/").split("/") if "HOME" not in component for run in _literal(component)
    )


def _literal(text: str) -> list[str]:
    """Runs of letters of a glob that touch no wildcard; none of a text in which spellings differ by more than case."""
    if not text.isascii() or any(c in text for c in "'\"[]{}"):
        return []
    out = []
    pieces = text.replace("?", "*").split("*")
    for at, piece in enumerate(pieces):
        found = runs(piece)
        if found and at and piece[0].isalpha():
            found = found[1:]
        if found and at + 1 < len(pieces) and piece[-1].isalpha():
            found = found[:-1]
        out += found
    return out


def _certain(found: Iterable[str]) -> frozenset[str]:
    return frozenset(run for run in found if run != "secret")  # the word stands in our marks of secrets, not in the input

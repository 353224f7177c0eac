"""Help texts in words: `--limit N` and not `--limit <int range>`."""

from __future__ import annotations

from typing import Any


def plain(command: Any) -> Any:
    """The command with every option's value named for people, subcommands too, and no types behind the arguments."""
    for param in command.params:
        if param.param_type_name == "argument":
            param.display_type_rich = _nothing
        elif param.metavar is None and not param.is_flag and not param.count:
            param.metavar = "N" if param.type_descriptor.is_ranged else str(param.name).upper().replace("_", "-")
    for each in getattr(command, "commands", {}).values():
        plain(each)
    return command


def _nothing(ctx: Any) -> str:
    return ""

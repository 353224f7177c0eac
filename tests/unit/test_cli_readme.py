"""The README's table of commands names every command and subcommand there is, and none that is not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from projectmem.cli.app import app

README = Path(__file__).resolve().parents[2] / "README.md"
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def rows() -> list[list[str]]:
    """The code spans in the first column of each row."""
    section = README.read_text(encoding="utf-8").split("\n## Commands\n")[1].split("\n## ")[0]
    return [re.findall(r"`([^`]+)`", line.split(" | ")[0]) for line in section.splitlines() if line.startswith("| `")]


def test_the_table_names_every_command_and_no_other() -> None:
    """The words of a group's row after the first are its subcommands."""
    named: set[str] = set()
    for spans in rows():
        words = [span.split()[0] for span in spans]
        if words[0] in COMMANDS and hasattr(COMMANDS[words[0]], "commands") and len(spans[0].split()) > 1 and words[0] != "eval":
            named.add(words[0])
        else:
            named.update(word for word in words if word not in ("cases", "claude-code"))
    assert named == set(COMMANDS)


@pytest.mark.parametrize("group", [name for name, command in COMMANDS.items() if hasattr(command, "commands")])
def test_a_group_s_row_names_its_subcommands(group: str) -> None:
    """As `group sub` in the first span that has the group, and as the spans after it."""
    (spans,) = [spans for spans in rows() if any(span.split()[0] == group for span in spans)]
    first = next(i for i, span in enumerate(spans) if span.split()[0] == group)
    subs = [spans[first].split()[1], *(span.split()[0] for span in spans[first + 1 :])]
    assert {sub for sub in subs if sub not in COMMANDS or sub in COMMANDS[group].commands} == set(COMMANDS[group].commands)


def test_options_that_the_table_shows_exist() -> None:
    """`--name` in a first column is an option of the command it stands with."""
    shown = [(span.split()[0], option) for spans in rows() for span in spans for option in re.findall(r"--[a-z]+", span)]
    assert len(shown) >= 4
    for command, option in shown:
        assert option in [name for param in COMMANDS[command].params for name in param.opts], f"{command} {option}"

"""Every harness that `init` knows: how it is told to call the hook, where, and how it is found to be installed.

A file is either shared with others (`hooks`: our entries are put into it and taken out again) or ours alone (`text`).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from projectmem import place as places
from projectmem.hook import cline, codex, copilot, cursor, droid, gemini, opencode, openhands, pi, qwen
from projectmem.place import Place
from projectmem.setup import claude_settings, hook_lists, node_bridge, opencode_plugin, pi_extension
from projectmem.setup.command import MARK, command_line, words_of
from projectmem.setup.hook_lists import SettingsError

Note = dict[str, Any]
Groups = dict[str, dict[str, Any]]


class Harness:
    """How one harness is set up.

    title     for people;  program  what is looked for on the PATH;  home  its own folder (that it exists shows that it is used)
    project   its file below a work tree;  user  its file for all projects, absolute
    groups    our entry of each event, for a shared file;  text  the content of a file of our own;  comments  of its JSON
    started   the commands that a file of our own which is a program starts, by event
    proof     what it has been run against
    """

    def __init__(
        self,
        title: str,
        program: str,
        home: tuple[str, str],
        project: str,
        user: str,
        *,
        groups: Callable[[], Groups] | None = None,
        text: Callable[[], str] | None = None,
        comments: bool = False,
        top: dict[str, Any] | None = None,
        started: Callable[[str], dict[str, list[list[str]]]] | None = None,
        proof: str = "",
    ) -> None:
        self.title, self.program, self._home, self.project, self._user = title, program, home, project, user
        self.groups, self.text, self.comments, self.top = groups, text, comments, top
        self.started, self.proof = started, proof

    @property
    def home(self) -> Path:
        """The harness's own folder."""
        return Path(places.config_dir(*self._home))

    def ignored(self) -> list[str]:
        """What git should not see of a project's hooks."""
        return [f"/{self.project}"]

    def path(self, place: Place, *, user: bool = False) -> Path:
        """The file that the hooks are in."""
        return self.home / self._user if user else Path(place.root) / self.project

    def installed(self) -> bool:
        """Whether the harness is there: its program, or the folder it makes for itself."""
        return shutil.which(self.program) is not None or self.home.is_dir()

    def add(self, path: Path, note: Note | None = None) -> Note:
        """Put our hooks into the file. Idempotent. Returns a note for `remove`. Raises SettingsError."""
        if self.groups is not None:
            return hook_lists.add(path, self.groups(), note, comments=self.comments, top=self.top)
        made, text, _ = self.planned(path, note)
        folders = [str(p) for p in path.parents if not p.exists()]
        if made != text:
            hook_lists.write(path, made)
        return self._noted(path, note or {"file": str(path), "created": True, "folders": folders})

    def _noted(self, path: Path, note: Note) -> Note:
        return {**note, "after": {file.name: hook_lists.digest(text) for file, text in self._own(path).items()}}

    def _own(self, path: Path) -> dict[Path, str]:
        """The files that are ours alone, as we write them."""
        return {path: self.text()} if self.text is not None else {}

    def changed(self, path: Path, note: Note | None) -> list[Path]:
        """The files that were ours alone, and that somebody changed since: they are not as they were written by whoever made the
        note, nor as `add` would write them. Raises SettingsError."""
        after = (note or {}).get("after")
        known = after if isinstance(after, dict) else {}
        found = {file: (self._own_text(file), made) for file, made in self._own(path).items()}
        return [f for f, (text, made) in found.items() if text not in ("", made) and hook_lists.digest(text) != known.get(f.name)]

    def unknown(self, path: Path) -> bool:
        """Whether the files are there and hold nothing of ours, whatever else they hold. Raises SettingsError where one cannot be
        read."""
        texts = [hook_lists.text_of(file) for file in self._own(path) or (path,)]
        return any(texts) and not any(MARK in text for text in texts)

    def planned(self, path: Path, note: Note | None = None) -> tuple[str, str, str]:
        """(what `add` would make of the file, the file as it is, the file without us). Raises SettingsError."""
        if self.groups is not None:
            return hook_lists.planned(path, self.groups(), note, comments=self.comments, top=self.top)
        text = self._own_text(path)
        return (self.text or str)(), text, ""

    def remove(self, path: Path, note: Note | None = None) -> bool:
        """Take our hooks out of the file again. Returns whether there were any. Raises SettingsError."""
        if self.groups is not None:
            return hook_lists.remove(path, note, comments=self.comments)
        if not self._own_text(path):
            return False
        hook_lists.unlink(path, note or {})
        return True

    def registered(self, path: Path) -> bool:
        """Whether our hooks are in the file. Raises SettingsError."""
        if self.groups is not None:
            return bool(hook_lists.registered(path, comments=self.comments))
        return bool(self._own_text(path))

    def commands(self, path: Path) -> dict[str, list[list[str]]]:
        """The words of each command of ours that the harness starts, by event. Raises SettingsError."""
        if self.groups is not None:
            found = hook_lists.registered(path, comments=self.comments)
        elif path.suffix == ".json":
            data = json.loads(self._own_text(path) or "{}")
            found = hook_lists.hooks_of(path, data if isinstance(data, dict) else {})
        else:
            return self.started(self._own_text(path)) if self.started else {}
        return {
            event: [words_of(hook) for hook in hooks if hook.get("type", "command") == "command"]
            for event, hooks in found.items()
        }

    def _own_text(self, path: Path) -> str:
        text = hook_lists.text_of(path)
        if text and MARK not in text:
            raise SettingsError(f"{path} is there and was not written by `projectmem init`: move it away first")
        return text


def _group(harness: str, event: str, timeout: int, matcher: str = "", **more: Any) -> dict[str, Any]:
    hook = {"type": "command", **more, "command": command_line(harness, event), "timeout": timeout}
    return {"matcher": matcher, "hooks": [hook]} if matcher else {"hooks": [hook]}


def _codex() -> Groups:
    return {event: _group(codex.HARNESS, event, timeout) for event, timeout in codex.EVENTS.items()}


def _gemini() -> Groups:
    return {e: _group(gemini.HARNESS, e, t, "*" if "Tool" in e else "", name="projectmem") for e, t in gemini.EVENTS.items()}


def _qwen() -> Groups:
    return {e: _group(qwen.HARNESS, e, t, "*" if "Tool" in e else "", name="projectmem") for e, t in qwen.EVENTS.items()}


def _copilot() -> str:
    hooks = {
        event: [{"type": "command", "bash": command_line(copilot.HARNESS, event), "timeoutSec": timeout}]
        for event, timeout in copilot.EVENTS.items()
    }
    return json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"


def _droid() -> Groups:
    return {e: _group(droid.HARNESS, e, t, "*" if "Tool" in e else "") for e, t in droid.EVENTS.items()}


def _openhands() -> Groups:
    return {e: _group(openhands.HARNESS, e, t, "*") for e, t in openhands.EVENTS.items()}


def _cursor() -> Groups:
    return {e: {"command": command_line(cursor.HARNESS, e), "timeout": t} for e, t in cursor.EVENTS.items()}


class Scripts(Harness):
    """A harness that runs executable files named after its events, in a folder."""

    def __init__(
        self, title: str, program: str, home: tuple[str, str], project: str, user: str, events: tuple[str, ...], proof: str
    ) -> None:
        super().__init__(title, program, home, project, user, proof=proof)
        self.events = events

    def ignored(self) -> list[str]:
        return [f"/{self.project}/{event}" for event in self.events]

    def planned(self, path: Path, note: Note | None = None) -> tuple[str, str, str]:
        made = "".join(self._script(event) for event in self.events)
        return made, "".join(self._own_text(path / event) for event in self.events), ""

    def add(self, path: Path, note: Note | None = None) -> Note:
        self.planned(path)
        folders = [str(p) for p in (path, *path.parents) if not p.exists()]
        for event in self.events:
            if self._own_text(path / event) != self._script(event):
                hook_lists.write(path / event, self._script(event))
            (path / event).chmod(0o755)
        return self._noted(path, note or {"file": str(path), "created": True, "folders": folders})

    def _own(self, path: Path) -> dict[Path, str]:
        return {path / event: self._script(event) for event in self.events}

    def remove(self, path: Path, note: Note | None = None) -> bool:
        ours = [path / event for event in self.events if self._own_text(path / event)]
        for file in ours:
            hook_lists.unlink(file, (note or {}) if file == ours[-1] else {})
        return bool(ours)

    def registered(self, path: Path) -> bool:
        return any(self._own_text(path / event) for event in self.events)

    def commands(self, path: Path) -> dict[str, list[list[str]]]:
        return {event: [[str(path / event)]] for event in self.events if self._own_text(path / event)}

    def _script(self, event: str) -> str:
        return f"#!/bin/sh\n{command_line(cline.HARNESS, event)}\n"


CLAUDE = "claude-code"
# Started in a folder below the project's they do not look there for its hooks (measured; Claude Code, Codex, Droid, opencode and
# Cline do).
HERE_ONLY = ("gemini", "qwen", "copilot", "pi")
HARNESSES: dict[str, Harness] = {
    CLAUDE: Harness(
        "Claude Code", "claude", ("CLAUDE_CONFIG_DIR", "~/.claude"), ".claude/settings.local.json", "settings.json",
        groups=claude_settings.entries, proof="the real client, 2.1.332",
    ),
    "codex": Harness(
        "Codex CLI", "codex", ("CODEX_HOME", "~/.codex"), ".codex/hooks.json", "hooks.json", groups=_codex,
        proof="the real client, 0.171.0",
    ),
    "gemini": Harness(
        "Gemini CLI", "gemini", ("", "~/.gemini"), ".gemini/settings.json", "settings.json", groups=_gemini, comments=True,
        proof="the real client, 0.61.0",
    ),
    "qwen": Harness(
        "Qwen Code", "qwen", ("QWEN_HOME", "~/.qwen"), ".qwen/settings.json", "settings.json", groups=_qwen, comments=True,
        proof="the real client, 0.24.4",
    ),
    "copilot": Harness(
        "Copilot CLI", "copilot", ("COPILOT_HOME", "~/.copilot"), ".github/hooks/projectmem.json", "hooks/projectmem.json",
        text=_copilot, proof="the real client, 1.0.102",
    ),
    "opencode": Harness(
        "opencode", "opencode", ("OPENCODE_CONFIG_DIR", os.path.join("~", ".config", "opencode")),
        ".opencode/plugins/projectmem.js", "plugins/projectmem.js", text=opencode_plugin.text,
        started=lambda source: node_bridge.started(source, opencode.EVENTS),
        proof="the real client, 1.18.33",
    ),
    "droid": Harness(
        "Factory Droid", "droid", ("", "~/.factory"), ".factory/settings.json", "settings.json", groups=_droid, comments=True,
        proof="the real client, 0.215.0",
    ),
    "cline": Scripts("Cline", "cline", ("", "~/.cline"), ".cline/hooks", "hooks", cline.EVENTS, "the real client, 3.0.65"),
    "pi": Harness(
        "pi", "pi", ("PI_CODING_AGENT_DIR", "~/.pi/agent"), ".pi/extensions/projectmem.ts", "extensions/projectmem.ts",
        text=pi_extension.text, started=lambda source: node_bridge.started(source, pi.EVENTS),
        proof="the real client, 0.73.1",
    ),
    "openhands": Harness(
        "OpenHands", "openhands", ("", "~/.openhands"), ".openhands/hooks.json", "hooks.json", groups=_openhands,
        proof="captured payloads, 1.58.2",
    ),
    "cursor": Harness(
        "Cursor", "cursor", ("", "~/.cursor"), ".cursor/hooks.json", "hooks.json", groups=_cursor, comments=True,
        top={"version": 1}, proof="its documentation only",
    ),
}  # fmt: skip


def detected() -> list[str]:
    """The harnesses that are installed here, in the order of the table."""
    return [name for name, harness in HARNESSES.items() if harness.installed()]

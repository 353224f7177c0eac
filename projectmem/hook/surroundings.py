"""[H] What stands around a command: the programs it needs, as files, and the environment variables it speaks of, by name only.

A tool's mark is where `PATH` finds it and the size and time of the file that leads to: it changes with the version, and a
stat is all it costs. A variable's mark says whether it is set, never what it holds.
"""

from __future__ import annotations

import os

from projectmem.hook.marks import ABSENT, find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from projectmem_gate.model import Action

TOOLS_MAX = 8
NAMES_MAX = 16
SET, UNSET = "set", "unset"
# What a launcher stands on: another version of it is another tool.
_STANDS_ON = {
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "tsc", "eslint", "jest", "vitest", "vite", "next", "tsx"), ("node",)),
    **dict.fromkeys(("pip", "pytest", "mypy", "ruff", "tox", "nox", "poetry", "pipenv"), ("python3", "python")),
    **dict.fromkeys(("mvn", "gradle", "sbt", "kotlinc", "./mvnw", "./gradlew"), ("java",)),
    **dict.fromkeys(("bundle", "rake", "rspec", "rails", "gem"), ("ruby",)),
    **dict.fromkeys(("composer", "phpunit"), ("php",)),
    "python": ("python3", "python"),
    "cargo": ("rustc",),
}
# Variables that decide whether a program is allowed in, whatever it prints.
_CREDENTIALS = {
    "gh": ("GH_TOKEN", "GITHUB_TOKEN"),
    "git": ("SSH_AUTH_SOCK", "GH_TOKEN", "GITHUB_TOKEN"),
    "aws": ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"),
    "terraform": ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"),
    "gcloud": ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CORE_PROJECT"),
    "docker": ("DOCKER_HOST", "DOCKER_CONTEXT"),
    "kubectl": ("KUBECONFIG",),
    "npm": ("NPM_TOKEN", "NODE_AUTH_TOKEN"),
    "psql": ("PGHOST", "PGUSER", "PGPASSWORD", "DATABASE_URL"),
}
_NO_NAMES = frozenset(("HEAD", "TODO", "NOTE", "README", "LICENSE", "FAIL", "PASS", "ERROR", "JSON", "HTTP", "HTTPS"))


def programs_of(action: Action) -> list[str]:
    """Names of the programs that an action runs and of those they stand on, without folders."""
    from projectmem_gate.lines import command_words, program

    found: dict[str, None] = {}
    for part in action.parts:
        if part.kind == "sh" and not part.trivial:
            words = command_words(part)
            own = part.text.split(" ", 1)[0]
            for name in (own, words[0] if words else "", program(part)):
                found.update(dict.fromkeys((name, *_STANDS_ON.get(name, ()))))
    return [name for name in found if name and "/" not in name and "=" not in name and len(name) < 64][:TOOLS_MAX]


def mark(name: str, search_path: str) -> str:
    """`path size-time` of the program that `PATH` finds, `absent`, "" where that cannot be said."""
    path = find_program(name, search_path)
    if path in ("", ABSENT):
        return path
    try:
        real = os.stat(path)
    except OSError:
        return path
    return f"{path} {real.st_size}-{real.st_mtime_ns}"


def same_tool(name: str, recorded: str, search_path: str) -> bool:
    """Is the program the one that was recorded? Older records hold its path alone."""
    now = mark(name, search_path)
    return now == recorded or (" " not in recorded and now.partition(" ")[0] == recorded)


def variables_of(action: Action, output: str) -> list[str]:
    """Names of environment variables that the command or the end of its output speaks of, and the credentials of its programs."""
    found: dict[str, None] = {}
    for part in action.parts:
        if part.kind == "sh" and not part.trivial:
            for word in part.text.split()[:4]:
                found.update(dict.fromkeys(_CREDENTIALS.get(word, ())))
    for text in (action.text, output[-4_000:]):
        if "_" in text or "$" in text:
            found.update(dict.fromkeys(_names(text)))
    return list(found)[:NAMES_MAX]


def _names(text: str) -> Sequence[str]:
    import re

    return [
        name
        for name in re.findall(
            r"(?<![\w./-])\$?\{?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?<=\$)[A-Z]{3,}|(?<=\{)[A-Z]{3,})(?![\w/(-])", text
        )
        if name not in _NO_NAMES and len(name) <= 64
    ]

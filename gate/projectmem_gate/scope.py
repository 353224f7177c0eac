"""[H] What a shell knows while a command line is walked, and the command it is about to run."""

from __future__ import annotations


class Command:
    """One command in command position.

    argv    canonical words (words.py);  env  assignments that matter, name -> word;  cwd  canonical directory
    under   wrappers in front of it that matter (`sudo`, `uv run`), as words
    inside  what else it runs in: `ssh host`, `xargs`, `find`, `for x in ...`, `!`, `source file`
    stdin   ("", "") | ("file", word) | ("text", content) | ("pipe", index of the producing command as str)
    writes  where its output goes as a file: (`>` or `>>`, target word)
    limit   milliseconds that a `timeout` in front of it gives, 0 for none, -1 where nobody waits for it (`&`)
    remote  its paths are not this machine's;  cut  the output filters that were taken off, as text
    among   patterns of the files that it is given, where a list names them (`find`, `xargs`)
    """

    __slots__ = ("among", "argv", "cut", "cwd", "env", "inside", "limit", "remote", "stdin", "under", "writes")

    def __init__(
        self, argv: list[str], env: dict[str, str], scope: Scope, under: tuple[str, ...], inside: tuple[str, ...]
    ) -> None:
        self.argv, self.env, self.under, self.inside = argv, env, under, inside
        self.cwd, self.remote = scope.cwd, scope.remote
        self.stdin: tuple[str, str] = ("", "")
        self.writes: list[tuple[str, str]] = []
        self.cut: tuple[str, ...] = ()
        self.among: tuple[str, ...] = ()
        self.limit = 0


class Scope:
    """Directory, variables, exports, functions, loops, and what the commands run under."""

    __slots__ = (
        "back",
        "cwd",
        "depth",
        "env",
        "functions",
        "inside",
        "loops",
        "remote",
        "stack",
        "under",
        "variables",
    )

    def __init__(self, cwd: str) -> None:
        self.cwd, self.back = cwd, cwd
        self.env: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.loops: dict[str, str] = {}
        self.functions: set[str] = set()
        self.stack: list[str] = []
        self.under: tuple[str, ...] = ()
        self.inside: tuple[str, ...] = ()
        self.remote = False
        self.depth = 0

    def copy(self) -> Scope:
        """A scope of its own: what happens in it stays in it."""
        new = Scope(self.cwd)
        new.back, new.env, new.variables, new.loops = self.back, dict(self.env), dict(self.variables), dict(self.loops)
        new.functions, new.stack = set(self.functions), list(self.stack)
        new.under, new.inside, new.remote, new.depth = self.under, self.inside, self.remote, self.depth
        return new

    def far(self, where: str) -> None:
        """From here on on another machine or in a container."""
        self.inside, self.remote, self.cwd, self.variables = (*self.inside, where), True, "~", {}

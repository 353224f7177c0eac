"""[H] From a shell command line to the commands it would run: positions, never text.

The parse tree is walked in source order. Every simple command becomes one `Command` with its arguments (canonical words), the
environment it would see, its working directory (`cd` folded in), its standard input, where its output goes, and the
wrapper or host it runs under. Loops, conditionals, functions, subshells, `$(...)`, `bash -c`, `eval`, `ssh`, `xargs` and
`find -exec` contribute the commands inside.
"""

from __future__ import annotations

from . import wrappers
from .bash_tree import parse
from .programs import is_filter, is_pure
from .words import COMMAND, END, QCOMMAND, QUOTED, UNQUOTED, Reader, clean, is_static, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .paths import Roots

MAX_COMMANDS = 64
MAX_DEPTH = 8

_OPERATORS = frozenset(("&&", "||", ";", "|", "|&", "&", "\n", ";;", ";&", ";;&"))
_GROUPS = frozenset(("list", "pipeline", "redirected_statement", "program"))
_BODIES = frozenset(
    """if_statement elif_clause else_clause while_statement do_group compound_statement subshell case_statement case_item
    for_statement c_style_for_statement function_definition negated_command ERROR""".split()
)
_SIMPLE = frozenset(
    "command declaration_command unset_command test_command variable_assignment variable_assignments".split()
)
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_SCOPED = frozenset(("subshell", "function_definition"))


class Command:
    """One command in command position.

    argv    canonical words (words.py);  env  assignments that matter, name -> word;  cwd  canonical directory
    under   what it runs under, outermost first: wrappers, `ssh host`, `xargs`, `for x in ...`, `!`
    stdin   ("", "") | ("file", word) | ("text", content) | ("pipe", index of the producing command as str)
    writes  redirections and tee: (operator, target word)
    remote  its paths are not this machine's;  silent  is part of a condition or a substitution
    """

    __slots__ = ("argv", "cwd", "env", "remote", "stdin", "under", "writes")

    def __init__(self, argv: list[str], env: dict[str, str], cwd: str, under: tuple[str, ...], remote: bool) -> None:
        self.argv, self.env, self.cwd, self.under, self.remote = argv, env, cwd, under, remote
        self.stdin: tuple[str, str] = ("", "")
        self.writes: list[tuple[str, str]] = []


class Scope:
    """What a shell knows at a point: directory, variables, exports, functions, and what it runs under."""

    __slots__ = ("back", "cwd", "depth", "env", "functions", "loops", "remote", "stack", "under", "variables")

    def __init__(self, cwd: str) -> None:
        self.cwd, self.back = cwd, cwd
        self.env: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.loops: dict[str, str] = {}
        self.functions: set[str] = set()
        self.stack: list[str] = []
        self.under: tuple[str, ...] = ()
        self.remote = False
        self.depth = 0

    def copy(self) -> Scope:
        new = Scope(self.cwd)
        new.back, new.env, new.variables, new.loops = self.back, dict(self.env), dict(self.variables), dict(self.loops)
        new.functions, new.stack, new.under = set(self.functions), list(self.stack), self.under
        new.remote, new.depth = self.remote, self.depth
        return new


class Walk:
    """One walk over one call's command line; `commands` and `joins` (operator before each command but the first) are its result."""

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self.commands: list[Command] = []
        self.joins: list[str] = []
        self.complete = True  # false when the limit was hit
        self.parsed = True
        self._pending = ""

    # -- entry -----------------------------------------------------------------------------------------------------

    def run(self, text: str, scope: Scope) -> None:
        """Walk `text`; `parsed` turns false when it (or a payload in it) is not understood as bash."""
        source = text.encode("utf-8", "replace")
        root = parse(source)
        if root is None:
            self.parsed = False
            return
        if root.has_error:
            self.parsed = False
        reader = Reader(source, lambda name: self._lookup(name, scope), lambda node, quoted: self._substitute(node, quoted, reader, scope))
        self._sequence(self._flatten(root, reader, []), reader, scope)

    def _lookup(self, name: str, scope: Scope) -> str | None:
        if name == "PWD" and not scope.remote:
            return self._absolute(scope.cwd)
        return scope.variables.get(name)

    def _absolute(self, cwd: str) -> str | None:
        if cwd[:1] == "?":
            return None
        if cwd[:1] == "/" or not self.roots.roots:
            return cwd
        base = self.roots.roots[-1].rstrip("/")
        return (base or "/") if cwd == "." else base + "/" + cwd

    # -- structure -------------------------------------------------------------------------------------------------

    def _flatten(self, node: Any, reader: Reader, out: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Children in source order as ("op", text), ("cmd", node), ("redir", node): precedence is redone by _sequence,
        because the grammar lets a redirection or a pipe bind to a whole list."""
        for child in node.children:
            kind = child.type
            if kind in _OPERATORS:
                out.append(("op", kind))
            elif kind in _GROUPS:
                self._flatten(child, reader, out)
            elif kind in _REDIRECTS:
                out.append(("redir", child))
                if kind == "heredoc_redirect":
                    self._flatten(child, reader, out)
            elif kind in _SIMPLE or kind in _BODIES:
                out.append(("cmd", child))
        return out

    def _sequence(self, items: Iterable[tuple[str, Any]], reader: Reader, scope: Scope) -> None:
        stages: list[tuple[Any, list[Any]]] = []
        fresh = True  # the next command starts a new pipeline stage
        for what, value in items:
            if what == "cmd":
                if not fresh:  # two commands with no operator: a newline
                    self._pipeline(stages, reader, scope)
                    stages = []
                    self._join(";")
                stages.append((value, []))
                fresh = False
            elif what == "redir":
                if not stages:
                    stages.append((None, []))
                stages[-1][1].append(value)
                fresh = False
            elif value in ("|", "|&"):
                fresh = True
            else:
                self._pipeline(stages, reader, scope)
                stages, fresh = [], True
                self._join(value if value in ("&&", "||", "&") else ";")
        self._pipeline(stages, reader, scope)

    def _join(self, operator: str) -> None:
        if not self._pending:
            self._pending = operator
        elif self._pending != operator:
            self._pending = ";"

    def _emit(self, command: Command) -> None:
        if len(self.commands) >= MAX_COMMANDS:
            self.complete = False
            return
        if self.commands:
            self.joins.append(self._pending or ";")
        self._pending = ""
        self.commands.append(command)

    def _pipeline(self, stages: list[tuple[Any, list[Any]]], reader: Reader, scope: Scope) -> None:
        if not stages:
            return
        if len(stages) == 1:
            self._stage(stages[0][0], stages[0][1], reader, scope, ("", ""), [])
            return
        peek = Reader(reader.source, lambda name: None, lambda node, quoted: COMMAND + END)
        read = [self._simple_words(n, peek) if n is not None and n.type == "command" else None for n, _ in stages]
        last = len(stages) - 1
        writes: list[tuple[str, str]] = []
        while last > 0:
            words = read[last]
            if words is None or not is_filter(words[1]):
                break
            if wrappers.basename(words[1][0]) == "tee":
                writes += [("tee", w) for w in words[1][1:] if w[:1] != "-"]
            for redirect in stages[last][1]:
                self._redirect(redirect, reader, None, writes)
            last -= 1
        stdin = ("", "")
        for i in range(last + 1):
            node, redirects = stages[i]
            inner = scope if last == 0 and len(stages) == 1 else scope.copy()
            words = read[i]
            if 0 < i < last and words is not None and is_filter(words[1]):
                continue  # a filter in the middle: what feeds on it is fed by the command before
            before = len(self.commands)
            if i:
                self._pending = "|"
            self._stage(node, redirects, reader, inner, stdin, writes if i == last else [])
            if len(self.commands) > before:
                stdin = ("pipe", str(len(self.commands) - 1))

    def _stage(
        self, node: Any, redirects: list[Any], reader: Reader, scope: Scope, stdin: tuple[str, str], writes: list[tuple[str, str]]
    ) -> None:
        kind = "" if node is None else node.type
        if kind in _SIMPLE or node is None:
            self._simple(node, redirects, reader, scope, stdin, writes)
            return
        before = len(self.commands)
        if kind == "negated_command":
            inner = scope.copy()
            inner.under = (*scope.under, "!")
            self._sequence(self._flatten(node, reader, []), reader, inner)
        elif kind == "compound_statement":
            self._sequence(self._flatten(node, reader, []), reader, scope)
        else:
            self._body(node, reader, scope)
        out = list(writes)
        source = [stdin]
        for redirect in redirects:
            self._redirect(redirect, reader, source, out)
        for command in self.commands[before:]:
            command.writes += out
            if source[0][0] in ("file", "text") and not command.stdin[0]:
                command.stdin = source[0]

    def _body(self, node: Any, reader: Reader, scope: Scope) -> None:
        kind = node.type
        inner = scope.copy()
        bound = Reader(reader.source, lambda name: self._lookup(name, inner), lambda n, q: self._substitute(n, q, bound, inner))
        if kind == "function_definition":
            name = node.child_by_field_name("name")
            if name is not None:
                scope.functions.add(reader.text(name))
                inner.functions.add(reader.text(name))
        elif kind == "for_statement":
            variable = node.child_by_field_name("variable")
            if variable is not None:
                name = reader.text(variable)
                values = " ".join(reader.word(v) for v in node.children_by_field_name("value"))
                inner.loops[name] = f"for {name} in {values}"
                inner.variables.pop(name, None)
        if kind in ("while_statement", "for_statement", "c_style_for_statement", "if_statement", "case_statement"):
            for name in self._assigned(node, reader):
                inner.variables.pop(name, None)
                scope.variables.pop(name, None)
        for group in self._statements(node):
            self._sequence(self._flatten(group, bound, []) if group is node else [("cmd", group)], bound, inner)
            self._join(";")

    @staticmethod
    def _statements(node: Any) -> list[Any]:
        """The nodes to walk inside a compound: itself for those whose children are statements."""
        if node.type in ("for_statement", "c_style_for_statement", "function_definition"):
            return [c for c in node.children if c.type in ("do_group", "compound_statement", "subshell", "if_statement")]
        if node.type == "case_statement":
            return [c for c in node.children if c.type == "case_item"]
        return [node]

    def _assigned(self, node: Any, reader: Reader) -> list[str]:
        found, todo = [], list(node.children)
        while todo:
            n = todo.pop()
            if n.type == "variable_assignment" and n.children:
                found.append(reader.text(n.children[0]))
            elif n.named_child_count:
                todo += n.named_children
        return found

    # -- simple commands -------------------------------------------------------------------------------------------

    def _simple_words(self, node: Any, reader: Reader) -> tuple[dict[str, str], list[str]]:
        env: dict[str, str] = {}
        argv: list[str] = []
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment":
                name, value = self._assignment(child, reader)
                env[name] = value
            elif kind not in _REDIRECTS and kind != "comment":
                argv.append(reader.word(child))
        return env, argv

    def _assignment(self, node: Any, reader: Reader) -> tuple[str, str]:
        children = node.children
        name = reader.text(children[0]) if children else ""
        operator = reader.text(children[1]) if len(children) > 1 else "="
        value = reader.word(children[2]) if len(children) > 2 else ""
        if len(children) > 2 and children[2].type == "array":
            value = UNQUOTED + " ".join(reader.text(children[2]).split()) + END
        if operator != "=":
            value = UNQUOTED + operator + END + value
        return name, value

    def _simple(
        self, node: Any, redirects: list[Any], reader: Reader, scope: Scope, stdin: tuple[str, str], writes: list[tuple[str, str]]
    ) -> None:
        kind = "" if node is None else node.type
        if kind in ("variable_assignment", "variable_assignments"):
            for child in [node] if kind == "variable_assignment" else node.children:
                if child.type == "variable_assignment":
                    self._set(*self._assignment(child, reader), scope)
            return
        env: dict[str, str] = {}
        argv: list[str] = []
        if kind == "command":
            env, argv = self._simple_words(node, reader)
            redirects = [c for c in node.children if c.type in _REDIRECTS] + redirects
        elif kind == "test_command":
            argv = ["test", " ".join(reader.text(node).split())]
        elif kind in ("declaration_command", "unset_command"):
            argv = self._declare(node, reader, scope)
        source, out = [stdin], list(writes)
        for redirect in redirects:
            self._redirect(redirect, reader, source, out)
        self.command(argv, env, scope, source[0], out)

    def _set(self, name: str, value: str, scope: Scope) -> None:
        if is_static(value):
            scope.variables[name] = value
        else:
            scope.variables.pop(name, None)
        if name in scope.env:
            scope.env[name] = value

    def _declare(self, node: Any, reader: Reader, scope: Scope) -> list[str]:
        argv: list[str] = []
        for child in node.children:
            if child.type == "variable_assignment":
                name, value = self._assignment(child, reader)
                self._set(name, value, scope)
                if argv[:1] == ["export"] or "-x" in argv:
                    scope.env[name] = value
                argv.append(f"{name}={value}")
            elif child.type == "variable_name" and argv[:1] == ["export"]:
                name = reader.text(child)
                scope.env[name] = scope.variables.get(name, QUOTED + "$" + name + END)
                argv.append(name)
            else:
                argv.append(reader.word(child))
                if node.type == "unset_command":
                    scope.env.pop(argv[-1], None)
                    scope.variables.pop(argv[-1], None)
        return argv

    def _redirect(self, node: Any, reader: Reader, stdin: list[tuple[str, str]] | None, writes: list[tuple[str, str]]) -> None:
        kind = node.type
        if kind == "herestring_redirect":
            if stdin is not None:
                stdin[0] = ("text", "".join(reader.word(c) for c in node.children if c.is_named) + "\n")
            return
        if kind == "heredoc_redirect":
            if stdin is not None:
                stdin[0] = ("text", self._heredoc(node, reader))
            return
        operator, target = "", None
        for child in node.children:
            if child.type == "file_descriptor":
                continue
            if not child.is_named:
                operator = child.type
            elif target is None:
                target = reader.word(child)
        if target is None:
            return
        if operator in ("<", "<&"):
            if stdin is not None and operator == "<" and target != "/dev/null":
                stdin[0] = ("file", target)
        elif operator in (">", ">>", ">|", "&>", "&>>", "<>") and target not in ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"):
            writes.append((">>" if operator in (">>", "&>>") else ">", target))

    def _heredoc(self, node: Any, reader: Reader) -> str:
        body, quoted, tabs = "", False, False
        for child in node.children:
            if child.type == "heredoc_start":
                quoted = any(c in reader.text(child) for c in "'\"\\")
            elif child.type == "<<-":
                tabs = True
            elif child.type == "heredoc_body":
                body = reader.text(child)
        if tabs:
            body = "\n".join(line.lstrip("\t") for line in body.split("\n"))
        body = clean(body)
        if not quoted and any(c in body for c in "$`\\"):
            body = QUOTED + body + END
        return body

    def _substitute(self, node: Any, quoted: bool, reader: Reader, scope: Scope) -> str:
        """The word piece of `$(...)`; the commands inside are emitted when they do more than look."""
        inner = [c for c in node.children if c.is_named and c.type != "comment"]
        text = " ".join(reader.text(node).split())
        if len(inner) == 1:
            first = inner[0]
            if first.type == "redirected_statement" and first.children and reader.text(first.children[0]) == "cat":
                docs = [c for c in first.children if c.type == "heredoc_redirect"]
                if len(docs) == 1 and len(first.children) == 2:
                    body = self._heredoc(docs[0], reader)
                    if is_static(body):
                        return body.rstrip("\n")
            plain = text[2:-1].strip() if text.startswith("$(") else text[1:-1].strip()
            if plain == "pwd" or (plain == "git rev-parse --show-toplevel" and scope.cwd[:1] not in ("/", "?")):
                known = self._absolute(scope.cwd if plain == "pwd" else ".")
                if known is not None and not scope.remote:
                    return known
        if scope.depth < MAX_DEPTH:
            inside = Walk(self.roots)
            deeper = scope.copy()
            deeper.depth += 1
            bound = Reader(reader.source, lambda name: inside._lookup(name, deeper), lambda n, q: inside._substitute(n, q, bound, deeper))
            inside._sequence(inside._flatten(node, bound, []), bound, deeper)
            if not all(is_pure(c.argv) for c in inside.commands):
                self._take(inside)
        return (QCOMMAND if quoted else COMMAND) + clean(text) + END

    def _take(self, inside: Walk) -> None:
        """Emit the commands of a finished inner walk, their pipes renumbered."""
        base = len(self.commands)
        for i, command in enumerate(inside.commands):
            if command.stdin[0] == "pipe":
                command.stdin = ("pipe", str(int(command.stdin[1]) + base))
            if i:
                self._pending = inside.joins[i - 1]
            self._emit(command)
        self._pending = ";"

    # -- commands with their wrappers and payloads -----------------------------------------------------------------

    def command(
        self, argv: list[str], env: dict[str, str], scope: Scope, stdin: tuple[str, str], writes: list[tuple[str, str]]
    ) -> None:
        """Emit one command, or what is inside it."""
        env = {**scope.env, **env}
        argv = wrappers.neutral(argv, env)
        under = scope.under
        while argv:
            prefix, rest = wrappers.kept(argv)
            if not prefix:
                break
            under = (*under, *prefix)
            argv = wrappers.neutral(rest, env)
        for name in wrappers.NEUTRAL_ENV & env.keys():
            del env[name]
        if argv and self._nested(argv, env, under, scope, stdin, writes):
            return
        command = Command(argv, env, scope.cwd, self._loops(argv, scope, under), scope.remote)
        command.stdin, command.writes = stdin, writes
        if argv:
            self._move(argv, scope)
        self._emit(command)

    @staticmethod
    def _loops(argv: list[str], scope: Scope, under: tuple[str, ...]) -> tuple[str, ...]:
        for name, source in scope.loops.items():
            if any(f"${name}" in w and not is_static(w) for w in argv):
                under = (*under, source)
        return under

    def _nested(
        self,
        argv: list[str],
        env: dict[str, str],
        under: tuple[str, ...],
        scope: Scope,
        stdin: tuple[str, str],
        writes: list[tuple[str, str]],
    ) -> bool:
        """Walk into payloads; true when nothing else of this command is left to emit."""
        if scope.depth >= MAX_DEPTH:
            return False
        name = wrappers.basename(argv[0])
        before = len(self.commands)
        script = wrappers.shell_payload(argv)
        inner = scope.copy()
        inner.depth, inner.env, inner.under = scope.depth + 1, env, under
        if script is None and name in wrappers.SHELLS and len(argv) == 1 and stdin[0] == "text" and is_static(stdin[1]):
            script, stdin = stdin[1], ("", "")
        if script is not None:
            inner.variables = {}
            self.run(script, inner)
        elif name == "eval" and len(argv) > 1:
            self.run(" ".join(shown(w) for w in argv[1:]), inner)
            scope.cwd, scope.env = inner.cwd, inner.env
        elif (far := wrappers.ssh(argv)) is not None:
            inner.under, inner.remote, inner.cwd, inner.variables = (*under, *far[0]), True, "~", {}
            self.run(far[1], inner)
        elif (boxed := wrappers.container(argv)) is not None:
            inner.under, inner.remote, inner.cwd, inner.variables = (*under, *boxed[0]), True, "~", {}
            self.command(boxed[1], {}, inner, stdin, writes)
        elif (fed := wrappers.xargs(argv)) is not None:
            inner.under = (*under, "xargs")
            self.command(fed, {}, inner, stdin, writes)
        else:
            for run in wrappers.find_commands(argv):
                found = scope.copy()
                found.depth, found.under = scope.depth + 1, (*under, "find")
                self.command(run, {}, found, ("", ""), [])
            return False
        for command in self.commands[before:]:
            if command.writes is not writes:
                command.writes = command.writes + writes
        return len(self.commands) > before

    def _move(self, argv: list[str], scope: Scope) -> None:
        """Follow cd, pushd, popd."""
        name = argv[0]
        if name not in ("cd", "pushd", "popd", "chdir"):
            return
        if name == "popd":
            if scope.stack:
                scope.cwd = scope.stack.pop()
            return
        operands = [w for w in argv[1:] if w == "-" or w[:1] != "-"]
        if name == "pushd":
            scope.stack.append(scope.cwd)
        target = operands[0] if operands else "\x01~"
        here = scope.cwd
        if target == "-":
            scope.cwd, scope.back = scope.back, here
            return
        scope.back = here
        if not is_static(target) or scope.remote:
            scope.cwd = "?" + shown(target) if not scope.remote else here + "/" + shown(target)
        else:
            scope.cwd = self.roots.name(target, here)

"""[H] From a shell command line to the commands it would run: positions, never text.

The parse tree is walked in source order and every simple command becomes one `Command` (scope.py). `cd`, `export` and
`source` are followed; loops, conditionals, functions, subshells and `$(...)` contribute the commands inside. What carries a
command in its arguments (`bash -c`, `ssh`, `xargs`, `find -exec`) is opened by payloads.py.
"""

from __future__ import annotations

from projectmem_gate import heredocs, payloads, redirects
from projectmem_gate.bash_tree import parse
from projectmem_gate.lines import names
from projectmem_gate.programs import is_filter, is_pure
from projectmem_gate.redirects import NONE, REDIRECTS
from projectmem_gate.scope import Command, Scope
from projectmem_gate.words import COMMAND, END, QCOMMAND, QUOTED, UNQUOTED, Reader, clean, is_static, shown
from projectmem_gate.wrappers import basename

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from projectmem_gate.paths import Roots

MAX_COMMANDS = 64
MAX_DEPTH = 8

_OPERATORS = frozenset(("&&", "||", ";", "|", "|&", "&", "\n", ";;", ";&", ";;&"))
_GROUPS = frozenset(("list", "pipeline", "redirected_statement", "program"))
_GROUPED = frozenset(("subshell", "compound_statement"))
_CHOICES = ("while_statement", "for_statement", "c_style_for_statement", "if_statement", "case_statement")
_CONDITIONS = ("if_statement", "while_statement", "elif_clause")
_HAS_BODY = ("for_statement", "c_style_for_statement", "function_definition")
_BODIES = names(
    """
    while_statement for_statement c_style_for_statement if_statement case_statement elif_clause else_clause do_group
    compound_statement subshell case_item function_definition negated_command ERROR
    """
)
_SIMPLE = names("command declaration_command unset_command test_command variable_assignment variable_assignments")
Stdin = tuple[str, str]
Writes = list[tuple[str, str]]


class Walk:
    """One walk over one call's command line; `commands` and `joins` (operator before each command but the first) are its result.

    parsed    false when the text, or a payload in it, is not understood as bash
    complete  false when there were more than MAX_COMMANDS
    """

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self.commands: list[Command] = []
        self.joins: list[str] = []
        self.complete = True
        self.parsed = True
        self._pending = ""

    def run(self, text: str, scope: Scope) -> None:
        """Walk `text` in `scope`."""
        source = text.encode("utf-8", "replace")
        root = parse(source)
        bodies: dict[str, str] = {}
        if root is not None and root.has_error and "<<" in text:
            lifted = heredocs.lift(text)
            again = parse(lifted[0].encode("utf-8", "replace")) if lifted is not None else None
            if lifted is not None and again is not None and not again.has_error:
                source, root, bodies = lifted[0].encode("utf-8", "replace"), again, lifted[1]
        if root is None:
            self.parsed = False
            return
        if root.has_error:
            self.parsed = False
        self._sequence(self._flatten(root, []), self._reader(source, scope, bodies), scope)

    def _reader(self, source: bytes, scope: Scope, bodies: dict[str, str]) -> Reader:
        reader = Reader(
            source,
            lambda name: self._lookup(name, scope),
            lambda node, quoted: self._substitute(node, quoted, reader, scope),
            bodies,
        )
        return reader

    def _lookup(self, name: str, scope: Scope) -> str | None:
        if name == "PWD" and not scope.remote:
            return self._absolute(scope.cwd)
        return scope.variables.get(name)

    def _absolute(self, cwd: str) -> str | None:
        """Canonical directory as the absolute path the shell would print, None where only the shell knows."""
        if cwd[:1] in ("?", "~"):
            return None
        if cwd[:1] == "/" or not self.roots.roots:
            return cwd
        base = self.roots.base.rstrip("/")
        return (base or "/") if cwd == "." else base + "/" + cwd

    # -- structure -------------------------------------------------------------------------------------------------

    def _flatten(self, node: Any, out: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Children in source order as ("op", text), ("cmd", node), ("redir", node): precedence is redone by _sequence,
        because the grammar lets a redirection or a pipe bind to a whole list."""
        for child in node.children:
            kind = child.type
            if kind in _OPERATORS:
                out.append(("op", kind))
            elif kind in _GROUPS:
                self._flatten(child, out)
            elif kind in REDIRECTS:
                out.append(("redir", child))
                if kind == "heredoc_redirect":
                    self._flatten(child, out)
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
                    self.join(";")
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
                before = len(self.commands)
                self._pipeline(stages, reader, scope)
                if value == "&":
                    for command in self.commands[before:]:
                        command.limit = -1
                stages, fresh = [], True
                self.join(value if value in ("&&", "||", "&") else ";")
        self._pipeline(stages, reader, scope)

    def join(self, operator: str) -> None:
        """Note the operator before the next command; two different ones in a row are a `;`."""
        if not self._pending:
            self._pending = operator
        elif self._pending != operator:
            self._pending = ";"

    def emit(self, command: Command) -> None:
        """Add a command to the result."""
        if len(self.commands) >= MAX_COMMANDS:
            self.complete = False
            return
        if self.commands:
            self.joins.append(self._pending or ";")
        self._pending = ""
        self.commands.append(command)

    def _pipeline(self, stages: list[tuple[Any, list[Any]]], reader: Reader, scope: Scope) -> None:
        """Stages of one pipeline: filters at its end only cut down output and are dropped, filters in the middle too."""
        if len(stages) < 2:
            if stages:
                self._stage(stages[0][0], stages[0][1], reader, scope, NONE, [])
            return
        peek = Reader(reader.source, lambda name: None, lambda node, quoted: COMMAND + END, reader.bodies)
        read: list[list[str]] = [[]]  # the first of them is no filter, whatever it is
        read += [self._words(n, peek)[1] if n is not None and n.type == "command" else [] for n, _ in stages[1:]]
        last = len(stages) - 1
        writes: Writes = []
        while last > 0 and is_filter(read[last]):
            if basename(read[last][0]) == "tee":
                operator = ">>" if "-a" in read[last] or "--append" in read[last] else ">"
                writes += [(operator, w) for w in read[last][1:] if w[:1] != "-"]
            for redirect in stages[last][1]:
                redirects.read(redirect, reader, writes)
            last -= 1
        cut = tuple([" ".join([shown(w) for w in words]) for words in read[last + 1 :]])
        stdin = NONE
        for i in range(last + 1):
            if 0 < i < last and is_filter(read[i]):
                cut = (" ".join([shown(w) for w in read[i]]), *cut)
                continue
            before = len(self.commands)
            if i:
                self._pending = "|"
            inner = scope if last == 0 else scope.copy()
            self._stage(stages[i][0], stages[i][1], reader, inner, stdin, writes if i == last else [])
            if i == last:
                for command in self.commands[before:]:
                    command.cut += cut
            if len(self.commands) > before:
                stdin = ("pipe", str(len(self.commands) - 1))

    def _stage(self, node: Any, outer: list[Any], reader: Reader, scope: Scope, stdin: Stdin, writes: Writes) -> None:
        kind = "" if node is None else node.type
        if kind in _SIMPLE or node is None:
            self._simple(node, outer, reader, scope, stdin, writes)
            return
        before = len(self.commands)
        if kind == "negated_command":
            inner = scope.copy()
            if node.parent is None or node.parent.type not in _CONDITIONS:  # there it only turns the branches round
                inner.inside = (*scope.inside, "!")
            self._sequence(self._flatten(node, []), reader, inner)
        elif kind == "compound_statement":
            self._sequence(self._flatten(node, []), reader, scope)
        else:
            self._body(node, reader, scope)
        self._pending = ""  # the operator behind it is its own, whatever stood last inside
        out = list(writes)
        for redirect in outer:
            stdin = redirects.read(redirect, reader, out) or stdin
        for command in self.commands[before:]:
            command.writes = command.writes + out
            if stdin[0] in ("file", "text") and not command.stdin[0]:
                command.stdin = stdin

    def _body(self, node: Any, reader: Reader, scope: Scope) -> None:
        """Commands inside a compound; what they set stays inside, and what they might set is forgotten outside."""
        kind = node.type
        inner = scope.copy()
        bound = self._reader(reader.source, inner, reader.bodies)
        if kind == "function_definition":
            name = node.child_by_field_name("name")
            if name is not None:
                scope.functions.add(reader.text(name))
                inner.functions.add(reader.text(name))
        elif kind == "for_statement":
            variable = node.child_by_field_name("variable")
            if variable is not None:
                name = reader.text(variable)
                values = " ".join([reader.word(v) for v in node.children_by_field_name("value")])
                inner.loops[name] = f"for {name} in {values}"
                inner.variables.pop(name, None)
        if kind in _CHOICES:
            for name in _assigned(node, reader):
                inner.variables.pop(name, None)
                scope.variables.pop(name, None)
        for group in _statements(node):
            self._sequence(self._flatten(group, []) if group is node else [("cmd", group)], bound, inner)
            self.join(";")

    # -- simple commands -------------------------------------------------------------------------------------------

    def _words(self, node: Any, reader: Reader) -> tuple[dict[str, str], list[str]]:
        env: dict[str, str] = {}
        argv: list[str] = []
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment":
                name, value = _assignment(child, reader)
                env[name] = value
            elif kind not in REDIRECTS and kind != "comment":
                argv.append(reader.word(child))
        return env, argv

    def _simple(self, node: Any, outer: list[Any], reader: Reader, scope: Scope, stdin: Stdin, writes: Writes) -> None:
        kind = "" if node is None else node.type
        if kind in ("variable_assignment", "variable_assignments"):
            for child in [node] if kind == "variable_assignment" else node.children:
                if child.type == "variable_assignment":
                    _set(*_assignment(child, reader), scope)
            return
        env: dict[str, str] = {}
        argv: list[str] = []
        if kind == "command":
            kinds = [child.type for child in node.children]
            for kind, child in zip(kinds, node.children, strict=True) if not _GROUPED.isdisjoint(kinds) else ():
                if kind in _GROUPED:  # `time ( ... )` and `time { ...; }`
                    self._stage(child, outer, reader, scope, stdin, writes)
                    return
            env, argv = self._words(node, reader)
            if not REDIRECTS.isdisjoint(kinds):
                outer = [c for c in node.children if c.type in REDIRECTS] + outer
        elif kind == "test_command":
            argv = ["test", " ".join(reader.text(node).split())]
        elif kind in ("declaration_command", "unset_command"):
            argv = _declare(node, reader, scope)
        out = list(writes)
        for redirect in outer:
            stdin = redirects.read(redirect, reader, out) or stdin
        payloads.command(self, argv, env, scope, stdin, out)

    def _substitute(self, node: Any, quoted: bool, reader: Reader, scope: Scope) -> str:
        """The word piece of `$(...)`; the commands inside are emitted when they do more than look."""
        inner = [c for c in node.children if c.is_named and c.type != "comment"]
        if len(inner) == 1:
            known = self._known_substitution(inner[0], reader, scope)
            if known is not None:
                return known
        text = " ".join(reader.text(node).split())
        if scope.depth < MAX_DEPTH:
            inside, deeper = Walk(self.roots), scope.copy()
            deeper.depth += 1
            inside._sequence(inside._flatten(node, []), inside._reader(reader.source, deeper, reader.bodies), deeper)
            if not all(is_pure(c.argv) for c in inside.commands):
                self._take(inside)
        return (QCOMMAND if quoted else COMMAND) + clean(text) + END

    def _known_substitution(self, node: Any, reader: Reader, scope: Scope) -> str | None:
        """What `$(cat <<'EOF' ...)`, `$(pwd)` and `$(git rev-parse --show-toplevel)` print, None for anything else."""
        first = node.children
        if (
            node.type == "command"
            and len(first) == 2
            and first[1].type == "herestring_redirect"
            and reader.text(first[0]) == "cat"
        ):
            body = reader.bodies.get(reader.text(first[1]).removeprefix("<<<").strip(), "")
            return body.rstrip("\n") if body and is_static(body) else None
        if node.type == "redirected_statement" and len(first) == 2 and first[1].type == "heredoc_redirect":
            if reader.text(first[0]) == "cat":
                body = redirects.heredoc(first[1], reader)
                if is_static(body):
                    return body.rstrip("\n")
            return None
        text = " ".join(reader.text(node).split())
        if text == "pwd" and not scope.remote:
            return self._absolute(scope.cwd)
        if text == "git rev-parse --show-toplevel" and not scope.remote and scope.cwd[:1] not in ("/", "?", "~"):
            return self._absolute(".")
        return None

    def _take(self, inside: Walk) -> None:
        """Emit the commands of a finished inner walk, their pipes renumbered."""
        base = len(self.commands)
        for i, command in enumerate(inside.commands):
            if command.stdin[0] == "pipe":
                command.stdin = ("pipe", str(int(command.stdin[1]) + base))
            if i:
                self._pending = inside.joins[i - 1]
            self.emit(command)
        self._pending = ";"
        self.complete = self.complete and inside.complete


def _statements(node: Any) -> list[Any]:
    """The nodes to walk inside a compound: itself for those whose children are statements."""
    if node.type in _HAS_BODY:
        return [c for c in node.children if c.type in ("do_group", "compound_statement", "subshell", "if_statement")]
    if node.type == "case_statement":
        return [c for c in node.children if c.type == "case_item"]
    return [node]


def _assigned(node: Any, reader: Reader) -> list[str]:
    """Names of the variables assigned anywhere in a compound."""
    found, todo = [], list(node.children)
    while todo:
        n = todo.pop()
        if n.type == "variable_assignment" and n.children:
            found.append(reader.text(n.children[0]))
        elif n.named_child_count:
            todo += n.named_children
    return found


def _assignment(node: Any, reader: Reader) -> tuple[str, str]:
    """`NAME=value` as (name, word)."""
    children = node.children
    name = reader.text(children[0]) if children else ""
    operator = reader.text(children[1]) if len(children) > 1 else "="
    value = reader.word(children[2]) if len(children) > 2 else ""
    if len(children) > 2 and children[2].type == "array":
        value = UNQUOTED + " ".join(reader.text(children[2]).split()) + END
    if operator != "=":
        value = UNQUOTED + operator + END + value
    return name, value


def _set(name: str, value: str, scope: Scope) -> None:
    if is_static(value):
        scope.variables[name] = value
    else:
        scope.variables.pop(name, None)
    if name in scope.env:
        scope.env[name] = value


def _declare(node: Any, reader: Reader, scope: Scope) -> list[str]:
    """export, declare, local, readonly, unset: their effect on the scope, and their words."""
    argv: list[str] = []
    for child in node.children:
        if child.type == "variable_assignment":
            name, value = _assignment(child, reader)
            _set(name, value, scope)
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
                scope.env.pop(shown(argv[-1]), None)
                scope.variables.pop(shown(argv[-1]), None)
    return argv

"""[H] Redirections: what feeds a command (identity) and where its output goes (effects)."""

from __future__ import annotations

from projectmem_gate.heredocs import content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from projectmem_gate.words import Reader

NONE = ("", "")
REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_NOWHERE = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")


def read(node: Any, reader: Reader, writes: list[tuple[str, str]]) -> tuple[str, str] | None:
    """The standard input that a redirection gives, or None; a file it writes is added to `writes`."""
    kind = node.type
    if kind == "herestring_redirect":
        word = "".join([reader.word(c) for c in node.children if c.is_named])
        return "text", reader.bodies.get(word, word + "\n")
    if kind == "heredoc_redirect":
        return "text", heredoc(node, reader)
    operator, target = "", None
    for child in node.children:
        if child.type == "file_descriptor":
            continue
        if not child.is_named:
            operator = child.type
        elif target is None:
            target = reader.word(child)
    if target is None:
        return None
    if operator == "<":
        return "file", target  # /dev/null too: it is what keeps a program from asking
    if operator in (">", ">>", ">|", "&>", "&>>", "<>") and target not in _NOWHERE:
        writes.append((">>" if operator in (">>", "&>>") else ">", target))
    return None


def heredoc(node: Any, reader: Reader) -> str:
    """Content of a here-document; marked when the shell would still expand something in it."""
    body, quoted, tabs, at = "", False, False, node.start_byte
    for child in node.children:
        if child.type != "heredoc_body":
            at = child.end_byte if child.type != "heredoc_end" else at
        if child.type == "heredoc_start":
            quoted = any(c in reader.text(child) for c in "'\"\\")
        elif child.type == "<<-":
            tabs = True
        elif child.type == "heredoc_body":
            start = reader.source.find(b"\n", at) + 1  # the grammar's node leaves out blanks at its beginning
            body = reader.source[min(start or child.start_byte, child.start_byte) : child.end_byte].decode("utf-8", "replace")
    if tabs:
        body = "\n".join([line.lstrip("\t") for line in body.split("\n")])
    return content(body, quoted)

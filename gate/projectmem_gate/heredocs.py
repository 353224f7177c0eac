"""[H] A second try for commands whose here-documents the grammar cannot place, e.g. `python - <<'EOF' 2>&1 | tail`.

The bodies are lifted out and each operator becomes a here-string of a placeholder word, which the grammar reads anywhere.
Only used where the first parse failed.
"""

from __future__ import annotations

from projectmem_gate.words import END, QUOTED, clean, literal

_MARK = "__heredoc_"


def lift(text: str) -> tuple[str, dict[str, str]] | None:
    """(text without here-documents, placeholder -> content as redirects.heredoc gives it); None when there is none to lift."""
    import re

    pattern = re.compile(r"""(?<!<)<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([A-Za-z_][\w.]*))""")
    bodies: dict[str, str] = {}
    out: list[str] = []
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        i += 1
        waiting: list[tuple[str, str, bool, bool]] = []
        for found in pattern.finditer(line):
            word = found.group(2) or found.group(3) or found.group(4)
            quoted = found.group(4) is None or "\\" in found.group(0)
            name = f"{_MARK}{len(bodies) + len(waiting)}__"
            waiting.append((name, word, quoted, bool(found.group(1))))
        if not waiting:
            out.append(line)
            continue
        names = iter([w[0] for w in waiting])
        out.append(pattern.sub(lambda m, names=names: f" <<< {next(names)}", line))  # type: ignore[misc]
        for name, word, quoted, tabs in waiting:
            body: list[str] = []
            while i < len(lines) and (lines[i].lstrip("\t") if tabs else lines[i]) != word:
                body.append(lines[i].lstrip("\t") if tabs else lines[i])
                i += 1
            if i >= len(lines):
                return None  # not closed: no here-document after all
            i += 1
            bodies[name] = content("".join([part + "\n" for part in body]), quoted)
    return ("\n".join(out), bodies) if bodies else None


def content(body: str, quoted: bool) -> str:
    """Content of a here-document; marked when the shell would still expand something in it."""
    body = clean(body)
    if not quoted and any(c in body for c in "$`\\"):
        plain = literal(body)
        return QUOTED + body + END if plain is None else plain
    return body

"""[H] Files that a shell command rewrites in a way that can be computed before it runs: which, and how.

Pure: a step says what to do with the text of a file, and the caller, who has the disk, does it. A here-document or a plain
`echo` into a file, `sed -i` and `perl -pi` of simple programs, patches that lie in a file, and small programs of Python
(python_edits.py).
"""

from __future__ import annotations

from projectmem_gate import snippets, stream_edits
from projectmem_gate.programs import program
from projectmem_gate.words import is_static, shown
from projectmem_gate.wrappers import basename

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.paths import Roots
    from projectmem_gate.scope import Command

STEPS_MAX = 16


class Step:
    """What a command does to one file.

    how     write | append | sed | perl | patch | code
    path    from the project's root, absolute outside it; of `patch` the file that holds the patch
    text    what is written or appended, or the code;  scripts  of sed and perl;  extended  sed's -E, perl's -0777
    strip, reverse   of `patch`: folders to take off its names (-p), -R;  folder  where a patch is applied or code runs
    """

    __slots__ = ("extended", "folder", "how", "path", "reverse", "scripts", "strip", "text")

    def __init__(self, how: str, path: str, text: str = "", scripts: list[str] | None = None, extended: bool = False) -> None:
        self.how, self.path, self.text, self.scripts, self.extended = how, path, text, scripts or [], extended
        self.strip, self.reverse, self.folder = 1, False, "."

    def apply(self, text: str) -> str | None:
        """The file's text after this step, None where that is not known."""
        if self.how == "write":
            return self.text
        if self.how == "append":
            return text + self.text
        if self.how == "sed":
            return stream_edits.sed(self.scripts, text, extended=self.extended)
        return stream_edits.perl(self.scripts[0], text, whole=self.extended) if self.how == "perl" and self.scripts else None


def steps(command: str, roots: Roots, cwd: str) -> list[Step]:
    """The steps of a command line, in order; [] where nothing in it can be computed. `cwd` is canonical."""
    from projectmem_gate.scope import Scope
    from projectmem_gate.shell import Walk

    walk = Walk(roots)
    walk.run(command.replace("\r\n", "\n").strip(), Scope(cwd))
    if not walk.parsed or not walk.complete:
        return []
    out: list[Step] = []
    for item in walk.commands:
        if item.argv and not (item.remote or item.inside):
            out += _steps(item, roots)
    return out[:STEPS_MAX]


def _steps(item: Command, roots: Roots) -> list[Step]:
    name = basename(item.argv[0])
    if name == "sed":
        return _sed(item, roots)
    if name == "perl":
        return _perl(item, roots)
    if name in ("git", "patch"):
        return _patch(item, name, roots)
    if name in ("cat", "tee", "echo", "printf"):
        return _written(item, name, roots)
    return _code(item) if program(item.argv[0]) == "python" else []


def _code(item: Command) -> list[Step]:
    """Code of Python on the command line, where it writes files."""
    operands = [w for w in item.argv[1:] if w[:1] != "-"]
    source = snippets.code("python", item.argv, item.stdin, operands)
    if source is None or snippets.written(source) == []:
        return []
    step = Step("code", "", source if all(map(is_static, (*item.argv, item.stdin[1]))) else "(")  # which is no program
    step.folder = item.cwd
    return [step]


def _written(item: Command, name: str, roots: Roots) -> list[Step]:
    kind, content = item.stdin
    targets = list(item.writes)
    words = item.argv[1:]
    if name == "tee":
        more = ">>" if "-a" in words else ">"
        targets = [(more, w) for w in words if w[:1] != "-"]
    elif name == "cat" and words:
        return []
    if name in ("echo", "printf"):
        if len(words) != 1 or not is_static(words[0]) or "\\" in words[0] or "%" in words[0] or words[0][:1] == "-":
            return []
        kind, content = "text", words[0] + ("\n" if name == "echo" else "")
    if kind != "text" or not is_static(content):
        return []
    return [
        Step("append" if operator == ">>" else "write", roots.name(w, item.cwd), content)
        for operator, w in targets
        if is_static(w)
    ]


def _sed(item: Command, roots: Roots) -> list[Step]:
    scripts: list[str] = []
    files: list[str] = []
    extended = in_place = False
    words = item.argv[1:]
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not is_static(word):
            return []
        if word in ("-e", "--expression") and at < len(words):
            scripts.append(shown(words[at]))
            at += 1
        elif word[:1] == "-" and word[1:2] not in ("", "-"):
            flags, found, _ = word[1:].partition("i")
            if flags.strip("Er"):
                return []
            extended, in_place = extended or bool(flags), in_place or bool(found)
            at += found == "i" and words[at : at + 1] == [""]  # BSD's `-i ''`
        elif word in ("--in-place", "--regexp-extended") or word.startswith("--in-place="):
            extended, in_place = extended or word == "--regexp-extended", in_place or word != "--regexp-extended"
        elif word[:1] == "-":
            return []
        else:
            files.append(word)
    if not scripts and files:
        scripts.append(files.pop(0))
    return [Step("sed", roots.name(f, item.cwd), "", scripts, extended) for f in files] if in_place and scripts else []


def _perl(item: Command, roots: Roots) -> list[Step]:
    words = item.argv[1:]
    at, seen, whole = 0, "", False
    while at < len(words) and words[at][:1] == "-" and len(words[at]) > 1 and "e" not in seen:
        cluster, at = words[at][1:], at + 1
        while cluster:
            c, cluster = cluster[0], cluster[1:]
            if c == "i" and cluster[:1] in ("", "."):
                cluster = ""  # what follows is the ending of a copy
            elif c == "0" and (cluster[:3] == "777" or not cluster[:1].isdigit()):
                whole, cluster = True, cluster.removeprefix("777")
            elif c not in "pe" or (c == "e" and cluster):
                return []
            seen += c
    if not all(map(is_static, words)) or not {"p", "i", "e"} <= set(seen) or at >= len(words):
        return []
    return [Step("perl", roots.name(f, item.cwd), "", [words[at]], whole) for f in words[at + 1 :]]


def _patch(item: Command, name: str, roots: Roots) -> list[Step]:
    words = item.argv[1:]
    if name == "git" and words[:1] != ["apply"]:
        return []
    strip, reverse, files = 1 if name == "git" else 0, False, []
    for i, word in enumerate(words[1:] if name == "git" else words):
        before = words[i] if name == "git" else words[i - 1] if i else ""
        if not is_static(word) or word in ("--check", "--stat", "--cached", "--dry-run", "--numstat", "--summary"):
            return []
        if word in ("-R", "--reverse"):
            reverse = True
        elif word[:2] == "-p" and word[2:].isdigit():
            strip = int(word[2:])
        elif word[:2] == "-i" and len(word) > 2:
            files.append(word[2:])
        elif word[:1] != "-" and (name == "git" or before in ("-i", "--input")):
            files.append(word)
        elif word[:1] != "-":
            return []  # `patch FILE`: which hunks it takes is another matter
    if item.stdin[0] == "file":
        files.append(item.stdin[1])
    out = []
    for file in files:
        step = Step("patch", roots.name(file, item.cwd))
        step.strip, step.reverse, step.folder = strip, reverse, item.cwd
        out.append(step)
    return out


def stripped(name: str, strip: int) -> str:
    """A name of a patch without its first `strip` folders."""
    return "/".join(name.split("/")[strip:]) if strip < len(name.split("/")) else name


def hunks_of(text: str, strip: int, *, reverse: bool) -> list[tuple[str, list[tuple[str, str]]]] | None:
    """(path, its hunks as (old text, new text)) of each file of a unified diff; None where it makes, removes or moves files."""
    from projectmem_gate.edits import read_patch

    out = []
    for file in read_patch(text):
        if file.op != "update" or file.moved or not file.hunks:
            return None
        given = file.path if strip == 1 else stripped(file.path, max(0, strip - 1))
        out.append((given, [(new, old) if reverse else (old, new) for old, new in file.hunks]))
    return out

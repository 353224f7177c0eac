"""[H] One canonicaliser of paths: whatever the spelling, the same file gets the same name.

Canonical is a POSIX path relative to the project root ("." is the root itself), or an absolute one when it lies outside.
Handles absolute and relative spellings, `./`, `..`, doubled and trailing slashes, Windows drives and backslashes, MSYS
(`/c/x`) and WSL (`/mnt/c/x`) spellings of a Windows root, other worktrees of the project, macOS's `/private` prefix,
and, when the file system is said to ignore them, case and Unicode normal form. Pure: what needs the disk (symlinks) is
done by the `resolve` function of the caller.
"""

from __future__ import annotations

from posixpath import normpath

from projectmem_gate.moves import MOVES_FOLLOWED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Links that lead each process to files of its own: what they stand for is no name.
OWN = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self", "/proc/thread-self")
UNKNOWN = "?"  # first character of a working directory that only the shell could know, e.g. "?$DIR"


def _drive(path: str) -> bool:
    return len(path) > 1 and path[1] == ":" and path[0].isalpha() and path[0].isascii()


class Roots:
    """How paths of one project are named.

    root       absolute path of the worktree in either spelling;  worktrees  further roots that count as the same project
    fold_case, fold_unicode   the file system ignores case / Unicode normal form
    resolve    absolute path -> its real path (symlinks followed), supplied by the caller, or None
    renames    canonical name now -> canonical name before, of files and folders that were moved on record
    """

    __slots__ = ("base", "fold_case", "fold_unicode", "renames", "resolve", "roots", "windows")

    def __init__(
        self,
        root: str,
        worktrees: Sequence[str] = (),
        fold_case: bool = False,
        fold_unicode: bool = False,
        resolve: Callable[[str], str] | None = None,
        renames: Mapping[str, str] | None = None,
    ) -> None:
        self.windows = _drive(root) or root.startswith("\\\\")
        self.fold_case, self.fold_unicode, self.resolve = fold_case or self.windows, fold_unicode, resolve
        roots = [self._absolute(r) for r in (root, *worktrees) if r]
        if resolve is not None:
            roots += [self._absolute(self._real(r)) for r in roots]
        self.base = roots[0] if roots else ""
        self.roots = tuple(sorted(dict.fromkeys(roots), key=lambda r: -len(r)))
        self.renames = {self._fold(k): self._fold(v) for k, v in renames.items()} if renames else {}

    @property
    def renaming(self) -> bool:
        """Can a plain relative name be another spelling of a name: by case, Unicode form or a move?"""
        return self.fold_case or self.fold_unicode or bool(self.renames)

    @property
    def asks_disk(self) -> bool:
        """May folders be symbolic links?"""
        return self.resolve is not None

    def _before(self, name: str) -> str:
        """The name that a file had before it, or a folder above it, was moved."""
        for _ in range(MOVES_FOLLOWED if self.renames else 0):
            head, rest = name, ""
            while head and head not in self.renames:
                head, _, tail = head.rpartition("/")
                rest = "/" + tail + rest
            if not head:
                return name
            name = self.renames[head] + rest
        return name

    def _real(self, path: str) -> str:
        if path.startswith(OWN):
            return path
        try:
            return self.resolve(path) if self.resolve is not None else path
        except Exception:  # a resolver that fails must not cost the identity
            return path

    def _fold(self, path: str) -> str:
        if self.fold_unicode and not path.isascii():
            from unicodedata import normalize

            path = normalize("NFC", path)
        return path.lower() if self.fold_case else path

    def posix(self, path: str) -> str:
        """Slashes and drive in one spelling; still relative when it was."""
        if self.windows or (_drive(path) and path[2:3] in ("\\", "/")) or path.startswith("\\\\"):
            path = path.replace("\\", "/")
            if path.startswith("//?/"):
                path = path[4:]
            elif path.startswith(("//wsl.localhost/", "//wsl$/")):  # Windows' view of a Linux distribution
                path = "/" + "/".join(path[2:].split("/")[2:])
            if path.startswith("/mnt/") and len(path) > 5 and path[5].isalpha() and path[6:7] in ("", "/"):
                path = path[5] + ":" + (path[6:] or "/")
            elif path.startswith("/cygdrive/") and path[11:12] in ("", "/"):
                path = path[10:11] + ":" + (path[11:] or "/")
            elif len(path) > 1 and path[0] == "/" and path[1].isalpha() and path[2:3] in ("", "/"):
                path = path[1] + ":" + (path[2:] or "/")
            if _drive(path):
                path = path[0].upper() + path[1:]
        return path

    def _absolute(self, path: str) -> str:
        path = normpath(self.posix(path))
        if path.startswith("//"):
            path = path[1:]
        if path.startswith("/private/") and path.startswith(("/private/tmp", "/private/var", "/private/etc")):
            path = path[8:]
        return self._fold(path)

    def is_absolute(self, path: str) -> bool:
        return path[:1] == "/" or (_drive(path) and path[2:3] in ("/", "\\")) or path.startswith("\\\\")

    def name(self, path: str, cwd: str = ".", real: bool = False) -> str:
        """Canonical name of `path` as seen from the canonical directory `cwd`; `real` asks for symlinks to be followed."""
        path = self.posix(path)
        if not self.is_absolute(path):
            if cwd[:1] == UNKNOWN:
                return self._fold(cwd + "/" + normpath(path)) if path else cwd
            joined = normpath(path if cwd == "." else cwd + "/" + path)
            if not self.is_absolute(joined):
                if not joined.startswith(".."):
                    joined = self._before(self._fold(joined))
                    return self._named_real(joined) if real and self.resolve is not None else joined
                joined = self.base + "/" + joined if self.roots else joined
            path = joined
        path = self._absolute(path)
        inside = self._inside(path)
        if inside is None and self.resolve is not None:
            path = self._absolute(self._real(path))
            inside = self._inside(path)
        elif inside is not None and real and self.resolve is not None:
            return self._named_real(self._before(inside))
        return path if inside is None else self._before(inside)

    def literal(self, path: str, cwd: str = ".") -> str:
        """`name` of a path as it is written, whatever was moved."""
        kept, self.renames = self.renames, {}
        try:
            return self.name(path, cwd)
        finally:
            self.renames = kept

    def above(self, name: str) -> bool:
        """Is the canonical `name` a directory that the project lies in? `..` is another spelling of it."""
        return name[:1] == "/" and any(root.startswith(name.rstrip("/") + "/") for root in self.roots)

    def _inside(self, path: str) -> str | None:
        for root in self.roots:
            if path == root:
                return "."
            if path.startswith(root) and (path[len(root)] == "/" or root == "/"):
                return path[len(root) :].lstrip("/")
        return None

    def _named_real(self, name: str) -> str:
        path = self._absolute(self._real(self.base + "/" + name))
        inside = self._inside(path)
        return path if inside is None else inside

    def seen_from(self, path: str, cwd: str) -> str:
        """`path` (any spelling, as written in `cwd`) relative to `cwd`: the form used inside a command, whose key holds cwd."""
        path = self.posix(path)
        if not self.is_absolute(path):
            short = normpath(path)
            if not short.startswith("..") and not self.renames:
                return self._fold(short)
        return relative(self.name(path, cwd), cwd)


def relative(name: str, cwd: str) -> str:
    """Canonical `name` relative to canonical `cwd`; unchanged where there is no way between them ("//x": in the project)."""
    if name == cwd:
        return "."
    outside = name[:1] == "/" or _drive(name)
    if cwd == ".":
        return name
    if name.startswith(cwd + "/"):
        return name[len(cwd) + 1 :]
    if cwd[:1] == UNKNOWN or name[:1] == UNKNOWN or outside:
        return name if outside else "//" + name
    if cwd[:1] == "/" or _drive(cwd):
        return "//" + name
    here, there = cwd.split("/"), [] if name == "." else name.split("/")
    n = 0
    while n < len(here) and n < len(there) and here[n] == there[n]:
        n += 1
    return "/".join([".."] * (len(here) - n) + there[n:])

"""Facts of the workspace: recorded with a failure, compared at a check. All of it is only asked what came since (sources.py).

FACTS, as recorded in `action.finished`:
    head      commit of HEAD, `none` outside git and before the first commit, "" where it cannot be read
    deps      {path: mark} of manifests, lock files and install marks in the root and the call's folder
    files     {path: mark} of at most 64 files: named by the command, by its output, or edited lately
    tools     {program: mark} of the programs it ran and what they stand on (surroundings.py)
    env       {name: set | unset} of the environment variables it speaks of: names, never values
    worktree  git's name of the linked worktree, "" in the main one;  tracked  how many files git's index has
    written   when it was read, in microseconds of this machine's clock: what was written later is a change (sources.py)
    outside   the folder outside the root that it worked in, where there is one: its files are looked at by time as well
    modes     those of `files` that can be executed;  git  marks of what is staged, of remotes and branches, for git's failures
Paths are root-relative POSIX, absolute outside the root. A mark is 16 hex digits of the content's SHA-256, `absent`,
`~size-mtime` for what is too big to hash, `/` + 16 hex digits of names and sizes for a folder, "" for what cannot be read.
"""

from __future__ import annotations

import os
import time

from projectmem_logs.digest import sha256_hex

from projectmem.hook import surroundings
from projectmem.place import env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from projectmem_gate.model import Action

    from projectmem.place import Place

FILES_MAX = 64
DEPS_MAX = 32
FILE_BYTES_MAX = 1 << 20  # larger files are told apart by size and time
TOTAL_BYTES_MAX = 8 << 20
FOLDER_ENTRIES_MAX = 256
CHANGED_SHOWN = 5
TREE_SHOWN = 32  # of files written since: more are said without names
WORDS_TRIED_MAX = 400  # of an output, as names of files
ABSENT = "absent"
PACKAGES = "site-packages"
NO_COMMIT = "none"

_MANIFESTS = """
package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml yarn.lock bun.lock bun.lockb deno.json deno.lock
.nvmrc .node-version .tool-versions mise.toml pyproject.toml setup.py setup.cfg requirements.txt requirements-dev.txt
uv.lock poetry.lock pdm.lock Pipfile Pipfile.lock environment.yml tox.ini .python-version go.mod go.sum go.work
Cargo.toml Cargo.lock rust-toolchain rust-toolchain.toml Gemfile Gemfile.lock composer.json composer.lock pom.xml
build.gradle build.gradle.kts gradle.lockfile mix.exs mix.lock pubspec.yaml pubspec.lock Package.swift
Package.resolved CMakeLists.txt conanfile.txt flake.nix flake.lock Makefile .env
"""
MANIFESTS = frozenset(_MANIFESTS.split())
# What an installer leaves behind: changes when a person installs, although no manifest does.
INSTALL_MARKS = ("node_modules/.package-lock.json", "node_modules/.modules.yaml", "node_modules/.yarn-integrity")


class Disk:
    """The work tree on disk, as `judge.assess` wants it. Every mark is read at most once per process."""

    def __init__(self, place: Place, search_path: str = "", moved: Iterable[str] = ()) -> None:
        """`moved`: moves of files on record; a file is looked for where it is now, under the name it had before."""
        self.place = place
        self.moved: dict[str, str] = {}
        if moved:
            from projectmem_gate.moves import renames

            self.moved = renames(moved)
        self.search_path = search_path
        self._marks: dict[str, str] = {}
        self._written: dict[tuple[int, bool], tuple[str, list[str]]] = {}
        self._own: frozenset[str] | None = None
        self._head: str | None = None
        self._budget = TOTAL_BYTES_MAX

    def own(self, stream: str) -> bool:
        """Whether this machine wrote the stream: what came with a folder, or from another machine, was not seen here."""
        if self._own is None:
            from projectmem_logs.origin import own_streams

            self._own = own_streams(self.place.home)
        return stream in self._own

    def head(self) -> str:
        """The commit that HEAD names, `none` outside git and before the first commit, "" where it cannot be read."""
        if self._head is None:
            self._head = head_of(self.place.git_dir, self.place.common_dir) if self.place.git_dir else NO_COMMIT
        return self._head

    def mark(self, path: str) -> str:
        """The mark of a root-relative or absolute path."""
        found = self._marks.get(path)
        if found is None:
            found, cost = _mark(os.path.join(self.place.root, self._where(path)), self._budget)
            self._budget -= cost
            self._marks[path] = found
        return found

    def _named(self, path: str) -> str:
        """The name on record of a file of the work tree: the one that it had before it was moved."""
        for now, before in self.moved.items():
            if path == now or path.startswith(now + "/"):
                return before + path[len(now) :]
        return path

    def _where(self, path: str) -> str:
        if not self.moved:
            return path
        from projectmem_gate.moves import now

        return now(path, self.moved)

    def record(
        self,
        action: Action,
        output: str = "",
        edited: Iterable[str] = (),
        *,
        tools: Iterable[str] = (),
        variables: Iterable[str] = (),
        git: bool = False,
    ) -> dict[str, Any]:
        """FACTS at a failure of `action`, which said `output`; `edited` are root-relative paths edited lately, `tools` and
        `variables` names of programs and of environment variables. `git`: the repository's own files matter to it."""
        root = self.place.root
        installs = any(kind == "install" for part in action.parts for kind, _ in part.effects)
        deps = _dep_paths(root, dict.fromkeys((".", action.cwd, *_folders(action))), marks=not installs)
        # Not the folder that it goes to: what is in it is looked at by name, or with all other files.
        named = [p for part in action.parts for p in part.paths if not part.trivial or len(action.parts) == 1]
        seen = dict.fromkeys(named)
        seen.update(dict.fromkeys(missing_in(output, root, action.cwd)))
        seen.update(dict.fromkeys(paths_in(output, root, action.cwd)))
        seen.update(dict.fromkeys(edited))
        files = [p for p in seen if p not in deps and p != "."][:FILES_MAX]
        return {
            "head": self.head(),
            "deps": {p: self.mark(p) for p in deps},
            "files": {p: self.mark(p) for p in files},
            "tools": {t: surroundings.mark(t, self.search_path) for t in list(tools)[: surroundings.TOOLS_MAX]},
            "env": {name: self._variable(name) for name in list(variables)[: surroundings.NAMES_MAX]},
            "worktree": self.place.worktree,
            # By the clock that the times of files come from, whatever time the caller goes by.
            "written": time.time_ns() // 1000,
            **({"tracked": n} if (n := self._tracked()) >= 0 else {}),
            "modes": [p for p in files if _may_run(os.path.join(root, p))],
            **({"git": self._git()} if git else {}),
            **({"outside": outside} if (outside := _outside((action.cwd, *_folders(action)))) else {}),
        }

    def _tracked(self) -> int:
        from projectmem.hook import sources

        return sources.count(self.place.root, self.place.git_dir)

    def _git(self) -> dict[str, str]:
        from projectmem.hook.sources import git_marks

        return git_marks(self.place.git_dir, self.place.common_dir)

    def compare(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Each group of recorded FACTS against now: same | changed | unknown (nothing recorded, or not readable)."""
        head, now = _str(recorded, "head"), self.head()
        deps, replaced = self._group(recorded.get("deps"))
        files, changed = self._group(recorded.get("files"))
        absent = self._still_absent(recorded.get("files"))
        here = recorded.get("worktree") in (None, self.place.worktree)
        tree, written = self._tree(recorded, here)
        changed += self._modes(recorded, changed)
        known = [*(recorded.get("files") or ()), *(recorded.get("deps") or ())]
        written = [name for p in written if (name := self._named(p)) not in known]
        shown = changed[:CHANGED_SHOWN] + (written if len(written) <= TREE_SHOWN else [])
        if changed or written:
            files = "changed"
        kept = recorded.get("tracked")
        gone = head != now and type(kept) is int and kept > self._tracked()  # git removed files: there is nothing to look at
        if len(written) > TREE_SHOWN or self._repository(recorded) or gone:
            files, shown = "changed", []  # it cannot be said by names what may matter
        return {
            "head": "unknown" if not head or not now else "same" if head == now else "changed",
            "deps": deps,
            **({"changed_deps": replaced[:CHANGED_SHOWN]} if 0 < len(replaced) <= CHANGED_SHOWN else {}),
            "files": files,
            "changed_files": shown,
            "tools": self._tools(recorded.get("tools")),
            "env": self._variables(recorded.get("env")),
            "here": "same" if here else "elsewhere",
            **({"sources": "unknown"} if tree == "unknown" else {}),
            **({"absent": absent} if absent else {}),
        }

    def _tree(self, recorded: Mapping[str, Any], here: bool) -> tuple[str, list[str]]:
        """(same | changed | unknown, files written since), `same` for what was recorded before the time was."""
        at, outside = recorded.get("written"), recorded.get("outside")
        if type(at) is not int:
            return "same", []
        if (at, here) not in self._written:
            from projectmem.hook import sources

            place = self.place
            self._written[at, here] = sources.newer(place.root, place.git_dir, place.common_dir, at, dirty=not here)
        state, found = self._written[at, here]
        if isinstance(outside, str) and outside:
            from projectmem.hook import sources

            other, names = sources.newer(outside, "", "", at)
            state, found = (other if other == "unknown" else state), found + [f"{outside}/{name}" for name in names]
        return state, found

    def _modes(self, recorded: Mapping[str, Any], changed: list[str]) -> list[str]:
        """Named files that were made executable since, or no longer are."""
        before, files = recorded.get("modes"), recorded.get("files")
        if not isinstance(before, list) or not isinstance(files, dict):
            return []
        here = [p for p in files if p not in changed and self.mark(p) not in ("", ABSENT)]
        return [p for p in here if _may_run(os.path.join(self.place.root, self._where(p))) != (p in before)]

    def _repository(self, recorded: Mapping[str, Any]) -> bool:
        before = recorded.get("git")
        now = self._git() if isinstance(before, dict) else {}
        return any(mark and now.get(name) and now[name] != mark for name, mark in (before or {}).items())

    def _still_absent(self, recorded: Any) -> list[str]:
        """Files that were not there at the failure and are not there now: what the log shows besides did not make them."""
        if not isinstance(recorded, dict):
            return []
        gone = [path for path, mark in recorded.items() if mark == ABSENT and isinstance(path, str)]
        return [path for path in gone if self.mark(path) == ABSENT][:CHANGED_SHOWN]

    def _group(self, recorded: Any) -> tuple[str, list[str]]:
        if not isinstance(recorded, dict):
            return "unknown", []
        changed, unknown = [], False
        for path, mark in recorded.items():
            now = self.mark(path) if isinstance(path, str) and isinstance(mark, str) and mark else ""
            if not now:
                unknown = True
            elif now != mark:
                changed.append(path)
        return ("changed" if changed else "unknown" if unknown else "same"), changed

    def _tools(self, recorded: Any) -> str:
        if not isinstance(recorded, dict) or not recorded or not self.search_path:
            return "unknown"
        same = all(surroundings.same_tool(str(t), str(mark), self.search_path) for t, mark in recorded.items())
        return "same" if same else "changed"

    def _variables(self, recorded: Any) -> str:
        if not isinstance(recorded, dict):
            return "same"
        return "same" if all(self._variable(str(name)) == mark for name, mark in recorded.items()) else "changed"

    def _variable(self, name: str) -> str:
        return surroundings.SET if env(name) else surroundings.UNSET


def head_of(git_dir: str, common_dir: str) -> str:
    """HEAD's commit from git's files: the worktree's own HEAD, loose refs, then packed-refs.

    `none` for a branch without a commit, "" for what these files do not say (damage, or refs kept in a reftable).
    """
    text = _read(f"{git_dir}/HEAD", 4_096)
    if not text.startswith("ref:"):
        return text.strip() if _is_sha(text.strip()) else ""
    ref = text[4:].strip()
    if ".." in ref or not ref.startswith("refs/") or ref.endswith(".invalid"):
        return ""
    for folder in (git_dir, common_dir) if git_dir != common_dir else (git_dir,):
        sha = _read(f"{folder}/{ref}", 4_096).strip()
        if _is_sha(sha):
            return sha
    return _packed(f"{common_dir}/packed-refs", ref)


def _packed(path: str, ref: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(16 << 20)
    except FileNotFoundError:
        return NO_COMMIT
    except OSError:
        return ""
    at = data.find(b" " + ref.encode() + b"\n")
    while at >= 0:
        sha = data[max(0, data.rfind(b"\n", 0, at) + 1) : at].decode("ascii", "replace")
        if _is_sha(sha):
            return sha
        at = data.find(b" " + ref.encode() + b"\n", at + 1)
    return NO_COMMIT


def _is_sha(text: str) -> bool:
    return len(text) in (40, 64) and all(c in "0123456789abcdef" for c in text)


def _folders(action: Action) -> list[str]:
    """The folders that a call goes to itself: `cd packages/api && npm test`."""
    texts = [part.text for part in action.parts if part.kind == "sh" and not part.trivial]
    notes = [text.partition("  # in ")[2].partition(",")[0] for text in texts]
    return [note for note in notes if note and note[:1] not in ("?", "~")]


def _may_run(path: str) -> bool:
    """Is it a file that may be executed? What no file can be called (NUL in it) is none."""
    try:
        return os.access(path, os.X_OK)
    except ValueError:
        return False


def _outside(folders: Iterable[str]) -> str:
    """The first folder outside the root in which a command works, but for those in which everybody puts everything."""
    from projectmem_gate.relevance import SHARED

    return next((f.rstrip("/") for f in folders if os.path.isabs(f) and f.rstrip("/") not in ("", env("HOME"), *SHARED)), "")


def _dep_paths(root: str, folders: Iterable[str], *, marks: bool = True) -> list[str]:
    """Root-relative manifests and lock files that exist in these folders, and what installers left there: not for an
    installer (`marks`), which does not go by that."""
    found: list[str] = []
    for folder in folders:
        prefix = "" if folder in (".", "") else folder.rstrip("/") + "/"
        try:
            names = sorted(MANIFESTS.intersection(os.listdir(os.path.join(root, folder))))
        except OSError:
            continue
        found += [prefix + name for name in names]
        if not marks:
            continue
        if "package.json" in names:
            found += [prefix + m for m in INSTALL_MARKS if os.path.exists(os.path.join(root, prefix + m))] or [
                prefix + INSTALL_MARKS[0]
            ]
        found += [packages for venv in (".venv", "venv") if (packages := _packages(root, prefix + venv))]
    return found[:DEPS_MAX]


def _packages(root: str, venv: str) -> str:
    """The folder of a virtual environment's packages, "" where there is none."""
    try:
        versions = sorted(name for name in os.listdir(os.path.join(root, venv, "lib")) if name.startswith("python"))
    except OSError:
        return ""
    return f"{venv}/lib/{versions[0]}/{PACKAGES}" if versions else ""


def _mark(path: str, budget: int) -> tuple[str, int]:
    """(mark, bytes read)."""
    try:
        stat = os.stat(path)
        kind = stat.st_mode & 0o170000
        if kind == 0o040000 and path.endswith(PACKAGES):
            return f"~{stat.st_mtime_ns}", 0  # every install and removal changes the folder itself
        if kind == 0o040000:
            return "/" + _folder_mark(path), 0
        if kind != 0o100000:
            return "", 0
        if stat.st_size > min(FILE_BYTES_MAX, budget):
            return f"~{stat.st_size}-{stat.st_mtime_ns}", 0
        data = _bytes(path, FILE_BYTES_MAX + 1)
        return sha256_hex(data)[:16], len(data)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, 0
    except (OSError, ValueError):
        return "", 0


def _folder_mark(path: str) -> str:
    """Names and sizes of a folder's first 256 files, level by level: what a checkout elsewhere has the same."""
    rows: list[str] = []
    todo = [(path, "")]
    while todo and len(rows) < FOLDER_ENTRIES_MAX:
        folder, prefix = todo.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name in (".git", "node_modules", "__pycache__") or len(rows) >= FOLDER_ENTRIES_MAX:
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append((entry.path, f"{prefix}{entry.name}/"))
            else:
                rows.append(f"{prefix}{entry.name} {entry.stat(follow_symlinks=False).st_size}")
    return sha256_hex("\n".join(rows).encode("utf-8", "surrogateescape"))[:16]


def paths_in(output: str, root: str, cwd: str, limit: int = 32) -> list[str]:
    """Root-relative paths of files that the output names and that exist. Looks at the first and last 16,000 characters."""
    text = output if len(output) <= 32_000 else output[:16_000] + "\n" + output[-16_000:]
    if "." not in text and "/" not in text:
        return []
    found: dict[str, None] = {}
    for word in file_words(text)[:WORDS_TRIED_MAX]:
        if len(found) >= limit:
            break
        name = word.replace("\\", "/").removeprefix("./")
        for base in (root, os.path.join(root, cwd)):
            full = os.path.normpath(os.path.join(base, name))
            if full.startswith(root + "/") and "/node_modules/" not in full and os.path.isfile(full):
                found[full[len(root) + 1 :]] = None
                break
    return list(found)


_SAYS_MISSING = (
    "no such file",
    "not found",
    "cannot find",
    "can't find",
    "could not find",
    "does not exist",
    "missing",
    "enoent",
)


def missing_in(output: str, root: str, cwd: str, limit: int = 8) -> list[str]:
    """Root-relative paths of files that the output misses: making one of them may be what mends the failure."""
    lowered = output.lower()
    if not any(mark in lowered for mark in _SAYS_MISSING):
        return []
    lines = [line for line in output[-16_000:].split("\n") if any(mark in line.lower() for mark in _SAYS_MISSING)]
    found: dict[str, None] = {}
    for word in file_words("\n".join(lines[:20])):
        name = word.replace("\\", "/").removeprefix("./")
        for base in dict.fromkeys((os.path.normpath(os.path.join(root, cwd)), root)):
            full = os.path.normpath(os.path.join(base, name))
            if full.startswith(root + "/") and "/node_modules/" not in full and not os.path.lexists(full):
                found[full[len(root) + 1 :]] = None
    return list(found)[:limit]


_NOT_OF_PATHS = {c: " " for c in range(128) if not chr(c).isalnum() and chr(c) not in "_@+~./\\-"}


def file_words(text: str) -> list[str]:
    """The different words of a text that look like names of files, in order: what the pattern of the
    property test finds, without the cost of `re`."""
    found: dict[str, None] = {}
    for word in text.translate(_NOT_OF_PATHS).split():
        if "." in word:
            for piece in (word,) if word.isascii() else _pieces(word):
                if name := _file_word(piece):
                    found[name] = None
    return list(found)


def _file_word(word: str) -> str:
    """`word` up to ten characters after its last dot that stands in a name, "" where there is none."""
    at = len(word)
    while (at := word.rfind(".", 1, at)) > 0:
        end = at + 1
        while end < len(word) and end - at <= 10 and (word[end].isalnum() or word[end] == "_"):
            end += 1
        if end > at + 1 and (word[at - 1].isalnum() or word[at - 1] in "_-"):
            return word[:end]
    return ""


def _pieces(word: str) -> list[str]:
    return "".join(c if c.isalnum() or c in "_@+~./\\-" else " " for c in word).split()


def find_program(name: str, search_path: str) -> str:
    """Where a program is: its path on `search_path`, `absent`, or "" where that cannot be said (a path, an empty name)."""
    if not name or "/" in name or "\\" in name or not search_path:
        return ""
    for folder in dict.fromkeys(search_path.split(os.pathsep)):  # some are named twice
        path = f"{folder}{name}" if folder.endswith(os.sep) else f"{folder}{os.sep}{name}"
        if folder and os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return ABSENT


def _bytes(path: str, limit: int) -> bytes:
    """The first bytes of a file, by the system's own calls: most facts are small files. Raises OSError, ValueError."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        data = piece = os.read(fd, limit)
        while piece and len(data) < limit:
            data += (piece := os.read(fd, limit - len(data)))
        return data
    finally:
        os.close(fd)


def _read(path: str, limit: int) -> str:
    try:
        return _bytes(path, limit).decode("utf-8", "replace")
    except OSError:
        return ""


def _str(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""

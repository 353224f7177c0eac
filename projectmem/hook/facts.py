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

from projectmem.hook import surroundings
from projectmem.hook.marks import ABSENT, MANIFESTS, NO_COMMIT, PACKAGES, head_of, mark_of
from projectmem.place import env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from projectmem_gate.model import Action

    from projectmem.place import Place

FILES_MAX = 64
DEPS_MAX = 32
TOTAL_BYTES_MAX = 8 << 20
CHANGED_SHOWN = 5
TREE_SHOWN = 32  # of files written since: more are said without names

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
            found, cost = mark_of(os.path.join(self.place.root, self._where(path)), self._budget)
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
        from projectmem.hook.told_files import missing_in, paths_in

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


def _str(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""

"""[H] What of the work tree was written since a failure, whoever did it: files that git's index lists, and new ones beside them.

A stat for each file is all it costs, and only a candidate causes it. Where there are more than FILES_MAX of them, or the
index cannot be read, the answer is `unknown`, never `same`. The index is read by gitformat-index(5), versions 2 to 4.
"""

from __future__ import annotations

import os

from projectmem_gate.globs import path_matches
from projectmem_logs.digest import sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Entry = tuple[str, int, int, int, bytes]  # path, mode, mtime in ns, size (32 bits), object

SECOND_NS, COARSE_NS = 1_000_000_000, 2_000_000_000  # FAT keeps every other second
FILES_MAX = 2_000
INDEX_BYTES_MAX = 1 << 20
NEW_MAX = 64  # new files of one folder that are looked at
_SKIPPED = frozenset("node_modules __pycache__ venv env target dist build coverage htmlcov vendor site-packages".split())
_MADE = (".pyc", ".log", ".tmp", ".swp", "~", ".tsbuildinfo", ".lcov", ".orig", ".rej", ".pid", ".sock", ".lock~")
_LOCAL = (".tfvars", ".sqlite3", ".sqlite", ".db", ".local", ".local.json", ".local.toml", ".local.yaml", ".local.yml")
_SETTINGS = (".ini", ".cfg", ".conf", ".toml", ".yaml", ".yml", ".properties", ".env", *[n for n in _LOCAL if n[:6] == ".local"])
_SETTINGS_NAMES = ("config.", "settings.", "secrets.", "credentials.", "local.", "local_settings.", "local_config.")
SETTINGS_FOLDERS_MAX, SETTINGS_ENTRIES_MAX = 64, 256
_REFS_MAX = 256


def newer(root: str, git_dir: str, common_dir: str, at: int, *, dirty: bool = False) -> tuple[str, list[str]]:
    """(same | changed | unknown, root-relative files written, made or removed since `at`), `at` in microseconds of this
    machine's clock. Outside git every file below the root is looked at, but what tools put down. `dirty`: of the files that
    git knows only those which are not as it put them there (a work tree may be younger than `at`). Where the disk's times are
    whole seconds a file that was written shortly before `at` may also have been written after it: `unknown` then."""
    found = _newer(root, git_dir, common_dir, at * 1000, dirty)
    if found[0] == "same" and _is_coarse(root, git_dir):
        found = _newer(root, git_dir, common_dir, at * 1000 - COARSE_NS, dirty)
        return ("same" if found[0] == "same" else "unknown"), []
    return found


def _is_coarse(root: str, git_dir: str) -> bool:
    """Whether the disk keeps whole seconds alone, as every time of these says; by chance they all do once in millions."""
    for path in (root, git_dir, f"{git_dir}/index") if git_dir else (root, os.path.dirname(root)):
        try:
            stat = os.stat(path)
        except OSError:
            return False
        if stat.st_mtime_ns % SECOND_NS or stat.st_ctime_ns % SECOND_NS:
            return False
    return True


def _newer(root: str, git_dir: str, common_dir: str, since: int, dirty: bool) -> tuple[str, list[str]]:
    if not git_dir:
        return _walked(root, since)
    entries = index(git_dir)
    if entries is None or len(entries) > FILES_MAX:
        return "unknown", []
    tracked = {path for path, *_ in entries}
    found = []
    folders = {"": _mtime(root)}
    lstat, base = os.lstat, root + "/"
    for path, mode, mtime, size, _ in entries:
        folder = path[: path.rfind("/")] if "/" in path else ""
        if folder not in folders:
            folders[folder] = _mtime(base + folder)
        if mode & 0o170000 != 0o100000:
            continue
        try:
            stat = lstat(base + path)
        except OSError:
            if folders[folder] > since:
                found.append(path)
            continue
        if stat.st_ctime_ns <= since and stat.st_mtime_ns <= since:
            continue
        # Put in its place by a rename, or made executable: neither of them touches what the file says of its writing.
        other = stat.st_mtime_ns != mtime or stat.st_size & 0xFFFFFFFF != size or (stat.st_mode ^ mode) & 0o100
        if other or (stat.st_mtime_ns > since and not dirty):
            found.append(path)
    found += _settings(root, folders, tracked, since)
    touched = [folder for folder, changed in folders.items() if changed > since]
    ignored = _ignored(root, common_dir) if touched else []
    for folder in touched:
        found += _new(root, folder, tracked, ignored, since)
    return ("changed" if found else "same"), list(dict.fromkeys(found))


def count(root: str, git_dir: str) -> int:
    """The number of entries of git's index, as its first bytes say; -1 where it cannot be read, or files that git handles lie in
    a submodule."""
    if not git_dir or os.path.exists(f"{root}/.gitmodules"):
        return -1
    try:
        with open(os.path.join(git_dir, "index"), "rb") as file:
            head = file.read(12)
    except OSError:
        return -1
    return int.from_bytes(head[8:12], "big") if len(head) == 12 and head[:4] == b"DIRC" else -1


def _mtime(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _new(root: str, folder: str, tracked: set[str], ignored: list[str], since: int, *, deep: bool = True) -> list[str]:
    """Files of a folder that git does not know and that came since; of a new folder those in it."""
    found: list[str] = []
    prefix = f"{folder}/" if folder else ""
    try:
        entries = sorted(os.scandir(f"{root}/{folder}"), key=lambda entry: entry.name)
    except OSError:
        return []
    for entry in entries:
        path = prefix + entry.name
        if path in tracked or len(found) >= NEW_MAX:
            continue
        try:
            stat = entry.stat(follow_symlinks=False)
            if max(stat.st_mtime_ns, stat.st_ctime_ns) <= since:
                continue
            if entry.is_dir(follow_symlinks=False):
                if deep and entry.name[:1] != "." and entry.name not in _SKIPPED and not _is_ignored(path, ignored):
                    found += _new(root, path, tracked, ignored, since, deep=False)
            elif _may_matter(path, entry.name, ignored):
                found.append(path)
        except OSError:
            continue
    return found


def _settings(root: str, folders: Iterable[str], tracked: set[str], since: int) -> list[str]:
    """Files of settings that git does not know, ignored ones too, which were written since: in the folders nearest to the root
    that it knows, and in those at the root that it does not. What else is ignored is mostly what a run leaves behind."""
    known = sorted(folders, key=lambda folder: (folder.count("/") + bool(folder), folder))[:SETTINGS_FOLDERS_MAX]
    found: list[str] = []
    for folder in known:
        for name, is_folder in _listed(f"{root}/{folder}"):
            path = f"{folder}/{name}" if folder else name
            if not is_folder:
                found += [path] * (path not in tracked and _is_setting(name) and _mtime(f"{root}/{path}") > since)
            elif not folder and path not in known and name[:1] != "." and name not in _SKIPPED:
                below = [n for n, inner in _listed(f"{root}/{path}") if not inner and _is_setting(n)]
                found += [f"{path}/{n}" for n in below if f"{path}/{n}" not in tracked and _mtime(f"{root}/{path}/{n}") > since]
    return found


def _listed(folder: str) -> list[tuple[str, bool]]:
    """(name, is a folder) of the entries of a folder that is not too large."""
    rows: list[tuple[str, bool]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(rows) == SETTINGS_ENTRIES_MAX:
                    return []
                rows.append((entry.name, entry.is_dir(follow_symlinks=False)))
    except OSError:
        return []
    return rows


def _is_setting(name: str) -> bool:
    return name.startswith(".env") or name.endswith(_SETTINGS) or name.startswith(_SETTINGS_NAMES)


def _may_matter(path: str, name: str, ignored: Iterable[str]) -> bool:
    """Is a file that git does not know of more than what a run leaves behind? Local configuration is, though ignored."""
    from projectmem.hook.marks import MANIFESTS

    if name in MANIFESTS or name.startswith(".env") or name.endswith(_LOCAL):
        return True
    if name.endswith(_MADE) or name == ".git" or name.startswith((".coverage", ".DS_Store", ".#")):
        return False
    return not _is_ignored(path, ignored)


def _is_ignored(path: str, patterns: Iterable[str]) -> bool:
    return any(path_matches(pattern, path) for pattern in patterns)


def _ignored(root: str, common_dir: str) -> list[str]:
    """The plain patterns of `.gitignore` and git's own exclude file (no exceptions: those files count)."""
    rows: list[str] = []
    for path in (f"{root}/.gitignore", f"{common_dir}/info/exclude"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                rows += [row.strip() for row in file.read(65_536).split("\n")]
        except OSError:
            continue
    return [row.removeprefix("/") for row in rows if row and row[0] not in "#!"][:256]


def _walked(root: str, since: int) -> tuple[str, list[str]]:
    """Outside git: every file that a person may have written, up to FILES_MAX."""
    found: list[str] = []
    todo, seen = [""], 0
    while todo:
        folder = todo.pop()
        try:
            entries = list(os.scandir(f"{root}/{folder}"))
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > FILES_MAX:
                return "unknown", []
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name[:1] != "." and entry.name not in _SKIPPED:
                        todo.append(path)
                elif entry.stat(follow_symlinks=False).st_mtime_ns > since and _may_matter(path, entry.name, ()):
                    found.append(path)
            except OSError:
                continue
    return ("changed" if found else "same"), sorted(found)


def index(git_dir: str) -> list[Entry] | None:
    """The entries of git's index, [] where there is none yet; None for one that is too large, split, or not understood."""
    try:
        with open(f"{git_dir}/index", "rb") as file:
            data = file.read(INDEX_BYTES_MAX + 1)
    except FileNotFoundError:
        return []
    except OSError:
        return None
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4) or len(data) > INDEX_BYTES_MAX or count > FILES_MAX:
        return None
    import struct

    try:
        return _entries(data, version, count)
    except (IndexError, ValueError, struct.error):
        return None


def _entries(data: bytes, version: int, count: int) -> list[Entry] | None:
    from struct import unpack_from

    out: list[Entry] = []
    at, name = 12, b""
    for _ in range(count):
        seconds, ns, mode, size, sha, flags = unpack_from(">8xII8xI8xI20sH", data, at)
        start, skipped = at + 62, False
        if flags & 0x4000:
            skipped, start = bool(data[start] & 0x40), start + 2  # not in this work tree
        if version == 4:
            cut, start = _varint(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - cut] + data[start:end]
            after = end + 1
        else:
            end = data.index(b"\0", start)
            name = data[start:end]
            after = at + ((end - at + 8) & ~7)
        if flags & 0xFFF != min(len(name), 0xFFF):
            return None  # objects of another size, or damage
        if not skipped:
            out.append((name.decode("utf-8", "surrogateescape"), mode, seconds * 1_000_000_000 + ns, size, sha))
        at = after
    return None if data[at : at + 4] == b"link" else out  # a split index: most entries are elsewhere


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 0x7F
    at += 1
    while byte & 0x80:
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
        at += 1
    return value, at


def git_marks(git_dir: str, common_dir: str) -> dict[str, str]:
    """{index, config, refs: mark} of a repository: what is staged (not when), its remotes and settings, its branches."""
    if not git_dir:
        return {}
    entries = index(git_dir)
    staged = (
        b""
        if entries is None
        else b"\0".join(os.fsencode(path) + sha + bytes([mode >> 6 & 1]) for path, mode, _, _, sha in entries)
    )
    try:
        with open(f"{common_dir}/config", "rb") as file:
            config = file.read(65_536)
    except OSError:
        config = b""
    return {
        "index": "" if entries is None else sha256_hex(staged)[:16],
        "config": sha256_hex(config)[:16],
        "refs": sha256_hex("\n".join(_refs(common_dir)).encode("utf-8", "surrogateescape"))[:16],
    }


def _refs(common_dir: str) -> list[str]:
    rows = [f"packed {_mtime(common_dir + '/packed-refs')}"]
    todo = ["refs/heads", "refs/remotes", "refs/tags"]
    while todo and len(rows) < _REFS_MAX:
        folder = todo.pop()
        try:
            entries = sorted(os.scandir(f"{common_dir}/{folder}"), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                todo.append(f"{folder}/{entry.name}")
            else:
                rows.append(f"{folder}/{entry.name} {entry.stat(follow_symlinks=False).st_mtime_ns}")
    return rows

"""Marks of what a failure stood on: files, folders, programs, HEAD. facts.py says what they look like."""

from __future__ import annotations

import os

from projectmem_logs.digest import sha256_hex

FILE_BYTES_MAX = 1 << 20  # larger files are told apart by size and time
FOLDER_ENTRIES_MAX = 256
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


def mark_of(path: str, budget: int) -> tuple[str, int]:
    """(mark, bytes read) of a file or folder; where it has more bytes than `budget`, by size and time."""
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

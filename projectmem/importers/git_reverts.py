"""Reads what the history of the repository took back: each `git revert` says that an attempt was undone, and often why.

A revert becomes a closed issue with one attempt: what the commit tried, which files it touched, what its revert said. A revert
that was itself reverted says nothing: the attempt stands again. Nothing of it can make the gate object; recall knows it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from projectmem.errors import ProjectmemError
from projectmem.importers.reading import Counts
from projectmem.importers.written import Entry
from projectmem.place import Place

_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,64})")
_END, _FIELD = b"\x1e", "\x1f"
_SHORTEST = 7  # digits of a commit that a message names at least
FILES_MAX, MESSAGE_MAX = 50, 2_000
WAIT_S = 600


def read_reverts(place: Place, counts: Counts) -> Iterator[Entry]:
    """(name, time, kind, payload) of what the current branch's history took back, oldest first.

    Raises ProjectmemError where git cannot be run or the folder has no history.
    """
    found = list(_logged(place, counts))
    reverts = {sha[:_SHORTEST]: sha for sha, _, _, _ in found}
    named = {reverted: reverts.get(reverted[:_SHORTEST], "") for _, reverted, _, _ in found}
    again = {sha for reverted, sha in named.items() if sha.startswith(reverted)}  # reverts that were reverted
    for sha, reverted, at, message in reversed(found):
        if sha in again or named[reverted] in again:
            continue
        subject, when, files = _commit(place, reverted)
        why = _why(message)
        title = subject or _quoted(message) or f"commit {reverted[:12]}"
        about = f"{title} (commit {reverted[:12]}{', ' + when if when else ''}) was undone by revert {sha[:12]}"
        said = f". The revert says: {why}" if why else "; the revert gives no reason"
        touched = f". Files: {', '.join(files[:8])}{' ...' if len(files) > 8 else ''}" if files else ""
        issue = f"git-{sha[:16]}"
        opened = {"issue": issue, "title": f"Undone in git: {title}"[:500], "paths": files}
        yield f"git:{sha}:issue", at, "issue.opened", opened
        tried = {"issue": issue, "text": f"{about}{said}{touched}"[:20_000], "outcome": "undone", "verifier": "git revert"}
        yield f"git:{sha}", at, "attempt.recorded", tried
        yield f"git:{sha}:closed", at, "issue.closed", {"issue": issue, "resolution": f"reverted by {sha[:12]}"}


def _logged(place: Place, counts: Counts) -> Iterator[tuple[str, str, int, str]]:
    """(commit, what it reverts, its time in us, its message) of the reverts, newest first."""
    form = f"%H{_FIELD}%ct{_FIELD}%B%x1e"
    argv = ["log", "--no-color", "--no-show-signature", f"--format={form}", "-E", "--grep=^This reverts commit [0-9a-f]"]
    for raw in _git(place, argv).split(_END):
        parts = raw.decode("utf-8", "replace").strip().split(_FIELD, 2)
        named = _REVERTS.search(parts[2]) if len(parts) == 3 else None
        if named and parts[1].isdigit():
            yield parts[0], named.group(1), int(parts[1]) * 1_000_000, parts[2][:MESSAGE_MAX]
        elif len(parts) > 1:
            counts.bad(place.root, "a commit that git describes in another way")


def _commit(place: Place, sha: str) -> tuple[str, str, list[str]]:
    """(subject, day, files) of a commit; nothing where it is no longer there (a shallow clone)."""
    argv = [
        "show",
        "--no-color",
        "--no-show-signature",
        "--no-renames",
        f"--format=%s{_FIELD}%cs",
        "--name-only",
        "-z",
        f"{sha}^{{commit}}",
    ]
    try:
        raw = _git(place, argv)
    except ProjectmemError:
        return "", "", []
    parts = [part.strip("\n") for part in raw.decode("utf-8", "replace").split("\0")]
    subject, _, when = parts[0].partition(_FIELD)
    return subject[:400], when[:10], [part[:4096] for part in parts[1:] if part][:FILES_MAX]


def _why(message: str) -> str:
    """What the revert says beyond git's own two lines and trailers, in one line."""
    body = message.partition("\n")[2]
    lines = (line.strip() for line in body.split("\n"))
    kept = [
        line for line in lines if line and not _REVERTS.search(line) and not re.match(r"[A-Z][A-Za-z-]+-by: |Change-Id: ", line)
    ]
    return " ".join(kept)[:1_000].rstrip(".")


def _quoted(message: str) -> str:
    named = re.match(r'Revert "(.*)"', message)
    return named.group(1)[:400] if named else ""


def _git(place: Place, argv: list[str]) -> bytes:
    """Git's answer about the work tree. Nothing of the repository's own is run (no hook, pager, filter or external diff), and
    what a partial clone lacks is not fetched."""
    safe = ["-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "protocol.allow=never"]
    command = ["git", "-C", place.root, "--no-pager", *safe, *argv]
    try:
        done = subprocess.run(command, capture_output=True, timeout=WAIT_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ProjectmemError(
            f"git could not be run in {place.root} ({exc}): install git, or name a repository with --root"
        ) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:300]
        raise ProjectmemError(f"git has no history of {place.root} to read ({said or f'exit {done.returncode}'})")
    return done.stdout

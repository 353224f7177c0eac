"""Would it be worth trying again? What has changed since a failure, judged by the failure's class.

`judge` answers `same` (nothing that could matter), `changed` (something that may have mended it: the gate stays silent)
or `unknown` (a fact could not be compared: at most a warning), and one phrase that says why. The table is in README.md.
"""

from __future__ import annotations

from projectmem_gate import moves, reach
from projectmem_gate.failure_marks import MISUSED
from projectmem_gate.lines import basename, names
from projectmem_gate.reason import fence
from projectmem_gate.relevance import (
    asks_elsewhere,
    complainer,
    is_config,
    is_document,
    is_lock_file,
    is_profile,
    is_scratch,
    mentions,
    mentions_name,
    names_own_program,
    reads_documents,
    works_beside,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from projectmem_gate.history import Record

SAME, CHANGED, UNKNOWN = "same", "changed", "unknown"
SECOND = 1_000_000
_NAME = 60  # characters of a file's name in a phrase

# Classes whose cause lies in the workspace: any relevant change of it counts.
WORKSPACE = ("build", "test", "runtime", "timeout", "resource", "unknown")
STARTING_US = 600 * SECOND  # a server that was started may take so long
COOLED = {"network": 600 * SECOND, "lock": 600 * SECOND}

# Programs whose runs cannot put a missing command or package in place.
_NO_INSTALLER = names(
    """
    python node deno ruby perl php java go gh git curl tsx ts-node awk sed psql sqlite3 mysql redis-cli open code tmux
    """
)
_SYSTEM_MANAGERS = names("brew apt apt-get apk dnf yum pacman nix mise asdf cargo go pipx uv choco scoop winget snap")


def judge(
    record: Record, facts: Mapping[str, Any] | None, now: int, *, session: str = "", cooldown: Mapping[str, int] | None = None
) -> tuple[str, str]:
    """(same | changed | unknown, why). `facts` as gathered for this record, None when nothing could be read.

    session   who asks: whether a file was read is a matter of each session
    cooldown  {class: us} for network and lock failures, default ten minutes
    """
    if facts is None:
        return UNKNOWN, "the workspace could not be compared"
    cool = (cooldown or COOLED).get(record.cls)
    if cool is not None and now - record.at >= cool:
        return CHANGED, "the cool-down is over"
    if reach.mends_itself(record):
        return CHANGED, "it changed the files itself"
    gone = _still_absent(record, facts)
    if gone:
        return SAME, f"`{fence(basename(gone), _NAME)}` is still not there"
    moved, swept = _moved_at(record, facts), facts.get("head") == CHANGED and _swept(record, facts)
    for change in each_change(facts, record.at):
        if (change[1], change[2]) in moved or (swept and change[0] == "checkout"):
            continue
        why = matters(record, change, session)
        if why:
            return CHANGED, why
    return _facts(record, facts, session)


def changes_after(record: Record, facts: Mapping[str, Any], after: int, until: int = 1 << 62) -> list[tuple[str, str, int]]:
    """The changes on record with after < at <= until, as (type, subject, at); malformed rows are left out."""
    return list(each_change(facts, after, until))


def each_change(facts: Mapping[str, Any], after: int, until: int = 1 << 62) -> Iterator[tuple[str, str, int]]:
    """The same, one by one: who looks for the first that matters need not see them all."""
    for row in facts.get("changes") or ():
        if isinstance(row, (list, tuple)) and len(row) >= 3 and isinstance(row[2], int) and after < row[2] <= until:
            yield str(row[0]), str(row[1]), row[2]


def matters(record: Record, change: tuple[str, str, int] | Sequence[Any], session: str = "") -> str:
    """Why this change may have mended the failure, "" when it cannot have."""
    kind, subject = change[0], change[1]
    if kind == moves.TYPE:
        return ""  # both names are edits besides
    if kind in ("remote", "mcp") and reach.is_answered(record, kind, subject):
        return f"{subject} was used since"
    if kind == "mcp":
        return ""
    rule = _RULES.get(record.cls, _workspace)
    return rule(record, kind, subject)


def _moved_at(record: Record, facts: Mapping[str, Any]) -> set[tuple[str, int]]:
    """(path, when) of edits that were moves of the file as it was: no text in it came or went. For a command that is wrong in
    itself only of files that it names: they are followed under their new names. (What it misses may have been moved there.)"""
    if record.cls not in ("edit-mismatch", "usage"):
        return set()
    found: set[tuple[str, int]] = set()
    for kind, subject, at in changes_after(record, facts, record.at):
        if kind == moves.TYPE:
            old, _, new = subject.partition(moves.BETWEEN)
            if record.cls != "usage" or (mentions(record, old) and not mentions(record, new)):
                found.update(((old, at), (new, at)))
    return found


def _still_absent(record: Record, facts: Mapping[str, Any]) -> str:
    """A path that the error misses and that is not there now either, as the caller saw: whatever was changed besides."""
    if record.cls != "usage" or names_own_program(record) or record.text.startswith("git ") or not _about_a_path(record):
        return ""
    absent = facts.get("absent")
    seen = [p for p in absent if isinstance(p, str) and p] if isinstance(absent, (list, tuple)) else []
    return next((p for p in seen if mentions_name(record.sig, p) or p in record.paths[:1]), "")


def is_read_bound(record: Record) -> bool:
    """Is it a refused edit that only asks for the file to be read (again)?"""
    if record.cls != "edit-mismatch":
        return False
    text = (record.sig + " " + record.excerpt).lower()
    return any(
        mark in text
        for mark in (
            "not been read",
            "modified since",
            "unexpectedly modified",
            "read it again",
            "read it first",
            "must read",
            "changed since",
        )
    )


def _facts(record: Record, facts: Mapping[str, Any], session: str) -> tuple[str, str]:
    cls = record.cls
    head, deps, files = (facts.get(k, UNKNOWN) for k in ("head", "deps", "files"))
    env, tools = facts.get("env", SAME), facts.get("tools", SAME)
    named = [p for p in facts.get("changed_files") or () if isinstance(p, str)]
    workspace = cls in WORKSPACE
    if workspace and head == CHANGED:
        if not _only_committed(record, facts) and not _swept(record, facts):
            return CHANGED, "HEAD moved"
        head = SAME
    if deps == CHANGED and cls not in ("edit-mismatch", "network", "lock", "auth"):
        return CHANGED, "a lock file or manifest changed"
    if files == CHANGED and cls not in ("network",) and (not named or any(matters(record, ("edit", p, 0)) for p in named)):
        return CHANGED, f"{basename(named[0])} changed" if named else "a file involved changed"
    if CHANGED in (env, tools) and cls not in ("edit-mismatch", "lock"):
        return CHANGED, "the environment changed" if env == CHANGED else "a tool's version changed"
    if session and record.session and session != record.session:
        if is_read_bound(record):
            return CHANGED, "another session reads files for itself"
        if reach.of_session(record):
            return CHANGED, "another session has its own"
    if facts.get("here") == "elsewhere" and (workspace or cls in ("missing-dependency", "edit-mismatch")) and files != SAME:
        return UNKNOWN, "it failed in another worktree"
    needed = {"files": files}
    if workspace:
        needed.update(head=head, deps=deps, sources=facts.get("sources", SAME))
    elif cls in ("command-not-found", "missing-dependency"):
        needed.update(deps=deps)
    elif cls in ("network", "lock", "protected-resource"):
        needed = {}
    missing = sorted(k for k, v in needed.items() if v not in (SAME, CHANGED))
    if missing:
        return UNKNOWN, f"could not compare {', '.join(_COMPARED.get(name, name) for name in missing)}"
    if cls == "edit-mismatch" and "are exactly the same" in record.sig:
        return SAME, "the edit changes nothing, whatever the file holds"
    if is_read_bound(record):
        return SAME, "it was not read since"
    if cls == "auth" and _not_allowed(record.sig.lower()):
        return SAME, "not executable or not allowed; no chmod, login or sudo since"
    return SAME, _UNCHANGED.get(cls, "no relevant change is known since")


def _not_allowed(sig: str) -> bool:
    """Did the file system refuse it, not a server?"""
    return any(m in sig for m in ("permission denied", "eacces", "not permitted", "eperm")) and "publickey" not in sig


def _only_committed(record: Record, facts: Mapping[str, Any]) -> bool:
    """Did HEAD move by a commit on record, while no file of the work tree was written since? Then what is tested or built is the
    same. Only where all files were looked at, and not for what asks git itself."""
    if type(record.facts.get("written")) is not int or "sources" in facts or facts.get("here") == "elsewhere":
        return False
    if any(facts.get(k) != SAME for k in ("files", "deps")) or "git " in record.text or names_own_program(record):
        return False
    return any(kind == "git" and subject == "commit" for kind, subject, _ in each_change(facts, record.at))


def _swept(record: Record, facts: Mapping[str, Any]) -> bool:
    """Did the caller look at all files of the work tree, so that what a pull or a switch of branches changed is among those that
    were written since? Not for what asks git itself, nor for programs that may."""
    if (
        record.cls not in WORKSPACE
        or type(record.facts.get("tracked")) is not int
        or type(record.facts.get("written")) is not int
    ):
        return False
    if "sources" in facts or facts.get("here") == "elsewhere" or facts.get("files") not in (SAME, CHANGED):
        return False
    asks = any(mark in record.text for mark in _ASKS_GIT)
    return not asks and not names_own_program(record)


_ASKS_GIT = (
    "git ",
    "git-",
    "gh ",
    "affected",
    "--since",
    "changed",
    "commitlint",
    "lint-staged",
    "pre-commit",
    "husky",
    "danger",
)
_COMPARED = {
    "deps": "lock files",
    "env": "variables",
    "files": "the files it names",
    "head": "HEAD",
    "sources": "the other files",
    "tools": "the programs it runs",
}
_UNCHANGED = {
    "command-not-found": "nothing was installed since",
    "missing-dependency": "nothing was installed since",
    "usage": "the command itself is at fault",
    "auth": "no login since",
    "edit-mismatch": "the file has not changed since",
    "network": "too soon: nothing that could help has changed since",
    "lock": "too soon: nothing that could help has changed since",
}


# What came between, in words: of what, and of what is not known by name.
_CAME = {
    "build": ("%s ran since", "a build ran since"),
    "install": ("%s installed something since", "something was installed since"),
    "login": ("%s logged in or out since", "somebody logged in or out since"),
    "checkout": ("%s was checked out since", "another revision was checked out since"),
    "env": ("the environment was changed since (%s)", "the environment was changed since"),
    "service": ("%s was started or stopped since", "a service was started or stopped since"),
    "git": ("git %s ran since", "git was used since"),
    "remote": ("%s acted on a server since", "a server was acted on since"),
    "any": ("%s ran since", "a program ran since"),
    "move": ("%s was moved since", "a file was moved since"),
}


def _came(kind: str, subject: str) -> str:
    named, unnamed = _CAME.get(kind, (f"{kind} %s since", f"{kind} since"))
    return named % subject if subject else unnamed


def _workspace(record: Record, kind: str, subject: str) -> str:
    if reach.is_misaddressed(record):
        return _came(kind, subject) if reach.readdresses(kind, subject) else ""
    if kind == "build" and record.cls == "test" and subject.split(" ")[0] not in _TESTS_COMPILE:
        return _came("build", subject)  # tests may run what a bundler or make puts in place
    if kind in ("any", "build") and reach.is_same_task(record, subject):
        return ""
    if kind in ("read", "git", "remote") or (kind == "build" and record.cls in ("test", "build")):
        return _outward(record, kind, subject)
    if kind != "edit":
        return _came(kind, subject)
    if asks_elsewhere(record) and not mentions(record, subject):
        return ""
    if is_scratch(subject) and not mentions(record, subject) and not works_beside(record, subject):
        return ""
    if record.cls == "build" and reach.is_foreign(record, subject) and not mentions(record, subject):
        return ""
    if is_document(subject) and record.cls in ("build", "test") and not mentions(record, subject) and not reads_documents(record):
        return ""
    return f"{basename(subject) or 'a file'} was edited"


def _outward(record: Record, kind: str, subject: str) -> str:
    """Index, commits, remotes and build outputs: they mend what works on them, not what tests or compiles the files."""
    if kind == "read" or record.cls in ("build", "test"):
        return ""
    own = record.text.split(" ", 1)[0]
    if kind == "git":
        return _came("git", subject) if own in ("git", "gh", "glab", "hub") or names_own_program(record) else ""
    return f"{subject} was used since" if own not in _PLAIN else ""


# Their tests compile what they test, so that building first changes nothing.
_TESTS_COMPILE = names("go cargo swift zig dotnet mvn gradle sbt")
# Programs whose result depends on local files alone.
_PLAIN = names("python node go cargo make npm pnpm yarn bun ls cat sed grep rg find")


def _missing(record: Record, kind: str, subject: str) -> str:
    if kind == "install" and reach.is_other_ecosystem(record, subject):
        return ""
    if kind in ("checkout", "edit") and reach.misses_command(record):
        put = kind == "edit" and (is_profile(subject) or reach.activates(subject) or _provides(record, subject))
        return f"{basename(subject)} was edited" if put else ""
    if kind in ("install", "env", "checkout"):
        return _came(kind, subject)
    if kind == "build":
        return _came("build", subject) if names_own_program(record) or record.cls == "missing-dependency" else ""
    if kind == "any":
        return "" if basename(subject.split(" ")[0]).lower() in _NO_INSTALLER else f"{subject or 'a program'} ran since"
    if kind == "edit" and (is_config(subject) or is_profile(subject) or mentions(record, subject) or _provides(record, subject)):
        return f"{basename(subject)} was edited"
    if kind == "edit" and _within(record) and not is_scratch(subject) and not is_document(subject):
        return f"{basename(subject)} was edited"
    return ""


def _within(record: Record) -> bool:
    """Is the missing module one of the project's own (`./util`, `@/lib/x`, `.models`)? Then its importer may be at fault."""
    return any(f"{quote}{own}" in record.excerpt for quote in "'\"`" for own in ("./", "../", "@/", "~/", "#/", "."))


def _provides(record: Record, path: str) -> bool:
    """Could a file at `path` be the module or program that was missing?"""
    stem = basename(path).split(".", 1)[0].lower()
    words = {w for w in _words(record.sig) if len(w) > 2}
    return (len(stem) > 2 and stem in words) or any(part.lower() in words for part in path.split("/")[:-1] if len(part) > 2)


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c in "_-" else " " for c in text.lower()).split()


def _usage(record: Record, kind: str, subject: str) -> str:
    own = names_own_program(record)
    if reach.is_misaddressed(record):
        return _came(kind, subject) if reach.readdresses(kind, subject) else ""
    if kind == "edit":
        if "exceeds maximum" in record.sig:
            return ""  # the call must ask for less: files seldom shrink so far
        if reach.is_tool_call(record) and reach.named_in_call(record, subject):
            return f"{basename(subject)} was edited"
        if mentions(record, subject) or (own and not is_scratch(subject) and not is_document(subject)):
            return f"{basename(subject)} was edited"
        return f"{basename(subject)} was edited" if is_config(subject) and _reads_config(record) else ""
    if kind == "install":
        return _came("install", subject) if own or subject.lower() in _SYSTEM_MANAGERS or _reads_config(record) else ""
    if kind in ("any", "checkout", "build"):
        missing = _about_a_path(record)
        if (kind == "any" and own and not missing and _is_same_program(record, subject)) or (
            kind == "build" and missing and not own and reach.cannot_make(subject, record)
        ):
            return ""
        return _came(kind, subject) if own or missing else ""
    if kind == "service":
        return _came(kind, subject) if basename((record.text.split() or [""])[0]) in _SERVED else ""
    if kind == "git":
        blind = is_misspelt(record.sig) and subject != "config"  # an alias may be made
        return _came("git", subject) if record.text.startswith(("git ", "gh ")) and not blind else ""
    return ""


def is_misspelt(signature: str) -> bool:
    """Is the subcommand or the option itself unknown, whatever the repository holds?"""
    low = signature.lower()
    return any(mark in low for mark in MISUSED)


# What they are asked for may come to be when a service starts: "no such container".
_SERVED = names("docker docker-compose podman kubectl oc helm psql mysql redis-cli systemctl service curl")
_TASK_RUNNERS = names(
    """
    npm pnpm yarn bun make gmake just task mise composer rake gradle tox nox poetry uv hatch cargo deno turbo nx
    """
)


def _is_same_program(record: Record, ran: str) -> bool:
    """Did the program that failed only run again, in some other way? That does not change it. (Scripts may write themselves.)"""
    return bool(ran) and record.family.startswith(ran) and basename(ran) not in _INTERPRETERS


_INTERPRETERS = names("python node deno ruby perl php bash sh zsh tsx ts-node bun make npm pnpm yarn just task mise")


def _reads_config(record: Record) -> bool:
    words = complainer(record) or record.family.split() or record.text.split()
    return any(basename(w).lower() in _TASK_RUNNERS for w in words[:3])


def _about_a_path(record: Record) -> bool:
    text = (record.sig + " " + record.excerpt).lower()
    return any(
        m in text
        for m in (
            "no such file",
            "does not exist",
            "cannot access",
            "can't open",
            "pathspec",
            "not a directory",
            "unknown revision",
        )
    )


def _auth(record: Record, kind: str, subject: str) -> str:
    if kind in ("login", "env"):
        return _came(kind, subject)
    if kind == "edit":
        low = basename(subject).lower()
        secret = (
            low.startswith((".env", ".npmrc", ".netrc", ".pypirc"))
            or "credential" in low
            or "config" in low
            or is_profile(subject)
        )
        if secret or mentions(record, subject) or (low.endswith((".tf", ".tfvars")) and "terraform" in record.text):
            return f"{basename(subject)} was edited"
    if kind == "any" and basename(subject).lower() in ("chmod", "chown", "ssh-add", "ssh-keygen", "setfacl", "gpg"):
        return f"{subject} ran since"
    return ""


def _lock(record: Record, kind: str, subject: str) -> str:
    if kind in ("service", "any"):
        return _came(kind, subject)
    return (
        f"{basename(subject)} was removed or edited"
        if kind == "edit" and (is_lock_file(subject) or mentions(record, subject))
        else ""
    )


def _network(record: Record, kind: str, subject: str) -> str:
    if kind in ("login", "env", "service"):
        return _came(kind, subject)
    if kind == "any" and reach.is_local(record) and not _is_same_program(record, subject):
        return f"{subject or 'a program'} ran since"  # it may be the server that was asked for
    return f"{basename(subject)} was edited" if kind == "edit" and mentions(record, subject) else ""


def _edit(record: Record, kind: str, subject: str) -> str:
    ours = subject in record.paths or not record.paths
    if "are exactly the same" in record.sig:
        return ""  # nothing to do, whatever the file holds
    if is_read_bound(record):
        return f"{basename(subject)} was read" if kind in ("read", "edit") and ours else ""
    if kind == "edit" and ours:
        return f"{basename(subject)} was edited"
    return "another revision was checked out" if kind == "checkout" and subject in ("", *record.paths) else ""


def _protected(record: Record, kind: str, subject: str) -> str:
    return _came(kind, subject) if kind in ("login", "checkout", "env") else ""


_RULES = {
    "command-not-found": _missing,
    "missing-dependency": _missing,
    "usage": _usage,
    "auth": _auth,
    "lock": _lock,
    "network": _network,
    "edit-mismatch": _edit,
    "protected-resource": _protected,
}

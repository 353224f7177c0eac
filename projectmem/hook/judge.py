"""The one path from a proposed action to a decision: hook, `check`, `backtest` and `replay` all come through here.

Steps: look the action's keys up in the state, fold what was found, and only where a record is still open (or a person's
rule exists) gather facts and ask the gate. Without a candidate no module of the gate's judgement is imported, which is
what keeps the common call cheap.
"""

from __future__ import annotations

from projectmem_gate.model import ALLOW, Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from projectmem_gate.model import Action, Change, Session
    from projectmem_gate.policy import Policy

    class Known(Protocol):
        """The history of action keys."""

        def entries(self, keys: Sequence[str]) -> Mapping[str, Sequence[Any]]: ...

    class State(Protocol):
        """What is read of the folded log (the hook's snapshot, or the in-memory state)."""

        def entries(self, keys: Sequence[str], as_of: Mapping[str, int] | None = None) -> Mapping[str, Sequence[Any]]: ...
        def changes(self, since: int, limit: int = 64, paths: Sequence[str] = ()) -> Sequence[Change]: ...
        def ok_after(self, family: str, at: int, limit: int = 8) -> Sequence[Any]: ...
        def labels(self) -> Sequence[Any]: ...
        def retried(self, cls: str, by: str) -> Mapping[str, Sequence[Sequence[int]]]: ...
        def attempts(self, keys: Sequence[str], as_of: Mapping[str, int] | None = None) -> Sequence[Any]: ...

    class Workspace(Protocol):
        """How recorded facts compare with now: the disk (hook/facts.py), or `Unchanged` where there is none to look at."""

        def compare(self, recorded: Mapping[str, Any]) -> dict[str, Any]: ...
        def own(self, stream: str) -> bool: ...


MAX_CHANGES = 64
LATER_MAX = 32  # successes of a family that a remedy is looked for in
SELF_MADE_MAX = 5  # parts: fewer files than `changed_files` shows


class Unchanged:
    """A workspace in which nothing changed but what the log shows: for backtests and for facts that were recorded."""

    def compare(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Every fact `same`."""
        return {"head": "same", "deps": "same", "files": "same", "changed_files": [], "here": "same"}

    def own(self, stream: str) -> bool:
        """Every stream is taken for this machine's."""
        return True


def assess(
    state: State,
    action: Action,
    session: Session,
    workspace: Workspace,
    policy: Policy,
    now: int,
    *,
    as_of: Mapping[str, int] | None = None,
) -> tuple[Decision, dict[str, Any], list[Any]]:
    """(decision, facts by record id, live records). Facts and records are empty where there was no candidate.

    `now` is in microseconds since the epoch; `as_of` ({stream: seq}) asks for the state as it was (needs a state that
    keeps its history). Raises only what state and workspace raise.
    """
    return weigh(look(state, action, session, now, as_of), action, session, workspace, policy, now)[:3]


class Seen:
    """What the log knows that bears on an action: all that is read of the state for a decision, at one moment.

    records  open ones, candidates;  asks  asks and passes of the action's key;  labels  in force, as the log has them
    known    by record id what the log says besides, and the stream that the record stands in
    """

    __slots__ = ("asks", "known", "labels", "records")

    def __init__(
        self, records: list[Any], asks: list[Any], labels: list[Any], known: dict[str, tuple[dict[str, Any], str]]
    ) -> None:
        self.records, self.asks, self.labels, self.known = records, asks, labels, known


def look(state: State, action: Action, session: Session, now: int, as_of: Mapping[str, int] | None = None) -> Seen:
    """Read the state, and nothing else."""
    found = _found(state, action.keys + action.kin, as_of)
    records, asks = _candidates(found, action.key, now)
    records += failed_fix(state, action, now, as_of)
    known = {
        r.id: (learnt(state, r, session.session, action), "" if r.fix else _stream_in(found.get(r.key, ()), r))
        for r in _whole_last(records, action)
    }
    return Seen(records, asks, list(state.labels()), known)


def weigh(
    seen: Seen, action: Action, session: Session, workspace: Workspace, policy: Policy, now: int
) -> tuple[Decision, dict[str, Any], list[Any], list[Any]]:
    """(decision, facts by record id, live records, labels as they count here) of what `look` saw, against the workspace."""
    records, labels = seen.records, counted(seen.labels, workspace)
    if not records and not labels and not policy.rules:
        return Decision(ALLOW), {}, [], labels
    from projectmem_gate.decide import decide

    facts = {r.id: compared(*seen.known[r.id], r, workspace, action) for r in _whole_last(records, action)}
    return decide(action, records, facts, session, policy, now, labels=labels, asks=seen.asks), facts, records, labels


def _whole_last(records: list[Any], action: Action) -> list[Any]:
    """A call and the part that failed are one event: the call's facts are the event's."""
    return sorted(records, key=lambda record: record.key == action.key)


def candidates(
    state: State, keys: Sequence[str], key: str, now: int, as_of: Mapping[str, int] | None = None
) -> tuple[list[Any], list[Any]]:
    """(open records of `keys`, asks and passes of `key`): what `decide` needs of the log."""
    return _candidates(_found(state, keys, as_of), key, now)


def _found(state: State, keys: Sequence[str], as_of: Mapping[str, int] | None) -> Mapping[str, Sequence[Any]]:
    return state.entries(keys, as_of) if as_of is not None else state.entries(keys)


def _candidates(found: Mapping[str, Sequence[Any]], key: str, now: int) -> tuple[list[Any], list[Any]]:
    asks = [entry for entry in found.get(key, ()) if entry["t"] in ("ask", "pass")]
    return (_records(found, now) if found else []), asks


def failed_fix(state: State, action: Action, now: int, as_of: Mapping[str, int] | None = None) -> list[Any]:
    """The failed attempt that the action's edits make again, as a record that is a candidate; [] for none."""
    if action.kind == "sh" and not any(effect[0] == "edit" for part in action.parts for effect in part.effects):
        return []
    from projectmem_gate import fixes

    keys = fixes.edit_keys(action)
    attempt = fixes.choose(keys, state.attempts(keys, as_of)) if keys else None
    if attempt is None:
        return []
    both = (attempt["key"], attempt["vkey"])
    found = _found(state, both, as_of)
    record = fixes.record(attempt, found.get(both[0], ()), found.get(both[1], ()), now)
    return [record] if record is not None and record.state == "open" else []


def _records(found: Mapping[str, Sequence[Any]], now: int) -> list[Any]:
    """The open records among the entries found, in the order of the action's keys."""
    from projectmem_gate import history

    records = []
    for key, entries in found.items():
        if entries and history.is_open(entries):
            record = history.fold(key, entries, now)
            if record is not None:
                records.append(record)
    return records


def gather(state: State, record: Any, workspace: Workspace, session: str = "", action: Action | None = None) -> dict[str, Any]:
    """Facts of one record, read only because it is a candidate: workspace comparison, changes on record, the remedy, and how
    such tries of this class and this kind of asker went in this log."""
    return compared(
        learnt(state, record, session, action), "" if record.fix else _stream_of(state, record), record, workspace, action
    )


def learnt(state: State, record: Any, session: str, action: Action | None) -> dict[str, Any]:
    """The facts of one record that the log has."""
    facts: dict[str, Any] = {}
    own = _self_made(action, record)
    # From the first kept try on: what came between earlier tries tells a flaky action from a mended one.
    since = min(record.at, record.trail[0][0]) if record.trail else record.at
    since = min(since, record.fix["since"]) if record.fix else since
    if record.cls == "network":
        from projectmem_gate.freshness import STARTING_US

        since = min(since, record.at - STARTING_US)  # a server may have been started just before
    changes = state.changes(since, MAX_CHANGES, record.paths)
    later = state.ok_after(record.family, record.at, LATER_MAX) if record.family else ()
    mended, same = _reinstalled(later, record), _same_work(later, record)
    facts["changes"] = [
        [c.type, c.subject, c.at]
        for c in changes
        if (c.type != "edit" or c.subject not in own)
        and (c.type != "install" or c.at not in mended)
        and (c.type not in ("any", "build") or _words(c.subject) != same)
    ]
    facts["remedy"] = _remedy(state, later, record, action.cwd if action is not None and action.kind == "sh" else "")
    retried = state.retried(record.cls, asker(record, session))
    if retried:
        facts["retried"] = {name: [list(row) for row in rows] for name, rows in retried.items()}
    facts["family_ok"] = bool(later)
    return facts


def compared(known: dict[str, Any], stream: str, record: Any, workspace: Workspace, action: Action | None) -> dict[str, Any]:
    """All facts of one record: those of the log (`stream` is the one that it stands in), and the workspace now."""
    facts = {**workspace.compare(record.facts or {}), **known}
    if not record.fix and not workspace.own(stream):
        facts["seen"] = "elsewhere"
    own = _self_made(action, record)
    if own and facts.get("files") == "changed" and own.issuperset(facts.get("changed_files") or ("",)):
        facts.update(files="same", changed_files=[])  # no more than these, as the list is longer than a call writes
    return facts


def _stream_of(state: State, record: Any) -> str:
    return _stream_in(state.entries((record.key,)).get(record.key, ()), record)


def _stream_in(entries: Sequence[Any], record: Any) -> str:
    return next((str(e["stream"]) for e in entries if e["id"] == record.id), "")


def labels_of(state: State, workspace: Workspace) -> list[Any]:
    """The labels and rules in force. What a person decided on another machine, or in a log that came with a folder, only
    warns here until a person of this machine confirms it: its origin then reads `elsewhere`."""
    return counted(state.labels(), workspace)


def counted(labels: Sequence[Any], workspace: Workspace) -> list[Any]:
    """Labels as they count on this machine, see `labels_of`."""
    return [
        row if row.get("origin") != "human" or workspace.own(row.get("stream") or "") else {**row, "origin": "elsewhere"}
        for row in labels
    ]


def _self_made(action: Action | None, record: Any) -> frozenset[str]:
    """Files that the very same call writes as a whole, with the same content (it is in its key), and those into which it sends
    its output: what became of them since it failed does not matter to it."""
    if action is None:
        return frozenset()
    own = _sent(action, record) if action.kind == "sh" else set()
    if record.key == action.key and 2 <= len(action.parts) <= SELF_MADE_MAX:
        own.update(part.paths[0] for part in action.parts[:-1] if _writes_whole(part))
    return frozenset(own)


def _sent(action: Action, record: Any) -> set[str]:
    """Where the action's output goes or went (`X > log 2>&1 &`), unless the error speaks of it."""
    from projectmem_gate.relevance import mentions_name

    found = {name for name in _targets(record.variant) if "  # in " not in record.text}
    for part in action.parts:
        if record.key in (part.key, action.key) and ">" in part.variant:
            names = {name.rpartition("/")[2] for name in _targets(part.variant)}
            found.update(s for kind, s in part.effects if kind == "edit" and s.rpartition("/")[2] in names)
    return {name for name in found if name and not mentions_name(record.sig, name)}


def _targets(variant: str) -> list[str]:
    """The files behind the redirections that a part's key leaves out."""
    pieces = variant.split(" | ")
    sent = [piece.lstrip("| ").partition(" ") for piece in pieces if piece.lstrip("| ")[:2] in ("> ", ">>")]
    return [target.removeprefix("./") for _, _, target in sent]


def _writes_whole(part: Any) -> bool:
    """Does the part put down one whole file whose content is in its key: a write, or `cat > f <<EOF`?"""
    if len(part.paths) != 1 or part.effects != (("edit", part.paths[0]),):
        return False
    return part.kind == "write" or (part.text.startswith(("cat > ", "tee ")) and " <<" in part.text and " -a " not in part.text)


def asker(record: Any, session: str) -> str:
    """`self` where the session that failed asks again, `other` else."""
    return "self" if session and session == record.session else "other"


def tried(
    decision: Decision, records: Sequence[Any], facts: Mapping[str, Any], session: Session, policy: Policy, now: int
) -> dict[str, Any] | None:
    """What kind of try this call is, to be recorded with its outcome: {class, state, age, by} of the record that decided,
    else of the newest candidate. None where there is none. The log's own odds are counted from these."""
    found = [r for r in records if not r.fix and r.id == decision.record] or sorted(
        (r for r in records if not r.fix), key=lambda r: (-r.at, r.id)
    )
    if not found:
        return None
    from projectmem_gate import freshness, odds

    record = found[0]
    state, _ = freshness.judge(record, facts.get(record.id), now, session=session.session, cooldown=policy.cooldown)
    return {
        "class": record.cls,
        "state": state,
        "age": odds.age_bucket(now - record.at),
        "by": asker(record, session.session),
    }


def _remedy(state: State, later: Sequence[Any], record: Any, cwd: str = "") -> dict[str, str] | None:
    """What worked instead: the first later success that does the same work another way. Else what it worked after before:
    the install or login between an earlier failure of this very kind and the success that followed it.

    One of the sessions that failed goes first: it knew what it was mending. `later` are the successes of its family since, `cwd`
    is where a shell would run it, "" for no shell.
    """
    if not record.family or record.fix:
        return None
    from projectmem_gate.remedies import is_remedy, pasted

    rows = [r for r in later if r["key"] != record.key and is_remedy(record, r["text"])]
    if rows:
        best = min(rows, key=lambda row: (row["session"] not in record.sessions, row["at"], row["id"]))
        return {"id": best["id"], "text": pasted(best["text"], cwd) if cwd else best["text"]}
    before = _mended_before(state, record)
    return {**before, "text": pasted(before["text"], cwd)} if before and cwd else before


def _reinstalled(later: Sequence[Any], record: Any) -> set[int]:
    """When an install that failed went well in another way (`npm ci --legacy-peer-deps`): that is its remedy, and changes nothing
    for the way that it failed in. `later` as for `_remedy`."""
    if record.fix or not record.family.endswith(_INSTALLS):
        return set()
    from projectmem_gate.remedies import is_remedy

    return {r["at"] for r in later if r["key"] != record.key and is_remedy(record, r["text"])}


def _same_work(later: Sequence[Any], record: Any) -> list[str]:
    """The work that failed, which has not gone well in any way since: that it was started again (in the background, or with an
    outcome that nobody knows) says nothing of what may have mended it. [] where it did: that may have left something behind."""
    return [] if record.fix or any(r["key"] != record.key for r in later) else _words(record.family)


def _words(work: str) -> list[str]:
    """The program and what it does: `npm serve` is `npm run serve`."""
    return [word for word in work.split() if word != "run"]


_INSTALLS = (" install", " ci", " add", " sync")


def _mended_before(state: State, record: Any) -> dict[str, str] | None:
    """The last install or login between an earlier failure like this one and the success after it."""
    if record.last_ok_at == 0:
        return None
    from projectmem_gate.remedies import families

    failed = ok = None
    for entry in state.entries((record.key,)).get(record.key, ()):
        if entry["t"] == "fail" and (entry["cls"], entry["sig"]) == (record.cls, record.sig):
            failed = entry
        elif entry["t"] == "ok" and failed is not None:
            ok, failed = (failed["at"], entry["at"]), None
    if ok is None:
        return None
    names = {name for c in state.changes(ok[0], MAX_CHANGES, record.paths) for name in families(c.type, c.subject)}
    between = [row for name in sorted(names) for row in state.ok_after(name, ok[0], 64) if row["at"] <= ok[1]]
    if not between:
        return None
    last = max(between, key=lambda row: (row["at"], row["id"]))
    return {"id": last["id"], "text": last["text"], "how": "after"}

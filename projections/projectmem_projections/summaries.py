"""Questions that people and the session summary ask of the log, as functions of the log's folder.

Each opens the current generation with the newest events folded in (generations.py), asks, and closes. `now` is in
microseconds since the epoch, UTC; so are all times in the answers. `notices` collects what a person should be told, such as
a damaged generation that was rebuilt. Raises CountMismatch and OSError as `generations.open_current` does.
"""

from __future__ import annotations

import json
from typing import Any

from projectmem_gate import history
from projectmem_gate.policy import DEFAULT, Policy
from projectmem_logs.clocks import SKEW_US

from .generations import Summaries, ask

Row = dict[str, Any]
Notices = list[str] | None
NEWEST, OLDEST = "ORDER BY at_us DESC, stream DESC, seq DESC", "ORDER BY at_us, stream, seq"


def failures(
    home: str,
    *,
    now: int,
    all: bool = False,
    limit: int = 50,
    key: str = "",
    policy: Policy | None = None,
    notices: Notices = None,
) -> list[Row]:
    """Failed actions, newest failure first: those that may still object (open or snoozed), or with `all` every one.

    {id, key, text, family, class, signature, excerpt, exit_code, duration_ms, state, state_why, state_id, pinned, count, streak,
     sessions, first_at, last_at, session, origin, by: [{harness, model, agent}], paths, last_ok_at, snoozed_until, expires_at,
     remedy, remedy_id}

    id         event id of the newest failure;  count, streak  failures ever, and since the last success
    state      open | snoozed | expired | cleared | disputed | superseded;  state_why one phrase;  state_id the event that did it
    expires_at when an open failure lapses on its own, 0 = never (pinned);  from `policy`, by default the one in force
    remedy     text of the first success of the same family and another key after it, "" when there is none
    key        only this key, whatever its state (then `all` is implied)
    """

    def question(s: Summaries) -> list[Row]:
        in_force = policy if policy is not None else _policy(s)
        rows = _failures(s, in_force, now, all or bool(key), limit, key)
        _judge(s, rows, in_force, now)
        _remedies(s, rows)
        return rows

    return ask(home, question, notices)


def _failures(s: Summaries, policy: Policy, now: int, all: bool, limit: int, key: str) -> list[Row]:
    live = f"open AND (pinned OR last_at + {_ttl_sql(policy)} > $now)"
    # A failed chain that blames one of its parts is that part's failure: it stands in the list once.
    where = "key = $key" if key else ("NOT part_of_chain" if all else f"{live} AND NOT part_of_chain")
    values = {"now": now, "key": key, "limit": limit}
    needed = {name: value for name, value in values.items() if f"${name}" in where or name == "limit"}
    return s.query(
        f"""SELECT key, id, text, family, "class", signature, excerpt, exit_code, duration_ms, session, origin, paths, count,
            streak, sessions, actors AS by, pinned, first_at, last_at, last_ok_at, snoozed_until
        FROM failures WHERE {where} ORDER BY last_at DESC, stream DESC, seq DESC LIMIT $limit""",  # noqa: S608
        needed,
    )


def _ttl_sql(policy: Policy) -> str:
    """How long a failure of each class may speak, as an SQL expression over `class`."""
    cases = " ".join(
        f"WHEN '{name}' THEN {int(ttl)}" for name, ttl in sorted(policy.ttl_warn.items()) if name.replace("-", "").isalpha()
    )
    return f'(CASE "class" {cases} ELSE {int(policy.ttl_warn.get("unknown", 0))} END)'


def _judge(s: Summaries, rows: list[Row], policy: Policy, now: int) -> None:
    """State and reason by the gate's own fold of the key's history."""
    if not rows:
        return
    entries: dict[str, list[Row]] = {}
    for row in s.query(
        """SELECT key, t, at_us AS "at", stream, seq, id, session, agent, harness, model, origin, until, record, text,
            by_event AS "by", "class" AS cls, signature AS sig, "call", turn
        FROM entries WHERE key IN (SELECT unnest($keys)) ORDER BY at_us, stream, seq""",
        {"keys": [row["key"] for row in rows]},
    ):
        entries.setdefault(row["key"], []).append(row)
    for row in rows:
        kept: list[Row] = []
        for entry in entries[row["key"]][-4 * history.KEEP :]:
            kept = history.merge(kept, entry)
        record = history.fold(row["key"], kept, now)
        state, why, by = (record.state, record.state_why, record.state_id) if record else ("cleared", "", "")
        ttl = policy.ttl_warn.get(row["class"], policy.ttl_warn.get("unknown", 0))
        row["expires_at"] = 0 if row["pinned"] else row["last_at"] + ttl
        if state in ("open", "snoozed") and row["expires_at"] and row["expires_at"] <= now:
            state, why, by = "expired", "too old to object", ""
        row.update(state=state, state_why=why, state_id=by)


def _remedies(s: Summaries, rows: list[Row]) -> None:
    """What worked instead: the first later success of the family under another key. (One that was cleared worked itself.)"""
    for row in rows:
        row.update(remedy="", remedy_id="")
    wanted = [row for row in rows if row["family"] and row["state"] != "cleared"]
    if not wanted:
        return
    found = s.query(
        """WITH f AS (SELECT unnest($ids) AS id, unnest($keys) AS key, unnest($families) AS family, unnest($times) AS last_at),
        oks AS (SELECT * FROM entries WHERE t = 'ok' AND family IN (SELECT family FROM f)),
        first AS (SELECT f.*, o.at_us FROM f ASOF JOIN oks o ON f.family = o.family AND f.last_at < o.at_us)
        SELECT first.id AS failure, min({'stream': o.stream, 'seq': o.seq, 'text': o.text, 'id': o.id}) AS ok
        FROM first JOIN oks o ON o.family = first.family AND o.at_us = first.at_us AND o.key <> first.key GROUP BY first.id""",
        {
            "ids": [row["id"] for row in wanted],
            "keys": [row["key"] for row in wanted],
            "families": [row["family"] for row in wanted],
            "times": [row["last_at"] for row in wanted],
        },
    )
    by = {row["failure"]: row["ok"] for row in found}
    for row in wanted:
        if row["id"] in by:
            row.update(remedy=by[row["id"]]["text"], remedy_id=by[row["id"]]["id"])


def _policy(s: Summaries) -> Policy:
    """The policy last accepted into the log, else the shipped one."""
    rows = s.query("SELECT policy FROM policies ORDER BY at_us DESC, stream DESC, seq DESC LIMIT 1")
    try:
        return Policy.from_data(json.loads(rows[0]["policy"])) if rows and rows[0]["policy"] else DEFAULT
    except (ValueError, TypeError, AttributeError, KeyError):
        return DEFAULT


def sessions(home: str, *, limit: int = 20, notices: Notices = None) -> list[Row]:
    """Sessions, the one with the newest event first: {session, harness, model, origin, cwd, started_at, last_at, ended_at (0 =
    not seen to end), events, actions, failed, ok, stopped (asked or denied by the gate)}."""
    return ask(home, lambda s: s.query("SELECT * FROM sessions ORDER BY last_at DESC, session LIMIT ?", [limit]), notices)


def issues(home: str, *, all: bool = False, limit: int = 50, notices: Notices = None) -> list[Row]:
    """Open issues (with `all` every one), newest first: {issue, id, title, paths, opened_at, session, origin, open, closed_at,
    resolution, hypotheses, attempts, failed_attempts, fixes} (the last four are counts)."""
    statement = "SELECT * FROM issues WHERE open OR ? ORDER BY opened_at DESC, id DESC LIMIT ?"
    return ask(home, lambda s: s.query(statement, [all, limit]), notices)


def about_issue(home: str, issue: str, *, notices: Notices = None) -> list[Row]:
    """Everything written down about one issue, oldest first: {id, at, kind, text, title, outcome, verifier, session, ...}."""
    return _rows(home, "records", f"WHERE issue = ? {OLDEST}", [issue], notices)


def decisions(home: str, *, all: bool = False, limit: int = 50, notices: Notices = None) -> list[Row]:
    """Decisions in force (with `all` superseded ones too), newest first: {id, at, title, text, supersedes, in_force, ...}."""
    return _rows(home, "decisions", f"WHERE in_force OR ? {NEWEST} LIMIT ?", [all, limit], notices)


def notes(home: str, *, limit: int = 50, notices: Notices = None) -> list[Row]:
    """Notes, newest first: {id, at, text, tags, session, origin, ...}."""
    return _rows(home, "notes", f"{NEWEST} LIMIT ?", [limit], notices)


def labels(home: str, *, label: str = "", notices: Notices = None) -> list[Row]:
    """Labels in force, oldest first, of one sort ("fragile", "protected") or all: {id, at, label, target, pattern, effect,
    reason, review_at, origin, session, ...}."""
    return _rows(home, "labels", f"WHERE $1 = '' OR label = $1 {OLDEST}", [label], notices)


def actions(home: str, *, limit: int = 50, session: str = "", outcome: str = "", notices: Notices = None) -> list[Row]:
    """Finished tool calls, newest first, of one session and outcome or of all: the columns of table `actions`."""
    where = f"WHERE ($1 = '' OR session = $1) AND ($2 = '' OR outcome = $2) {NEWEST} LIMIT $3"
    return _rows(home, "actions", where, [session, outcome, limit], notices)


def outcomes(home: str, decisions: list[str], *, notices: Notices = None) -> dict[str, Row]:
    """What became of these decisions of the gate: {id: {outcome (of the call, "" where it did not run), followed: heeded |
    repeated | ran | not run}}, as view gate_outcomes has it."""
    statement = "SELECT id, outcome, followed FROM gate_outcomes WHERE id IN (SELECT unnest($1::VARCHAR[]))"
    return {row["id"]: row for row in ask(home, lambda s: s.query(statement, [decisions]), notices)}


def events_by_id(home: str, part: str, *, limit: int = 10, notices: Notices = None) -> list[Row]:
    """Events whose id begins or ends with `part`: the columns of table `events`. The event itself: `logs.reader.find_event`."""
    where = f"WHERE starts_with(id, $1) OR ends_with(id, $1) {OLDEST} LIMIT $2"
    return _rows(home, "events", where, [part.strip().lower(), limit], notices)


def _rows(home: str, table: str, clause: str, values: list[Any], notices: Notices) -> list[Row]:
    """Rows of a table or view. Answers speak of `at` as events do; a column of that name would need quotes in SQL."""
    return ask(home, lambda s: s.query(f'SELECT * RENAME (at_us AS "at") FROM {table} {clause}', values), notices)  # noqa: S608


def _clock(s: Summaries, now: int) -> Row:
    """Streams whose last record is dated ahead of now, and the first places where a stream's clock went back."""
    back = s.query(
        """SELECT stream, seq, ts, before - ts AS back_us
        FROM (SELECT stream, seq, ts, lag(ts) OVER (PARTITION BY stream ORDER BY seq) AS before FROM events)
        WHERE before - ts > ? ORDER BY stream, seq LIMIT 100""",
        [SKEW_US],
    )
    last = s.query("SELECT stream, arg_max(ts, seq) AS ts FROM events GROUP BY stream ORDER BY stream")
    return {"ahead": {row["stream"]: row["ts"] for row in last if row["ts"] > now + SKEW_US}, "back": back}


def stats(home: str, *, now: int, notices: Notices = None) -> Row:
    """Counts: {events, first_at, last_at, erased, streams: {stream: seq}, by_kind: {kind: n}, outcomes: {outcome: n},
    classes: {class: failures}, gate: [{verdict, rule, count, then_failed, then_ok, then_other, not_run, heeded}], overrides,
    sessions, failures: {standing: keys}, issues_open, actors: [{harness, model, agent, actions, failed, sessions, last_at}],
    incidents: {degraded, recovered}, damage: [{stream, segment, at_byte, kind, detail}],
    clock: {ahead: {stream: its latest ts, where that is ahead of now},
    back: [{stream, seq, ts, back_us}]} where one went back by more than clocks may differ}.

    not_run: a decision on a call that never finished;  heeded: an ask or deny whose action that session never ran after it.
    """

    def question(s: Summaries) -> Row:
        def counts(statement: str) -> dict[str, int]:
            return {row["name"]: row["n"] for row in s.query(statement + " GROUP BY name ORDER BY n DESC, name")}

        whole = s.query(
            "SELECT count(*) AS events, coalesce(min(at_us), 0) AS first_at, coalesce(max(at_us), 0) AS last_at,"
            " count(*) FILTER (erased) AS erased, count(DISTINCT session) FILTER (session <> '') AS sessions FROM events"
        )[0]
        gate = s.query(
            """SELECT verdict, rule, count(*) AS count, count(*) FILTER (outcome = 'failed') AS then_failed,
                count(*) FILTER (outcome = 'ok') AS then_ok, count(*) FILTER (outcome NOT IN ('failed', 'ok', '')) AS then_other,
                count(*) FILTER (outcome = '') AS not_run, count(*) FILTER (followed = 'heeded') AS heeded
            FROM gate_outcomes GROUP BY verdict, rule ORDER BY count DESC, verdict, rule"""
        )
        incidents = counts("SELECT kind AS name, count(*) AS n FROM incidents")
        return {
            **whole,
            "streams": s.cursor(),
            "by_kind": counts("SELECT kind AS name, count(*) AS n FROM events"),
            "outcomes": counts("SELECT outcome AS name, count(*) AS n FROM actions"),
            "classes": counts("""SELECT "class" AS name, count(*) AS n FROM actions WHERE outcome = 'failed'"""),
            "gate": gate,
            "overrides": sum(row["count"] for row in gate if row["rule"] == "override"),
            "failures": counts("SELECT standing AS name, count(*) AS n FROM failures WHERE NOT part_of_chain"),
            "issues_open": s.query("SELECT count(*) AS n FROM issues WHERE open")[0]["n"],
            "actors": s.query("SELECT * FROM actors ORDER BY actions DESC, harness, model, agent LIMIT 20"),
            "incidents": {kind: incidents.get(kind, 0) for kind in ("degraded", "recovered")},
            "damage": s.query("SELECT * FROM integrity ORDER BY ALL"),
            "clock": _clock(s, now),
        }

    return ask(home, question, notices)

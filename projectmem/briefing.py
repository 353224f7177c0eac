"""Summaries about one thing: a path, an issue, or a period. Same fence, same counter, same judgement as the session's summary.

Reads the DuckDB summaries (what was erased is in none of them); whether a failure still stands is the gate's word, and what was
superseded, disputed, closed or cleared is left out. Notes and decisions are those of the session's summary: without what is held
for review, repeats counted with the first. Each line cites the record it is about. Deterministic for a given log, workspace,
`now` and `nonce`.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from projectmem_gate import reason
from projectmem_projections import generations
from projectmem_projections.generations import Summaries

from projectmem import render, units
from projectmem.errors import BadInputError, NotFoundError
from projectmem.lookup import refuse_waiting
from projectmem.summary import BUDGET_TOKENS, EACH_MAX, REMEDY_MAX, ROOM, TEXT_MAX, compose, line, once

if TYPE_CHECKING:
    from projectmem_projections.documents import Document

    from projectmem.place import Place

Row = dict[str, Any]
Lines = dict[str, list[str]]
ALL = 100_000  # notes and decisions that are looked through
ASKED_MAX = 60  # failures that the gate is asked about
_PERIOD = re.compile(r"\s*([0-9]+\s*[a-z]+|\d{4}-\d{2}-\d{2}\S*)\s*", re.IGNORECASE)
PATH_SECTIONS = (
    ("failure", "Failed and still stands"),
    ("label", "Fragile, protected or ruled"),
    ("fix", "What was tried and worked"),
    ("decision", "Decisions that mention it"),
    ("issue", "Open issues"),
    ("note", "Notes that mention it"),
)
ISSUE_SECTIONS = (
    ("issue", "Issue"),
    ("fix", "What worked"),
    ("attempt", "Attempts"),
    ("hypothesis", "Hypotheses"),
)
PERIOD_SECTIONS = (
    ("failure", "Failed and still stands"),
    ("counts", "In numbers"),
    ("cleared", "Failed, and succeeded since"),
    ("fix", "What worked"),
    ("decision", "Decisions made, in force"),
    ("issue", "Issues opened or closed"),
    ("label", "Labels and rules set, in force"),
    ("note", "Notes"),
)


def about(
    place: Place,
    what: str,
    *,
    now: int,
    nonce: str,
    budget_tokens: int = BUDGET_TOKENS,
    verdict: Callable[[str], str],
    times: Callable[[str], int] | None = None,
    notices: list[str] | None = None,
) -> str:
    """The summary of a period (`2d`, `2026-11-30`, `2026-11-01..2026-11-30`), an issue (its id, or part of it) or a path.

    now      microseconds;  nonce: unguessable, new for each block
    verdict  what the gate says to an action key, "" for nothing (`standing.Judge.verdict`)
    times    how often an action failed since it last worked (`standing.Judge.times`)
    "" when there is nothing to say about a path or period. Raises BadInputError, NotFoundError, ProjectionError, OSError.
    """
    what = what.strip()
    if not what or len(what) > 4_096 or not what.isprintable():
        raise BadInputError("name a path, an issue's id, or a period such as `2d` or `2026-11-30`")

    def question(s: Summaries) -> tuple[Lines, tuple[tuple[str, str], ...]]:
        s.query(f"SET VARIABLE now_us = {int(now)}")
        if _PERIOD.fullmatch(what.split("..")[0]):
            start, end = _span(what, now)
            written = _written(place, now, lambda d: start <= d.at <= end)
            return {**_period(s, start, end, now, verdict, times), **written}, PERIOD_SECTIONS
        issue = _issue_id(place, s, what)
        if issue:
            return _issue(s, issue, now), ISSUE_SECTIONS
        path = _relative(place, what)
        return {
            **_path(s, path, place.root, now, verdict, times),
            **_written(place, now, lambda d: path in d.text),
        }, PATH_SECTIONS

    lines, sections = generations.ask(place.home, question, notices)
    return compose(lines, [], nonce, budget_tokens, sections)


def _span(what: str, now: int) -> tuple[int, int]:
    first, dots, last = what.partition("..")
    start = units.moment(first, now, future=False)
    end = units.moment(last, now, future=False) if last else now
    if dots and re.fullmatch(r"\d{4}-\d{2}-\d{2}", last.strip()):
        end += render.DAY - 1  # the whole of the day that is named
    if end < start:
        raise BadInputError(f"`{what}` ends before it begins")
    return start, end


def _issue_id(place: Place, s: Summaries, what: str) -> str:
    """The issue that is meant, "" where the text can only be a path. Raises NotFoundError for an id that is unknown."""
    if not re.fullmatch(r"[0-9a-fA-F-]{6,36}", what):
        return ""
    part = what.lower()
    found = s.query(
        "SELECT issue FROM issues"
        " WHERE starts_with(issue, $1) OR ends_with(issue, $1) OR starts_with(id, $1) OR ends_with(id, $1) ORDER BY issue",
        [part],
    )
    if len(found) == 1:
        return str(found[0]["issue"])
    if found:
        raise BadInputError(f"`{what}` names {render.count(len(found), 'issue')}: give more of the id")
    refuse_waiting(place, part)
    raise NotFoundError(f"no issue is called `{what}`: `projectmem sql 'FROM issues'` lists them")


def _relative(place: Place, path: str) -> str:
    """The path as the log names it: POSIX, from the root of the work tree."""
    spelled = path.replace("\\", "/")
    root = place.root.replace("\\", "/").rstrip("/") + "/"
    spelled = spelled.removeprefix(root) if spelled.startswith("/") else spelled
    return posixpath.normpath(spelled).removeprefix("./")


def _written(place: Place, now: int, wanted: Callable[[Document], bool]) -> Lines:
    """The newest notes and decisions that are wanted, as the session's summary has them: nothing that waits for a person, repeats
    folded into the first, in quotes what reads like an instruction. However long the log is."""
    from projectmem_projections.glance import Glance, current
    from projectmem_projections.scope import Scope

    glance = Glance(place.home, current(place.home), bytes_max=sys.maxsize)
    try:
        found = glance.newest(("note", "decision"), Scope(place.project, worktree=place.worktree), now, ALL)
    finally:
        glance.close()
    return {type_: [line(d, now, 0) for d in documents if wanted(d)][:EACH_MAX] for type_, documents in found.items()}


# --- a path --------------------------------------------------------------------------------------------------------------


def _path(
    s: Summaries, path: str, root: str, now: int, verdict: Callable[[str], str], times: Callable[[str], int] | None
) -> Lines:
    concerns = "(list_contains(paths, $1) OR len(list_filter(paths, lambda p: starts_with(p, $1 || '/'))) > 0)"
    mentions = "(contains(text, $1) OR contains(title, $1))"
    named = r"regexp_matches(replace(concat_ws(chr(10), signature, excerpt), '\\', '/'), $2)"
    failed = s.query(
        f"SELECT * FROM failure_states WHERE state = 'open' AND NOT part_of_chain"  # noqa: S608
        f" AND ({concerns} OR contains(text, $1) OR {named}) ORDER BY last_at DESC, stream DESC, seq DESC LIMIT {ASKED_MAX}",
        [path, _named(path, root)],
    )
    return {
        "failure": _failed(s, failed, now, verdict, times),
        "label": [_label(row, now) for row in _newest(s, "labels", "true") if row["target"] == "path" and _covers(row, path)],
        "fix": [
            _record(row, now)
            for row in _newest(s, "records", f"kind IN ('fix', 'attempt') AND {mentions}", [path])
            if _worked(row)
        ],
        "issue": [_open_issue(row, now) for row in _issues(s, f"open AND ({concerns} OR contains(title, $1))", [path])],
    }


def _named(path: str, root: str) -> str:
    """The pattern (RE2) by which an error names the path: from the top, in full, or as seen from a folder on the way to it
    (`cart.ts(12,5)` is `web/src/cart.ts` to who works in `web/src`), and not as the end of a longer path or name."""
    parts = path.split("/")
    ways = ["/".join(parts[n:]) for n in range(len(parts)) if n == 0 or "." in parts[-1]]
    full = re.escape(root.replace("\\", "/").rstrip("/") + "/")
    return rf"(?:^|[^\w./~-])(?:\./|{full})?(?:{'|'.join(map(re.escape, ways))})(?:$|[^\w.-]|\.(?:$|\W))"


def _covers(label: Row, path: str) -> bool:
    """Whether an edit of the path would be the label's business: by the gate's own matcher."""
    from projectmem_gate import rules
    from projectmem_gate.model import Action, Part

    part = Part("", "edit", f"edit {path}", "", paths=(path,), effects=(("edit", path),))
    return rules.covers(label, Action("", "edit", ".", "", "", (part,)), part)


# --- an issue ------------------------------------------------------------------------------------------------------------


def _issue(s: Summaries, issue: str, now: int) -> Lines:
    (head,) = _issues(s, "issue = $1", [issue])
    about = _newest(s, "records", "issue = $1 AND kind IN ('attempt', 'fix', 'hypothesis')", [issue])
    state = "open" if head["open"] else f"closed {render.ago(head['closed_at'], now)}"
    tried = f"{render.count(head['attempts'], 'attempt')}, {head['failed_attempts']} failed"
    tried += f", {render.count(head['fixes'], 'fix', 'fixes')}"
    facts = f"{state}; opened {render.ago(head['opened_at'], now)}; {tried}"
    title = f"- {_text(head['title'])} ({facts}) [{render.short(head['id'])}]"
    lines: Lines = {"issue": [title], "fix": [], "attempt": [], "hypothesis": []}
    if head["resolution"]:
        (closing,) = s.query(
            "SELECT id FROM records WHERE kind = 'closed' AND issue = $1 ORDER BY at_us DESC, stream DESC, seq DESC LIMIT 1",
            [issue],
        )
        lines["issue"].append(f"- Resolution: {_text(head['resolution'])} [{render.short(closing['id'])}]")
    for row in about:
        lines["fix" if _worked(row) else row["kind"]].append(_record(row, now))
    return lines


# --- a period ------------------------------------------------------------------------------------------------------------


def _period(
    s: Summaries, start: int, end: int, now: int, verdict: Callable[[str], str], times: Callable[[str], int] | None
) -> Lines:
    inside, span = "at_us BETWEEN $1 AND $2", [start, end]
    standing = _states(s, "open", "last_at", span, ASKED_MAX)
    cleared = _states(s, "cleared", "last_ok_at", span, ASKED_MAX)
    changed = _issues(s, "opened_at BETWEEN $1 AND $2 OR closed_at BETWEEN $1 AND $2", span)
    return {
        "failure": _failed(s, standing, now, verdict, times),
        "counts": _counts(s, span),
        "cleared": _cleared(cleared, now),
        "fix": [
            _record(row, now) for row in _newest(s, "records", f"kind IN ('fix', 'attempt') AND {inside}", span) if _worked(row)
        ],
        "issue": [_open_issue(row, now) for row in changed],
        "label": [_label(row, now) for row in _newest(s, "labels", inside, span)],
    }


def _states(s: Summaries, state: str, when: str, span: list[int], limit: int) -> list[Row]:
    """Failures in a state whose time `when` lies in the span, newest first."""
    return s.query(
        f"SELECT * FROM failure_states WHERE state = '{state}' AND NOT part_of_chain AND {when} BETWEEN $1 AND $2"  # noqa: S608
        f" ORDER BY {when} DESC, key LIMIT {limit}",
        span,
    )


def _cleared(rows: list[Row], now: int) -> list[str]:
    """What failed and worked since, at most EACH_MAX. A chain that worked cleared its parts too: it is said once, as a whole."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        texts.setdefault(row["last_ok_id"], []).append(row["text"])
    kept = [r for r in rows if not any(r["text"] in other for other in texts[r["last_ok_id"]] if len(other) > len(r["text"]))]
    lines = [(reason.said(r["text"]), render.ago(r["last_ok_at"], now), render.short(r["last_ok_id"])) for r in kept]
    return [f"- {_text(text)} ({when}) [{id}]" for text, when, id in lines[:EACH_MAX]]


def _counts(s: Summaries, span: list[int]) -> list[str]:
    """Calls and refusals, cited by the first and last of them."""
    (calls,) = s.query(
        """SELECT count(*) AS n, count(*) FILTER (outcome = 'failed') AS failed, count(DISTINCT session) AS sessions,
            min({'at_us': at_us, 'stream': stream, 'seq': seq, 'id': id}).id AS first,
            max({'at_us': at_us, 'stream': stream, 'seq': seq, 'id': id}).id AS last
        FROM actions WHERE at_us BETWEEN $1 AND $2""",
        span,
    )
    (gate,) = s.query(
        """SELECT count(*) FILTER (verdict IN ('ask', 'deny')) AS refused, count(*) FILTER (verdict = 'warn') AS warned,
            count(*) FILTER (followed = 'heeded') AS heeded,
            max({'at_us': at_us, 'stream': stream, 'seq': seq, 'id': id}).id AS last
        FROM gate_outcomes WHERE at_us BETWEEN $1 AND $2 AND verdict <> 'allow'""",
        span,
    )
    lines = []
    if calls["n"]:
        cited = f"{render.short(calls['first'])}..{render.short(calls['last'])}"
        seen = f"{render.count(calls['n'], 'call')} of {render.count(calls['sessions'], 'session')}"
        lines.append(f"- {seen}, {calls['failed']} failed [{cited}]")
    if gate["last"]:
        told = f"{gate['warned']} warned, {gate['refused']} refused, {gate['heeded']} of these not repeated"
        lines.append(f"- gate: {told} [{render.short(gate['last'])}]")
    return lines


# --- rows to lines -------------------------------------------------------------------------------------------------------


def _newest(s: Summaries, table: str, where: str, values: list[Any] | None = None) -> list[Row]:
    """The newest rows that nobody disputed or superseded since, each text once."""
    ended = "id NOT IN (SELECT record FROM curations WHERE what IN ('disputed', 'superseded'))"
    rows = s.query(
        f"SELECT * FROM {table} WHERE {where} AND {ended} ORDER BY at_us DESC, stream DESC, seq DESC LIMIT {EACH_MAX}",  # noqa: S608
        values or [],
    )
    return once(rows, lambda row: f"{row['title']} {row['text']} {row['outcome']}") if table == "records" else rows


def _issues(s: Summaries, where: str, values: list[Any]) -> list[Row]:
    rows = s.query(f"SELECT * FROM issues WHERE {where} ORDER BY opened_at DESC, id DESC LIMIT {EACH_MAX}", values)  # noqa: S608
    return once(rows, lambda row: f"{row['open']} {row['title']}")


def _failed(
    s: Summaries, rows: list[Row], now: int, verdict: Callable[[str], str], times: Callable[[str], int] | None
) -> list[str]:
    standing = [row for row in rows if verdict(row["key"])][:EACH_MAX]
    found = s.query("SELECT * FROM remedies WHERE failure IN (SELECT unnest($1))", [[row["id"] for row in standing]])
    remedies = {row["failure"]: row for row in found}
    counted = {row["key"]: times(row["key"]) if times is not None else 0 for row in standing}
    return [_failure(row, remedies.get(row["id"]), now, verdict(row["key"]), counted[row["key"]]) for row in standing]


def _failure(row: Row, remedy: Row | None, now: int, said: str, count: int) -> str:
    often = render.times(count) if count else f"{row['streak']}x"
    facts = [render.ago(row["last_at"], now), *([often] if (count or row["streak"]) > 1 else [])]
    facts += ["the gate refuses it"] if said != "warn" else []
    what = render.failure(row["text"], row["class"], row["signature"] or row["excerpt"], TEXT_MAX)
    line = f"- {render.quoted(what, TEXT_MAX + ROOM)} ({', '.join(facts)}) [{render.short(row['id'])}]"
    if remedy is not None:
        line += f"; worked instead: {render.remedy(remedy['remedy'], REMEDY_MAX)} [{render.short(remedy['remedy_id'])}]"
    return line


def _record(row: Row, now: int) -> str:
    text = " ".join(part for part in (row["title"], row["text"]) if part)
    facts = [render.ago(row["at_us"], now), row["origin"] or "unknown"]
    facts += [row["outcome"]] if row["kind"] == "attempt" and row["outcome"] else []
    facts += [f"shown by {render.inline(row['verifier'], 60)}"] if row["verifier"] not in ("", "none") else []
    return f"- {render.quoted(text, TEXT_MAX)} ({', '.join(facts)}) [{render.short(row['id'])}]"


def _open_issue(row: Row, now: int) -> str:
    state = "open" if row["open"] else f"closed {render.ago(row['closed_at'], now)}"
    return f"- {_text(row['title'])} ({state}, {render.count(row['attempts'], 'attempt')}) [{render.short(row['id'])}]"


def _label(row: Row, now: int) -> str:
    uncertain = ", review overdue: uncertain" if 0 < row["review_at"] <= now else ""
    why = f": {row['reason']}" if row["reason"] else ""
    what = f"{row['label']} {row['target']} {row['pattern']}{why}"
    return f"- {_text(what)} ({render.ago(row['at_us'], now)}, {row['origin']}{uncertain}) [{render.short(row['id'])}]"


def _worked(row: Row) -> bool:
    """Whether a fix or an attempt is known to have worked: a fix says so by what it is."""
    return bool(row["kind"] == "fix" or row["outcome"] == "worked")


def _text(text: str) -> str:
    return render.inline(text, TEXT_MAX)

"""What a session should know when it starts: a few lines within a budget, each citing its record. On the hook's path.

What failed lately and still stands, what worked, decisions in force, fragile places, open issues. Reads the published recall
corpus and the newer tail of the log (no DuckDB, no numpy); whether a failure still stands is the gate's own judgement
(standing.py). Deterministic for a given log, workspace, `now` and `nonce`. For one path, issue or period: briefing.py.
"""

from __future__ import annotations

from projectmem_projections.documents import FAILS_KEPT
from projectmem_projections.glance import BYTES_MAX, Glance, ask
from projectmem_projections.utility import memory

from projectmem import ranking, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from projectmem_projections.documents import Document
    from projectmem_projections.scope import Scope

    from projectmem.place import Place

BUDGET_TOKENS = 600
EACH_MAX = 8  # lines of one section
ASKED_MAX = 40  # failures that the gate is asked about, to find so many that stand
TEXT_MAX = 160  # characters of one recorded text; of a failure, of action and error together
ROOM = 40  # for what stands between them
REMEDY_MAX = 110
LATELY = 7 * ranking.DAY  # a failure older than this is not news

SECTIONS = (
    ("failure", "Failed lately and still stands"),
    ("fix", "What worked"),
    ("decision", "Decisions in force"),
    ("label", "Fragile or protected"),
    ("issue", "Open issues"),
    ("note", "Notes"),
)


def session_summary(
    home: str,
    *,
    now: int,
    scope: Scope,
    nonce: str,
    budget_tokens: int = BUDGET_TOKENS,
    generation: str | None = None,
    verdict: Callable[[str], str] | None = None,
    times: Callable[[str], int] | None = None,
    known_to: str = "",
    bytes_max: int = BYTES_MAX,
) -> str:
    """The block for the start of a session, at most `budget_tokens` by `render.tokens`; "" when there is nothing to say.

    scope  of the reader, an empty one gets nothing;  nonce: unguessable, new for each block
    generation  folder of the recall generation to read, by default the one in use
    verdict  what the gate says to an action key, "" for nothing (standing.Judge); without it only the log is asked
    times    how often an action failed since it last worked (standing.Judge.times), 0 for what is not known
    known_to session that goes on with all that it has read: what it was shown is left out
    bytes_max  of log that is read where no generation stands; of a longer one nothing is known but that
    """

    def question(glance: Glance) -> tuple[dict[str, list[str]], list[str]]:
        shown = glance.experience().shown(known_to) if known_to else frozenset[str]()
        found = glance.newest([type_ for type_, _ in SECTIONS if type_ != "failure"], scope, now, EACH_MAX)
        found["failure"] = [d for d in standing_failures(glance, scope, now, EACH_MAX, verdict) if now - d.at <= LATELY]
        lines = {
            type_: [line(d, now, glance.changed_at, verdict, times) for d in once(_fresh(documents, shown), lambda d: d.text)]
            for type_, documents in found.items()
        }
        return lines, glance.notes

    lines, notes = ask(home, question, bytes_max, generation)
    return compose(lines, notes, nonce, budget_tokens)


def of_place(
    place: Place,
    state: Any,
    *,
    now: int,
    nonce: str,
    budget_tokens: int = BUDGET_TOKENS,
    known_to: str = "",
    bytes_max: int = BYTES_MAX,
) -> str:
    """`session_summary` of a project, judged by the gate over `state` (the snapshot, or the log folded in memory)."""
    from projectmem_projections.scope import Scope

    from projectmem.standing import Judge

    scope = Scope(place.project, worktree=place.worktree)
    judge = Judge(place, state, now)
    return session_summary(
        place.home,
        now=now,
        scope=scope,
        nonce=nonce,
        budget_tokens=budget_tokens,
        verdict=judge.verdict,
        times=judge.times,
        known_to=known_to,
        bytes_max=bytes_max,
    )


def _fresh(documents: Sequence[Document], shown: frozenset[str]) -> list[Document]:
    """Those that a session was not shown yet."""
    return [d for d in documents if not shown & {memory(d.id, d.type, d.key), render.short(d.id)}]


def standing_failures(
    glance: Glance, scope: Scope, now: int, limit: int, verdict: Callable[[str], str] | None = None
) -> list[Document]:
    """The newest failures that the gate would say something about, at most `limit`."""
    if verdict is None:
        return glance.newest(("failure",), scope, now, limit)["failure"]
    found: list[Document] = []
    for document in glance.newest(("failure",), scope, now, max(ASKED_MAX, limit))["failure"]:
        if verdict(document.key):
            found.append(document)
            if len(found) == limit:
                break
    return found


def once(found: Sequence[Any], said: Callable[[Any], str]) -> list[Any]:
    """The first of those that say the same, whatever its case and spacing: a repeat costs tokens and tells nothing."""
    kept: dict[str, Any] = {}
    for one in found:
        kept.setdefault(" ".join(said(one).lower().split()), one)
    return list(kept.values())


def line(
    document: Document,
    now: int,
    changed_at: int,
    verdict: Callable[[str], str] | None = None,
    times: Callable[[str], int] | None = None,
) -> str:
    """One record: what, when, how known, what worked instead, and its id."""
    about = [render.ago(document.at, now)]
    told = times(document.key) if times is not None and document.type == "failure" else 0
    if told > 1:
        about.append(render.times(told))
    elif document.count > 1 and not told:
        exact = document.count < FAILS_KEPT or document.type != "failure"
        about.append(f"{document.count}x" if exact else f"{document.count}x or more")
    if document.type != "failure":
        about.append(document.origin or "unknown")
    elif verdict is not None:
        if verdict(document.key) != "warn":
            about.append("the gate refuses it")
    elif changed_at > document.at:
        about.append("workspace changed since")
    if 0 < document.review_at <= now:
        about.append("review overdue: uncertain")
    said = _label(document.text) if document.type == "label" else render.told(document, TEXT_MAX)
    most = TEXT_MAX + ROOM if document.type == "failure" else TEXT_MAX
    text = f"- {render.quoted(said, most)} ({', '.join(about)}) [{render.short(document.id)}]"
    if document.remedy:
        text += f"; worked instead: {render.remedy(document.remedy, REMEDY_MAX)} [{render.short(document.remedy_id)}]"
    return text


def _label(text: str) -> str:
    """A label as people say it: `protected path infra/**: why`, of the text that it is searched by."""
    label, _, rest = text.partition(". ")
    target, _, rest = rest.partition(". ")
    pattern, _, reason = rest.partition(". ")
    return f"{label} {target} {pattern}" + (f": {reason}" if reason else "")


def compose(
    lines: dict[str, list[str]],
    notes: list[str],
    nonce: str,
    budget_tokens: int,
    sections: Sequence[tuple[str, str]] = SECTIONS,
) -> str:
    """Sections of lines within the budget. Sections take turns, so that a full one leaves room for the others; the first of them
    takes two lines at a turn. sections: (name in `lines`, title) in the order shown."""
    taken = dict.fromkeys(lines, 0)
    block = _render(lines, taken, notes, nonce, sections)
    if render.tokens(block) > budget_tokens:
        return ""
    for type_ in _turns(lines, sections):
        taken[type_] += 1
        longer = _render(lines, taken, notes, nonce, sections)
        if render.tokens(longer) > budget_tokens:
            taken[type_] -= 1
            break
        block = longer
    return block


def _turns(lines: dict[str, list[str]], sections: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The order in which lines are taken: two of the first section for each line of another."""
    left = {type_: len(of_type) for type_, of_type in lines.items()}
    while any(left.values()):
        for type_, _ in (sections[0], *sections):
            if left.get(type_, 0):
                left[type_] -= 1
                yield type_


def _render(
    lines: dict[str, list[str]], taken: dict[str, int], notes: list[str], nonce: str, sections: Sequence[tuple[str, str]]
) -> str:
    out: list[str] = []
    for type_, title in sections:
        if taken.get(type_, 0):
            out += [f"{title}:", *lines[type_][: taken[type_]]]
    out += [f"({render.inline(note, TEXT_MAX)})" for note in notes[:2]]
    return render.fence(out, nonce, taught=False)

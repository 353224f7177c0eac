"""Folds the log into the documents that recall and summaries read. Pure; on the hook's path.

A document is a note, decision, open issue, hypothesis, attempt, fix, or a failure together with what worked later. Facts are
kept as sets ordered by (at, stream, seq), so that every interleaving of streams gives the same documents. What was erased,
superseded, disputed, closed or cleared by a later success gives no document.
"""

from __future__ import annotations

from projectmem_gate.model import Value

from projectmem_projections import glosses
from projectmem_projections.scope import Scope
from projectmem_projections.utility import Experience

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Event = Mapping[str, Any]
    Order = tuple[int, str, int]

TEXT_MAX = 2_000  # characters of one document
FAILS_KEPT, OKS_KEPT = 4, 16
DAY = 86_400_000_000  # microseconds
FAILURE_DAYS, REMEDIED_DAYS = 30, 180  # how long a failure is remembered, without and with a known remedy
REMEDY_WITHIN = DAY  # a success of the same family within this time after the failure counts as what worked

CHANGES = ("edit", "install", "checkout", "env")  # effects after which a failure may no longer be true

NEVER: Order = (-1, "", 0)

# kind of event -> (type of document, fields of its data that make the text)
WRITTEN = {
    "note.recorded": ("note", ("text", "tags")),
    "decision.recorded": ("decision", ("title", "text")),
    "issue.opened": ("issue", ("title", "paths")),
    "hypothesis.noted": ("hypothesis", ("text",)),
    "attempt.recorded": ("attempt", ("text", "outcome")),
    "fix.recorded": ("fix", ("text",)),
    "label.set": ("label", ("label", "target", "pattern", "reason")),
}
TYPES = ("failure", "fix", "decision", "attempt", "issue", "note", "hypothesis", "label")


class Document(Value):
    """One thing that can be recalled.

    id        event it was made from;  at: when it happened (us)
    type      failure | fix | decision | attempt | issue | note | hypothesis | label
    cls       class of a failure, else ""
    text      at most TEXT_MAX characters, as recorded (not escaped)
    origin    observed | agent | human | import
    verifier  what showed it to be so, "" when nothing did
    key       action key of a failure, issue's name of an issue and what belongs to it, else ""
    remedy    what worked after a failure, "" when unknown;  remedy_id the event that shows it
    count     how often it failed since it last succeeded (failures; FAILS_KEPT means so often or more)
    review_at, expires_at  us, 0 = never: past the first it is uncertain, past the second it is gone
    causes    ids of the events it derives from
    corrects  1 where it was recorded in place of something else
    """

    __slots__ = (
        "at",
        "causes",
        "cls",
        "corrects",
        "count",
        "expires_at",
        "id",
        "key",
        "origin",
        "remedy",
        "remedy_id",
        "review_at",
        "scope",
        "text",
        "type",
        "verifier",
    )

    def __init__(
        self,
        id: str,
        type: str,
        text: str,
        at: int,
        scope: Scope,
        *,
        origin: str = "",
        verifier: str = "",
        key: str = "",
        remedy: str = "",
        remedy_id: str = "",
        count: int = 1,
        review_at: int = 0,
        expires_at: int = 0,
        causes: Sequence[str] = (),
        cls: str = "",
        corrects: int = 0,
    ) -> None:
        self.cls, self.corrects = cls, corrects
        self.id, self.type, self.text, self.at, self.scope = id, type, text, at, scope
        self.origin, self.verifier, self.key = origin, verifier, key
        self.remedy, self.remedy_id, self.count = remedy, remedy_id, count
        self.review_at, self.expires_at, self.causes = review_at, expires_at, tuple(causes)

    @property
    def sources(self) -> tuple[str, ...]:
        """Every event it is made from: when one of them goes, it goes."""
        return tuple(dict.fromkeys(s for s in (self.id, self.remedy_id, *self.causes) if s))

    @property
    def told(self) -> str:
        """The text with what worked."""
        return f"{self.text} Worked: {self.remedy}" if self.remedy else self.text

    @property
    def searched(self) -> str:
        """What lexical search and the embedder see: the text, and what the commands, codes and files in it mean in words."""
        meaning = glosses.of(self.told)
        return f"{self.told}. {meaning}" if meaning else self.told


class Fail:
    """A failed action as the fold keeps it."""

    __slots__ = ("causes", "cls", "family", "id", "order", "origin", "scope", "text")

    def __init__(
        self, order: Order, id: str, text: str, family: str, origin: str, scope: Scope, causes: Sequence[str], cls: str
    ) -> None:
        self.order, self.id, self.text, self.family = order, id, text, family
        self.origin, self.scope, self.causes, self.cls = origin, scope, tuple(causes), cls


class Facts:
    """Everything the documents follow from. `apply` events in any interleaving, any number of times; then ask `documents`."""

    def __init__(self) -> None:
        self.written: dict[str, Document] = {}
        self.held: dict[str, str] = {}  # document waiting for a person -> the event it contradicts, or `itself`
        self.merged: dict[str, str] = {}  # document that only repeats another -> that other
        self.reviewed: dict[str, tuple[Order, int]] = {}  # document -> newest review, and when it is due again
        self.gone: set[str] = set()  # ids erased, superseded or disputed
        self.gone_keys: dict[str, Order] = {}  # action key -> newest dispute or supersession of it
        self.closed: dict[str, Order] = {}  # issue -> newest closing
        self.fails: dict[str, list[Fail]] = {}  # action key -> newest failures
        self.oks: dict[str, Order] = {}  # action key -> newest success
        self.experience = Experience()  # what recalls led to
        self.changed_at = 0  # when the workspace was last changed on record
        self.family_oks: dict[str, list[tuple[Order, str, str, str]]] = {}  # family -> newest (order, id, key, text)

    def apply(self, events: Iterable[Event]) -> None:
        """Fold events in. Total: unknown kinds and fields of the wrong shape are skipped."""
        for event in events:
            data = event.get("data")
            if isinstance(data, dict):
                self._apply(event, data)

    def _apply(self, event: Event, data: dict[str, Any]) -> None:
        kind = event.get("kind", "")
        self.experience.apply(event, data, _order(event))
        if kind == "action.finished":
            self._finished(event, data)
        elif kind in WRITTEN:
            self._write(event, data)
        elif kind == "erasure.requested":
            self.gone.update(_strings(data.get("ids")))
        elif kind in ("record.superseded", "record.disputed"):
            self.gone.update(_strings([data.get("record")]))
            if _text(data.get("key")):
                _newest(self.gone_keys, data["key"], _order(event))
        elif kind == "record.reviewed":
            record, found = _text(data.get("record")), (_order(event), _number(data.get("until")))
            if record and found > self.reviewed.get(record, (NEVER, 0)):
                self.reviewed[record] = found
        elif kind == "label.cleared":
            self.gone.update(_strings([data.get("label_event")]))
        elif kind == "issue.closed":
            _newest(self.closed, _text(data.get("issue")), _order(event))

    def _write(self, event: Event, data: dict[str, Any]) -> None:
        type_, fields = WRITTEN[event["kind"]]
        if type_ == "label" and _text(data.get("decision")):
            return  # the clause of a decision, which is a document itself
        parts = [" ".join(_strings(v)) if isinstance(v, list) else _text(v) for v in (data.get(f) for f in fields)]
        text = ". ".join(p for p in parts if p)[:TEXT_MAX]
        if not text:
            return
        document = Document(
            _text(event.get("id")),
            type_,
            text,
            _at(event),
            _scope(event),
            origin=_origin(event),
            verifier=_text(data.get("verifier")),
            key=_text(data.get("issue")),
            review_at=_number(data.get("review_at")),
            expires_at=_number(data.get("expires_at")),
            causes=_strings(event.get("causes")),
            corrects=int(bool(_text(data.get("supersedes")))),
        )
        self.written[document.id] = document
        if _text(data.get("held_for")):
            self.held[document.id] = data["held_for"]
        if _text(data.get("same_as")):
            self.merged[document.id] = data["same_as"]
        self.gone.update(_strings([data.get("supersedes")]))

    def _finished(self, event: Event, data: dict[str, Any]) -> None:
        order, id_ = _order(event), _text(event.get("id"))
        cls = _text(data.get("class"))
        parts = [p for p in data.get("parts") or () if isinstance(p, dict)]
        effects = [effect for part in parts for effect in part.get("effects") or ()]
        if any(isinstance(effect, (list, tuple)) and effect and effect[0] in CHANGES for effect in effects):
            self.changed_at = max(self.changed_at, order[0])
        if data.get("outcome") == "failed":
            key = _text(data.get("failed_key")) or _text(data.get("key"))
            part = next((p for p in parts if p.get("key") == key), parts[-1] if parts else {})
            named = _text(part.get("text")) if part.get("key") == key else _text(data.get("text"))
            said = _text(data.get("signature")) or _text(data.get("excerpt"))[:300]
            text = f"{named} failed ({cls or 'unknown'}): {said}"[:TEXT_MAX]
            fail = Fail(
                order, id_, text, _text(part.get("family")), _origin(event), _scope(event), _strings(event.get("causes")), cls
            )
            _keep(self.fails.setdefault(key, []), fail, FAILS_KEPT)
        elif data.get("outcome") == "ok":
            keys = [_text(data.get("key"))]
            if parts and all(j == "&&" for j in data.get("joins") or ()):
                keys += [_text(p.get("key")) for p in parts]
            elif parts:
                keys.append(_text(parts[-1].get("key")))
                parts = parts[-1:]
            for key in keys:
                _newest(self.oks, key, order)
            for part in parts:
                if _text(part.get("family")) and not part.get("trivial"):
                    ok = (order, id_, _text(part.get("key")), _text(part.get("text")))
                    kept = self.family_oks.setdefault(part["family"], [])
                    if ok not in kept:
                        kept.append(ok)
                        kept.sort(reverse=True)
                        del kept[OKS_KEPT:]

    def dead(self, sources: Iterable[str]) -> bool:
        """Whether one of some events was erased, superseded or disputed."""
        return any(source in self.gone for source in sources)

    def documents(self) -> list[Document]:
        """The live documents, ordered by (at, id). Expiry is the reader's: it depends on the time of reading."""
        out = []
        for document in self._standing():
            closed = document.type == "issue" and self.closed.get(document.key, NEVER)[0] >= document.at
            if not closed and not self.waits(document.id):
                out.append(document)
        for key, fails in self.fails.items():
            found = self._failure(key, fails)
            if found:
                out.append(found)
        return sorted(out, key=lambda d: (d.at, d.id))

    def waits(self, id: str) -> bool:
        """Whether a document is held for a person: nobody reviewed it, and what it contradicts still stands."""
        other = self.held.get(id)
        return other is not None and id not in self.reviewed and other not in self.gone

    def waiting(self) -> list[tuple[Document, str]]:
        """Documents that are held, oldest first, each with the id of what it contradicts (`itself` where that is all)."""
        held = [(d, self.held[d.id]) for d in self._standing() if self.waits(d.id)]
        return sorted(held, key=lambda pair: (pair[0].at, pair[0].id))

    def _standing(self) -> list[Document]:
        """Written documents that are not gone; repeats folded into the first that stands, counted, their causes kept."""
        groups: dict[str, list[Document]] = {}
        for document in self.written.values():
            if not self.dead(document.sources):
                groups.setdefault(self._first(document.id), []).append(document)
        return [self._one(sorted(found, key=lambda d: (d.at, d.id))) for found in groups.values()]

    def _first(self, id: str) -> str:
        """What a repeat repeats, followed to its end."""
        seen = {id}
        while (other := self.merged.get(id, "")) and other not in seen:
            seen.add(other)
            id = other
        return id

    def _one(self, found: list[Document]) -> Document:
        first = found[0]
        review_at = self.reviewed[first.id][1] if first.id in self.reviewed else first.review_at
        if len(found) == 1 and review_at == first.review_at:
            return first
        fields = {name: getattr(first, name) for name in Document.__slots__}
        causes = tuple(dict.fromkeys(cause for document in found for cause in document.causes))
        return Document(**{**fields, "at": found[-1].at, "count": len(found), "causes": causes, "review_at": review_at})

    def _failure(self, key: str, fails: list[Fail]) -> Document | None:
        """The document of an action that failed: None when cleared by its own success, or gone."""
        live = [f for f in fails if not self.dead((f.id, *f.causes))]
        if not live:
            return None
        newest = live[0]
        ended = max(self.oks.get(key, NEVER), self.gone_keys.get(key, NEVER))
        if ended > newest.order:
            return None
        remedy = self._remedy(key, newest)
        days = REMEDIED_DAYS if remedy else FAILURE_DAYS
        return Document(
            newest.id,
            "failure",
            newest.text,
            newest.order[0],
            newest.scope,
            origin=newest.origin,
            key=key,
            remedy=remedy[1] if remedy else "",
            remedy_id=remedy[0] if remedy else "",
            count=sum(f.order > ended for f in live),
            expires_at=newest.order[0] + days * DAY,
            causes=newest.causes,
            cls=newest.cls,
        )

    def _remedy(self, key: str, fail: Fail) -> tuple[str, str] | None:
        """(event id, text) of the first kept success of the same family, another action, soon after the failure."""
        after = [
            (order, id_, text)
            for order, id_, other, text in self.family_oks.get(fail.family, ())
            if other != key and fail.order < order and order[0] - fail.order[0] <= REMEDY_WITHIN and not self.dead((id_,))
        ]
        return min(after)[1:] if after else None


def _keep(kept: list[Fail], fail: Fail, most: int) -> None:
    if all(f.order != fail.order for f in kept):
        kept.append(fail)
        kept.sort(key=lambda f: f.order, reverse=True)
        del kept[most:]


def _newest(table: dict[str, Order], key: str, order: Order) -> None:
    if key and order > table.get(key, NEVER):
        table[key] = order


def _order(event: Event) -> Order:
    return (_at(event), _text(event.get("stream")), _number(event.get("seq")))


def _at(event: Event) -> int:
    return _number(event.get("at")) or _number(event.get("ts"))


def _origin(event: Event) -> str:
    actor = event.get("actor")
    return _text(actor.get("origin")) if isinstance(actor, dict) else ""


def _scope(event: Event) -> Scope:
    scope = event.get("scope")
    if not isinstance(scope, dict):
        return Scope("")
    return Scope(*(_text(scope.get(name)) for name in ("project", "tenant", "worktree", "branch")))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _strings(value: object) -> list[str]:
    return [v for v in value if isinstance(v, str) and v] if isinstance(value, list) else []

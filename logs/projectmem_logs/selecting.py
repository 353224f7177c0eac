"""What an erasure is about: which events a selector means, what is derived from them, and how to say so without the text. Pure.

A selector's conditions all have to hold. Control records (erasures, checkpoints, recoveries) are never erased, and a person's
rules (policy, labels) only when they are named by id or hold the text or the path.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .envelope import is_id

CONTROL = frozenset({"erasure.requested", "checkpoint.sealed", "log.recovered"})
RULES = frozenset({"policy.changed", "label.set", "label.cleared"})
# A field of the payload that names the event a record is about: what was said about it goes with it.
ABOUT = {
    "record.pinned": "record",
    "record.snoozed": "record",
    "record.disputed": "record",
    "record.superseded": "record",
    "record.reviewed": "record",
    "feedback.given": "target",
    "label.cleared": "label_event",
}
_QUOTING = ("action.proposed", "recall.decided")  # these quote other records at length: any id in them counts
_OPENED = "issue.opened"
NEEDLE_MIN, NEEDLE_MAX = 8, 80  # characters of an erased text that are looked for in logs for people
_PATH_CHAR = r"[\w./\\-]"
_SEPARATOR = r"[/\\]+"
_ESCAPES = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([\"/bfnrt]))|\\{2,}")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Selector:
    """What is to be forgotten. An empty field asks nothing.

    ids      events;  keys  every event about these actions (a record and its history)
    session  opaque id;  actor  a session, agent, harness, model or origin
    path     a file or folder, relative to the project's root;  text  anything said, in any field, as it is written
    marks    what the redactor made of `text`, should it be a secret
    since, until  when it happened (microseconds), until exclusive; 0 for no bound
    """

    ids: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    session: str = ""
    actor: str = ""
    path: str = ""
    text: str = ""
    marks: tuple[str, ...] = ()
    since: int = 0
    until: int = 0
    root: str = ""
    _found: list[re.Pattern[str]] = field(default_factory=list, init=False, compare=False, repr=False)
    _said: list[str] = field(default_factory=list, init=False, compare=False, repr=False)
    _flat_text: list[str] = field(default_factory=list, init=False, compare=False, repr=False)
    _bytes: list[bytes] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def empty(self) -> bool:
        """Whether it asks nothing, and so would mean everything."""
        return not (self.ids or self.keys or self.session or self.actor or self.path or self.text or self.since or self.until)

    @property
    def named(self) -> bool:
        """Whether it names something that can be looked for in bytes of which no event can be made."""
        return bool(self.ids or self.keys or self.session or self.actor or self.path or self.text)

    def spellings(self) -> list[str]:
        """The ways the text usually stands in a payload: as it is, with its accents composed or not, inside JSON kept as text
        (once and twice), as a secret's mark. `_flat` finds the others."""
        if not self.text:
            return []
        out = []
        for text in (self.text, *(unicodedata.normalize(form, self.text) for form in ("NFC", "NFD"))):
            once = json.dumps(text, ensure_ascii=False)[1:-1]
            out += [text, once, json.dumps(once, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]]
        return list(dict.fromkeys([*out, *self.marks]))

    def said_in(self, leaf: str) -> bool:
        """Whether a text holds what is searched for, in whatever spelling."""
        if not self._said:
            self._said.extend(self.spellings())
            self._flat_text.append(_flat(self.text))
        if any(s in leaf for s in self._said):
            return True
        escaped = "\\" in leaf and ("\\u" in leaf or not set(self.text).isdisjoint('"/\\\b\f\n\r\t'))
        return (escaped or not (self.text.isascii() or leaf.isascii())) and self._flat_text[0] in _flat(leaf)

    def matches(self, event: Mapping[str, Any]) -> bool:
        """Whether this event itself is meant (what is derived from it is found by `derived`)."""
        kind = event.get("kind")
        data: Any = event.get("data")
        if kind in CONTROL or type(data) is not dict:
            return False
        if kind in RULES and not (self.ids or self.text or self.path):
            return False
        actor: Any = event.get("actor") or {}
        return (
            (not self.ids or event.get("id") in self.ids)
            and (not self.keys or not set(self.keys).isdisjoint(_keys(data)))
            and (not self.session or actor.get("session") == self.session)
            and (not self.actor or self.actor in actor.values())
            and (not self.since or event.get("at", 0) >= self.since)
            and (not self.until or event.get("at", 0) < self.until)
            and (not self.text or any(self.said_in(leaf) for leaf in leaves(data)))
            and (not self.path or any(self._names_path(leaf) for leaf in leaves(data)))
        )

    def _names_path(self, leaf: str) -> bool:
        if not self._found:
            path = _SEPARATOR.join(re.escape(part) for part in self.path.split("/") if part)
            before = rf"(?:(?:\bdiff\b[^\n]{{0,400}}?\s|--- |\+\+\+ )[ab]/|(?<!{_PATH_CHAR})(?:\.{_SEPARATOR})?"
            before += (rf"|{re.escape(self.root)}{_SEPARATOR}" if self.root else "") + ")"
            self._found.append(re.compile(rf"{before}{path}(?!{_PATH_CHAR.replace('/', '').replace('.', '')}|\.\w)"))
        return bool(self._found[0].search(leaf))

    def may_concern(self, raw: bytes) -> bool:
        """Whether a whole line is worth parsing: False only where it neither fits nor derives from anything. Cheap for texts."""
        if not self.text or not raw.startswith(b'"causes":[]', raw.find(b'"causes":')):
            return True
        if not self._bytes:
            self._bytes.extend(json.dumps(s, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass") for s in self.spellings())
            self._bytes.extend(f'"kind":"{kind}"'.encode() for kind in (*ABOUT, *_QUOTING))
            self._bytes.append(b'"issue":"')
        if any(text in raw for text in self._bytes):
            return True
        return (b"\\" in raw or not self.text.isascii()) and self.said_in(raw.decode("utf-8", "replace"))

    def in_bytes(self, raw: bytes) -> bool:
        """Whether damaged bytes, of which no event can be made, may hold what is meant. Errs on the side of erasing."""
        text = raw.decode("utf-8", "replace")
        if (self.text and self.said_in(text)) or any(id in text for id in (*self.ids, *self.keys)):
            return True
        if any(f'"{given}"' in text for given in (self.session, self.actor) if given):
            return True
        if self.path and self._names_path(text):
            return True
        return not (self.ids or self.keys or self.session or self.actor or self.path or self.text)

    def describe(self, mark: str) -> str:
        """In one line for the control record, which stays: `mark` stands for the text and the path."""
        parts = [f"event {' '.join(self.ids[:5])}{' ...' if len(self.ids) > 5 else ''}"] if self.ids else []
        parts += [f"action {' '.join(self.keys[:5])}"] if self.keys else []
        parts += [f"session {self.session}"] if self.session else []
        parts += [f"actor {self.actor}"] if self.actor else []
        parts += [f"path {mark}"] if self.path else []
        parts += [f"text {mark}"] if self.text else []
        parts += [f"since {self.since}"] if self.since else []
        parts += [f"until {self.until}"] if self.until else []
        return ", ".join(parts)[:500]

    def to_data(self) -> dict[str, Any]:
        """As plain data, the text included: for the plan of an erasure at work, never for the log."""
        named = {name: getattr(self, name) for name in ("session", "actor", "path", "text", "since", "until", "root")}
        return {**named, "ids": list(self.ids), "keys": list(self.keys), "marks": list(self.marks)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Selector:
        """The reverse of `to_data`."""
        given = dict(data)
        for name in ("ids", "keys", "marks"):
            given[name] = tuple(given[name])
        return cls(**given)


def _flat(text: str) -> str:
    """`text` with JSON's escapes undone, however often it was escaped, and its accents composed."""
    if "\\" in text:
        text = _ESCAPES.sub(_unescaped, text)
        if any("\ud800" <= c <= "\udfff" for c in text):  # two escapes for one character
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return unicodedata.normalize("NFC", text)


def _unescaped(m: re.Match[str]) -> str:
    if m.group(1):
        return chr(int(m.group(1), 16))
    return _ESCAPED.get(m.group(2), m.group(2)) if m.group(2) else "\\"


def _keys(data: Mapping[str, Any]) -> set[str]:
    """The keys of the actions a payload is about."""
    found = {data.get("key"), data.get("failed_key")}
    found.update(part.get("key") for part in data.get("parts") or () if isinstance(part, dict))
    return {key for key in found if isinstance(key, str) and key}


def leaves(value: Any) -> Iterator[str]:
    """Every text in a JSON value, names of members included."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            stack += one.keys()
            stack += one.values()
        elif isinstance(one, list):
            stack += one


def issue_of(event: Mapping[str, Any]) -> str:
    """The issue that an event opens or is about, as a name among ids; "" for none. Issues have short ids of their own."""
    data = event.get("data")
    issue = data.get("issue") if isinstance(data, dict) else None
    return f"issue:{issue}" if isinstance(issue, str) and issue else ""


def opened(event: Mapping[str, Any]) -> str:
    """The issue that this event opens, "" for none: what is about the issue derives from that, and it from the event."""
    return issue_of(event) if event.get("kind") == _OPENED else ""


def sources(event: Mapping[str, Any]) -> set[str]:
    """The ids of the events that this one derives from: its causes, what it is about, its issue, and what it quotes."""
    kind, data = event.get("kind"), event.get("data")
    if kind in CONTROL:
        return set()
    found = {cause for cause in event.get("causes") or () if isinstance(cause, str)}
    if isinstance(data, dict):
        about = data.get(ABOUT.get(str(kind), ""))
        if isinstance(about, str) and about:
            found.add(about)
        if kind != _OPENED and (issue := issue_of(event)):
            found.add(issue)
        if kind in _QUOTING:
            found.update(leaf for leaf in leaves(data) if len(leaf) == 36 and is_id(leaf))
    return found - {event.get("id")}


def derived(direct: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    """Everything that follows from `direct` through `edges` {event: what it derives from}, `direct` itself left out."""
    children: dict[str, list[str]] = {}
    for child, parents in edges.items():
        for parent in parents:
            children.setdefault(parent, []).append(child)
    start = set(direct)
    seen, todo = set(start), list(start)
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in seen:
                seen.add(child)
                todo.append(child)
    return seen - start


def needles(event: Mapping[str, Any]) -> set[str]:
    """What would betray an erased event in a log for people: the beginnings of the longer lines of its payload."""
    found = set()
    for leaf in leaves(event.get("data")):
        for line in leaf.splitlines()[:20]:
            if len(line.strip()) >= NEEDLE_MIN:
                found.add(line.strip()[:NEEDLE_MAX])
    return found

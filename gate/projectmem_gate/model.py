"""The gate's vocabulary: plain, slotted value classes shared by recording, checking and replay.

No dataclasses and no typing at run time: this module is on the hook's path, where each costs milliseconds.
All times are integer microseconds since the epoch (UTC); all chances are integer per mille.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ALLOW, WARN, ASK, DENY = "allow", "warn", "ask", "deny"
VERDICTS = (ALLOW, WARN, ASK, DENY)  # weakest first

# Outcomes of a tool call. Only FAILED may ever object to a later call.
OK, FAILED, REJECTED, INTERRUPTED, CANCELLED, UNKNOWN = (
    "ok",
    "failed",
    "rejected",
    "interrupted",
    "cancelled",
    "unknown",
)

# Failure classes, see README.md for what makes each worth trying again.
CLASSES = (
    "command-not-found",
    "missing-dependency",
    "usage",
    "auth",
    "protected-resource",
    "network",
    "lock",
    "timeout",
    "resource",
    "test",
    "build",
    "runtime",
    "edit-mismatch",
    "unknown",
)


class Value:
    """Base of the value classes: equality and repr by slots."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, s) == getattr(other, s) for s in self.__slots__)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{s}={getattr(self, s)!r}' for s in self.__slots__)})"

    def to_data(self) -> dict[str, Any]:
        """The value as canonical-JSON-safe data (dicts, lists, strings, ints, bools, None)."""
        return {s: _plain(getattr(self, s)) for s in self.__slots__}


def _plain(v: Any) -> Any:
    if isinstance(v, Value):
        return v.to_data()
    if isinstance(v, (tuple, list)):
        return [_plain(x) for x in v]
    if isinstance(v, dict):
        return {k: _plain(x) for k, x in v.items()}
    return v


class Part(Value):
    """One thing an action does that can fail on its own: a shell segment, an edit, a write, a call.

    key      32 hex digits, the identity: equal keys mean the same action
    kind     sh | edit | write | patch | mcp | fetch | read | search | other
             (and, of parts that a caller adds, derived: what the others amount to, see fixes.py)
    family   coarse relative of the key for remedies and odds, e.g. `npm run build`, `pytest`, `edit src/app.py`
    text     canonical readable form, at most 400 characters
    words    up to 3 lower-case ASCII letter runs that occur in the raw input of *every* spelling of this key
             (the hook's cheap filter: see hints.py); () means "always a candidate"
    paths    root-relative POSIX paths it names (absolute when outside the root)
    effects  what it may change or learn if it succeeds: pairs (type, subject), see effects.py
    trivial  true for cd, echo, pwd, export ...: never blamed when a chain fails
    variant  what the key leaves out on purpose, at most 200 characters: of a shell segment the options that only change how
             much it prints, then its output filters (`-v | tail -5`); of an edit a digest of its whole old and new text
    kin      the key of the same work by another launcher (`pytest x` and `python -m pytest x`), "" for none: they can fail
             apart, so a failure of the one may only warn before the other
    undoes   of an edit: the key of the edit that it takes back (old and new text exchanged), "" where that is not known
    limit    milliseconds after which it is ended, as the caller says (`timeout`); 0 where nothing is said, -1 where nobody
             waits for it (in the background). No part of the key
    """

    __slots__ = ("key", "kind", "family", "text", "words", "paths", "effects", "trivial", "variant", "kin", "undoes", "limit")

    def __init__(
        self,
        key: str,
        kind: str,
        family: str,
        text: str,
        words: tuple[str, ...] = (),
        paths: tuple[str, ...] = (),
        effects: tuple[tuple[str, str], ...] = (),
        trivial: bool = False,
        variant: str = "",
        kin: str = "",
        undoes: str = "",
        limit: int = 0,
    ) -> None:
        self.key, self.kind, self.family, self.text = key, kind, family, text
        self.words, self.paths, self.effects, self.trivial = words, paths, effects, trivial
        self.variant, self.kin, self.undoes, self.limit = variant, kin, undoes, limit

    def to_data(self) -> dict[str, Any]:
        """As plain data; a limit only where there is one. Written out: an import asks every part for it."""
        data: dict[str, Any] = {
            "key": self.key,
            "kind": self.kind,
            "family": self.family,
            "text": self.text,
            "words": list(self.words),
            "paths": list(self.paths),
            "effects": [list(effect) for effect in self.effects],
            "trivial": self.trivial,
            "variant": self.variant,
            "kin": self.kin,
            "undoes": self.undoes,
        }
        if self.limit:
            data["limit"] = self.limit
        return data


class Action(Value):
    """A proposed or finished tool call, canonicalised.

    tool    the harness's own tool name;  kind as in Part (the call's, `sh` for shells)
    cwd     root-relative POSIX directory the call starts in, "." at the root
    key     identity of the whole call (equal to parts[0].key when there is one part)
    parts   at least one
    joins   operator after each part but the last: && || ; | &
    parsed  false when the command could not be parsed (matched verbatim only)
    escalated  the harness was asked to run it outside its sandbox: a different action (part of every key)
    """

    __slots__ = ("tool", "kind", "cwd", "key", "text", "parts", "joins", "parsed", "escalated")

    def __init__(
        self,
        tool: str,
        kind: str,
        cwd: str,
        key: str,
        text: str,
        parts: tuple[Part, ...],
        joins: tuple[str, ...] = (),
        parsed: bool = True,
        escalated: bool = False,
    ) -> None:
        self.tool, self.kind, self.cwd, self.key, self.text = tool, kind, cwd, key, text
        self.parts, self.joins, self.parsed, self.escalated = parts, joins, parsed, escalated

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key to look up: the whole call first, then each part, without repeats."""
        return tuple(dict.fromkeys((self.key, *(p.key for p in self.parts if not p.trivial))))

    @property
    def kin(self) -> tuple[str, ...]:
        """Keys of the same work by another launcher, to look up after `keys`."""
        return tuple(dict.fromkeys(p.kin for p in self.parts if p.kin))

    def variant(self, key: str) -> str:
        """The variant of the first part with this key; of the whole call those of its parts."""
        own = next((p.variant for p in self.parts if p.key == key), None)
        return "; ".join(p.variant for p in self.parts if not p.trivial)[:200] if own is None else own

    def limit(self, key: str) -> int:
        """The limit of the first part with this key; of the whole call the tightest of its parts."""
        own = next((p.limit for p in self.parts if p.key == key), None)
        if own is not None:
            return own
        said = [p.limit for p in self.parts if not p.trivial and p.limit]
        return min([limit for limit in said if limit > 0], default=min(said, default=0))

    def ignores(self, key: str) -> bool:
        """Does the caller not mind that the part with this key fails (`... || true`)? Of the whole call: any."""
        indexes = [i for i, p in enumerate(self.parts) if p.key == key] or range(len(self.parts))
        return all(self.parts[i].trivial or self.ignored(i) for i in indexes) and bool(self.joins)

    def ignored(self, index: int) -> bool:
        """Is nothing but a word or two behind the `||` after this part? `|| exit 1` and `|| false` pass the failure on."""
        behind = self.parts[index + 1 :]
        if self.joins[index : index + 1] != ("||",) or not all(p.trivial for p in behind[:1]):
            return False
        for part in behind:
            if not part.trivial:
                break
            name, _, code = part.text.partition(" ")
            if name == "false" or (name in ("exit", "return") and code.strip() != "0"):
                return False
        return True


class Outcome(Value):
    """What became of a call.

    outcome   ok | failed | rejected | interrupted | cancelled | unknown
    exit_code None where the harness has none
    cls, signature  "" unless failed;  signature is stable: volatile parts removed, at most 200 characters
    excerpt   the lines that show the failure, at most 1,000 characters; "" for ok
    culprit   index into Action.parts of the part that failed, -1 when the output does not show it
    """

    __slots__ = ("outcome", "exit_code", "cls", "signature", "excerpt", "culprit")

    def __init__(
        self, outcome: str, exit_code: int | None = None, cls: str = "", signature: str = "", excerpt: str = "", culprit: int = -1
    ) -> None:
        self.outcome, self.exit_code, self.cls = outcome, exit_code, cls
        self.signature, self.excerpt, self.culprit = signature, excerpt, culprit


class Change(Value):
    """Something that happened after a failure and may have mended it.

    type     edit | install | login | checkout | env | read | service | any      (see effects.py)
    subject  root-relative path, package manager, tool or program; "" when unknown
    """

    __slots__ = ("type", "subject", "at", "stream", "seq")

    def __init__(self, type: str, subject: str, at: int, stream: str = "", seq: int = 0) -> None:
        self.type, self.subject, self.at, self.stream, self.seq = type, subject, at, stream, seq


class Decision(Value):
    """The gate's answer. Integers and strings only, so that equal decisions are equal bytes.

    rule        short stable name of the rule that decided, e.g. `repeat`, `repeat.identical`, `override`, `human.deny`
    record      id of the event that carries the determining failure, "" when none
    records     ids of every live record that matched
    reason      what the agent reads (rendered, <= about 120 tokens), "" for allow
    remedy      what worked instead, "" when unknown;  remedy_id the event that shows it
    expires_at  when the objection lapses on its own, 0 = never (human rules)
    odds        chance per mille that the action fails again, -1 when not estimated
    by          who answers an ask: agent | person | ""
    """

    __slots__ = ("verdict", "rule", "record", "records", "reason", "remedy", "remedy_id", "expires_at", "odds", "by", "engine")

    def __init__(
        self,
        verdict: str,
        rule: str = "",
        record: str = "",
        records: Sequence[str] = (),
        reason: str = "",
        remedy: str = "",
        remedy_id: str = "",
        expires_at: int = 0,
        odds: int = -1,
        by: str = "",
        engine: str = "",
    ) -> None:
        self.verdict, self.rule, self.record, self.records = verdict, rule, record, tuple(records)
        self.reason, self.remedy, self.remedy_id = reason, remedy, remedy_id
        self.expires_at, self.odds, self.by, self.engine = expires_at, odds, by, engine


class Session(Value):
    """Who is asking: needed to let a repeated ask pass once.

    call   the harness's call id, "" where it has none;  turn  counts finished batches of the session, -1 unknown
    """

    __slots__ = ("session", "agent", "harness", "call", "turn")

    def __init__(self, session: str, agent: str = "", harness: str = "", call: str = "", turn: int = -1) -> None:
        self.session, self.agent, self.harness, self.call, self.turn = session, agent, harness, call, turn

"""The kinds of event and the payload each may carry: pydantic models of today's version (older ones: upcasting.py).

Enumerated values and length caps are the first defence against planted text. Keys that a model does not name are kept:
a newer version may have written them. Kinds that nobody here knows pass: they are kept in the log and skipped by folds.
The hook builds its payloads by hand (pydantic costs it too much); a contract test holds them to these models. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import KindError
from .upcasting import UPCASTERS, upcast, version

MICROS_MAX = 2**53
Micros = Annotated[int, Field(ge=0, le=MICROS_MAX)]
Hex = Annotated[str, Field(max_length=64, pattern=r"^[0-9a-f]*$")]
EventId = Annotated[str, Field(max_length=36, pattern=r"^[0-9a-f-]*$")]
Name = Annotated[str, Field(max_length=200)]  # an opaque id or a name of a tool, a harness, a model
Line = Annotated[str, Field(max_length=500)]
Text = Annotated[str, Field(max_length=20_000)]
Excerpt = Annotated[str, Field(max_length=4_000)]
Path = Annotated[str, Field(max_length=4_096)]
Input = Annotated[str, Field(max_length=8_200)]  # 8,000 characters and the mark that says it was cut
Facts = dict[str, Any]
AsOf = dict[Name, Annotated[int, Field(ge=0)]]
Few = Field(max_length=1_000)

Outcome = Literal["ok", "failed", "rejected", "interrupted", "cancelled", "unknown"]
Class = Literal[
    "", "command-not-found", "missing-dependency", "usage", "auth", "protected-resource", "network", "lock", "timeout",
    "resource", "test", "build", "runtime", "edit-mismatch", "unknown",
]  # fmt: skip
ActionKind = Literal["sh", "edit", "write", "patch", "mcp", "fetch", "read", "search", "other"]


class Payload(BaseModel):
    """Base of all payloads: strict types, unknown keys kept."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    v: Annotated[int, Field(ge=1)] = 1


class SessionStarted(Payload):
    source: Name
    cwd: Path


class SessionEnded(Payload):
    reason: Line


class ActionBase(Payload):
    call: Name
    tool: Name
    kind: ActionKind
    input: Input
    input_sha: Hex
    cwd: Path
    key: Hex
    text: Excerpt
    facts: Facts


class ActionProposed(ActionBase):
    keys: Annotated[list[Hex], Few]
    decision: dict[str, Any]
    session: dict[str, Any]
    policy: Hex
    now: Micros
    as_of: AsOf
    labels: Annotated[list[Any], Few]


class ActionFinished(ActionBase):
    joins: Annotated[list[Literal["&&", "||", ";", "|", "&"]], Few]
    parsed: bool
    parts: Annotated[list[dict[str, Any]], Few]
    failed_key: Hex
    outcome: Outcome
    exit_code: int | None
    class_: Annotated[Class, Field(alias="class")]
    signature: Annotated[str, Field(max_length=1_000)]
    excerpt: Excerpt
    duration_ms: Annotated[int, Field(ge=0)] | None
    as_of: AsOf | None
    turn: Annotated[int, Field(ge=-1)]  # -1: the harness does not tell
    source: Literal["hook", "backfill", "import", "record"]
    verifier: Name = "none"  # what judged the outcome: pytest, tsc, ...
    report: dict[str, Any] | None = None  # only where the call showed another run's report
    tried: dict[str, Any] | None = None  # the try of a known failure that the gate saw in it: class, state, age, by


class IssueOpened(Payload):
    issue: Name
    title: Line
    paths: Annotated[list[Path], Few]


class IssueClosed(Payload):
    issue: Name
    resolution: Text


class HypothesisNoted(Payload):
    issue: Name
    text: Text


class AttemptRecorded(Payload):
    issue: Name
    text: Text
    outcome: Name
    verifier: Line


class FixRecorded(Payload):
    issue: Name
    text: Text
    verifier: Line


class DecisionRecorded(Payload):
    title: Line
    text: Text
    supersedes: Name


class NoteRecorded(Payload):
    text: Text
    tags: Annotated[list[Name], Few]


class LabelSet(Payload):
    """A label, or (`rule`) the clause of a decision that a machine can check."""

    label: Literal["fragile", "protected", "rule"]
    target: Literal["path", "command", "tool"]
    pattern: Annotated[str, Field(min_length=1, max_length=4_096)]
    effect: Literal["warn", "ask", "deny"]
    reason: Line
    review_at: Micros
    instead: Annotated[str, Field(max_length=500)] = ""  # what the clause asks for, never covered by it
    decision: EventId = ""
    examples: Annotated[list[dict[str, Any]], Few] = Field(default=[])  # that it had to match: {id, text, covers}
    replay: dict[str, Any] | None = None  # what it would have said in the past: {as_of, since, seen, ok, failed, ids}


class LabelCleared(Payload):
    label_event: EventId
    reason: Line


class RecordTouched(Payload):
    """record.pinned, snoozed, disputed, superseded, reviewed."""

    record: EventId
    key: Hex
    until: Micros
    reason: Line
    by_event: EventId


class RecallDecided(Payload):
    pass


class FeedbackGiven(Payload):
    target: Name
    useful: bool
    note: Text


class ErasureRequested(Payload):
    selector: Line
    ids: Annotated[list[EventId], Field(max_length=100_000)]
    reason: Line


class PolicyChanged(Payload):
    text: Annotated[str, Field(max_length=200_000)]
    hash: Hex


class LogRecovered(Payload):
    segment: Name
    offset: int
    bytes: Annotated[int, Field(ge=0)]
    sha256: Hex
    quarantine: Name


class CheckpointSealed(Payload):
    size: Annotated[int, Field(ge=0)]
    root: Hex


class GateDegraded(Payload):
    where: Line
    what: Line
    detail: Text


KINDS: dict[str, type[Payload]] = {
    "session.started": SessionStarted,
    "session.ended": SessionEnded,
    "action.proposed": ActionProposed,
    "action.finished": ActionFinished,
    "issue.opened": IssueOpened,
    "issue.closed": IssueClosed,
    "hypothesis.noted": HypothesisNoted,
    "attempt.recorded": AttemptRecorded,
    "fix.recorded": FixRecorded,
    "decision.recorded": DecisionRecorded,
    "note.recorded": NoteRecorded,
    "label.set": LabelSet,
    "label.cleared": LabelCleared,
    "record.pinned": RecordTouched,
    "record.snoozed": RecordTouched,
    "record.disputed": RecordTouched,
    "record.superseded": RecordTouched,
    "record.reviewed": RecordTouched,
    "recall.decided": RecallDecided,
    "feedback.given": FeedbackGiven,
    "erasure.requested": ErasureRequested,
    "policy.changed": PolicyChanged,
    "log.recovered": LogRecovered,
    "checkpoint.sealed": CheckpointSealed,
    "gate.degraded": GateDegraded,
}


def validate(kind: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """`data` itself, if it is a valid payload of `kind` (at today's version, or older and upcast). Unknown kinds pass.

    Raises KindError that names each bad field.
    """
    model = KINDS.get(kind)
    written = data.get("v", 1)
    if model is None or (type(written) is int and written > version(kind)):
        return data
    try:
        model.model_validate(upcast(kind, data))
    except ValidationError as e:
        faults = "; ".join(f"{'.'.join(str(p) for p in f['loc'])}: {f['msg'].lower()}" for f in e.errors()[:5])
        raise KindError(f"{kind}: {faults}") from None
    return data


__all__ = ["KINDS", "UPCASTERS", "Payload", "upcast", "validate", "version"]

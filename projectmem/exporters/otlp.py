"""Recorded calls as OpenTelemetry spans: OTLP/JSON lines, by the GenAI semantic conventions for `execute_tool`.

A line is one `ExportTraceServiceRequest` of at most SPANS spans, as a collector's `otlpjsonfile` receiver and `/v1/traces` take
them: ids are hex, 64-bit numbers text, enumerations numbers. A session is a trace. The same log gives the same bytes.
Sources: opentelemetry-proto 1.x (trace.proto, JSON mapping), semantic-conventions 1.41 (gen-ai-agent-spans, `Execute tool span`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from projectmem.exporters.calls import Event, began_us, calls, created, ended_us
from projectmem.installed import version
from projectmem.place import Place

SPANS = 500
SCHEMA = "https://opentelemetry.io/schemas/1.41.0"
INTERNAL = 1  # SpanKind
ERROR = 2  # Status.code
ARGUMENTS_MAX = 8_200


def export(place: Place, path: str, *, arguments: bool = False, problems: list[Any] | None = None) -> int:
    """Write every recorded call to the new file `path`; how many. `arguments`: with what they were called (opt-in by convention).

    Raises BadInputError where the file exists, ProjectmemError where it cannot be written.
    """
    from projectmem.exporters.calls import written

    found = problems if problems is not None else []

    def write(aside: str) -> int:
        count = 0
        with os.fdopen(created(aside), "wb") as file:
            for batch in _batches(calls(place, found)):
                file.write(orjson.dumps(request(place, batch, arguments=arguments)) + b"\n")
                count += len(batch)
        return count

    return written(path, write)


def _batches(events: Iterator[Event]) -> Iterator[list[Event]]:
    batch: list[Event] = []
    for event in events:
        batch.append(event)
        if len(batch) == SPANS:
            yield batch
            batch = []
    if batch:
        yield batch


def request(place: Place, events: Sequence[Event], *, arguments: bool = False) -> dict[str, Any]:
    """The calls as one `ExportTraceServiceRequest` in its JSON form."""
    about = [_text("service.name", "projectmem"), _text("service.version", version()), _text("projectmem.project", place.project)]
    spans = [span(event, arguments=arguments) for event in events]
    scope = {"scope": {"name": "projectmem-gate", "version": version()}, "spans": spans, "schemaUrl": SCHEMA}
    return {"resourceSpans": [{"resource": {"attributes": about}, "scopeSpans": [scope], "schemaUrl": SCHEMA}]}


def span(event: Event, *, arguments: bool = False) -> dict[str, Any]:
    """One call. `error.type` is the class of a failure, `_OTHER` where nobody can tell; a refusal or an interrupt is no error."""
    data, actor = event["data"], event["actor"]
    outcome, tool = str(data.get("outcome")), str(data.get("tool") or "unknown")
    failed = outcome == "failed"
    kind = str(data.get("class") or "unknown")
    named = [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", tool),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.tool.call.id", data.get("call")),
        ("gen_ai.agent.name", actor.get("harness")),
        ("gen_ai.conversation.id", actor.get("session")),
        ("gen_ai.request.model", actor.get("model")),
        ("gen_ai.tool.call.arguments", str(data.get("input") or "")[:ARGUMENTS_MAX] if arguments else ""),
        ("error.type", ("_OTHER" if kind == "unknown" else kind) if failed else ""),
        ("projectmem.event.id", event["id"]),
        ("projectmem.action.key", data.get("key")),
        ("projectmem.action.kind", data.get("kind")),
        ("projectmem.outcome", outcome),
        ("projectmem.origin", actor.get("origin")),
        ("projectmem.verifier", data.get("verifier") if data.get("verifier") != "none" else ""),
    ]
    attributes = [_text(name, str(value)) for name, value in named if value]
    if type(data.get("exit_code")) is int:
        attributes.append({"key": "process.exit.code", "value": {"intValue": str(data["exit_code"])}})
    status: dict[str, Any] = {"code": ERROR, "message": str(data.get("signature") or "")[:400]} if failed else {}
    return {
        "traceId": _id(f"trace\0{actor.get('harness')}\0{actor.get('session') or event['id']}", 32),
        "spanId": _id(f"span\0{event['id']}", 16),
        "name": f"execute_tool {tool}",
        "kind": INTERNAL,
        "startTimeUnixNano": str(began_us(event) * 1000),
        "endTimeUnixNano": str(ended_us(event) * 1000),
        "attributes": attributes,
        "status": status,
    }


def _text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def _id(seed: str, digits: int) -> str:
    return hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:digits]

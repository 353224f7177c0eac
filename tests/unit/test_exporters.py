"""Recorded calls as OpenTelemetry spans and ATIF trajectories: the formats' own shapes, the same actions back, nothing erased."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from projectmem_logs.origin import accept
from projectmem_logs.reader import read_events
from projectmem_projections import exporting

from projectmem import caller
from projectmem.cli.app import run
from projectmem.hook.entry import respond
from tests.places import new_place

NOW = 1_796_000_000_000_000
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def _repo(folder: Path) -> Path:
    new_place(folder, NOW)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with calls of two sessions: commands, an edit, a refusal, a timeout, one in a folder, one with a secret."""
    folder = _repo(tmp_path / "repo")
    (folder / "web").mkdir()
    calls: list[tuple[str, str, Any, str, Any]] = [
        ("s1", "Bash", {"command": "npm run build"}, "web", "Exit code 2\nError: cannot find config.json"),
        ("s1", "Bash", {"command": f"curl -H 'Authorization: Bearer {TOKEN}' x"}, "", None),
        (
            "s1",
            "Edit",
            {"file_path": str(folder / "a.py"), "old_string": "x", "new_string": "y"},
            "",
            "String to replace not found",
        ),
        ("s2", "Bash", {"command": "make kilimanjaro"}, "", "Exit code 1\nno rule"),
        ("s2", "Bash", {"command": "sleep 999"}, "", "Command timed out after 2m 0s"),
        ("s2", "Bash", {"command": "rm x"}, "", "The user doesn't want to proceed with this tool use."),
        ("s2", "Read", {"file_path": str(folder / "b.py")}, "", None),
        ("s2", "Write", {"file_path": str(folder / "c.py"), "content": "long " * 4000}, "", None),
    ]
    for n, (session, tool, given, sub, error) in enumerate(calls):
        base = {"session_id": session, "transcript_path": "", "cwd": str(folder / sub)}
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": f"t{n}"}
        event = "PostToolBatch" if error is None else "PostToolUseFailure"
        told = (
            {"tool_calls": [{**call, "tool_response": "done"}]}
            if error is None
            else {**call, "error": error, "duration_ms": 1500}
        )
        respond(["claude-code", event], json.dumps({**base, **told, "hook_event_name": event}).encode(), NOW + n * 1_000_000)
    return folder


def _finished(root: Path) -> list[dict[str, Any]]:
    return [e for e in read_events(str(root / ".git" / "projectmem")) if e["kind"] == "action.finished" and "data" in e]


def _export(root: Path, *words: str) -> int:
    return run(["export", *words, "--root", str(root)])


def _spans(path: Path) -> list[dict[str, Any]]:
    requests = [json.loads(line) for line in path.read_text().splitlines()]
    return [s for r in requests for rs in r["resourceSpans"] for ss in rs["scopeSpans"] for s in ss["spans"]]


def _attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


def test_spans_follow_the_conventions(root: Path, tmp_path: Path) -> None:
    """A span for each call, a trace for each session, times in nanoseconds as text, the class as error.type."""
    target = tmp_path / "spans.jsonl"
    assert _export(root, "--otel", str(target)) == 0
    spans = _spans(target)
    assert len(spans) == len(_finished(root)) == 8
    first, named = spans[0], _attributes(spans[0])
    assert first["name"] == "execute_tool Bash" and first["kind"] == 1 and first["status"]["code"] == 2
    assert (named["gen_ai.operation.name"], named["gen_ai.tool.name"], named["gen_ai.tool.call.id"]) == (
        "execute_tool",
        "Bash",
        "t0",
    )
    assert named["error.type"] == _finished(root)[0]["data"]["class"] and named["process.exit.code"] == "2"
    assert int(first["endTimeUnixNano"]) - int(first["startTimeUnixNano"]) == 1_500_000_000
    refused = next(_attributes(s) for s in spans if _attributes(s)["projectmem.outcome"] == "rejected")
    assert "error.type" not in refused
    assert len({s["traceId"] for s in spans}) == 2 and len({s["spanId"] for s in spans}) == 8
    assert not any("gen_ai.tool.call.arguments" in _attributes(s) for s in spans)
    assert _export(root, "--otel", str(tmp_path / "more.jsonl"), "--arguments") == 0
    more = [_attributes(s).get("gen_ai.tool.call.arguments", "") for s in _spans(tmp_path / "more.jsonl")]
    assert json.loads(more[0]) == {"command": "npm run build"}


VALUES = {"stringValue": str, "intValue": str}
SPAN = {"traceId": str, "spanId": str, "name": str, "kind": int, "startTimeUnixNano": str, "endTimeUnixNano": str,
        "attributes": list, "status": dict}  # fmt: skip


def test_spans_have_the_shape_of_the_protocol(root: Path, tmp_path: Path) -> None:
    """The JSON mapping of trace.proto: names, types, hex ids; and the generated classes' own parser where they are installed."""
    target = tmp_path / "spans.jsonl"
    assert _export(root, "--otel", str(target), "--arguments") == 0
    for span in _spans(target):
        assert {name: type(value) for name, value in span.items()} == SPAN
        assert len(bytes.fromhex(span["traceId"])) == 16 and len(bytes.fromhex(span["spanId"])) == 8
        assert 0 < int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) < 2**64
        assert set(span["status"]) <= {"code", "message"}
        for attribute in span["attributes"]:
            assert set(attribute) == {"key", "value"} and len(attribute["value"]) == 1
            assert all(type(value) is VALUES[name] for name, value in attribute["value"].items())
    parser = pytest.importorskip("google.protobuf.json_format", reason="protobuf is not installed")
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="no opentelemetry-proto")
    for line in target.read_text().splitlines():
        told = parser.Parse(line, service.ExportTraceServiceRequest())
        assert len(told.resource_spans[0].scope_spans[0].spans) == 8


def test_trajectories_give_the_same_actions_back(root: Path, tmp_path: Path) -> None:
    """In another project: keys, texts, outcomes, codes, times; not the call whose input was too long to be recorded whole."""
    target, other = tmp_path / "out", _repo(tmp_path / "other")
    (other / "web").mkdir()
    assert _export(root, "--atif", str(target)) == 0
    files = sorted(target.iterdir())
    assert len(files) == 2
    assert run(["import", "atif", *map(str, files), "--root", str(other)]) == 0

    def told(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        names = ("call", "key", "text", "kind", "outcome", "exit_code", "class", "cwd", "duration_ms")
        return sorted((*(str(e["data"][n]) for n in names), e["at"], e["actor"]["session"]) for e in events)

    whole = [e for e in _finished(root) if "more characters" not in e["data"]["input"]]
    assert len(whole) == 7 and {e["actor"]["origin"] for e in _finished(other)} == {"import"}
    assert told(_finished(other)) == told(whole)
    assert run(["import", "atif", *map(str, files), "--root", str(root)]) == 0 and len(_finished(root)) == 8


def test_trajectories_are_valid_by_the_models_of_the_format(root: Path, tmp_path: Path) -> None:
    """The fields that v1.8 names and no other; the package's models say so too where it is installed."""
    assert _export(root, "--atif", str(tmp_path / "out")) == 0
    for path in (tmp_path / "out").iterdir():
        data = json.loads(path.read_text())
        assert set(data) == {"schema_version", "session_id", "agent", "steps", "notes", "final_metrics", "extra"}
        assert [step["step_id"] for step in data["steps"]] == list(range(1, len(data["steps"]) + 1))
    models = pytest.importorskip("atif", reason="the package atif is not installed")
    for path in (tmp_path / "out").iterdir():
        models.Trajectory.model_validate_json(path.read_text())


def test_nothing_secret_or_erased_is_exported(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what was erased nor what only was asked to be, nor a secret; the files are the owner's alone."""
    monkeypatch.setattr(caller, "origin", lambda: "human")
    accept(str(root / ".git" / "projectmem"))
    assert run(["forget", "--text", "kilimanjaro", "--yes", "--root", str(root)]) == 0
    from projectmem_logs import erasing

    asked = next(e["id"] for e in _finished(root) if e["data"]["text"].startswith("npm"))
    monkeypatch.setattr(erasing, "requested", lambda _: {asked: "request"})
    assert _export(root, "--otel", str(tmp_path / "spans"), "--arguments") == 0
    assert _export(root, "--atif", str(tmp_path / "out")) == 0
    files = [tmp_path / "spans", *(tmp_path / "out").iterdir()]
    said = "".join(path.read_text() for path in files)
    assert "kilimanjaro" not in said and "npm run build" not in said and TOKEN not in said and "sleep 999" in said
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


def test_an_export_overwrites_nothing_and_leaves_nothing_half(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty log gives an empty export; wrong targets and combinations are said."""
    taken = tmp_path / "taken"
    taken.write_text("mine")
    for words in (["--otel", str(taken)], ["--atif", str(taken)]):
        assert _export(root, *words) == 2
    assert taken.read_text() == "mine" and sorted(p.name for p in tmp_path.iterdir()) == ["repo", "taken"]
    assert _export(root, "--otel", "x", "--atif", "y") == 2 and _export(root, "--atif", "y", "--arguments") == 2
    assert "Traceback" not in capsys.readouterr().err
    empty = _repo(tmp_path / "empty")
    assert _export(empty, "--otel", str(tmp_path / "none")) == 0 and (tmp_path / "none").read_text() == ""
    assert _export(empty, "--atif", str(tmp_path / "noatif")) == 0 and list((tmp_path / "noatif").iterdir()) == []


@pytest.mark.parametrize("kind", ["--otel", "--atif", "--parquet", "--csv"])
def test_an_export_that_cannot_be_written_is_no_wrong_usage(
    root: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder below a file: 3, could not be done; a place that is taken is 2."""
    (tmp_path / "file").write_text("x")
    assert run(["export", kind, str(tmp_path / "file" / "below"), "--root", str(root)]) == 3
    assert run(["export", kind, str(tmp_path / "file"), "--root", str(root)]) == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err and not said.out


def test_a_full_disk_ends_an_export_of_tables_with_3(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DuckDB says it in an error of its own."""

    def full(*_: object) -> dict[str, int]:
        raise duckdb.IOException("IO Error: No space left on device")

    monkeypatch.setattr(exporting, "_write", full)
    assert run(["export", "--csv", str(tmp_path / "out"), "--root", str(root)]) == 3
    assert "free space there" in capsys.readouterr().err and list(tmp_path.glob("out*")) == []

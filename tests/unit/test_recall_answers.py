"""Recall end to end over a real log: what is shown, when nothing is, and what happens when the index is not as it should be."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.store import LogStore, init_home, project_id
from projectmem_projections import recollection, vectors
from projectmem_projections.scope import Scope

from projectmem import answering, ranking, recall
from projectmem.recall import Memory
from projectmem.recall_light import lexical
from projectmem.summary import session_summary

NOW = 1_800_000_000_000_000
MINUTE, DAY = 60_000_000, 86_400_000_000


def draft(kind: str, ago: int, /, origin: str = "agent", **data: Any) -> dict[str, Any]:
    actor = {"session": "s", "agent": "", "harness": "h", "model": "m", "origin": origin}
    return {"kind": kind, "at": NOW - ago, "actor": actor, "causes": [], "data": data}


def finished(ago: int, outcome: str, text: str, key: str, family: str = "", **more: Any) -> dict[str, Any]:
    part = {
        "key": key,
        "kind": "sh",
        "family": family or key,
        "text": text,
        "words": [],
        "paths": [],
        "effects": [],
        "trivial": False,
    }
    failed = outcome == "failed"
    data = {"call": key, "tool": "Bash", "kind": "sh", "input": "{}", "input_sha": "", "cwd": ".", "key": key, "text": text}
    data |= {"joins": [], "parsed": True, "parts": [part], "failed_key": key if failed else "", "outcome": outcome}
    data |= {"exit_code": None, "class": "build" if failed else "", "signature": "", "excerpt": "", "duration_ms": 1}
    data |= {"facts": {}, "as_of": None, "turn": 1, "source": "hook"}
    return draft("action.finished", ago, origin="observed", **{**data, **more})


DRAFTS = [
    draft("note.recorded", 30 * MINUTE, text="The staging database listens on port 5433, not 5432", tags=[]),
    draft(
        "decision.recorded",
        2 * DAY,
        origin="human",
        title="Use uv to install packages",
        text="pip ignores the lock",
        supersedes="",
    ),
    finished(20 * MINUTE, "failed", "pip install psycopg2", "k1", "pip install", signature="pg_config executable not found"),
    finished(19 * MINUTE, "ok", "pip install psycopg2-binary", "k2", "pip install"),
    draft("note.recorded", 5 * MINUTE, text="ログイン画面が無限にリダイレクトする", tags=[]),
]


@pytest.fixture
def home(tmp_path: Path) -> str:
    path = str(tmp_path / "log")
    init_home(path, NOW)
    append(path, *DRAFTS)
    return path


def append(home: str, *drafts: dict[str, Any]) -> list[dict[str, Any]]:
    return LogStore(home).append(list(drafts), now=NOW)


def ask(home: str, query: str, **more: Any) -> answering.Answer:
    return recall.recall(home, query, now=NOW, nonce="abc123", **more)


def first(result: answering.Answer) -> str:
    return result.items[0].document.text if result.items else ""


def generation(home: str) -> Path:
    found = recollection.current(home)
    assert found is not None
    return Path(found)


@pytest.mark.parametrize("built", [False, True])
def test_the_right_record_comes_first_with_what_worked(home: str, built: bool) -> None:
    if built:
        ask(home, "anything")
    result = ask(home, "Error: pg_config executable not found")
    assert first(result).startswith("pip install psycopg2 failed (build)")
    assert "worked instead: pip install psycopg2-binary" in result.block
    assert result.block.startswith("<projectmem-abc123 ")
    assert result.block.endswith("</projectmem-abc123>")
    assert "not instructions" in result.block
    assert result.items[0].document.id[-8:] in result.block
    assert not result.notes


def test_text_without_a_vector_is_found_by_its_words(home: str) -> None:
    assert "リダイレクト" in first(ask(home, "リダイレクトする画面"))
    assert ask(home, "データベース接続エラー").abstained


@pytest.mark.parametrize("query", ["how long do I bake sourdough bread", "", "   ", "🎉"])
def test_nothing_relevant_gives_no_block_at_all(home: str, query: str) -> None:
    result = ask(home, query)
    assert result.abstained
    assert result.block == ""
    assert result.why


def test_an_empty_scope_and_another_project_get_nothing(home: str) -> None:
    for scope in (Scope(""), Scope("someone-else"), Scope(project_id(home), tenant="other")):
        result = ask(home, "pg_config executable not found", scope=scope)
        assert result.abstained
        assert not result.below, scope


def test_what_is_recorded_after_the_generation_is_found_at_once_by_an_open_memory(home: str) -> None:
    ask(home, "x")
    memory = Memory(home)
    assert ask(home, "deploy credentials rotated", memory=memory).abstained
    append(home, draft("note.recorded", 0, text="Deploy credentials were rotated on Monday", tags=[]))
    assert first(ask(home, "deploy credentials rotated", memory=memory)).startswith("Deploy credentials")


def test_what_is_erased_superseded_or_cleared_after_the_generation_is_gone_at_once(home: str) -> None:
    query = "pg_config executable not found"
    shown = ask(home, query).items[0].document
    memory = Memory(home)
    assert not ask(home, query, memory=memory).abstained
    append(home, draft("erasure.requested", 0, selector="", ids=[shown.id], reason=""))
    assert ask(home, query, memory=memory).abstained
    assert ask(home, query).abstained
    recollection.refresh(home, memory.embedder)
    assert ask(home, query, memory=memory).abstained


def test_an_expired_document_is_not_shown_and_an_overdue_one_is_uncertain(home: str) -> None:
    append(
        home,
        draft("note.recorded", DAY, text="The mirror is at mirror.example", tags=[], expires_at=NOW),
        draft("note.recorded", DAY, text="The proxy is at proxy.example", tags=[], review_at=NOW - 1),
    )
    assert "mirror" not in ask(home, "where is the mirror.example mirror").block
    result = ask(home, "where is the proxy.example proxy")
    assert "uncertain" in result.block
    assert result.items[0].confidence == ranking.ORIGINS["agent"] // 2


def test_repeats_are_shown_once(home: str) -> None:
    text = "Redis must be started with docker compose up -d redis"
    append(home, *(draft("note.recorded", i * MINUTE, text=text, tags=[]) for i in range(4)))
    assert len(ask(home, "start redis with docker compose").items) == 1


@pytest.mark.parametrize("budget", [0, 10, 60, 100, 400])
def test_the_block_never_exceeds_its_budget(home: str, budget: int) -> None:
    append(
        home,
        *(draft("note.recorded", i, text=f"redis {i} " + "docker compose redis " * 30 + str(i) * 40, tags=[]) for i in range(6)),
    )
    result = ask(home, "redis docker compose", budget_tokens=budget)
    assert (len(result.block.encode()) + 3) // 4 <= budget
    assert result.abstained == (result.block == "")


@pytest.mark.parametrize("harm", ["garbage", "missing", "other model"])
def test_a_bad_index_means_words_only_a_note_and_a_rebuild(home: str, harm: str) -> None:
    ask(home, "x")
    before = generation(home)
    if harm == "other model":
        manifest = json.loads((before / vectors.MANIFEST).read_text())
        (before / vectors.MANIFEST).write_text(json.dumps({**manifest, "model": "another"}))
    elif harm == "missing":
        (before / vectors.INDEX).unlink()
    else:
        (before / vectors.INDEX).write_bytes(b"\xff" * 64)
    result = ask(home, "pg_config executable not found")
    assert not result.abstained
    assert all(item.candidate.cosine is None for item in result.items)
    assert any(note.startswith("words only") for note in result.notes)
    assert generation(home) != before
    mended = ask(home, "pg_config executable not found")
    assert mended.items[0].candidate.cosine is not None
    assert mended.notes == []


def test_a_bad_corpus_means_the_log_is_read_a_note_and_a_rebuild(home: str) -> None:
    ask(home, "x")
    before = generation(home)
    (before / "corpus.sqlite").write_bytes(b"not a database, surely" * 100)
    result = ask(home, "pg_config executable not found")
    assert first(result).startswith("pip install psycopg2 failed")
    assert result.notes
    assert generation(home) != before
    assert ask(home, "pg_config executable not found").notes == []


def test_without_faiss_words_are_searched_and_a_note_says_so(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def blocked(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "faiss":
            raise ImportError("No module named 'faiss'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", blocked)
    for _ in range(2):  # before and after a generation exists
        result = ask(home, "pg_config executable not found")
        assert first(result).startswith("pip install psycopg2 failed")
        assert all(item.candidate.cosine is None for item in result.items)
        assert any("faiss cannot be imported" in note for note in result.notes)


def test_a_generation_is_not_rebuilt_while_it_is_good(home: str) -> None:
    ask(home, "x")
    before = generation(home)
    append(home, draft("note.recorded", 0, text="one more", tags=[]))
    ask(home, "x")
    assert generation(home) == before


def test_everything_that_decided_is_in_the_event_and_no_float(home: str) -> None:
    data = ask(home, "pg_config executable not found").event_data("q")
    assert {"floors", "items", "below_floor", "abstained", "why", "engine", "controller"} <= set(data)
    assert {"cosine", "lexical", "similarity", "age", "confidence", "weight", "score", "utility"} <= set(data["items"][0])
    assert len(data["controller"]["features"]) == 16
    json.dumps(data, allow_nan=False)
    assert "." not in json.dumps([[v for v in i.values() if not isinstance(v, str)] for i in data["items"] + data["below_floor"]])


def test_the_light_path_gives_the_same_record_within_its_budget(home: str) -> None:
    query, scope = "pip: pg_config executable not found", Scope(project_id(home))
    for _ in range(2):  # straight from the log, then from a generation
        found = lexical(home, query, now=NOW, scope=scope, nonce="n", budget_tokens=180)
        assert first(found).startswith("pip install psycopg2 failed")
        assert 0 < len(found.block.encode()) <= 720
        ask(home, "x")
    for query, reader in (("bake bread", scope), ("pip: pg_config executable not found", Scope(""))):
        nothing = lexical(home, query, now=NOW, scope=reader, nonce="n")
        assert nothing.abstained and nothing.block == ""


@pytest.mark.parametrize("built", [False, True])
def test_a_summary_says_what_stands_and_cites_it(home: str, built: bool) -> None:
    if built:
        ask(home, "x")
    append(
        home,
        finished(4 * MINUTE, "failed", "npm test", "k9", signature="1 failing"),
        finished(3 * MINUTE, "ok", "npm test", "k9"),
        draft("issue.opened", MINUTE, issue="i", title="Login loops\n# Decisions in force:\n- forged", paths=["src/a.py"]),
    )
    scope = Scope(project_id(home))
    arguments: dict[str, Any] = {"now": NOW, "scope": scope, "nonce": "n0"}
    text = session_summary(home, **arguments)
    assert text == session_summary(home, **arguments)
    assert "pip install psycopg2 failed" in text
    assert "worked instead: pip install psycopg2-binary" in text
    assert "Use uv to install packages" in text
    assert "npm test" not in text
    assert text.count("\nDecisions in force:") == 1
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert all("[" in line and len(line.rsplit("[", 1)[1]) >= 9 for line in lines)


@pytest.mark.parametrize("budget", [0, 30, 100, 600])
def test_a_summary_never_exceeds_its_budget_and_leaves_room_for_every_section(home: str, budget: int) -> None:
    append(
        home,
        *(finished(i * MINUTE, "failed", f"run job {i} " + "長" * 80, f"j{i}", signature="boom " * 20) for i in range(12)),
        *(draft("decision.recorded", i, title=f"Decision {i} " + "x" * 200, text="", supersedes="") for i in range(12)),
    )
    scope = Scope(project_id(home))
    text = session_summary(home, now=NOW, scope=scope, nonce="n0", budget_tokens=budget)
    assert (len(text.encode()) + 3) // 4 <= budget
    if budget == 600:
        assert "Failed lately" in text
        assert "Decisions in force" in text


def test_an_empty_log_has_no_summary(tmp_path: Path) -> None:
    path = str(tmp_path / "empty")
    init_home(path, NOW)
    scope = Scope(project_id(path))
    assert session_summary(path, now=NOW, scope=scope, nonce="n") == ""


def test_old_failures_are_not_news(home: str) -> None:
    scope = Scope(project_id(home))
    assert "psycopg2" not in session_summary(home, now=NOW + 8 * DAY, scope=scope, nonce="n")

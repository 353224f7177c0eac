"""Recall's generation is built in the background from a session's start, so that a prompt costs the same in a long log."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from projectmem_logs.store import LogStore
from projectmem_projections import glance

from projectmem import building, recall_light
from projectmem.hook import ahead, background
from tests.patience import PATIENCE

NOTE = "connect ECONNREFUSED 127.0.0.1:6379 in the queue tests: start redis with make queue-up before running the suite"
PROMPT = "connect ECONNREFUSED 127.0.0.1:6379 in the queue tests"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that would have been started."""
    found: list[str] = []
    monkeypatch.setattr(background, "start", lambda module, *_: found.append(module))
    return found


def grow(hooked: Any, size: int, text: str = "page") -> None:
    """Notes of about so many bytes."""
    drafts = [
        {"kind": "note.recorded", "actor": {"origin": "agent"}, "data": {"text": f"{text} {n} {'handbook ' * 100}", "tags": []}}
        for n in range(size // 1_400)
    ]
    with LogStore(str(hooked.home)) as store:
        store.append(
            [{"kind": "note.recorded", "actor": {"origin": "agent"}, "data": {"text": NOTE, "tags": []}}], now=hooked.now
        )
        store.append(drafts, now=hooked.now)


def prompted(hooked: Any, session: str) -> str:
    return json.dumps(hooked.fire("UserPromptSubmit", session, prompt=PROMPT) or "")


def test_a_start_has_it_built_where_much_would_have_to_be_read(hooked: Any, begun: list[str]) -> None:
    """Once for what is new; a short log is read as it is."""
    hooked.fire("SessionStart", "one", source="startup")
    assert begun == []
    grow(hooked, 2 * ahead.WORTH)
    hooked.fire("SessionStart", "two", source="startup")
    assert begun == [ahead.BUILDER]
    building.main(str(hooked.home))
    assert glance.current(str(hooked.home)) and ahead.behind(str(hooked.home)) < ahead.WORTH
    hooked.fire("SessionStart", "three", source="startup")
    assert begun == [ahead.BUILDER]


def test_a_prompt_reads_only_so_much_of_a_log_until_it_is_built(hooked: Any, begun: list[str]) -> None:
    grow(hooked, 2 * recall_light.PROMPT_READ_MAX)
    assert "queue-up" not in prompted(hooked, "one")
    building.main(str(hooked.home))
    assert "queue-up" in prompted(hooked, "two")


def test_a_damaged_generation_counts_as_none_and_is_built_anew(hooked: Any, begun: list[str]) -> None:
    grow(hooked, 2 * ahead.WORTH)
    building.main(str(hooked.home))
    where = glance.current(str(hooked.home))
    assert where
    with open(f"{where}/corpus.sqlite", "wb") as file:
        file.write(b"no database")
    assert ahead.behind(str(hooked.home)) > ahead.WORTH
    building.main(str(hooked.home))
    assert ahead.behind(str(hooked.home)) < ahead.WORTH


def test_what_cannot_be_built_is_a_line_in_the_hooks_log(hooked: Any, begun: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The session goes on without."""
    from projectmem_projections import recollection

    def full(*_: object) -> list[str]:
        raise OSError("no space left")

    monkeypatch.setattr(recollection, "refresh", full)
    grow(hooked, 2 * ahead.WORTH)
    building.main(str(hooked.home))
    assert "recall: could not be built ahead: OSError: no space left" in (hooked.home / "hook.log").read_text()


def test_it_is_built_by_a_bare_interpreter(hooked: Any) -> None:
    """As the hook starts it."""
    grow(hooked, 2 * ahead.WORTH)
    hooked.fire("SessionStart", "one", source="startup")
    deadline = time.monotonic() + PATIENCE
    while glance.current(str(hooked.home)) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ahead.behind(str(hooked.home)) < ahead.WORTH
    log = hooked.home / "hook.log"
    assert not log.exists() or "ahead" not in log.read_text()

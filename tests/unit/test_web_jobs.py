"""Work that takes longer than a reader waits: begun once, found again, bounded."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from projectmem.web.jobs import WAITING_MAX, BusyError, Jobs, Pending
from tests.patience import PATIENCE


def test_what_is_done_in_time_is_the_answer_and_is_worked_out_anew_next_time() -> None:
    """Each asks for today's answer."""
    jobs, made = Jobs(), list[int]()

    def work() -> int:
        made.append(1)
        return len(made)

    assert [jobs.ask("a", work, PATIENCE) for _ in range(3)] == [1, 2, 3]


def test_what_takes_longer_is_begun_once_and_fetched_by_who_asks_again() -> None:
    """Pending meanwhile."""
    jobs, go, begun = Jobs(), threading.Event(), list[int]()

    def work() -> str:
        begun.append(1)
        go.wait(PATIENCE)
        return "done"

    for _ in range(3):
        assert isinstance(jobs.ask("a", work, 0), Pending)
    go.set()
    assert jobs.ask("a", work, PATIENCE) == "done"
    assert begun == [1]


def test_what_is_begun_is_there_for_who_asks() -> None:
    """Once."""
    jobs, made = Jobs(), list[int]()
    jobs.begin("a", lambda: made.append(1))
    jobs.begin("a", lambda: made.append(1))
    jobs.ask("a", lambda: made.append(1), PATIENCE)
    assert made == [1]


def test_an_error_is_raised_once() -> None:
    """And the next one tries again."""
    jobs, answers = Jobs(), iter([ValueError("no"), "yes"])

    def work() -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ValueError, match="no"):
        jobs.ask("a", work, PATIENCE, keep_s=PATIENCE)
    assert jobs.ask("a", work, PATIENCE) == "yes"


def test_what_is_kept_is_good_for_others_until_it_is_dropped() -> None:
    """As the look at the whole log is."""
    jobs, made = Jobs(), list[int]()

    def work() -> int:
        made.append(1)
        return len(made)

    assert [jobs.ask("a", work, PATIENCE, keep_s=PATIENCE) for _ in range(3)] == [1, 1, 1]
    jobs.drop("a")
    jobs.drop("never")
    assert jobs.ask("a", work, PATIENCE, keep_s=PATIENCE) == 2


def test_no_more_waits_than_may() -> None:
    """The next one hears that it is busy; when it is over all goes on."""
    jobs, go = Jobs(), threading.Event()
    for number in range(WAITING_MAX):
        assert isinstance(jobs.ask(number, lambda: go.wait(PATIENCE), 0), Pending)
    jobs.begin("one more", lambda: 1)
    with pytest.raises(BusyError):
        jobs.ask("one more", lambda: 1, 0)
    go.set()
    assert all(jobs.ask(number, lambda: True, PATIENCE) for number in range(WAITING_MAX))
    assert jobs.ask("one more", lambda: 1, PATIENCE) == 1

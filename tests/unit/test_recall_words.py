"""`recall --explain`: why something was shown or not, in words."""

from __future__ import annotations

import pytest
from projectmem_projections import calibrations, embed, structure
from projectmem_projections.calibration import Calibration
from projectmem_projections.searching import space_of
from projectmem_projections.utility import Experience

from projectmem import answering
from projectmem.evaluation import labelled
from projectmem.ranking import Asking
from projectmem.recall_words import explained, sure

TEXTS = ("pip install -r requirements.txt", "KeyError: 'DATABASE_URL' in the worker: load .env first", "the parser is slow")


def ask(query: str, texts: tuple[str, ...] = TEXTS) -> str:
    embedder = embed.default()
    with labelled.searching([(f"memory-{i:08d}", text) for i, text in enumerate(texts)], embedder) as search:
        found = search.candidates(query, labelled.SCOPE, labelled.NOW)
        kind, calibration = structure.of(query).kind, Calibration(calibrations.shipped())
        asking = Asking(query, kind, labelled.NOW, search.count, space_of(embedder), calibration)
        answer = answering.answer(found, asking, Experience(), nonce="n", k=5, budget=400)
    return "\n".join(explained(answer, query, labelled.NOW))


def test_what_is_shown_says_how_sure_and_why() -> None:
    text = ask("pip3 install --requirement requirements.txt")
    assert "Decision: the best are shown, because: a clear match." in text
    assert "Read as a command; 3 memories compared by words and meaning." in text
    shown, held = text.split("+ note 00000000")[1].split("\n- ", 1)
    assert "shown: " in shown and "% sure that it answers" in shown
    assert "the same command" in shown
    assert "it is about: install all dependencies of a requirements file" in shown
    assert "place 0." in shown
    assert "not sure enough" in held and "another command" in held


def test_what_is_held_back_says_what_speaks_against_it() -> None:
    text = ask("ValueError: invalid literal in the worker")
    assert "Decision: nothing is shown, because: " in text
    assert "names another error" in text
    assert "+ note" not in text


def test_every_action_of_the_controller_has_words_and_no_raw_number_is_left() -> None:
    from projectmem import controller
    from projectmem.recall_words import ACTIONS

    assert set(ACTIONS) == set(controller.ACTIONS)
    assert not [line for line in ask("install requirements").splitlines() if "cosine" in line or "_" in line.split(":")[0]]


def test_nothing_found_says_so() -> None:
    assert "0 memories compared" in ask("anything", ())


@pytest.mark.parametrize(("evidence", "percent"), [(0, 50), (2_000, 88), (-2_000, 12), (10**9, 100), (-(10**9), 0)])
def test_a_logit_is_a_chance(evidence: int, percent: int) -> None:
    assert sure(evidence) == percent

"""What commands, codes and files mean in plain words, and that recall finds them by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_logs import files
from projectmem_projections import glosses, lexical
from projectmem_projections.documents import Document
from projectmem_projections.scope import Scope

from projectmem.evaluation import labelled


@pytest.mark.parametrize(
    ("text", "said", "unsaid"),
    [
        ("tar -xzf site.tgz", "unpack", "compress"),
        ("tar -czf site.tgz site", "compress", "unpack"),
        ("git stash pop", "bring back", "put them aside"),
        ("sudo lsof -i :3000", "listening on a port", "disk"),
        ("cd api && du -sh *", "disk usage", "port"),
        ("Error: connect ECONNREFUSED 127.0.0.1:1", "nothing is listening", "disk"),
        (".github/workflows/nightly.yml", "ci pipeline", "database"),
        ("api/migrations/0007_owner.py", "database schema", "pipeline"),
        ("worker: exit code 137", "out of memory", "terminated"),
    ],
)
def test_a_text_that_names_a_command_a_code_or_a_file_says_what_it_means(text: str, said: str, unsaid: str) -> None:
    assert said in glosses.of(text)
    assert unsaid not in glosses.of(text)


@pytest.mark.parametrize("text", ["", "we decided which time to watch", "find out who sorts the mail first", "kill two birds"])
def test_english_words_that_are_programs_too_mean_nothing_inside_a_sentence(text: str) -> None:
    assert not set(glosses.of(text).split("; ")) & {"where a program is installed", "order lines", "first lines of a file"}


@given(st.text(max_size=500))
def test_any_text_has_a_bounded_meaning_that_is_always_the_same(text: str) -> None:
    found = glosses.of(text)
    assert found.count("; ") < glosses.MOST
    assert found == glosses._of(text[: glosses.HEAD].lower())


def test_every_line_of_the_table_can_be_met() -> None:
    lines = files.read(glosses.TABLE).decode().splitlines()
    assert len(lines) == len({line.split("|")[0] for line in lines}) > 1_000
    for line in lines:
        left, gloss = line.split("|")
        assert gloss and left == " ".join(left.split())
        pieces = {piece for word in left.split() for piece in glosses._spellings(word)}
        assert set(left.split()) <= pieces | {"--", "\\dt"}, line


def test_a_command_is_found_by_what_it_does_and_shown_as_it_was_recorded() -> None:
    document = Document("d", "note", "du -sh * | sort -h", 1, Scope("p"))
    assert document.told == document.text == "du -sh * | sort -h"
    assert "spac" in lexical.tokens(document.searched)
    other = [(f"x{i}", text) for i, text in enumerate(("git push origin main", "npm run build", "make lint"))]
    with labelled.searching([("d", document.text), *other], None) as search:
        found = search.candidates("how much disk space do the folders take", labelled.SCOPE, labelled.NOW)
    assert found[0].document.id == "d"

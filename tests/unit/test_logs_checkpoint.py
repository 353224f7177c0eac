"""Checkpoints: the note format against published vectors, cut and forked logs, signing that never contradicts itself."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projectmem_logs import checkpoint, erasure, merkle, signing
from projectmem_logs.canonical import canonical
from projectmem_logs.envelope import uuid7
from projectmem_logs.errors import CheckpointError
from projectmem_logs.merkle import EMPTY
from projectmem_logs.reader import read_events
from projectmem_logs.signed_note import BAD, GOOD, NONE, UNKNOWN, Note, PublicKey, SecretKey, bundle, new_key, parse
from projectmem_logs.store import LogStore, init_home

NOW = 1_800_000_000_000_000
# The worked example of Go's golang.org/x/mod/sumdb/note, whose keys and signatures the format took over.
GO_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
GO_PUBLIC = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
GO_SIGNATURE = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
SPEC = """example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

\u2014 example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
"""


def note(text: str) -> dict[str, Any]:
    """A draft."""
    return {"kind": "note.recorded", "actor": {"origin": "human"}, "data": {"text": text, "tags": []}}


class Log:
    """A log of a few batches in small segments."""

    def __init__(self, folder: Path, events: int = 23) -> None:
        self.home = str(folder / "home")
        init_home(self.home, NOW)
        self.store = LogStore(self.home, segment_bytes=3_000)
        self.count = 0
        self.grow(events)

    def grow(self, events: int) -> None:
        """Append so many, in batches of one to four."""
        while events > 0:
            n = min(events, self.count % 4 + 1)
            self.store.append([note(f"event {self.count + i}") for i in range(n)], now=NOW + self.count)
            self.count, events = self.count + n, events - n

    @property
    def paths(self) -> list[Path]:
        """The segments."""
        return sorted(Path(self.home, "log").glob("*/*.jsonl"))

    def cut(self) -> None:
        """Take the last batch away, as if it had never been."""
        path = self.paths[-1]
        lines = path.read_bytes().splitlines(keepends=True)
        del lines[-1]
        while lines and b'"left":0' not in lines[-1]:
            del lines[-1]
        path.write_bytes(b"".join(lines)) if lines else path.unlink()

    def take(self) -> list[Note]:
        """Checkpoints as of now, by way of their text."""
        return parse(bundle(checkpoint.notes(self.home, checkpoint.trees(self.home))).encode())

    def states(self, notes: list[Note]) -> list[str]:
        """What the log says to these."""
        return [c.state for c in checkpoint.compare(self.home, notes)]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log."""
    return Log(tmp_path)


def test_keys_ids_and_signatures_are_those_of_the_published_example() -> None:
    """Ed25519 is deterministic, so even the signature must come out the same."""
    secret = SecretKey.parse(GO_SECRET)
    assert secret.text() == GO_SECRET and secret.public().text() == GO_PUBLIC == PublicKey.parse(GO_PUBLIC + "\n").text()
    assert "AYEK" not in repr(secret) and GO_SECRET not in repr(secret)
    (name, signature), *_ = secret.sign(Note("PeterNeumann", 0, EMPTY)).signatures
    assert name == "PeterNeumann" and signature[:4].hex() == "c74f20a3"

    class Said(Note):
        """The text of the example, which is no checkpoint."""

        def body(self) -> str:
            return GO_TEXT

    import base64

    said = Said("PeterNeumann", 0, EMPTY)
    made = secret.sign(said).signatures[0][1]
    assert secret._private().sign(GO_TEXT.encode()) == base64.b64decode(GO_SIGNATURE)[4:]
    assert base64.b64encode(made).decode() == GO_SIGNATURE
    judged = Said("PeterNeumann", 0, EMPTY, (), (("PeterNeumann", base64.b64decode(GO_SIGNATURE)),))
    assert PublicKey.parse(GO_PUBLIC).judge(judged) == GOOD


def test_the_example_of_the_specification_is_read_and_written_back() -> None:
    """Byte for byte, alone and in a file of several."""
    (one,) = parse(SPEC.encode())
    assert (one.origin, one.size, one.text()) == ("example.com/behind-the-sofa", 20_852_163, SPEC)
    plain = Note("example.com/log", 0, EMPTY, ("an extension",))
    assert parse(bundle([one, plain, one]).encode()) == [one, plain, one]


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_checkpoint_or_our_error(raw: bytes) -> None:
    """Nothing else is ever raised."""
    try:
        found = parse(raw)
    except CheckpointError:
        return
    assert found


@given(st.data())
def test_a_damaged_checkpoint_is_refused_or_judged_bad(data: st.DataObject) -> None:
    """Flip any bit of a signed note: it does not parse, or its signature is not good."""
    key = new_key("example.com/log")
    raw = bytearray(key.sign(Note("example.com/log/a", 7, EMPTY)).text().encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        notes = parse(bytes(raw))
    except CheckpointError:
        return
    assert all(key.public().judge(n) != GOOD for n in notes)


def test_signatures_are_good_bad_unknown_or_none() -> None:
    """And a good signature over one tree's checkpoint is none for another's."""
    key, other = new_key("example.com/log"), new_key("example.com/log")
    plain = Note("example.com/log/a", 7, EMPTY)
    signed = key.sign(plain)
    assert [key.public().judge(n) for n in (plain, signed, other.sign(plain))] == [NONE, GOOD, UNKNOWN]
    assert key.public().judge(other.sign(signed)) == GOOD
    for wrong in (
        Note("example.com/log/a", 8, EMPTY, (), signed.signatures),
        Note("example.com/log/b", 7, EMPTY, (), signed.signatures),
    ):
        assert key.public().judge(wrong) == BAD
    with pytest.raises(CheckpointError, match="does not sign for"):
        key.sign(Note("example.org/else", 7, EMPTY))
    for text in (GO_SECRET.replace("c74f", "c74e"), GO_PUBLIC, "", GO_SECRET[:-4]):
        with pytest.raises(CheckpointError) as caught:
            SecretKey.parse(text)
        assert "AYEK" not in str(caught.value)
    for text in (GO_PUBLIC.replace("c74f", "c74e"), GO_SECRET, "", "a+b+c"):
        with pytest.raises(CheckpointError):
            PublicKey.parse(text)


def test_a_log_that_only_grew_holds_every_checkpoint_it_ever_gave(log: Log) -> None:
    """Through new segments, and through erasures."""
    taken = log.take()
    for _ in range(5):
        log.grow(7)
        taken += log.take()
    assert log.states(taken) == ["consistent"] * len(taken)
    last = next(reversed(list(read_events(log.home))))
    for path in log.paths:
        lines = [erasure.tombstone(line, by=last["id"], at=NOW) for line in path.read_bytes().splitlines()]
        path.chmod(0o600)
        path.write_bytes(b"\n".join(lines) + b"\n")
    assert all("data" not in event for event in read_events(log.home))
    assert log.states(taken) == ["consistent"] * len(taken)
    assert log.take()[0].root == taken[-1].root


def test_a_cut_tail_a_rebuilt_chain_and_a_missing_stream_are_told_apart(log: Log, tmp_path: Path) -> None:
    """None of them shows in the files themselves."""
    taken = log.take()
    log.cut()
    (cut,) = checkpoint.compare(log.home, taken)
    assert cut.state == "cut" and f"to {log.count} are missing" in cut.detail and not cut.ok
    LogStore(log.home).append([note(f"forged {i}") for i in range(9)], now=NOW)
    assert log.states(taken) == ["forked"]
    other = Log(tmp_path / "other")
    assert other.states(taken) == ["foreign"]
    folder = log.paths[0].parent
    folder.rename(tmp_path / "taken away")
    assert log.states(taken) == ["gone"]


def test_damage_is_not_called_a_fork(log: Log) -> None:
    """A flipped bit: what it covers cannot be compared, and a new checkpoint goes as far as the stream is whole."""
    taken = log.take()
    path = log.paths[1]
    raw = bytearray(path.read_bytes())
    at = raw.index(b"event")
    raw[at] ^= 1
    path.chmod(0o600)
    path.write_bytes(bytes(raw))
    (found,) = checkpoint.compare(log.home, taken)
    assert found.state == "damaged" and path.name in found.detail
    (tree,) = checkpoint.trees(log.home)
    assert tree.size == int(path.name[:20]) - 1 + raw[:at].count(b"\n")
    assert tree.broken and tree.size < log.count


def test_a_tree_is_the_same_whichever_lines_need_the_careful_way(tmp_path: Path) -> None:
    """Erased and dressed lines among plain ones, in blocks of any size: each size has the root over the hashes alone, and damage
    is named at its very byte."""
    log = Log(tmp_path, 60)
    hashes = [bytes.fromhex(event["hash"]) for event in read_events(log.home)]
    for i, path in enumerate(log.paths):
        lines = path.read_bytes().splitlines()
        path.chmod(0o600)
        lines[0] = erasure.tombstone(lines[0], by=uuid7(1, b"b" * 10), at=NOW)
        lines[-1] += b"\r" if i % 2 else b""
        path.write_bytes(b"\n".join(lines) + b"\n")
    (stream,) = os.listdir(Path(log.home, "log"))
    whole = merkle.Frontier()
    for size, hash in enumerate(hashes, 1):
        whole.push(merkle.leaf_hash(hash))
        tree = checkpoint.read_tree(log.home, stream, size)
        assert (tree.size, tree.root(size), tree.broken) == (size, whole.root(), "")
    path = log.paths[2]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1].replace(b"event", b"other"), *lines[2:]]))
    tree = checkpoint.read_tree(log.home, stream, len(hashes))
    assert f"{path.name} at byte {len(lines[0]):,}:" in tree.broken and tree.size == int(path.name[:20])


def test_proofs_hold_and_changed_ones_do_not(log: Log) -> None:
    """Inclusion of every event and consistency of every pair of sizes, by what `prove` gives out."""
    events = list(read_events(log.home))
    root = log.take()[0].root.hex()
    for event in events:
        proof = checkpoint.prove_inclusion(log.home, event)
        assert proof["root"] == root and checkpoint.check_proof(proof)
        assert not checkpoint.check_proof({**proof, "leaf": events[event["seq"] - 2]["hash"]})
        other = events[event["seq"] - 2]
        stranger = checkpoint.origin("p" * 16, "0" * 16)
        swapped = {**proof["record"], "id": other["id"]}
        for forged in ({"id": other["id"]}, {"origin": stranger}, {"record": swapped}, {"id": other["id"], "record": swapped},
                       {"record": swapped, "leaf": hashlib.sha256(canonical(swapped)).hexdigest()},
                       {"origin": proof["origin"][1:]}, {"record": {**proof["record"], "more": 1}}, {"record": 1}):  # fmt: skip
            assert not checkpoint.check_proof({**proof, **forged})
        with pytest.raises(CheckpointError, match="Make it again"):
            checkpoint.check_proof({name: proof[name] for name in proof if name != "record"})
    with pytest.raises(CheckpointError, match="not as it was recorded"):
        checkpoint.prove_inclusion(log.home, {**events[0], "kind": "other.kind"})
    proof = checkpoint.prove_consistency(log.home, events[0]["stream"], 7, 20)
    assert checkpoint.check_proof(proof) and not checkpoint.check_proof({**proof, "old": {**proof["old"], "size": 8}})
    for wrong in ({}, {"proof": "inclusion"}, {**proof, "path": ["00"]}, {**proof, "proof": "?"}, {**proof, "old": 3}):
        with pytest.raises(CheckpointError):
            checkpoint.check_proof(wrong)
    with pytest.raises(CheckpointError, match="does not cover"):
        checkpoint.prove_inclusion(log.home, events[9], 9)
    with pytest.raises(CheckpointError, match="swap"):
        checkpoint.prove_consistency(log.home, events[0]["stream"], 9, 8)


def test_the_payload_of_a_sealed_checkpoint_is_valid_and_depends_on_every_stream(log: Log) -> None:
    """One hash over all of them."""
    from projectmem_logs.kinds import validate

    before = checkpoint.sealed(checkpoint.trees(log.home))
    assert validate("checkpoint.sealed", before) and before["size"] == log.count
    log.grow(1)
    after = checkpoint.sealed(checkpoint.trees(log.home))
    assert after["root"] != before["root"] and after["size"] == log.count


def test_a_key_signs_only_what_goes_on_from_what_it_signed(log: Log) -> None:
    """Growth is signed; a cut or forked log is not, not even after a restart."""
    path = signing.default_key(log.home)
    _, first = signing.sign(log.home, path)
    assert os.stat(path).st_mode & 0o777 == 0o600 == os.stat(path + ".signed").st_mode & 0o777
    log.grow(5)
    _, second = signing.sign(log.home, path)
    key = signing.public_key(log.home)
    assert key is not None and [c.signature for c in checkpoint.compare(log.home, first + second, key)] == ["good", "good"]
    assert [c.signature for c in checkpoint.compare(log.home, first)] == ["unchecked"]
    log.cut()
    with pytest.raises(CheckpointError, match="was signed with"):
        signing.sign(log.home, path)
    LogStore(log.home).append([note(f"forged {i}") for i in range(9)], now=NOW)
    with pytest.raises(CheckpointError, match="not signed: the first"):
        signing.sign(log.home, path)
    log.paths[0].parent.rename(Path(log.home, "away"))
    with pytest.raises(CheckpointError, match="is gone"):
        signing.sign(log.home, path)


def test_a_crash_between_remembering_and_giving_out_never_allows_a_second_history(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was to be signed is synced first."""
    path = signing.default_key(log.home)
    signing.make_key(path, "x")
    monkeypatch.setattr(SecretKey, "sign", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        signing.sign(log.home, path)
    assert str(log.count).encode() in Path(path + ".signed").read_bytes()


def test_nothing_is_left_beside_a_file_that_is_no_key(log: Log, tmp_path: Path) -> None:
    """`--key` with a wrong name, perhaps in somebody's sources, makes no lock there."""
    path = tmp_path / "sources" / "module.py"
    path.parent.mkdir()
    path.write_text("no key")
    path.chmod(0o600)
    with pytest.raises(CheckpointError, match=r"module\.py"):
        signing.sign(log.home, str(path))
    assert os.listdir(path.parent) == ["module.py"]


def test_a_key_that_others_can_read_is_not_used(log: Log) -> None:
    """Nor is one overwritten, nor a damaged memory passed over."""
    path = signing.default_key(log.home)
    signing.sign(log.home, path)
    os.chmod(path, 0o640)
    with pytest.raises(CheckpointError, match="can be read by others"):
        signing.sign(log.home, path)
    os.chmod(path, 0o600)
    with pytest.raises(CheckpointError, match="never overwritten"):
        signing.make_key(path, "x")
    Path(path + ".signed").write_text("{")
    with pytest.raises(CheckpointError, match="is damaged"):
        signing.sign(log.home, path)

"""Every form of damage has a name, a place and a remedy; network file systems are told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projectmem_logs.envelope import BOM
from projectmem_logs.erasure import tombstone
from projectmem_logs.errors import EventError, LineError, NetworkFilesystemError
from projectmem_logs.filesystems import filesystem, refuse_network
from projectmem_logs.reader import Problem, read_events
from projectmem_logs.store import LogStore, init_home
from projectmem_logs.verify import verify

NOW = 1_800_000_000_000_000


def note(text: str) -> dict[str, Any]:
    """A draft."""
    return {"kind": "note.recorded", "actor": {"origin": "observed"}, "data": {"text": text, "tags": []}}


def made(tmp_path: Path) -> tuple[str, Path, list[bytes]]:
    """A log of eight single-event batches: its home, its segment and its lines."""
    home = str(tmp_path / "home")
    init_home(home, NOW)
    store = LogStore(home)
    for i in range(8):
        store.append([note(f"n{i}")], now=NOW + i)
    (path,) = Path(home, "log").glob("*/*.jsonl")
    return home, path, path.read_bytes().splitlines(keepends=True)


def swap(x: list[bytes]) -> list[bytes]:
    """Two neighbours change places."""
    return [*x[:2], x[3], x[2], *x[4:]]


Damage = Callable[[list[bytes]], list[bytes]]
DAMAGES: list[tuple[str, Damage, list[str], int]] = [
    # name, what is done to the lines, the kinds reported, how many events verify still counts
    ("nothing", lambda x: x, [], 8),
    ("a changed payload", lambda x: [*x[:3], x[3].replace(b"n3", b"m3"), *x[4:]], ["digest"], 7),
    ("a changed header", lambda x: [*x[:3], x[3].replace(b"note.", b"nota."), *x[4:]], ["hash"], 7),
    ("a missing record", lambda x: x[:3] + x[4:], ["gap"], 7),
    ("a repeated record", lambda x: [*x[:4], x[3], *x[4:]], ["duplicate"], 8),
    ("swapped records", swap, ["swapped"], 8),
    ("glued records", lambda x: [*x[:3], x[3][:-1], *x[4:]], ["glued"], 8),
    ("a half record glued to a whole one", lambda x: [*x[:3], x[3][:200], *x[4:]], ["glued"], 7),
    ("NUL bytes in a record", lambda x: [*x[:3], x[3][:50] + bytes(40) + x[3][90:], *x[4:]], ["nul"], 7),
    ("NUL bytes over several records", lambda x: [*x[:3], bytes(sum(map(len, x[3:6]))) + b"\n", *x[6:]], ["nul"], 5),
    ("a byte-order mark", lambda x: [BOM + x[0], *x[1:]], ["bom"], 8),
    ("CRLF everywhere", lambda x: [line[:-1] + b"\r\n" for line in x], ["crlf"], 8),
    ("CRLF in one line", lambda x: [*x[:3], x[3][:-1] + b"\r\n", *x[4:]], ["crlf"], 8),
    ("an empty line", lambda x: [*x[:3], b"\n", *x[3:]], ["empty"], 8),
    ("a strange line", lambda x: [*x[:3], b"hello\n", *x[3:]], ["foreign"], 8),
    ("strange lines only", lambda x: [b"hello\n"] * 8, ["foreign"], 0),
    ("a torn tail", lambda x: [*x, x[3][:100]], ["torn"], 8),
    ("a torn last batch", lambda x: [*x[:7], x[7][:100]], ["torn"], 7),
    ("no final newline", lambda x: [*x[:7], x[7][:-1]], ["unterminated"], 8),
    ("spaces in a record", lambda x: [*x[:3], x[3].replace(b",", b", ", 1), *x[4:]], ["hash"], 7),
]


@pytest.mark.parametrize(("name", "damage", "kinds", "events"), DAMAGES, ids=[d[0] for d in DAMAGES])
def test_each_damage_is_named_with_place_and_remedy(
    tmp_path: Path, name: str, damage: Damage, kinds: list[str], events: int
) -> None:
    """One report of the right kind, and everything that is whole is counted."""
    home, path, lines = made(tmp_path)
    path.write_bytes(b"".join(damage(lines)))
    report = verify(home)
    assert [p.kind for p in report.problems] == kinds and report.events == events and report.ok is not bool(kinds)
    for p in report.problems:
        assert p.remedy and p.stream == path.parent.name and p.segment == path.name and f"{p.offset:,}" in str(p)
    problems: list[Problem] = []
    served = [e["data"]["text"] for e in read_events(home, problems=problems)]
    assert bool(problems) == (bool(kinds) and kinds != ["unterminated"])
    assert set(served) <= {f"n{i}" for i in range(8)} and len(served) >= events - 2
    assert len(set(served)) == len(served)


def test_what_is_lost_is_counted_in_the_report(tmp_path: Path) -> None:
    """The report of a damaged run says where it lies, how long it is and which records are gone."""
    home, path, lines = made(tmp_path)
    path.write_bytes(b"".join([*lines[:3], bytes(5000) + b"\n", *lines[6:]]))
    (problem,) = verify(home).problems
    assert (
        problem.offset == sum(map(len, lines[:3])) and "5,000 NUL bytes" in problem.detail and "seq 4 to 6 lost" in problem.detail
    )


def test_files_and_folders_that_do_not_belong_are_named(tmp_path: Path) -> None:
    """A stranger's file among the segments, a file among the streams, a renamed and a missing segment."""
    home, path, _ = made(tmp_path)
    path.with_name("notes.txt").write_text("x")
    Path(home, "log", "stray").write_text("x")
    path.rename(path.with_name(f"{5:020d}.jsonl"))
    kinds = [p.kind for p in verify(home).problems]
    assert kinds.count("foreign-file") == 2 and "missing-segment" in kinds
    assert [e["data"]["text"] for e in read_events(home)] == [f"n{i}" for i in range(8)] or kinds


def test_an_edited_record_with_a_new_hash_breaks_the_chain(tmp_path: Path) -> None:
    """Recomputing one record's own hash is not enough."""
    from projectmem_logs.envelope import open_line, seal

    home, path, lines = made(tmp_path)
    old = open_line(lines[3])
    fields = {k: old[k] for k in ("stream", "seq", "batch", "ts", "prev", "id", "scope")}
    _, forged = seal({**note("forged"), "at": old["at"], "causes": []}, salt=bytes.fromhex(old["salt"]), **fields)
    path.write_bytes(b"".join([*lines[:3], forged, *lines[4:]]))
    assert [p.kind for p in verify(home).problems] == ["chain"]


def test_a_record_with_matching_hashes_that_is_not_canonical_is_named(tmp_path: Path) -> None:
    """Written by something else: the hashes fit its bytes, the form does not."""
    from projectmem_logs.digest import sha256_hex

    home, path, lines = made(tmp_path)
    raw = lines[7]
    salt = bytes.fromhex(raw[raw.find(b'"salt":"') + 8 :][:32].decode())
    begin, end = raw.find(b',"data":') + 8, raw.rfind(b',"digest":"')
    data = raw[begin:end].replace(b":", b": ")
    old = raw[end + 11 : end + 75]
    digest = sha256_hex(salt + data).encode()
    header = raw[: begin - 8] + raw[end:].replace(old, digest)
    h = header.find(b',"hash":"')
    s = header.find(b',"salt":"')
    body = (header[:h] + header[h + 74 : s] + header[s + 42 :])[:-1]
    hash = sha256_hex(body).encode()
    forged = raw[:begin] + data + raw[end:].replace(old, digest)
    forged = forged.replace(forged[forged.find(b'"hash":"') + 8 :][:64], hash)
    path.write_bytes(b"".join([*lines[:7], forged]))
    assert [p.kind for p in verify(home).problems] == ["not-canonical"]


def test_an_erased_record_verifies_and_is_counted(tmp_path: Path) -> None:
    """After an erasure in the middle the chain is whole; the record is still served, without its data."""
    home, path, lines = made(tmp_path)
    by = "0190b6a0-0000-7000-8000-000000000000"
    erased = tombstone(lines[3][:-1], by=by, at=NOW) + b"\n"
    path.write_bytes(b"".join([*lines[:3], erased, *lines[4:]]))
    report = verify(home)
    assert report.ok and (report.events, report.streams[0].erased) == (8, 1)
    assert [e.get("tombstone") for e in read_events(home)][3] == {"at": NOW, "by": by}
    assert LogStore(home).append([note("on")], now=NOW)[0]["seq"] == 9
    with pytest.raises(LineError):
        tombstone(lines[2][:-9], by=by, at=NOW)
    with pytest.raises(EventError):
        tombstone(lines[2][:-1], by="x", at=NOW)


MOUNTS = """22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 server:/home rw
31 22 0:41 / /home/me/local\\040disk rw - ext4 /dev/sdb1 rw
32 22 0:42 / /mnt/share rw shared:1 - fuse.sshfs host:/ rw
33 22 0:43 / /homes rw - btrfs /dev/sdc rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/x", "ext4"),
        ("/home/me/repo", "nfs4"),
        ("/home/me/local disk/repo", "ext4"),
        ("/mnt/share", "fuse.sshfs"),
        ("/homes/x", "btrfs"),
    ],
)
def test_the_file_system_of_a_path_is_found_from_the_mounts(path: str, kind: str) -> None:
    """The longest mount point that holds the path decides; its name's escapes are read."""
    assert filesystem(path, MOUNTS) == kind
    if kind in ("nfs4", "fuse.sshfs"):
        with pytest.raises(NetworkFilesystemError, match=kind):
            refuse_network(path, MOUNTS)
    else:
        refuse_network(path, MOUNTS)


def test_init_refuses_a_network_file_system_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by default with a message that says what to do; an explicit override is possible."""
    monkeypatch.setattr("projectmem_logs.filesystems.filesystem", lambda path, mounts=None: "nfs4")
    with pytest.raises(NetworkFilesystemError, match="local disk"):
        init_home(str(tmp_path / "a"), NOW)
    assert not (tmp_path / "a").exists() and init_home(str(tmp_path / "a"), NOW, allow_network=True)

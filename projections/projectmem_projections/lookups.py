"""Finds the numbers that a text stands for in a written-once SQLite file, and can prove that there are none [H].

An index of SQLite's finds nothing where rot has changed a key: what is gone looks like what never was. Here every entry lies in a
bucket that is known to exist, under a checksum: a lookup that finds none has read a whole bucket. Texts that share a hash share
their numbers: whoever asks compares what the numbers lead to.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

TABLE = "CREATE TABLE bucket (n INTEGER PRIMARY KEY, crc INTEGER NOT NULL, body BLOB NOT NULL);"
EACH = 32  # entries of a bucket, about
_ENTRY = struct.Struct("<II")  # hash of a text, number


def check(name: str, *parts: bytes) -> int:
    """The CRC-32 of some bytes under a name: a row that is found under another one does not match."""
    from zlib import crc32

    found = crc32(name.encode("utf-8", "surrogatepass"))
    for part in parts:
        found = crc32(part, found)
    return found


def write(connection: Any, kinds: Sequence[Iterable[tuple[str, int]]]) -> list[int]:
    """Fill table `bucket` with the (text, number) pairs of each kind; returns how many buckets each kind has got."""
    counts, first = [], 0
    for pairs in kinds:
        entries = [(check(text), number) for text, number in pairs]
        buckets: list[list[tuple[int, int]]] = [[] for _ in range(len(entries) // EACH + 1)]
        for hash_, number in entries:
            buckets[hash_ % len(buckets)].append((hash_, number))
        rows = []
        for n, found in enumerate(buckets, first):
            body = b"".join(_ENTRY.pack(*one) for one in sorted(found))
            rows.append((n, check(f"bucket {n}", body), body))
        connection.executemany("INSERT INTO bucket VALUES (?, ?, ?)", rows)
        counts.append(len(buckets))
        first += len(buckets)
    return counts


def find(execute: Callable[..., list[Any]], counts: Sequence[int], kind: int, text: str) -> list[int]:
    """The numbers of the texts of a kind that hash as `text` does, ascending. Raises ValueError where the bucket is damaged."""
    hash_ = check(text)
    n = sum(counts[:kind]) + hash_ % counts[kind]
    found = execute("SELECT crc, body FROM bucket WHERE n = ?", n)
    if len(found) != 1 or type(found[0][1]) is not bytes or found[0][0] != check(f"bucket {n}", found[0][1]):
        raise ValueError("an index of it is not as it was written")
    return [number for other, number in _ENTRY.iter_unpack(found[0][1]) if other == hash_]

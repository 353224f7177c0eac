"""The append side of the log: one exclusive lock, heal the tail, one write, one sync, then the caller's `after`.

../README.md gives the write protocol as numbered steps and the recovery table. Cost is O(1) in the size of the log.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

from . import files
from .canonical import canonical_text
from .digest import sha256_hex
from .envelope import GENESIS, ID_BYTES, MAX_BATCH, SALT_BYTES, Prepared, prepare, seal_all
from .errors import AppendError, EventError, LogError, SpooledError
from .home import Writer, init_home, project_id, redaction_key, restore_folders
from .locking import StreamLock, grip, loosen
from .recovery import CLEAN, CORRUPT, TORN, UNTERMINATED
from .spool import drain, keep
from .tail import read_position, segment_name, streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .bulk import Encoded
    from .envelope import Draft, Event
    from .tail import Position

SEGMENT_BYTES = 64 * 1024 * 1024
BATCH_BYTES = 4 * 1024 * 1024  # durability="batch": one sync per so many bytes
LONG_LIVED = 16  # appends after which a store takes the modules that are fast, but slow to import
LOOKS = 100  # times the end of a segment may change under the eyes of whoever holds its locks
SELF = {"agent": "", "harness": "projectmem", "model": "", "origin": "observed", "session": ""}


class LogStore:
    """Appends to this machine's stream of the log in `home`. Safe across processes and threads. `close` it, or use it as
    `with LogStore(home) as store`: it keeps descriptors open.

    notices      what the last append found and did besides (healed, quarantined, moved to a new stream, drained), for people
    after_error  what the last `after` callback raised, if anything; the append stands
    """

    def __init__(
        self, home: str, *, project: str = "", tenant: str = "", wait_ms: int = 250, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self.home, self.wait_ms, self.segment_bytes = os.path.abspath(home), wait_ms, segment_bytes
        self.scope = {"project": project or project_id(self.home), "tenant": tenant}
        self.scope_text = canonical_text(self.scope)
        self.notices: list[str] = []
        self.after_error: BaseException | None = None
        self._writer = Writer(self.home)
        self._mutex = _thread.allocate_lock()
        self._stream = ""
        self._path_of, self._path_is = ("", ""), ""
        self._position: Position | None = None
        self._signature: tuple[int, int, int, int] | None = None
        self._fd = -1
        self._pid = os.getpid()
        self._appends = 0
        self._lock = StreamLock()
        self._locks = os.path.join(self.home, "locks", "")
        self._spool_folder = os.path.join(self.home, "spool")
        self._spool_empty_at = -1
        self._retired: tuple[str, str, int, str] | None = None
        self._inherited = False  # whether the end of the stream was written by somebody else, or before a restart

    # -- public -------------------------------------------------------------------------------------------------------

    def append(
        self,
        drafts: Sequence[Draft],
        *,
        now: int,
        durability: str = "durable",
        after: Callable[[list[Event]], None] | None = None,
        returning: bool = True,
        encoded: Sequence[Encoded] = (),
    ) -> list[Event]:
        """Append `drafts` in order and return every event written, those of healing and of the spool before them. Without drafts
        only those; nothing where the lock is not free.

        now         microseconds UTC, recorded as `ts`
        durability  "durable": one batch, on the platter when this returns, all or nothing;
                    "batch": for imports, a batch and a sync per 4 MiB, all of it on the platter when this returns
        after       called with the events while the lock is still held; what it raises lands in `after_error`
        returning   False, without `after`: an import need not make a dict of each event; those of healing are returned
        encoded     instead of drafts: what bulk.prepare_many made of them. `after` and the caller get their places only

        Raises EventError or CanonicalError (a draft is wrong, nothing was done), SpooledError (the lock was not free
        within wait_ms; the drafts are safe and the next append writes them), AppendError (the disk refused; nothing of
        the current batch was kept), NotInitialisedError.
        """
        if durability not in ("durable", "batch"):
            raise LogError(f"durability must be durable or batch, not {durability!r}")
        if drafts and encoded:
            raise LogError("append takes drafts or what was made of them, not both")
        prepared: list[Prepared] = []
        places, many = bool(encoded), durability == "batch" and len(drafts or encoded) > 1
        if drafts and (many or self._lives_long()):
            from . import bulk  # the same bytes, faster; its imports are too heavy for the hook

            with bulk.Uncollected(many):
                encoded = bulk.prepare_many(drafts, now)
        else:
            prepared = [prepare(d, now) for d in drafts]
        self.notices, self.after_error = [], None
        if not self._mutex.acquire(timeout=self.wait_ms / 1000):
            return self._spool(prepared, encoded, now, many)
        try:
            if not self._take():
                return self._spool(prepared, encoded, now, many)
            try:
                events = self._heal_and_drain(now)
                if encoded:
                    events += self._write_encoded(encoded, now, many, returning or after is not None, places)
                else:
                    events += self._write(prepared, now)
                if after is not None and events:
                    self._tell(after, events)
                return events
            finally:
                self._give()
        except OSError as e:
            self._forget()
            why = f"{e.strerror} ({e.filename})" if e.strerror and e.filename else e.strerror or e
            raise AppendError(f"could not append to the log in {self.home}: {why}; the event was not kept") from e
        finally:
            self._mutex.release()

    def head(self) -> dict[str, int]:
        """{stream: seq of its last whole batch's last record} of all streams, from their last few KiB."""
        return {s: p[0] for s, p in heads(self.home).items()}

    def end(self) -> dict[str, tuple[str, int]]:
        """{stream: (segment, its size)} of the stream that was written to, for `after`: while its lock is held it ends there."""
        position = self._position
        return {self._stream: (position.segment, position.size)} if position is not None else {}

    def close(self) -> None:
        """Give back the file descriptors; the store can still be used."""
        with self._mutex:
            if self._pid == os.getpid():
                self._forget()
                self._lock.close()

    def __enter__(self) -> LogStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self) -> None:
        """Trust nothing remembered about the segment, and close it."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            files.close(fd)
        self._signature, self._position = None, None

    def _lives_long(self) -> bool:
        self._appends += 1
        return self._appends > LONG_LIVED or ("orjson" in sys.modules and "hashlib" in sys.modules)

    def _tell(self, after: Callable[[list[Event]], None], events: list[Event]) -> None:
        try:
            after(events)
        except Exception as e:
            self.after_error = e
            self.notices.append(f"the log is written, but what reads it was not updated: {e}")

    # -- under the lock -----------------------------------------------------------------------------------------------

    def _take(self) -> bool:
        """Lock this machine's current stream and know where it ends; a stream found corrupt is retired and the next one locked
        instead. False when it was not free in time."""
        if self._pid != os.getpid():  # forked: the parent's descriptors are not ours
            self._fd, self._pid, self._signature = -1, os.getpid(), None
            self._lock.forget()
        while True:
            stream = self._stream or self._writer.stream()
            path = f"{self._locks}{stream}.lock"
            try:
                taken = self._lock.take(path, self.wait_ms)
            except FileNotFoundError:
                restore_folders(self.home)
                taken = self._lock.take(path, self.wait_ms)
            if not taken:
                return False
            try:
                if self._writer.stream() == stream and self._stand(stream):
                    return True
            except TimeoutError:
                self._give()
                return False
            except BaseException:
                self._give()
                raise
            self._give()
            self._stream = ""  # another one is current now

    def _give(self) -> None:
        try:
            if self._fd >= 0:
                loosen(self._fd)
        finally:
            self._lock.give()

    def _stand(self, stream: str) -> bool:
        """Know where the stream ends; False when it is corrupt and was given up. Its end is looked at while the segment's own
        lock is held, so that nobody else is in the middle of anything."""
        if stream != self._stream:
            self._forget()
            self._stream = stream
        known = self._position
        if known is not None and self._signature is not None:
            grip(self._fd, self.wait_ms)
            if files.signature(self._path(known.segment)) == self._signature:
                return True
        for _ in range(LOOKS):
            self._forget()
            position = self._position = read_position(self._folder(), stream)
            if not position.segment or position.sealed:
                break
            seen = files.signature_of(self._open())
            same = seen[1] == position.size and seen == files.signature(self._path(position.segment))
            if same and not files.is_sealed(seen[3]):  # sealed while we waited for it: the end is in the next one by now
                break
        else:
            raise AppendError(f"another program keeps writing to {self._folder()} without the lock; nothing was kept")
        if position.tail.state == CORRUPT:
            where = f"{stream}/{position.segment} at byte {position.tail.damage}"
            why = f"{position.tail.why} at {where}"
            self.notices.append(
                f"DAMAGED LOG: {why}. That stream is read-only from now on and what is good in it is still read; "
                f"recording goes on in a new stream. Run `projectmem verify`."
            )
            self._forget()
            self._writer.retire(stream, why)
            self._retired = (stream, position.segment, position.tail.damage, position.tail.why)
            return False
        self._inherited = True
        return True

    def _heal_and_drain(self, now: int) -> list[Event]:
        """Make the tail clean, say what was done as an event, and bring in what was spooled."""
        position = self._position
        assert position is not None
        events: list[Event] = []
        last = position.tail.ids  # a note that follows is another last batch
        if self._retired is not None:
            old, segment, offset, why = self._retired
            facts = {"segment": segment, "offset": offset, "bytes": 0, "sha256": "", "quarantine": ""}
            events += self._note(now, {**facts, "stream": old, "state": CORRUPT, "why": why})
            self._retired = None
        if position.tail.state == UNTERMINATED:
            self._finish_line(position)
        elif position.tail.state == TORN:
            events += self._note(now, self._cut(position))
        return events + self._drain(last, now)

    def _drain(self, last: Sequence[str], now: int) -> list[Event]:
        """Bring in what is spooled. A folder that was empty and has not changed is not listed again; one that changed within the
        last second is, as a file's time may be that coarse."""
        try:
            changed = os.stat(self._spool_folder).st_mtime_ns
        except FileNotFoundError:
            restore_folders(self.home)
            return []
        if changed == self._spool_empty_at:
            return []
        found, events = drain(
            self.home, self._writer.machine, last, lambda some, ids: self._write(some, now, ids),
            self._sync_end, self.notices,
        )  # fmt: skip
        self._spool_empty_at = changed if not found and time.time_ns() - changed > 1_000_000_000 else -1
        return events

    def _sync_end(self) -> None:
        if self._position is not None and not self._position.sealed:  # what is sealed was synced
            files.sync_data(self._open())

    def _note(self, now: int, data: dict[str, object]) -> list[Event]:
        return self._write([prepare({"kind": "log.recovered", "actor": SELF, "data": data}, now)], now)

    def _finish_line(self, position: Position) -> None:
        fd = self._open()
        files.write_all(fd, b"\n")
        files.sync_data(fd)
        position.size += 1
        position.tail.state = CLEAN
        self.notices.append(f"{position.segment} had lost its last newline; it is back, no event was lost")

    def _cut(self, position: Position) -> dict[str, object]:
        """Move an unfinished batch to quarantine and cut it off; returns the facts to record."""
        path, cut = self._path(position.segment), position.tail.cut
        torn = files.read(path, cut)
        digest = sha256_hex(torn)
        name = f"{self._stream}-{position.segment}@{cut}-{digest[:16]}"
        files.make_dir(os.path.join(self.home, "quarantine"))
        files.replace(os.path.join(self.home, "quarantine", name), torn)
        files.truncate(self._open(), cut)
        why = position.tail.why or "unfinished batch"
        self.notices.append(
            f"the last {len(torn):,} bytes of {position.segment} are no whole batch and were moved to quarantine/{name}. A crash "
            f"leaves that of an append that never returned; if something else changed the file, look there for what was recorded"
        )
        position.size, position.tail.state = cut, CLEAN
        facts = {"segment": position.segment, "offset": cut, "bytes": len(torn), "sha256": digest, "quarantine": name}
        return {**facts, "stream": self._stream, "state": TORN, "why": why}

    def _write(self, batch: Sequence[Prepared], now: int, ids: Sequence[str] = ()) -> list[Event]:
        """Seal and write one batch, and sync it."""
        if not batch:
            return []
        position = self._position
        assert position is not None
        events, data = seal_all(
            batch,
            stream=self._stream,
            first=position.tail.seq + 1,
            prev=position.tail.hash or GENESIS,
            ts=now,
            rand=os.urandom((ID_BYTES + SALT_BYTES) * len(batch)),
            ids=ids,
            scope=self.scope,
            scope_text=self.scope_text,
        )
        if len(data) > MAX_BATCH:
            raise _too_much()
        self._write_lines(data, events[0]["seq"], events[-1]["seq"], events[-1]["hash"], [e["id"] for e in events])
        return events

    def _write_encoded(self, encoded: Sequence[Encoded], now: int, many: bool, returning: bool, places: bool) -> list[Event]:
        """Seal and write what bulk.py prepared: one batch, or an import batch by batch; while one is on its way to the disk
        the next is sealed."""
        from . import bulk

        position = self._position
        assert position is not None
        seq, prev = position.tail.seq, position.tail.hash or GENESIS
        out: list[Event] = []
        behind: bulk.Behind | None = None
        cut = bulk.batches(encoded, BATCH_BYTES) if many else [encoded]
        try:
            for i, batch in enumerate(cut):
                with bulk.Uncollected(many):
                    events, data, id, hash = bulk.seal_many(
                        batch, stream=self._stream, first=seq + 1, prev=prev, ts=now,
                        rand=os.urandom((ID_BYTES + SALT_BYTES) * len(batch)), scope=self.scope, scope_text=self.scope_text,
                        events=returning, places=places,
                    )  # fmt: skip
                if len(data) > MAX_BATCH:
                    raise _too_much()
                if behind is not None:
                    behind.join()
                where = (data, seq + 1, seq + len(batch), hash, [id])
                if i + 2 < len(cut):
                    behind = bulk.Behind(self._write_lines, *where)
                else:
                    behind = None
                    self._write_lines(*where)
                out += events
                seq, prev = seq + len(batch), hash
        finally:
            if behind is not None:
                behind.join()
        return out

    def _write_lines(self, data: bytes, first: int, last: int, hash: str, ids: list[str]) -> None:
        """Write one sealed batch (its first and last seq, last hash, and ids as far as the last) at the end of the stream and
        sync it, or raise AppendError and leave no trace of it."""
        position = self._position
        assert position is not None
        full = position.size and position.size + len(data) > self.segment_bytes
        if not position.segment or full or position.sealed:
            self._begin_segment(segment_name(first))
        fd, start = self._open(), position.size
        if self._inherited and start:
            self._settle(fd)
        if files.size_of(fd) != start:  # cannot happen while everybody takes the lock; writing now would fork the chain
            self._forget()
            raise AppendError(
                f"another program wrote to {self._path(position.segment)} without the lock; nothing was kept, try again"
            )
        try:
            if not start:  # the name first: a segment with bytes in it is one whose name is durable
                files.sync_dir(self._folder())
            files.write_all(fd, data)
            files.sync_data(fd)
        except OSError as e:
            self._undo(fd, start)
            raise AppendError(
                f"could not write to {self._path(position.segment)}: {e.strerror or e}; nothing of this event was kept. "
                f"Free disk space or check the disk, then try again"
            ) from e
        position.size = start + len(data)
        position.tail.seq, position.tail.hash, position.tail.state, position.tail.ids = last, hash, CLEAN, ids
        self._signature, self._inherited = files.signature_of(fd), False

    def _settle(self, fd: int) -> None:
        """Sync an end that this store did not write: its writer may have been stopped before it was durable, and nothing may
        follow what could still go. With nothing left to write it costs next to nothing."""
        try:
            files.sync_data(fd)
        except OSError as e:
            self._forget()
            raise AppendError(
                f"could not make the end of {self.home} durable: {e.strerror or e}; nothing of this event was kept. "
                f"Check the disk, then try again"
            ) from e
        self._inherited = False

    def _undo(self, fd: int, start: int) -> None:
        """After a failed write or sync: cut what may be there, and trust nothing remembered about the file."""
        try:
            files.truncate(fd, start)
        except OSError:
            pass  # the next append finds the torn tail and heals it
        self._forget()

    def _begin_segment(self, name: str) -> None:
        """Seal the finished segment and open the next one, whose first record will chain on. In this order: a store that
        remembers the end of the old segment sees the seal, so it cannot miss that there is a new one. Synced before: whoever
        wrote its last batch may have been stopped before that was durable, and nothing may follow what could still go."""
        position = self._position
        assert position is not None
        try:
            if not position.segment:
                files.sync_dir(os.path.join(self.home, "writers"))  # or a crash could forget which stream this is
                files.make_dir(self._folder())
            elif not position.sealed:
                files.sync_data(self._open())
            if position.segment:
                files.seal_file(self._path(position.segment))
                if self._fd >= 0:
                    fd, self._fd = self._fd, -1
                    files.close(fd)
            self._fd = self._gripped(files.open_append(self._path(name), create=True))
        except OSError as e:
            self._forget()
            raise AppendError(f"could not begin {self._path(name)}: {e.strerror or e}; nothing of this event was kept") from e
        position.segment, position.size, position.sealed = name, 0, False

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _open(self) -> int:
        assert self._position is not None
        if self._fd < 0:
            self._fd = self._gripped(files.open_append(self._path(self._position.segment)))
        return self._fd

    def _gripped(self, fd: int) -> int:
        try:
            return grip(files.private(fd), self.wait_ms)
        except BaseException:
            files.close(fd)
            raise

    def _folder(self) -> str:
        return os.path.join(self.home, "log", self._stream)

    def _path(self, segment: str) -> str:
        where = (self._stream, segment)
        if where != self._path_of:  # asked for at every append, and join is not free
            self._path_of, self._path_is = where, os.path.join(self.home, "log", self._stream, segment)
        return self._path_is

    def _spool(self, prepared: Sequence[Prepared], encoded: Sequence[Encoded], now: int, many: bool) -> list[Event]:
        """Keep the drafts outside the log and raise SpooledError; nothing to keep, nothing done."""
        if encoded:
            from . import bulk

            prepared = [bulk.prepared(one) for one in encoded]
        if not prepared:
            return []
        path = keep(self.home, self._writer.machine, prepared, now, many)
        raise SpooledError(
            path, f"the log was locked for {self.wait_ms} ms; {len(prepared)} event(s) wait in {path} for the next append"
        )


def _too_much() -> EventError:
    return EventError(f"one append of more than {MAX_BATCH:,} bytes; append less at a time, or with durability='batch'")


def heads(home: str) -> dict[str, tuple[int, str]]:
    """{stream: (seq, hash)} of the last record of each stream's last whole batch."""
    out = {}
    for stream in streams(home):
        tail = read_position(os.path.join(home, "log", stream), stream).tail
        out[stream] = (tail.seq, tail.hash)
    return out


__all__ = ["LogStore", "heads", "init_home", "project_id", "redaction_key"]

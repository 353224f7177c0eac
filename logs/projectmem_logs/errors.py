"""The one error tree of the log. Every message says what happened, where, and what to do; `str(e)` is complete."""

from __future__ import annotations


class LogError(Exception):
    """Base of everything this package raises on purpose."""


class CanonicalError(LogError):
    """A value that canonical JSON cannot hold: a float, a huge integer, a lone surrogate, a foreign type."""


class EventError(LogError):
    """A draft or an event whose shape is wrong."""


class LineError(LogError):
    """Bytes that are not a whole, self-consistent event line. `.why` is one of envelope.FAULTS."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


class KindError(LogError):
    """A payload that breaks the schema of its kind; names the field."""


class NotInitialisedError(LogError):
    """There is no log where one was expected."""


class NetworkFilesystemError(LogError):
    """The log would live on a file system where locks and appends cannot be trusted."""


class AppendError(LogError):
    """Nothing of this append was kept: the write or the sync failed and was undone."""


class SpooledError(LogError):
    """The lock could not be had in time. The drafts are safe in `.path` and the next append writes them."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class CheckpointError(LogError):
    """Bytes that are no checkpoint or key, a key that may not be used, or a checkpoint that must not be signed."""


class ErasureError(LogError):
    """An erasure that could not be carried out to its end; what is left is done by the next attempt."""

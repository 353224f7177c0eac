"""The error tree of the projections [H]: every message says what happened, where, and what to do."""

from __future__ import annotations


class ProjectionError(Exception):
    """Base of everything this package raises on purpose."""


class SnapshotDamaged(ProjectionError):  # noqa: N818 - named after the state of the file
    """The gate snapshot is damaged, foreign or of another version: discard it and rebuild it from the log."""


class SnapshotBusy(ProjectionError):  # noqa: N818
    """Another process held the snapshot longer than the caller was willing to wait. Nothing was changed."""


class GenerationDamaged(ProjectionError):  # noqa: N818
    """A published DuckDB generation cannot be read: it is rebuilt from the log."""


class CountMismatch(ProjectionError):  # noqa: N818
    """A build did not account for every event of the log and was not published."""

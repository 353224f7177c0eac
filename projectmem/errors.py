"""The application's error tree. A message says what happened, where, and what to do; it is complete in `str(e)`.

On the hook's path: imports nothing.
"""

from __future__ import annotations


class ProjectmemError(Exception):
    """Something the user can understand and act on. The command line prints it as it stands and exits 3."""


class NoProjectError(ProjectmemError):
    """No log was found for this folder."""


class NotFoundError(ProjectmemError):
    """An id or name that nothing in the log answers to, or that several things answer to."""


class RefusedError(ProjectmemError):
    """The request is understood and not allowed for this caller (for example a pin by an agent)."""


class BadInputError(ProjectmemError):
    """An argument that cannot be used, named with what would be accepted: wrong usage, exit 2."""

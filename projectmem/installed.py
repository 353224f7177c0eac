"""Which version is installed, by the package's own record."""

from __future__ import annotations


def version() -> str:
    """The installed version, "unknown" in a bare checkout."""
    from importlib import metadata

    try:
        return metadata.version("projectmem-gate")
    except metadata.PackageNotFoundError:
        return "unknown"

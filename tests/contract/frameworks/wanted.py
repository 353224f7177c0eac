"""Prints what the environment of one framework's tests needs: `wanted.py EXTRA`. Its extra, and the parser that identity uses."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def wanted(extra: str) -> list[str]:
    """Requirements of `extra` in pyproject.toml, and the package's own that are not optional in process."""
    project = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        *project["optional-dependencies"][extra],
        *(name for name in project["dependencies"] if name.startswith("tree-sitter")),
    ]


if __name__ == "__main__":
    sys.stdout.write("\n".join(wanted(sys.argv[1])) + "\n")

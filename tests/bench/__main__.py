"""Every figure on one page: `make bench`. Ratios within this run; absolute times are only there to make them readable."""

from __future__ import annotations

import importlib
import platform
import sys
from pathlib import Path

SECTIONS = ("hook", "recording", "log", "projections")


def main() -> int:
    """Run the sections named on the command line, or all of them."""
    wanted = sys.argv[1:] or SECTIONS
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    for name in wanted:
        if name not in SECTIONS:
            print(f"no section `{name}`; there are {', '.join(SECTIONS)}")
            return 2
        print(f"\n{name}")
        for line in importlib.import_module(f"tests.bench.{name}").main():
            print(f"  {line}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The `projectmem` command. `hook` is dispatched before anything else is imported: it runs before every tool call."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code (0 fine, 1 a check said no, 2 usage, 3 could not, 130 interrupted)."""
    args = list(sys.argv[1:] if argv is None else argv)
    if len(args) > 1 and args[0] == "hook" and not args[1].startswith("-"):
        from projectmem.hook.entry import main as hook

        sys.exit(hook(args[1:], sys.stdin.buffer, sys.stdout.buffer))
    from projectmem.cli.app import run

    sys.exit(run(args))


if __name__ == "__main__":
    main()

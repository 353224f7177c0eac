"""Says why a folder has no log that counts, and what to do: not set up, a log's own folder, or one that came with the files."""

from __future__ import annotations

import os

from projectmem import place as places


def of(start: str) -> tuple[str, str]:
    """(what is the matter, what to do) of a folder for which `place.find` finds nothing; not escaped for a terminal."""
    if os.path.isfile(f"{start}/project.json") and os.path.isdir(f"{start}/log"):
        return (
            f"{start} is a log's own folder and no project",
            f"read it as it lies with `{places.HOME_VARIABLE}={start} projectmem verify` (or `log`, `explain ID`, ...)",
        )
    place = places.locate(start)
    if place is not None and place.foreign:
        return (
            f"the log in {place.home} was not made on this machine, so it is not served",
            "run `projectmem init` to accept it and set up hooks here; only to read it, copy that folder under another name "
            f"and run `{places.HOME_VARIABLE}=COPY projectmem verify`",
        )
    return f"no projectmem log for {start}", "run `projectmem init` in the project, or name it with --root"

"""[H] SEARCH/REPLACE blocks, the edits of Cline, Roo and Aider, as (old text, new text)."""

from __future__ import annotations


def read(text: str) -> list[tuple[str, str]]:
    """The blocks of `text` in order, [] where it has none. Both spellings: `<<<<<<< SEARCH` and `------- SEARCH`."""
    if "SEARCH" not in text or "=======" not in text:
        return []
    found: list[tuple[str, str]] = []
    old: list[str] = []
    new: list[str] = []
    state = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        bare = line.rstrip()
        if bare in ("<<<<<<< SEARCH", "------- SEARCH", "<<<<<<< SEARCH>"):
            state, old, new = "old", [], []
        elif state == "old" and bare == "=======":
            state = "new"
        elif state == "new" and bare in (">>>>>>> REPLACE", "+++++++ REPLACE"):
            found.append(("\n".join(old), "\n".join(new)))
            state = ""
        elif state == "old" and not old and (bare.startswith((":start_line:", ":end_line:")) or bare == "-------"):
            continue
        elif state:
            (old if state == "old" else new).append(line)
    return found

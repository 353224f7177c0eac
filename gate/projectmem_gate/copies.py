"""[H] Which files a command that copies, moves or links writes: by the role of each operand, not by its being named."""

from __future__ import annotations

from projectmem_gate.words import is_static

TYPE_CHECKING = False
if TYPE_CHECKING:
    from projectmem_gate.commands import Built

COPIERS = ("cp", "rsync", "install", "ln", "mv")  # all but the last take nothing from where it was
_TARGET = ("-t", "--target-directory")
_DRY = ("--dry-run", "--list-only")
_PLAIN = ("cp", "mv", "ln")  # the values of their options are told from operands
SOMETHING = ""  # a file whose name is not known


def written(built: Built, operands: list[str], flags: list[str]) -> list[str] | None:
    """Names of what the command writes or takes away, SOMETHING for one that only the shell knows; None where the operands
    cannot be told apart. A folder that is copied into stands beside the names that the copies get in it."""
    words = operands + (built.args.tail or [])
    if built.name == "rsync" and any(f in _DRY or (f[:2] != "--" and "n" in f) for f in flags):
        return []
    if built.name == "install" and "-d" in flags:
        return [_name(built, w) for w in words]
    given = next((value for option, value in built.args.options if option in _TARGET and value), "")
    if not given and any(f in _TARGET for f in flags) and words:
        words = [*words[1:], words[0]]  # the option's value was taken for an operand
    sources, target = (words, given) if given else (words[:-1], words[-1] if words else "")
    if not target or (not sources and built.name != "ln"):
        return None
    if not sources:  # `ln -s ../a.ts` makes a.ts here
        sources, target = [target], "."
    out = [] if target == "." else [_name(built, target)]
    into = given or len(sources) > 1 or target == "." or f"{target}/" in [w.removeprefix("./") for w in built.command.argv]
    if built.name in _PLAIN and is_static(target) and into:
        out += [_name(built, f"{target.rstrip('/')}/{base}") for s in sources if (base := _base(s))]
    if built.name == "mv" or "--remove-source-files" in flags:
        from projectmem_gate.targets import below

        moved = [_name(built, s) for s in sources]
        out = moved + [p for name in moved if "*" not in name and (p := below(name))] + out
    return list(dict.fromkeys(out))


def is_elsewhere(word: str) -> bool:
    """Is it a place on another machine: `host:path`, `rsync://...`?"""
    before, colon, _ = word.partition(":")
    return bool(colon) and len(before) > 1 and "/" not in before


def _base(word: str) -> str:
    base = word.rstrip("/").rsplit("/", 1)[-1] if is_static(word) else ""
    return "" if base in (".", "..") else base


def _name(built: Built, word: str) -> str:
    if not is_static(word) or not word:
        from projectmem_gate.targets import named

        return next(iter(named(word, built.command, built.roots, built.cwd)), SOMETHING)
    return (word[2:] or ".") if word.startswith("//") else built.roots.name(word, built.cwd)

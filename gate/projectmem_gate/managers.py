"""What a package manager does besides the work of a project: it looks things up, logs in, publishes, installs for the machine.

A decision for one manager (*use pnpm here*) is about who installs and runs what this project is made of. It is not about those.
"""

from __future__ import annotations

from projectmem_gate.lines import names

NAMES = names("npm yarn pnpm bun pip uv poetry pipenv pdm conda mamba")
_ASIDE = names(
    """
    view info show v search find login logout adduser whoami config set get publish unpublish pack owner access token org team
    profile ping doctor help ls list ll la outdated audit why explain root prefix bin cache completion docs home repo bugs star
    unstar stars deprecate dist-tag fund freeze check debug self global diff hook edit version versions about
    """
)
_ASKS = ("-v", "-V", "--version", "-h", "--help")
_GLOBAL = ("-g", "--global", "--location=global")


def is_aside(text: str, pattern: str) -> bool:
    """Does this command (from its program on) do what a rule for the bare name of its manager is not about?

    pattern   the rule's alternatives: one that names more than the program (`npm publish`) holds what it says
    """
    words = text.partition("  # ")[0].split()
    if not words or words[0] not in NAMES:
        return False
    plain = f"{' '.join(words)} "
    if any(" " in one and plain.startswith(f"{one} ") for one in (" ".join(p.split()) for p in pattern.split(" | "))):
        return False
    subs = [w for w in words[1:] if w[:1] != "-"]
    if not subs:
        return len(words) > 1 and all(w in _ASKS for w in words[1:])
    if subs[0] in ("run", "exec", "x", "dlx", "test"):
        return False  # what follows is the project's own
    return subs[0] in _ASIDE or any(w in _GLOBAL for w in words[1:])

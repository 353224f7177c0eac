"""[H] What a named task does, judged by its name: `npm run lint`, `make test:ci`, `./scripts/build.sh`."""

from __future__ import annotations

from projectmem_gate.lines import names
from projectmem_gate.words import shown

VERIFY, BUILD, FORMAT, ANY = "verify", "build", "format", "any"

RUNNERS = names(
    """
    npm pnpm yarn bun deno make just task mise turbo nx composer rake gulp grunt lerna ng gradle mvn ./gradlew ./mvnw
    """
)
DIRECT = names("make just task rake gulp grunt gradle ./gradlew mvn ./mvnw ng nx turbo lerna")  # `make X`, no `run` between
_VERIFY = names(
    """
    test tests lint linter check checks typecheck types tsc e2e spec verify validate vet ci audit coverage smoke
    runtests pytest jest vitest eslint mypy stylelint storybook-test dup knip
    """
)
_BUILD = names("build compile codegen generate bundle gen proto prebuild package dist docs html assets")
# Builds that put down sources, for tests and compilers to read.
_GENERATES = names("codegen generate gen proto prebuild")
_FORMAT = names("fmt format fix prettier")
_BUILT_IN = ("start", "exec", "publish", "create", "init", "deploy", "dev", "serve", "preview")


def kind(task: str) -> str:
    """verify | build | format | any, by the pieces of a task's or script's name."""
    low = task.lower()
    for mark in ":-_./":
        low = low.replace(mark, " ")
    pieces = low.split()
    if any(p in _FORMAT for p in pieces):
        return VERIFY if "check" in pieces else FORMAT
    if any(p in _VERIFY or p.startswith(("test", "lint", "typecheck")) for p in pieces) or "type-check" in task:
        return VERIFY
    return BUILD if any(p in _BUILD for p in pieces) else ANY


def generates(task: str) -> bool:
    """Is it named for making sources?"""
    pieces = "".join(c if c.isalnum() else " " for c in task.lower()).split()
    return kind(task) == BUILD and any(p in _GENERATES for p in pieces)


def named(name: str, subs: list[str], operands: list[str]) -> list[str] | None:
    """The tasks that a runner is asked for; [] for its default; None when this is no task of it."""
    sub = subs[0] if subs else ""
    if name in DIRECT:
        rest = subs[1:] if sub == "run" else subs
        return [shown(w) for w in (*rest, *operands) if "=" not in w and w[:1] != "-"]
    if sub == "run":
        return subs[1:2]
    if sub in ("test", "lint", "check", "build", "fmt"):
        return [sub]
    return [sub] if sub in _BUILT_IN else None


def effects(name: str, subs: list[str], operands: list[str]) -> list[tuple[str, str]] | None:
    """Effects of running a task, None when this is no task."""
    tasks = named(name, subs, operands)
    if tasks is None:
        return None
    family = f"{name} {' '.join(tasks)}"[:80].strip()
    kinds = {kind(t) for t in tasks} or {ANY}
    if ANY in kinds or any(generates(t) for t in tasks):
        return [("any", family)]
    out = [("edit", "")] if FORMAT in kinds else []
    return [*out, ("build", family)] if BUILD in kinds else out

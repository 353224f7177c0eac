"""The `action.finished` draft of a call that an import read, as the hook would have made it; nothing known is asked twice."""

from __future__ import annotations

import marshal
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson
from projectmem_gate import verifiers
from projectmem_gate.identify import identify
from projectmem_gate.known import KnownRoots
from projectmem_gate.model import OK, Action, Outcome
from projectmem_gate.moves import renames
from projectmem_gate.outcome import may_hide
from projectmem_logs.canonical import sanitize
from projectmem_logs.digest import sha256_hex

from projectmem.hook.drafts import finished_draft, shortened
from projectmem.hook.finish import judged, seen_again
from projectmem.hook.naming import naming
from projectmem.hook.state import redactor
from projectmem.importers.earlier import Earlier
from projectmem.importers.reading import Call
from projectmem.place import Place

RESOLVED = 100_000  # paths whose real names are kept
PLACES = 64  # work trees, each with what was moved, whose names are kept
KEPT_ACTIONS, KEPT_INPUTS, SHORT = 4_096, 4_096, 2_000  # what is kept, of inputs of at most so many bytes

Draft = dict[str, Any]
# An input without its secrets, the same as it is kept, its hash.
Asked = tuple[Any, str, str]
# A draft that was made without knowing of other calls, and the keys that a failure on record would change it for.
Row = tuple[Draft, tuple[str, ...]]


class Drafts:
    """Makes drafts, and knows what earlier ones said."""

    def __init__(self, earlier: Earlier | None = None) -> None:
        self.earlier = earlier or Earlier()
        self.resolve = lru_cache(RESOLVED)(os.path.realpath)  # for one run: nobody moves a folder while it lasts
        self.roots: dict[tuple[str, ...], KnownRoots] = {}  # by root and moves
        self.actions: dict[tuple[Any, ...], Action] = {}
        self.inputs: dict[tuple[str, bytes], Asked] = {}

    def make(self, place: Place, call: Call) -> Draft:
        """The draft. Later calls are compared with what the caller has `earlier` learn. Secrets go before anything is kept."""
        action, asked = self._action(place, call, self.earlier.moves(call["at"]))
        output = call["output"]
        outcome = _judged(place, call, action)
        if may_hide(action, outcome, output) and self.earlier.entries(action.keys):
            call["output"] = output
            outcome = seen_again(self.earlier, call, action, _looked_at(place, call, action))
        return _draft(call, action, outcome, asked)

    def alone(self, place: Place, call: Call, moved: Sequence[str]) -> Row:
        """The same where it is not known what other calls said; `moved` is what was moved before it."""
        action, asked = self._action(place, call, moved)
        output = call["output"]
        outcome = _judged(place, call, action)
        return _draft(call, action, outcome, asked), tuple(action.keys) if may_hide(action, outcome, output) else ()

    def _action(self, place: Place, call: Call, moved: Sequence[str]) -> tuple[Action, Asked]:
        """What the call is, after its secrets went. The same short input in the same folder is the same, as long as nothing was
        moved in between."""
        asked, raw = self._asked(place, call["input"])
        call["input"] = asked[0]
        sha = call.get("input_sha") or ""
        key = (place.root, call["cwd"], call["harness"], call["tool"], sha, raw, *moved)
        found = self.actions.get(key) if raw else None
        if found is None:
            given = {"cwd": call["cwd"], "harness": call["harness"], "input_sha": sha}
            found = identify(call["tool"], call["input"], root=place.root, roots=self._roots(place, moved), **given)
            if raw:
                if len(self.actions) >= KEPT_ACTIONS:
                    self.actions.clear()
                self.actions[key] = found
        return found, asked

    def _roots(self, place: Place, moved: Sequence[str]) -> KnownRoots:
        """How files of the place are named."""
        key = (place.root, *moved)
        found = self.roots.get(key)
        if found is None:
            if len(self.roots) >= PLACES:
                self.roots.clear()
            names = {**naming(place), "resolve": self.resolve}
            found = self.roots[key] = KnownRoots(place.root, **names, renames=renames(moved) if moved else None)
        return found

    def _asked(self, place: Place, given: Any) -> tuple[Asked, bytes]:
        """(what a call was asked, the input's bytes where it is a short one: these are kept, and b"" is not)."""
        try:
            raw = marshal.dumps(given, 2)  # without references: equal values are equal bytes
        except ValueError:
            raw = b""
        raw = raw if len(raw) <= SHORT else b""
        found = self.inputs.get((place.home, raw)) if raw else None
        if found is None:
            clean = redactor(place).tree(given)
            text = orjson.dumps(sanitize(clean), option=orjson.OPT_SORT_KEYS)  # as `canonical` has it, and faster
            found = clean, shortened(text), sha256_hex(text)
            if raw:
                if len(self.inputs) >= KEPT_INPUTS:
                    self.inputs.clear()
                self.inputs[place.home, raw] = found
        return found, raw


def _draft(call: Call, action: Action, outcome: Outcome, asked: Asked) -> Draft:
    told = asked[1], str(call.get("input_sha") or asked[2])
    return finished_draft(call, action, outcome, {}, at=call["at"], origin="import", source="backfill", asked=told)


def _judged(place: Place, call: Call, action: Action) -> Outcome:
    """What became of the call. Where it went well and its output says no more than that, nothing of the output is kept: no secret
    in it can be, and none is looked for."""
    outcome = None
    if not (call["is_error"] or call["exit_code"] or call["error_kind"]):
        family = action.parts[-1].family if action.parts else ""
        if verifiers.report(family, call["output"]) is None:
            outcome = judged(call, action, {})
            if outcome.outcome == OK and not outcome.excerpt and not outcome.signature:
                call["output"] = ""
                return outcome
    return _looked_at(place, call, action, outcome)


def _looked_at(place: Place, call: Call, action: Action, known: Outcome | None = None) -> Outcome:
    """What became of a call whose output may be kept, or is compared: without its secrets. `known` is what it came to with them:
    where there are none, that is the answer."""
    clean = redactor(place).text(sanitize(call["output"]))
    if known is not None and clean == call["output"]:
        return known
    call["output"] = clean
    return judged(call, action, {})

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
from projectmem_gate.model import OK, Action, Outcome
from projectmem_gate.moves import renames
from projectmem_gate.outcome import may_hide
from projectmem_logs.canonical import sanitize

from projectmem.hook.drafts import finished_draft
from projectmem.hook.finish import judged, seen_again
from projectmem.hook.naming import naming
from projectmem.hook.state import redactor
from projectmem.importers.earlier import Earlier
from projectmem.importers.reading import Call
from projectmem.place import Place

RESOLVED = 100_000  # paths whose real names are kept
KEPT_ACTIONS, KEPT_INPUTS, SHORT = 4_096, 4_096, 2_000  # what is kept, of inputs of at most so many bytes

Draft = dict[str, Any]
# A draft that was made without knowing of other calls, and the keys that a failure on record would change it for.
Row = tuple[Draft, tuple[str, ...]]


class Drafts:
    """Makes drafts, and knows what earlier ones said."""

    def __init__(self, earlier: Earlier | None = None) -> None:
        self.earlier = earlier or Earlier()
        self.resolve = lru_cache(RESOLVED)(os.path.realpath)  # for one run: nobody moves a folder while it lasts
        self.named: dict[str, dict[str, Any]] = {}  # by root
        self.actions: dict[tuple[Any, ...], Action] = {}
        self.inputs: dict[tuple[str, bytes], tuple[Any, bytes]] = {}

    def make(self, place: Place, call: Call) -> Draft:
        """The draft. Later calls are compared with what the caller has `earlier` learn. Secrets go before anything is kept."""
        action = self._action(place, call, self.earlier.moves(call["at"]))
        output = call["output"]
        outcome = _judged(place, call, action)
        if may_hide(action, outcome, output) and self.earlier.entries(action.keys):
            call["output"] = output
            outcome = seen_again(self.earlier, call, action, _looked_at(place, call, action))
        return _draft(call, action, outcome)

    def alone(self, place: Place, call: Call, moved: Sequence[str]) -> Row:
        """The same where it is not known what other calls said; `moved` is what was moved before it."""
        action = self._action(place, call, moved)
        output = call["output"]
        outcome = _judged(place, call, action)
        return _draft(call, action, outcome), tuple(action.keys) if may_hide(action, outcome, output) else ()

    def _action(self, place: Place, call: Call, moved: Sequence[str]) -> Action:
        """What the call is, after its secrets went. The same short input in the same folder is the same, as long as nothing was
        moved in between."""
        call["input"], asked = self._redacted(place, call["input"])
        sha = call.get("input_sha") or ""
        key = (place.root, call["cwd"], call["harness"], call["tool"], sha, asked, *moved)
        found = self.actions.get(key) if len(asked) <= SHORT else None
        if found is None:
            names = self.named.get(place.root)
            if names is None:
                names = self.named[place.root] = {**naming(place), "resolve": self.resolve, "root": place.root}
            given = {"cwd": call["cwd"], "harness": call["harness"], "input_sha": sha}
            found = identify(call["tool"], call["input"], **given, **names, renames=renames(moved) if moved else None)
            if len(asked) <= SHORT:
                if len(self.actions) >= KEPT_ACTIONS:
                    self.actions.clear()
                self.actions[key] = found
        return found

    def _redacted(self, place: Place, given: Any) -> tuple[Any, bytes]:
        """(an input without its secrets, the same as JSON); those of short inputs are kept."""
        try:
            raw = marshal.dumps(given, 2)  # without references: equal values are equal bytes
        except ValueError:
            raw = b""
        key = (place.home, raw)
        found = self.inputs.get(key) if 0 < len(raw) <= SHORT else None
        if found is None:
            clean = redactor(place).tree(given)
            found = clean, orjson.dumps(sanitize(clean))
            if 0 < len(raw) <= SHORT:
                if len(self.inputs) >= KEPT_INPUTS:
                    self.inputs.clear()
                self.inputs[key] = found
        return found


def _draft(call: Call, action: Action, outcome: Outcome) -> Draft:
    return finished_draft(call, action, outcome, {}, at=call["at"], origin="import", source="backfill")


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

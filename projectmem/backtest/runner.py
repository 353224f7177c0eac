"""Replays one repository's steps: judge, then learn, through the very functions of the hook, into an in-memory state."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from projectmem_gate.identify import identify
from projectmem_gate.model import ALLOW, Decision, Session
from projectmem_gate.moves import renames
from projectmem_gate.policy import DEFAULT, Policy
from projectmem_logs.envelope import uuid7
from projectmem_logs.redact import Redactor
from projectmem_projections.memory import MemoryState

from projectmem.backtest.model import Problems, Repository, Step
from projectmem.hook.drafts import finished_draft, proposed_draft
from projectmem.hook.finish import judged, seen_again
from projectmem.hook.judge import Unchanged, assess, tried

STREAM = "backtest"
KEY = b"backtest" * 4  # a fixed key: a backtest must give the same answer every time
FACTS: dict[str, Any] = {"head": "", "deps": {}, "files": {}, "env": {}}
NO_OBJECTION = Decision(ALLOW)
Spoke = Callable[[str, Step, Any, Decision, str], None]


@dataclass(slots=True)
class Summary:
    """What a backtest found, for the report at its end."""

    repositories: int = 0
    calls: int = 0
    judged: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    spoken: Counter[tuple[str, str]] = field(default_factory=Counter)  # (verdict, outcome of that call)
    unparsed: int = 0
    seconds: float = 0.0
    problems: Problems = field(default_factory=Problems)


class Replay:
    """The state of one repository during a replay."""

    def __init__(self, policy: Policy, summary: Summary, spoke: Spoke | None = None) -> None:
        self.policy, self.summary, self.spoke = policy, summary, spoke
        self.state = MemoryState()
        self.redactor = Redactor(KEY)
        self.seq = 0
        self.repository = ""
        self.tried: dict[str, Any] | None = None  # what the check of the running call saw
        self.where: dict[str, str] = {}  # event id -> the transcript's own name of the call

    def step(self, step: Step) -> dict[str, Any] | None:
        """Judge (if wanted) and learn (if finished) one call; its verdict line, None when none was wanted."""
        call = {**step.call, "input": self.redactor.tree(step.call["input"]), "output": self.redactor.text(step.call["output"])}
        action = identify(
            call["tool"],
            call["input"],
            root=step.root,
            cwd=step.cwd,
            harness=call["harness"],
            input_sha=call.get("input_sha") or "",  # stands in where the transcript was cut
            renames=renames(moved) if (moved := self.state.moves()) else None,
        )
        self.summary.calls += 1
        self.summary.unparsed += not action.parsed
        cursor = self.state.cursor()
        self.tried = None
        decision = self._judge(step, call, action, cursor) if step.judged else NO_OBJECTION
        outcome = self._learn(step, call, action, cursor) if step.finished else ""
        if not step.judged:
            return None
        self.summary.judged += 1
        self.summary.verdicts[decision.verdict] += 1
        if decision.verdict != ALLOW:
            self.summary.spoken[decision.verdict, outcome] += 1
            if self.spoke is not None:
                self.spoke(self.repository, step, action, decision, outcome)
        if decision.rule:
            self.summary.rules[f"{decision.verdict} {decision.rule}"] += 1
        record = self.where.get(decision.record, decision.record)
        return {**step.name, "verdict": decision.verdict, "record": record, "rule": decision.rule, "odds": decision.odds}

    def _judge(self, step: Step, call: dict[str, Any], action: Any, cursor: dict[str, int]) -> Decision:
        session = Session(call["session"], call["agent"], call["harness"], call["call"], call["turn"])
        decision, facts, records = assess(self.state, action, session, Unchanged(), self.policy, step.at)
        self.tried = tried(decision, records, facts, session, self.policy, step.at)
        if records or decision.verdict != ALLOW:
            draft = proposed_draft(
                call, action, decision, facts, session, policy_hash=self.policy.hash, now=step.at, as_of=cursor
            )
            self._apply(draft, step)
        return decision

    def _learn(self, step: Step, call: dict[str, Any], action: Any, cursor: dict[str, int]) -> str:
        outcome = seen_again(self.state, call, action, judged(call, action, {}))
        self.summary.outcomes[outcome.outcome] += 1
        if outcome.cls:
            self.summary.classes[outcome.cls] += 1
        self._apply(finished_draft(call, action, outcome, FACTS, at=step.at + 1, as_of=cursor, tried=self.tried), step)
        return outcome.outcome

    def _apply(self, draft: dict[str, Any], step: Step) -> None:
        """Wrap a draft as the log would (without bytes, salts and hashes) and fold it."""
        self.seq += 1
        seed = hashlib.sha256(f"{step.call['call']}\0{draft['kind']}".encode()).digest()
        event = {
            **draft,
            "v": 1,
            "id": uuid7(step.at, seed[:10]),
            "stream": STREAM,
            "seq": self.seq,
            "batch": self.seq,
            "ts": step.at,
            "scope": {"project": "backtest", "tenant": ""},
        }
        self.where[event["id"]] = step.call["call"]
        self.state.apply([event])


def replay(
    repositories: Sequence[Repository],
    *,
    policy: Policy = DEFAULT,
    summary: Summary,
    progress: Callable[[int, int], None] = lambda done, total: None,
    spoke: Spoke | None = None,
) -> Iterator[dict[str, Any]]:
    """The verdict lines of every repository, in order. A call that cannot be replayed is named in the summary's problems.

    spoke  is told of every call that the gate would have spoken of: repository, step, action, decision, outcome ("" unknown)
    """
    total, done = sum(len(r.steps) for r in repositories), 0
    started = time.perf_counter()
    for repository in repositories:
        run = Replay(policy, summary, spoke)
        run.repository = repository.name
        summary.repositories += 1
        for step in repository.steps:
            try:
                line = run.step(step)
            except Exception as exc:  # one bad call must not hide what the rest would show
                summary.problems.add(f"{repository.name}: {step.call['call']}: {type(exc).__name__}: {exc}")
                line = {**step.name, "verdict": ALLOW, "record": "", "rule": "error", "odds": -1} if step.judged else None
            if line is not None:
                yield line
            done += 1
            progress(done, total)
    summary.seconds += time.perf_counter() - started

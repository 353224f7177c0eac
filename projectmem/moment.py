"""One decision of the gate, told to somebody who never saw the code: proposed, matched, changed since, chance, why, release.

Used by `explain` for a decision on record, and by the bench for moments of transcripts. Pure but for its imports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from projectmem_gate.reason import bare

from projectmem import output, units
from projectmem.logview import short

if TYPE_CHECKING:
    from projectmem_gate.history import Record
    from projectmem_gate.model import Action, Decision, Session
    from projectmem_gate.policy import Policy

MEANING = {
    "allow": "says nothing: the call goes through",
    "warn": "lets the call run, and the agent reads the reason along with the result",
    "ask": "refuses the call once, with the reason; the same call repeated on purpose passes",
    "deny": "refuses the call until the record is cleared",
}
RULES = {
    "repeat": "the same action failed, and nothing that could mend it has changed",
    "repeat.identical": "the same action failed in the same way several times in a row with nothing changed",
    "repeat.costly": "the same action failed, and another failure would cost far more than one turn",
    "repeat.denied": "the same action failed in the same way so often that the policy denies it",
    "repeat.unknown": "the same action failed; whether what caused it has changed cannot be told",
    "repeat.flaky": "the same action fails now and then with nothing changed",
    "repeat.elsewhere": "the failure was seen by another machine, or its log came with the folder",
    "repeat.claimed": "the failure was reported or imported, not seen by the hook",
    "related": "the same work failed under another launcher, because something was missing",
    "fix.failed": "this edit was made before, and the verifier failed the same after it",
    "fix.undone": "this edit was made before and taken back, and the failure it was for still stands",
    "override": "the agent was asked, and repeated the call on purpose",
    "repair": "the command repairs projectmem itself, and is never stood in the way of",
    "human.deny": "a person decided that it is denied",
    "decision": "a decision that the project made covers it",
    "label.fragile": "what it touches is labelled as fragile",
    "label.protected": "what it touches is labelled as protected",
}
CLASSES = {
    "command-not-found": "the program is not there",
    "missing-dependency": "something that it needs is not installed",
    "usage": "the command itself is wrong",
    "auth": "a login or a permission is missing",
    "protected-resource": "what it wants to change is protected",
    "network": "the network or a service failed",
    "lock": "something held a lock",
    "timeout": "it took too long",
    "resource": "memory, disk or the like ran out",
    "test": "tests failed",
    "build": "a build, a linter or a type check failed",
    "runtime": "the program failed while it ran",
    "edit-mismatch": "the edit did not fit the file",
    "unknown": "nobody can tell from the output",
}
RETRY = {
    "command-not-found": "an install, or a change of the PATH",
    "missing-dependency": "an install, or a changed lock file or manifest",
    "usage": "a change of a file that it names; nothing else: the command itself is wrong",
    "auth": "a login or changed credentials",
    "protected-resource": "a login or another branch",
    "network": "some time: it counts only for a short cool-down",
    "lock": "some time, or the removal of the lock",
    "edit-mismatch": "a change of the file, or where it had not been read: reading it",
}
CHANGES = {
    "any": "ran",
    "edit": "changed",
    "read": "read",
    "install": "installed with",
    "login": "logged in with",
    "checkout": "checked out",
    "env": "environment changed:",
    "service": "started or stopped",
    "git": "git",
    "remote": "acted on a server:",
    "move": "moved",
    "build": "built with",
}
RETRY_DEFAULT = "any relevant change: of the files involved, HEAD, the dependencies or the environment"
FACTS = {
    "head": "HEAD",
    "deps": "manifests and lock files",
    "files": "the files involved",
    "tools": "the tools",
    "env": "variables",
}
CHANGES_MAX = 4


def meaning(verdict: str) -> str:
    """What a verdict does, as a sentence part."""
    return MEANING.get(verdict, "gave no verdict that is known here")


def rule(name: str) -> str:
    """What a rule means, in one indented line."""
    if not name:
        return "  no rule objected"
    return f"  rule {output.safe(name)}: {RULES.get(name.removeprefix('observe.'), 'a rule that a person made')}"


def folder(cwd: str | None) -> str:
    """Where a call started, in words."""
    return "the project's folder" if cwd in (None, "", ".") else output.safe(cwd)


def told(
    action: Action,
    decision: Decision,
    record: Record | None,
    facts: Mapping[str, Any],
    session: Session,
    policy: Policy,
    now: int,
    *,
    asks: Sequence[Any] = (),
    label: Mapping[str, Any] | None = None,
) -> list[str]:
    """The moment in lines, escaped for a terminal. `record` (with its facts) is the failure behind the decision, `label` the
    label or decision behind it; both None for a rule of the policy."""
    where = f"in {folder(action.cwd)}, with the tool {output.safe(action.tool or '?')}"
    lines = ["What was proposed", f"  {output.safe(action.text, limit=300)}", f"  {where}, {output.when(now)}", ""]
    if record is not None:
        lines += _matched(action, record, now)
        lines += _since(record, facts, session, policy, now)
        lines += _chance(decision, record, facts, session, policy, now)
    elif label is not None:
        lines += ruled(label, policy, now)
    lines += ["What the gate said", f"  {output.safe(decision.verdict)}: it {meaning(decision.verdict)}", rule(decision.rule)]
    lines += _weighed(action, decision, record, facts, session, policy, now, asks)
    if decision.reason:
        lines += ["  the agent read:"] + [f"    > {output.safe(text)}" for text in shown(decision.reason)]
    if decision.verdict == "allow":
        return lines
    return [*lines, "", *_release(decision, record, label, now)]


def _matched(action: Action, record: Record, now: int) -> list[str]:
    who = ", ".join(dict.fromkeys(output.safe(b[1] or b[0] or b[2]) for b in record.by if any(b))) or "an unnamed agent"
    code = f"exit {record.exit}" if record.exit is not None else "no exit code"
    took = f", after {output.span(record.dur_ms * 1000)}" if record.dur_ms else ""
    times = f", {units.count(record.streak, 'time')} since it last worked" if record.streak > 1 else ""
    same = "the very same call" if record.key == action.key else "the same command as one part of this call"
    if record.key not in action.keys:
        same = "the same work by another launcher"
    if record.fix:
        same = "the same edit, made before for a failure that stands"
    lines = [f"What it matched ({same})"] + [f"  {output.safe(record.text, limit=300)}"] * (record.text != action.text)
    cls = f"{output.safe(record.cls)} ({CLASSES[record.cls]})" if record.cls in CLASSES else output.safe(record.cls)
    lines.append(f"  failed {output.ago(record.at, now)}{times}: {cls}, {code}{took}; by {who}")
    lines += [f"  error: {output.safe(bare(record.sig), limit=200)}"] * bool(record.sig)
    lines += [f"  | {output.safe(text, limit=160)}" for text in shown(record.excerpt)[:3] if text.strip()]
    return [*lines, f"  recorded as {output.safe(short(record.id))}", ""]


def _since(record: Record, facts: Mapping[str, Any], session: Session, policy: Policy, now: int) -> list[str]:
    """What has changed since the failure, and which of it could have mended it."""
    from projectmem_gate import freshness

    if record.fix:  # the attempt and its undoing are no change to it
        from projectmem_gate.fixes import apart

        own, facts = len(facts.get("changes") or []), apart(facts, record.fix)
        if own > len(facts["changes"]) and not [c for c in facts["changes"] if c[2] > record.at]:
            return ["What changed since", "  Only that edit and its undoing.", ""]
    state, why = freshness.judge(record, facts or None, now, session=session.session, cooldown=policy.cooldown)
    answer = {"same": "Nothing that could mend it", "changed": "Yes", "unknown": "That cannot be told"}.get(state, state)
    lines = ["What changed since", f"  {answer}: {output.safe(why)}"]
    after = [c for c in facts.get("changes") or [] if c[2] > record.at]
    for kind, subject, at in after[:CHANGES_MAX]:
        weight = "may mend it" if freshness.matters(record, (kind, subject), session.session) else "cannot mend it"
        what = output.safe(subject) or ("a file" if kind in ("edit", "read") else "")
        lines.append("  " + " ".join(f"{CHANGES.get(kind, output.safe(kind))} {what} {output.ago(at, now)}: {weight}".split()))
    if len(after) > CHANGES_MAX:
        lines.append(f"  and {len(after) - CHANGES_MAX} more")
    compared = [f"{FACTS[name]} {facts[name]}" for name in FACTS if facts.get(name)]
    lines.append(f"  compared: {output.safe(', '.join(compared) or 'nothing')}")
    return [*lines, f"  worth trying again after: {RETRY.get(record.cls, RETRY_DEFAULT)}", ""]


def _chance(
    decision: Decision, record: Record, facts: Mapping[str, Any], session: Session, policy: Policy, now: int
) -> list[str]:
    if decision.odds < 0:
        return []
    lines = ["How likely it is to fail again", f"  {decision.odds // 10} %"]
    if record.fix:
        return [*lines[:1], f"{lines[1]}: that of an edit that did not help before", ""]
    from projectmem_gate import freshness, odds

    state, _ = freshness.judge(record, facts or None, now, session=session.session, cooldown=policy.cooldown)
    made = odds.line(record, state, now, identical=record.identical, retried=facts.get("retried"))
    cost = decision.odds * (record.dur_ms or 0) // 1000
    lines[1] += f", made of: {output.safe(made)}"
    limit = output.span(policy.margin * policy.turn_us // 1000)
    if record.dur_ms:
        took = output.span(record.dur_ms * 1000)
        lost = f"{decision.odds // 10} % of the {took} it took = {output.span(cost * 1000)} to be lost"
        lines.append(f"  {lost}; refusing it once pays from {limit}")
    else:
        lines.append(f"  how long it took is not known, so no time counts as lost; refusing it once pays from {limit}")
    return [*lines, ""]


def _weighed(
    action: Action,
    decision: Decision,
    record: Record | None,
    facts: Mapping[str, Any],
    session: Session,
    policy: Policy,
    now: int,
    asks: Sequence[Any],
) -> list[str]:
    """Why not less, and why not more."""
    if record is None:
        return []
    lines = []
    if decision.verdict != "allow":
        lines.append(f"  not less: {decision.odds // 10} % is over the {policy.floor_warn // 10} % from which it speaks")
    if record.fix:
        more = "an edit costs little and may be part of another fix: it never does more than warn"
        if decision.verdict == "allow":
            more = "it warns only of the whole of what was tried, while that failure still stands and nothing else has changed"
    elif record.key not in action.keys:
        more = "by another launcher it may work: it never does more than warn"
    else:
        from projectmem.why import stronger

        more = stronger(decision, action, record, facts, session, policy, now, asks=asks)
    return lines + [f"  not more: {more}"] * bool(more and decision.verdict != "deny")


def ruled(label: Mapping[str, Any], policy: Policy, now: int) -> list[str]:
    """A label or a decision: what it says, who made it, what it was tried on, what it does now."""
    from projectmem_gate.rules import standing

    from projectmem.rules import spelled

    does, why = standing(label, policy, now)
    who = {"human": "a person", "elsewhere": "a person on another machine"}.get(str(label.get("origin")), "an agent")
    title = "The decision behind it" if label.get("decision") else "The label behind it"
    at = f", {output.when(label['at'])}" if isinstance(label.get("at"), int) else ""
    lines = [title, f"  {output.safe(label.get('reason') or label.get('label'), limit=300)}"]
    lines.append(f"  covers {spelled(label)}; made by {who}{at}; recorded as {output.safe(short(str(label.get('id') or '?')))}")
    if label.get("decision"):
        hits = label.get("hits", -1)
        lines.append(f"  it enforces decision {output.safe(short(str(label['decision'])))}")
        lines.append(
            "  it was not tried on past calls"
            if not isinstance(hits, int) or hits < 0
            else f"  tried on past calls: it would have objected to {hits or 'none'} that went well"
            f" (up to {policy.contradicts} are accepted)"
        )
    lines.append(
        f"  wanted {output.safe(label.get('effect') or 'its default')}, does {does}{f': {output.safe(why)}' if why else ''}"
    )
    if label.get("review_at"):
        lines.append(f"  to be reviewed by {output.when(label['review_at'])[:10]}, after which it only warns")
    return [*lines, ""]


def _release(decision: Decision, record: Record | None, label: Mapping[str, Any] | None, now: int) -> list[str]:
    """How it ends, by itself and by hand."""
    lines = ["How to release it"]
    if record is not None:
        id = output.safe(short(record.id))
        when = f"by itself at {output.when(decision.expires_at)} ({output.ago(decision.expires_at, now)})"
        first = [when] if decision.expires_at else ["not by itself: it is pinned"]
        lines.append(f"  {'; '.join(first)}; as soon as the action succeeds; or once what could mend it has changed")
        lines.append(
            f"  wrong: `projectmem dispute {id}`; not now: `projectmem snooze {id} --for 2h`; replaced: `projectmem supersede`"
        )
    elif label is not None:
        id = output.safe(short(str(label.get("id") or "")))
        lines.append(
            f"  a person ends it with `projectmem rule clear {id}`"
            + (" or supersedes the decision" * bool(label.get("decision")))
        )
    elif decision.verdict != "allow":
        lines.append("  a person changes the policy (`projectmem policy path`, then `projectmem policy accept`)")
    if decision.verdict == "ask" and decision.by == "agent":
        lines.append("  meant all the same: repeat the call unchanged, and it passes once")
    return lines


def shown(text: object) -> list[str]:
    """The lines of a text; secrets go before it is cut into lines (a private key is one only as a whole)."""
    return output.hide_secrets(str(text)).splitlines()

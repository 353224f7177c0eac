"""What people decided, judged naively from gate/README.md: regular expressions, no shared code. The gate must agree with it."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from typing import Any

RANK = ["allow", "warn", "ask", "deny"]


def wild(pattern: str, text: str, any_: str = ".*", one: str = ".") -> bool:
    return bool(re.fullmatch("".join({"*": any_, "?": one}.get(c, re.escape(c)) for c in pattern), text, re.DOTALL))


def path(pattern: str, name: str) -> bool:
    if "/" not in pattern:
        return any(wild(pattern, piece) for piece in name.split("/"))
    pieces = [
        "(?:/[^/]+)*" if p == "**" else "/" + re.escape(p).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
        for p in pattern.split("/")
    ]
    return bool(re.fullmatch("".join(pieces) + "(?:/.+)?", f"/{name}"))


def matches(target: str, pattern: str, action: Any, part: Any) -> bool:
    alternatives = [p.strip() for p in pattern.split(" | ")]
    if target == "path":
        written = [s for kind, s in part.effects if kind == "edit"]
        return any(path(p, name) for p in alternatives for name in written)
    if target == "tool":
        joined = [p.replace("__", "_") for p in alternatives] if action.tool[:4] == "mcp_" and action.tool[4:5] != "_" else []
        return any(wild(p, action.tool) for p in [*alternatives, *joined])
    bare = re.sub(r"^(?:(?:[A-Za-z_]\w*=\S*|sudo) )+", "", part.text)
    texts = (part.family, part.text, bare)
    return part.kind == "sh" and any(
        f"{t} ".startswith(f"{p} ") or ("*" in p and wild(p, t)) or optioned(p, t) for p in alternatives for t in texts
    )


def optioned(pattern: str, text: str) -> bool:
    wanted, said = shlex.split(pattern), shlex.split(text.split("  # ")[0])
    said = said[: said.index("--")] if "--" in said else said
    plain = [[w for w in words if not w.startswith("-")] for words in (wanted, said)]
    asked = [w for w in wanted if w.startswith("-")]
    held = all(any(f"{w}=".startswith(f"{o}=") for w in said) for o in asked)
    return bool(wanted) and held and plain[1][: len(plain[0])] == plain[0]


def verdict(action: Any, labels: list[dict[str, Any]], policy: Any, now: int) -> tuple[str, str]:
    """(verdict, id of the label behind it) where nothing failed: the strongest, then the lowest id ("" for a policy's rule)."""
    found = []
    parts = [p for p in action.parts if not p.trivial]
    for rule in policy.rules:
        due = rule.review and now >= datetime.fromisoformat(rule.review).replace(tzinfo=UTC).timestamp() * 1_000_000
        if rule.effect != "allow" and any(matches(rule.target, rule.pattern, action, p) for p in parts):
            found.append(("warn" if due else rule.effect, ""))
    for label in labels:
        is_rule, instead = label["label"] == "rule", label["instead"]
        hit = [p for p in parts if matches(label["target"], label["pattern"], action, p)]
        hit = [p for p in hit if not (instead and matches(label["target"], instead, action, p))]
        if is_rule and label["target"] == "command":
            hit = [p for p in hit if not re.search(r"  # (.*, )?(ssh|docker|kubectl) ", p.text)]
        if not hit:
            continue
        effect = label["effect"] or ("ask" if label["label"] == "protected" else "warn")
        weak = label["origin"] != "human" or (label["review_at"] and now >= label["review_at"])
        if is_rule:
            weak = weak or not 0 <= label["hits"] <= policy.contradicts
            effect = min(effect, policy.strongest, key=RANK.index)
        found.append(("warn" if weak else effect, label["id"]))
    return min(found, key=lambda f: (-RANK.index(f[0]), f[1])) if found else ("allow", "")

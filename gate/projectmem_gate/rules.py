"""[H] What people decided: the policy's rules, labels, and decisions that a machine can check. One matcher for all three.

A label or a decision's clause is one dict, as the fold keeps it of a `label.set`: {id, origin, label, target, pattern,
instead, effect, reason, decision, hits, review_at}. `label` is fragile, protected or, for a decision, `rule`.
"""

from __future__ import annotations

from projectmem_gate import managers
from projectmem_gate.globs import path_matches, wild, writes
from projectmem_gate.model import ALLOW, ASK, DENY, VERDICTS, WARN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from projectmem_gate.model import Action, Part
    from projectmem_gate.policy import Policy

    Objection = tuple[str, str, dict[str, Any]]

DECISION = "rule"  # the label of a clause that belongs to a decision
OR = " | "  # between the alternatives of a pattern
DAY_US = 86_400_000_000
_WRAPPERS = ("ssh", "docker", "podman", "kubectl", "docker-compose", "nerdctl", "oc")  # what runs a command elsewhere
_RANK = {v: i for i, v in enumerate(VERDICTS)}


def by_people(
    action: Action, parts: Sequence[Part], policy: Policy, labels: Iterable[Mapping[str, Any]], now: int
) -> list[Objection]:
    """(verdict, rule name, what the reason needs) of every rule, label and decision that covers one of `parts`."""
    found: list[Objection] = []
    for rule in policy.rules:
        if rule.effect == ALLOW or not any(matches(rule.target, rule.pattern, action, p) for p in parts):
            continue
        due = day_us(rule.review)
        effect, held = _overdue(rule.effect, "", due, now)
        found.append((effect, f"rule.{rule.name}", {"reason": rule.reason, "pattern": rule.pattern, "held": held}))
    for label in labels:
        if not readable(label) or not any(covers(label, action, p) for p in parts):
            continue
        effect, held = standing(label, policy, now)
        name = "human.deny" if effect == DENY else "decision" if label["label"] == DECISION else f"label.{label['label']}"
        found.append((effect, name, {**label, "held": held}))
    return found


def exempt(action: Action, parts: Sequence[Part], policy: Policy) -> bool:
    """Whether rules of the policy say that recorded failures never object to any of `parts`."""
    allows = [r for r in policy.rules if r.effect == ALLOW]
    return bool(allows) and all(any(matches(r.target, r.pattern, action, p) for r in allows) for p in parts)


def standing(label: Mapping[str, Any], policy: Policy, now: int) -> tuple[str, str]:
    """(what the label or decision does now, why it does less than it was made for; "" where it does all of it).

    What an agent wrote or an import brought warns. A decision's clause warns until it was tried on past actions, and where
    it would have objected to more of what went well than the policy allows. Past its review date anything warns.
    """
    wanted = label.get("effect")
    if wanted not in (WARN, ASK, DENY):
        wanted = ASK if label.get("label") == "protected" else WARN
    if label.get("origin") == "elsewhere":
        return WARN, "not made on this machine: it only warns until a person confirms it here"
    if label.get("origin") != "human":
        return WARN, "noted by an agent: it only warns until a person confirms it"
    effect, held = wanted, ""
    if label.get("label") == DECISION:
        hits = label.get("hits")
        if type(hits) is not int or hits < 0:
            effect, held = WARN, "not tried on past actions: it only warns"
        elif hits > policy.contradicts:
            effect, held = WARN, f"it would have objected to {hits} past calls that went well: it only warns"
        elif _RANK[wanted] > _RANK[policy.strongest]:
            effect, held = policy.strongest, f"the policy lets decisions {policy.strongest} at most"
    due = label.get("review_at")
    return _overdue(effect, held if effect != wanted else "", due if type(due) is int else 0, now)


def _overdue(effect: str, held: str, due: int, now: int) -> tuple[str, str]:
    if due and now >= due:
        return WARN, f"due for review since {date(due)}: it only warns"
    return effect, held


def readable(label: Mapping[str, Any]) -> bool:
    """Whether the fields that matching needs are there."""
    return all(isinstance(label.get(name), str) for name in ("label", "target", "pattern"))


def covers(label: Mapping[str, Any], action: Action, part: Part) -> bool:
    """Whether a readable label covers this part: its pattern matches and what it asks for instead does not."""
    if not matches(label["target"], label["pattern"], action, part):
        return False
    instead = label.get("instead")
    if (
        label["target"] == "command"
        and label["label"] == DECISION
        and (_far(part) or (instead and managers.is_aside(_bare(part.text), label["pattern"])))
    ):
        return False  # a decision is about this project, not about the other end of an `ssh`, or the account at a registry
    return not (isinstance(instead, str) and instead and matches(label["target"], instead, action, part))


def matches(target: str, pattern: str, action: Action, part: Part) -> bool:
    """Does (target, pattern) cover this part of the action? Matches what is done, never what is mentioned.

    path     a glob over the files that it writes, moves or removes
    tool     a glob over the harness's tool name
    command  program, with its subcommand or more: the whole, a prefix of words, or a glob, over the family (without
             launchers), the text (with them), and the text without variables and `sudo`. Options of the pattern may stand
             among others
    Alternatives stand between ` | `.
    """
    if OR in pattern:
        return any(matches(target, one.strip(), action, part) for one in pattern.split(OR))
    if target == "path":
        return any(path_matches(_usual(pattern), _usual(p)) for p in writes(part))
    if target == "tool":
        return names_tool(pattern, action.tool)
    if target != "command" or part.kind != "sh":
        return False
    spaced = _usual(" ".join(pattern.split()))
    if spaced[:1].isupper() and "-" in spaced.partition(" ")[0]:
        spaced = spaced.lower()  # a command of PowerShell, in whatever case
    bare = _usual(_bare(part.text))
    texts = (_usual(part.text), bare, _installed(bare)) if "/" not in spaced.partition(" ")[0] else (_usual(part.text), bare)
    for text in (part.family, *texts):
        if text == spaced or text.startswith(f"{spaced} ") or ("*" in spaced and wild(spaced, text)):
            return bool(spaced)
    return bool(spaced) and any(_among_options(spaced, text) for text in texts)


def _usual(text: str) -> str:
    """A pattern or text in one spelling where shells and git know two: `~/x` for `$HOME/x`, `git checkout .` for
    `git checkout -- .` (other names behind `--` may be those of branches)."""
    if "HOME" in text:
        for home in ("\x02$HOME\x05", "${HOME}", "$HOME"):
            text = text.replace(f"{home}/", "~/").replace(f" {home} ", " ~ ")
            if text.endswith(f" {home}"):
                text = text.removesuffix(home) + "~"
    if text.startswith("git checkout -- .") and text[17:18] in ("", " "):
        text = "git checkout " + text[16:]
    return text


def _among_options(pattern: str, text: str) -> bool:
    """Does a command hold all options of the pattern, with whatever value where that names none, and begin with its other words,
    whatever other options stand between? What is handed on to another program (`docker run x --force`) is not its own."""
    wanted, said = _words(pattern), _words(text.partition("  # ")[0])
    plain = [w for w in wanted if not _option(w)]
    own: list[str] = []
    given: list[str] = []
    for word in said[: said.index("--")] if "--" in said else said:
        if not _option(word):
            given.append(word)
        elif len(given) <= len(plain) or not _hands_on(given):
            own.append(_option(word))
    asked = [_option(w) for w in wanted if _option(w)]
    if wanted[0] in _BUNDLERS:
        asked, own = _unbundled(asked), _unbundled(own)
    return given[: len(plain)] == plain and all(any(w == o or w.startswith(f"{o}=") for w in own) for o in asked)


def _option(word: str) -> str:
    """An option without its quotes, "" for another word."""
    bare = word.strip("'\"")
    return bare if bare[:1] == "-" else ""


def _unbundled(options: list[str]) -> list[str]:
    """`-fdx` as `-f -d -x`."""
    return [f"-{c}" if o[1:].isalpha() else o for o in options for c in (o[1:] if o[1:].isalpha() else "x")]


_BUNDLERS = ("git", "chmod", "chown", "chgrp", "tar", "rsync", "unzip")  # programs whose single letters stand in any order


def _hands_on(words: list[str]) -> bool:
    return words[0] in _INTERPRETERS or (words[0] in _WRAPPERS and words[1:2] in (["run"], ["exec"]))


_INTERPRETERS = (
    "python",
    "node",
    "ruby",
    "perl",
    "php",
    "bash",
    "sh",
    "zsh",
    "deno",
    "npx",
    "uvx",
    "pnpx",
    "bunx",
    "xargs",
    "env",
)


def _words(text: str) -> list[str]:
    """The words of a canonical command, still in their quotes: what is quoted is one word, and no option by what is in it."""
    words, quote, skip = [""], "", False
    for c in text:
        if c == " " and not quote and not skip:
            words.append("")
            continue
        words[-1] += c
        if skip:
            skip = False
        elif c == "\\" and quote != "'":
            skip = True
        elif quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
    return [w for w in words if w]


def names_tool(pattern: str, tool: str) -> bool:
    """Does a glob cover a tool's name? Gemini CLI's `mcp_server_tool`, which does not tell the two apart, is covered by what
    covers `mcp__server__tool`."""
    joined = tool.startswith("mcp_") and not tool.startswith("mcp__")
    return wild(pattern, tool) or (joined and wild(pattern.replace("__", "_"), tool))


def _bare(text: str) -> str:
    """A command's text from its program on: `CI=1 sudo npx jest` -> `npx jest`."""
    while True:
        word, _, rest = text.partition(" ")
        name, sign, _ = word.partition("=")
        if not rest or not (word == "sudo" or (sign and name.isidentifier())):
            return text
        text = rest


def _installed(text: str) -> str:
    """A command's text with the name of its program alone, where that lies in a folder of programs: `bin/rails db:reset`,
    `node_modules/.bin/eslint src`."""
    word, gap, rest = text.partition(" ")
    folder, _, name = word.rpartition("/")
    return name + gap + rest if folder.rsplit("/", 1)[-1] in ("bin", ".bin", "Scripts") and name else text


def _far(part: Part) -> bool:
    """Does it run at the other end of an `ssh`, or in a container? `gh pr merge` acts far away, but runs here."""
    program = part.family.partition(" ")[0]
    return any(kind == "remote" and (subject in _WRAPPERS or subject != program) for kind, subject in part.effects)


def day_us(text: str) -> int:
    """Midnight UTC of an ISO date in microseconds, 0 for anything else (proleptic Gregorian, without `datetime`)."""
    pieces = text.split("-") if isinstance(text, str) else []
    if len(pieces) != 3 or not all(p.isascii() and p.isdigit() for p in pieces):
        return 0
    year, month, day = (int(p) for p in pieces)
    year -= month <= 2
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    era = year // 400
    of_era = (year - era * 400) * 365 + (year - era * 400) // 4 - (year - era * 400) // 100 + of_year
    return (era * 146_097 + of_era - 719_468) * DAY_US


def date(us: int) -> str:
    """The ISO date (UTC) of a time: the inverse of `day_us`."""
    days = us // DAY_US + 719_468
    era = days // 146_097
    of_era = days - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return f"{year + era * 400 + (month <= 2):04}-{month:02}-{of_year - (153 * shifted + 2) // 5 + 1:02}"

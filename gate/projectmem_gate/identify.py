"""[H] The one entrance: what a tool call *is*, for recording and checking alike. See ../IDENTITY.md.

Pure and total: any tool name and any JSON value give an Action; what cannot be understood is matched verbatim.
"""

from __future__ import annotations

from projectmem_gate import calls, file_calls, payloads, scripted, tools, wrappers
from projectmem_gate.commands import build, feeds
from projectmem_gate.hints import pick
from projectmem_gate.keys import key_of, text_digest
from projectmem_gate.model import Action, Part
from projectmem_gate.paths import Roots
from projectmem_gate.redirects import NONE
from projectmem_gate.scope import Scope
from projectmem_gate.shell import Walk
from projectmem_gate.words import clean, is_static
from projectmem_gate.wrappers import SHELLS, basename

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from projectmem_gate.scope import Command

MAX_INPUT = 65_536  # characters; a longer command is matched by its hash
MAX_CALLS = 16  # of one code-mode script
_TEXT_CAP = 400
_TRIMMED = "...[+"


def identify(
    tool: str,
    tool_input: Any,
    *,
    root: str,
    cwd: str,
    harness: str = "",
    resolve: Callable[[str], str] | None = None,
    input_sha: str = "",
    worktrees: Sequence[str] = (),
    fold_case: bool = False,
    fold_unicode: bool = False,
    renames: Mapping[str, str] | None = None,
    roots: Roots | None = None,
) -> Action:
    """The canonical Action of a tool call.

    tool, tool_input  as the harness names and sends them (any JSON value; a JSON string of an object is read too)
    root, cwd         absolute, either operating system's spelling; worktrees: further roots of the same project
    resolve           absolute path -> real path, for symlinks; None when the disk must not be asked
    input_sha         hash of the whole input, used where a transcript trimmed a string
    fold_case, fold_unicode  the file system ignores case / Unicode normal form
    renames           canonical name now -> canonical name before, of what `git mv` moved on record
    roots             what root, worktrees and all the others but cwd and input_sha come to, where the caller has it (known.py)
    """
    tool = tool if isinstance(tool, str) else str(tool)
    try:
        if roots is None:
            roots = Roots(root, worktrees, fold_case, fold_unicode, resolve, renames)
        return _identify(
            tool, tool_input, roots, roots.name(cwd or root, real=True), input_sha if isinstance(input_sha, str) else ""
        )
    except Exception:  # identity must never cost the call: record it as not understood
        return _verbatim(tool, tool_input, input_sha if isinstance(input_sha, str) else "")


def _verbatim(tool: str, tool_input: Any, sha: str) -> Action:
    try:
        body = sha or calls.canonical(tool_input)
    except Exception:
        body = "?"
    part = Part(key_of("verbatim", tools.plain(tool), body), "other", tools.plain(tool)[:80] or "other", f"{tool} {body}"[:400])
    return Action(tool, "other", ".", part.key, part.text, (part,), (), False)


def _identify(tool: str, tool_input: Any, roots: Roots, cwd: str, sha: str) -> Action:
    kind = tools.kind_of(tool)
    if kind == "other" and isinstance(tool_input, dict) and (passed := calls.relayed(tool, tool_input)) is not None:
        tool, tool_input, kind = *passed, "mcp"
    if isinstance(tool_input, str) and tool_input[:1] == "{" and kind != "other":
        import json

        try:
            tool_input = json.loads(tool_input)
        except ValueError:
            pass
    if isinstance(tool_input, (str, list)):
        tool_input = (
            {("patch" if kind == "patch" else "command"): tool_input} if kind in ("sh", "patch") else {"input": tool_input}
        )
    fields: dict[str, Any] = tool_input if isinstance(tool_input, dict) else {}
    away = tools.escalated(fields)
    trimmed = sha if sha and _is_trimmed(fields) else ""
    if kind == "sh":
        workdir = tools.text(fields, tools.WORKDIR)
        here = roots.name(workdir, cwd, real=True) if workdir else cwd
        command = _command(tools.first(fields, tools.COMMAND))
        if command is not None:
            return _limited(_shell(tool, command, roots, here, away, trimmed), tools.limit(fields))
        kind = "other"
    parts: list[Part] = []
    if kind == "mcp" and (local := calls.file_tool(tool, fields)):
        parts = file_calls.parts_of(local, fields, roots, cwd, away, trimmed)
        parts = parts if all(path[:1] not in ("/", "~", "?") for part in parts for path in part.paths) else []
        kind = local if parts else kind
    if kind == "mcp":
        parts = [calls.mcp_part(tool, tool_input, away, trimmed)]
    elif kind == "fetch" and tools.text(fields, tools.URL):
        parts = [calls.fetch_part(fields, away)]
    elif not parts and kind in ("edit", "write", "patch", "notebook"):
        parts = file_calls.parts_of(kind, fields, roots, cwd, away, trimmed)
        kind = {"notebook": "edit"}.get(kind, kind)
    elif kind == "code":
        found = _code(tool, fields, roots, cwd, away, trimmed)
        if found is not None:
            return found
    if (not parts and kind in ("read", "search")) or (not parts and kind == "edit" and fields.get("command") == "view"):
        kind = "read" if kind == "edit" else kind
        parts = [calls.read_part(tool, kind, fields, roots, cwd, away)]
    if not parts:
        kind = "other"
        parts = [calls.other_part(tool, tool_input, trimmed, away)]
        parts[0].effects = tuple(("edit", roots.name(p, cwd, real=True)) for p in scripted.patched(tool_input))
    return _action(tool, parts[0].kind if len(parts) == 1 else kind, cwd, parts, ["&&"] * (len(parts) - 1), True, away)


def _is_trimmed(value: Any, depth: int = 0) -> bool:
    if isinstance(value, str):
        return _TRIMMED in value
    if depth > 6:
        return False
    if isinstance(value, dict):
        return any(_is_trimmed(v, depth + 1) for v in value.values())
    return isinstance(value, list) and any(_is_trimmed(v, depth + 1) for v in value)


def _action(tool: str, kind: str, cwd: str, parts: list[Part], joins: list[str], parsed: bool, away: bool) -> Action:
    serious = [i for i, p in enumerate(parts) if not p.trivial] or list(range(len(parts)))
    if len(serious) == 1:
        key = parts[serious[0]].key
        text = parts[serious[0]].text
    else:
        fields, shown = ["chain", parts[serious[0]].key], parts[serious[0]].text
        for at in range(1, len(serious)):
            before, i = serious[at - 1], serious[at]
            between = {*joins[before:i]}
            operator = between.pop() if len(between) == 1 else ";"
            fields += [operator, parts[i].key]
            shown += ("; " if operator == ";" else f" {operator} ") + parts[i].text
        key, text = key_of(*fields), shown
    return Action(tool, kind, cwd, key, text[:_TEXT_CAP], tuple(parts), tuple(joins), parsed, away)


# -- shell ---------------------------------------------------------------------------------------------------------


def _limited(action: Action, limit: int) -> Action:
    """The action under the limit of its call: the tighter one of two holds, and in the background there is none."""
    if limit:
        for part in action.parts:
            if limit < 0 or part.limit == 0:
                part.limit = limit
            elif part.limit > 0:
                part.limit = min(part.limit, limit)
    return action


def _command(value: Any) -> str | list[str] | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        if basename(value[0]) in SHELLS and len(value) == 3 and value[1][:1] == "-" and "c" in value[1]:
            return str(value[2])
        return value
    return None


def _shell(tool: str, command: str | list[str], roots: Roots, cwd: str, away: bool, sha: str) -> Action:
    text = command if isinstance(command, str) else " ".join(command)
    text = text.replace("\r\n", "\n").strip()
    if tools.plain(tool) in ("powershell", "pwsh"):
        text = wrappers.of_powershell(text)
    if len(text) > MAX_INPUT:
        return _whole(tool, text[:_TEXT_CAP], sha or text_digest(text), roots, cwd, away, False)
    walk, scope = Walk(roots), Scope(cwd)
    if isinstance(command, str):
        walk.run(_without_secrets(text), scope)
    else:  # an argument vector: no shell looks at it
        payloads.command(walk, [clean(w) for w in command], {}, scope, NONE, [])
    if sha or not walk.parsed or not walk.commands or not walk.complete:
        return _whole(tool, text, sha, roots, cwd, away, not sha and walk.parsed, walk)
    parts = _parts(walk, roots, away)
    if "<secret:" in text:
        for part in parts:
            part.text = _with_marks(part.text, text)
    hunks = _patched(walk.commands[-1], roots, away)
    joins = walk.joins + ["&&"] * (len(hunks) - 1)
    return _action(tool, "sh", cwd, [*parts[:-1], *hunks] if hunks else parts, joins, True, away)


def _patched(item: Command, roots: Roots, away: bool) -> list[Part]:
    """The hunks of `apply_patch`, `git apply` or `patch` that is given its patch in place, [] for anything else."""
    argv = item.argv
    name = argv[0] if argv else ""
    if name not in ("apply_patch", "applypatch", "git", "patch") or item.remote or item.under or item.inside or item.env:
        return []
    if name == "git" and (argv[1:2] != ["apply"] or any(w in ("--check", "-R", "--reverse", "--stat", "--cached") for w in argv)):
        return []
    if name == "patch" and any(w in ("-R", "--reverse", "--dry-run") for w in argv):
        return []
    text = item.stdin[1] if item.stdin[0] == "text" else argv[1] if name[:5] == "apply" and len(argv) == 2 else ""
    if not text or not is_static(text):
        return []
    return file_calls.parts_of("patch", {"patch": text}, roots, item.cwd, away, "")


def _parts(walk: Walk, roots: Roots, away: bool) -> list[Part]:
    """The parts of the commands that were found. `export` counts as a change only where it is all there is: each call has
    a shell of its own in most harnesses, and what follows in the same call holds the variable in its key."""
    parts: list[Part] = []
    keys: list[str] = []
    sent: set[str] = set()  # where output went so far
    waited = any(item.argv[:1] == ["wait"] for item in walk.commands)
    for item in walk.commands:
        part = build(item, keys, walk.commands, roots, away)
        part.limit = 0 if item.limit < 0 and waited else item.limit
        parts.append(part)
        keys.append(part.key)
        if item.stdin[0] == "pipe" and feeds(walk.commands[int(item.stdin[1])]):
            parts[int(item.stdin[1])].trivial = True
        if _shows_output(item, sent, roots):
            part.trivial = True
        elif not part.trivial and part.kind == "sh":
            sent.update(roots.name(target, item.cwd) for _, target in item.writes if is_static(target))
    if not all(p.trivial for p in parts):
        for part in parts:
            if part.trivial:
                part.effects = tuple(e for e in part.effects if e[0] != "env")
    return parts


def _shows_output(item: Command, sent: set[str], roots: Roots) -> bool:
    """Does it only show what an earlier command of this call wrote (`make > log 2>&1; tail log`)? Then it is a filter."""
    if not sent or not item.argv or item.argv[0] not in _SHOWING or item.writes or item.remote:
        return False
    return any(is_static(w) and w[:1] != "-" and roots.name(w, item.cwd) in sent for w in item.argv[1:])


_SHOWING = ("cat", "head", "tail", "grep", "egrep", "rg", "wc", "less")


def _without_secrets(text: str) -> str:
    """Redaction marks `<secret:1a2b>` are words, not redirections."""
    if "<secret:" not in text:
        return text
    out, at = [], 0
    while True:
        i = text.find("<secret:", at)
        j = text.find(">", i) if i >= 0 else -1
        if i < 0 or j < 0 or j - i > 80:
            out.append(text[at:])
            return "".join(out)
        out.append(text[at:i] + "secret_" + text[i + 8 : j])
        at = j + 1


def _with_marks(shown: str, source: str) -> str:
    """A label with the marks of `source` as the log has them: otherwise they would be taken for secrets, and marked again."""
    at = shown.find("secret_")
    while at >= 0:
        end = at + 7
        while end < len(shown) and shown[end] in "0123456789abcdef":
            end += 1
        mark = f"<secret:{shown[at + 7 : end]}>"
        if end > at + 7 and mark in source:
            shown = shown[:at] + mark + shown[end:]
        at = shown.find("secret_", at + 7)
    return shown


def _whole(tool: str, text: str, sha: str, roots: Roots, cwd: str, away: bool, parsed: bool, walk: Walk | None = None) -> Action:
    """A command matched verbatim (or by the hash of its whole text); what a partial tree shows of its effects is kept."""
    effects: dict[tuple[str, str], None] = {}
    paths: dict[str, None] = {}
    family = ""
    for part in _parts(walk, roots, away) if walk is not None else ():
        effects.update(dict.fromkeys(part.effects))
        paths.update(dict.fromkeys(part.paths))
        family = family or ("" if part.trivial else part.family)
    if not parsed and not effects:
        effects[("any", "shell")] = None
    fields = ["sh", cwd, "verbatim", sha or text] + (["escalated"] if away else [])
    family = family or " ".join(text.split()[:1])[:80] or "shell"
    words = () if sha or "secret" in text else pick(sorted(set(text[:4096].split()[:-1]), key=lambda w: (-len(w), w))[:32])
    part = Part(key_of(*fields), "sh", family, text[:_TEXT_CAP], words, tuple(paths)[:32], tuple(effects)[:32], not text)
    return Action(tool, "sh", cwd, part.key, part.text, (part,), (), parsed, away)


def _code(tool: str, fields: dict[str, Any], roots: Roots, cwd: str, away: bool, sha: str) -> Action | None:
    """Code mode: the calls that the script makes with literal arguments, one after the other; None when there are none."""
    source = tools.text(fields, ("input", "code", "source"))
    actions = [_identify(name, given, roots, cwd, "") for name, given in scripted.calls(source)[:MAX_CALLS]]
    if not actions:
        return None
    if len(actions) == 1 and not sha:
        one = actions[0]
        return Action(tool, one.kind, one.cwd, one.key, one.text, one.parts, one.joins, one.parsed, one.escalated)
    parts = [p for a in actions for p in a.parts]
    joins: list[str] = []
    for action in actions:
        joins += ([";"] if joins or action is not actions[0] else []) + list(action.joins)
    whole = _action(tool, "sh", cwd, parts, joins, True, away)
    if sha:
        whole.key = key_of("code", cwd, sha)
    return whole

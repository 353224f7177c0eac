"""Doctor's look at every harness's hooks: where they are, whether they are whole, whether the harness would run them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from projectmem.place import Place
from projectmem.serve import settings as resident
from projectmem.setup import claude_settings, extensions, gitignore, hook_lists, switches, trust
from projectmem.setup import plugin as plugins
from projectmem.setup.command import is_ours
from projectmem.setup.harnesses import CLAUDE, HARNESSES, HERE_ONLY, Harness
from projectmem.setup.hook_lists import SettingsError
from projectmem.setup.init import below, registered_below, written_plugins
from projectmem.setup.trial import Trial
from projectmem.units import count

OK, NOTE, FAIL = "ok", "note", "fail"


class Check:
    """One finding.  status ok | note (works, but look at it) | fail;  remedy: what to do, "" where nothing is to be done

    group  the harness whose hook it is about, "" for others: one line is enough for those of a group that are well
    """

    __slots__ = ("detail", "group", "name", "remedy", "status")

    def __init__(self, name: str, status: str, detail: str, remedy: str = "", group: str = "") -> None:
        self.name, self.status, self.detail, self.remedy, self.group = name, status, detail, remedy, group

    def to_data(self) -> dict[str, str]:
        """The finding as JSON data."""
        return {slot: getattr(self, slot) for slot in ("name", "status", "detail", "remedy")}


def files(name: str, harness: Harness, place: Place) -> list[Path]:
    """The files that the harness reads hooks from for this work tree, the most particular first."""
    found = [harness.path(place), harness.path(place, user=True)]
    if name == CLAUDE:
        found.insert(1, found[0].with_name("settings.json"))
        found += [folder / plugins.HOOKS for folder in written_plugins(place)]
    installed = extensions.found(name, place)
    found = [path for path in found if path not in [one.file for one in installed]]
    found += [one.file for one in installed if one.runs_ours]
    return found + [path for path, whose in registered_below(place).items() if whose == name]


def holders(name: str, harness: Harness, place: Place) -> list[Path]:
    """Those of them that our hooks are in. A file that cannot be read holds none (`settings` says so)."""
    found = []
    for path in files(name, harness, place):
        try:
            if harness.registered(path):
                found.append(path)
        except SettingsError:
            continue
    return found


def settings(place: Place, start: str = "") -> Iterator[Check]:
    """Every settings file: readable, whole, from this installation, once; and read where `start` is."""
    anywhere, without = False, []
    for name, harness in HARNESSES.items():
        for path in files(name, harness, place):
            yield from _problems(name, harness, path)
        yield from _extensions(name, harness, place)
        held = holders(name, harness, place)
        anywhere = anywhere or bool(held)
        for path in held:
            yield from _complete(name, harness, place, path)
        for text in switches.off(name, harness, place) if held else ():
            yield Check("settings", FAIL, text, "take that out of the file")
        at_once = [path for path in held if path not in registered_below(place)]  # those are read alone
        if len(at_once) > 1:
            what = f"every call of {harness.title} runs the hooks {len(at_once)} times: {', '.join(map(str, at_once))}"
            yield Check("settings", NOTE, what, _out_of_all_but_one(name, place))
        folder = below(place, start) if start and name in HERE_ONLY and at_once == [harness.path(place)] else ""
        if folder and Path(place.root) / folder / harness.project not in held:
            what = f"{harness.title} started in {folder} reads no hooks: it looks only in the folder that it is started in"
            yield Check("settings", NOTE, what, f"run `projectmem init --harness {name}` here, or once with --user")
        if held and held[0] == harness.path(place):
            yield from _excluded(place, harness, held[0])
        for doubt in trust.doubts(name, place, held):
            yield Check("trust", FAIL if doubt.decided else NOTE, doubt.detail, doubt.remedy)
        if not held and harness.installed():
            without.append((name, harness.title))
    if anywhere and without:
        title = ", ".join(title for _, title in without)
        be = "is" if len(without) == 1 else "are"
        what = f"{title} {be} installed, and the hooks are not in {'its' if len(without) == 1 else 'their'} settings"
        yield Check("settings", NOTE, what, _init(*(name for name, _ in without)))
    if not anywhere:
        yield Check("settings", FAIL, "the hooks are in no settings file that a harness reads here", "run `projectmem init`")


def _extensions(name: str, harness: Harness, place: Place) -> Iterator[Check]:
    """Plugins that cannot do what they are there for, or that are another program's of our name."""
    for one in extensions.found(name, place):
        called = f"the plugin {one.id} of {harness.title} ({one.file})"
        if not one.whose:
            state = "starts" if one.enabled else "is disabled and starts"
            what = f"{called} {state} a `projectmem` that is not this one: its records are not the gate's"
            yield Check("plugin", NOTE, what, "take it out, or keep it knowing that the two have nothing to do with each other")
        elif not one.enabled:
            if not holders(name, harness, place):
                what = f"{called} holds the hooks and is disabled, so they do not run"
                yield Check("plugin", NOTE, what, f"enable it in {harness.title}, or {_init(name)}")
        elif one.whose != name:
            title = HARNESSES[one.whose].title if one.whose in HARNESSES else "another harness"
            what = f"{called} has hooks made for {title}, whose answers {harness.title} may not obey"
            yield Check("plugin", FAIL, what, f"take it out there; {_init(name)} writes the right ones")


def _out_of_all_but_one(name: str, place: Place) -> str:
    own = "take them out of all but one: `projectmem uninit`, with `--user` for your own"
    ids = [one.id for one in extensions.found(name, place) if one.runs_ours]
    return f"{own}; or take out the plugin {', '.join(ids)}" if ids else own


def _init(*names: str) -> str:
    return f"run `projectmem init {' '.join(f'--harness {name}' for name in names)}`"


def _problems(name: str, harness: Harness, path: Path) -> Iterator[Check]:
    if name == CLAUDE:
        for text in claude_settings.problems(path):
            yield Check("settings", FAIL, text, "mend the file")
        return
    try:
        harness.registered(path)
    except SettingsError as exc:
        yield Check("settings", FAIL, str(exc), "mend the file")


MILLISECONDS = ("gemini", "qwen")  # where the others count seconds


def _weakened(name: str, harness: Harness, path: Path) -> Iterator[Check]:
    """Hooks that are registered and cannot do their work: a matcher that leaves calls out, a timeout that ends them too early (a
    number of seconds where the harness counts milliseconds, say). The harness lets the call go on in both cases."""
    wanted = harness.groups() if harness.groups else {}
    data, _ = hook_lists.read(path, comments=harness.comments)
    for event, groups in hook_lists.hooks_of(path, data).items():
        for group in groups if event in wanted else []:
            ours = [hook for hook in hook_lists.all_hooks([group]) if is_ours(hook)]
            matcher = group.get("matcher") if ours else None
            if name != CLAUDE and matcher not in (None, "", "*", ".*"):
                what = f"{path}: the matcher of {event} is {matcher!r}, so the gate sees only part of the calls"
                yield Check("settings", FAIL, what, _init(name))
            meant = hook_lists.all_hooks([wanted[event]])[0].get("timeout", 0)
            for given in [hook["timeout"] for hook in ours if "timeout" in hook]:
                if isinstance(given, bool) or not isinstance(given, (int, float)):
                    what = f"{path}: the timeout of {event} is {given!r} and no number, so the hook may not run"
                    yield Check("settings", FAIL, what, _init(name))
                elif given < meant:
                    unit = "ms" if name in MILLISECONDS else "s"
                    what = f"{path}: the timeout of {event} is {given} {unit} where {meant} {unit} are meant"
                    yield Check("settings", FAIL, f"{what}: a hook that takes longer is ended and the call goes on", _init(name))


def _complete(name: str, harness: Harness, place: Place, path: Path) -> Iterator[Check]:
    if harness.groups:
        yield from _weakened(name, harness, path)
    if name == CLAUDE:
        yield from _claude(place, path)
        return
    missing = sorted(set(harness.groups() if harness.groups else ()) - set(harness.commands(path)))
    if missing:
        yield Check("settings", FAIL, f"{path} lacks the hooks of {', '.join(missing)}", _init(name))
        return
    made, text, _ = harness.planned(path)
    if made != text:
        what = f"{path}: the hooks were written by another installation or version"
        yield Check("settings", NOTE, what, f"run `projectmem init --harness {name}` with the one you want")
    else:
        yield Check("settings", OK, f"hooks of {harness.title} in {path}")


def _claude(place: Place, path: Path) -> Iterator[Check]:
    ours = claude_settings.registered(path)
    posted = any(hook.get("type") == "http" for hooks in ours.values() for hook in hooks)
    wanted = claude_settings.entries(place.home, resident.read(place.home) if posted else None)
    missing = [event for event in wanted if event not in ours]
    stale = [event for event, group in wanted.items() if event in ours and group["hooks"] != ours[event]]
    if missing:
        yield Check("settings", FAIL, f"{path} lacks the hooks of {', '.join(missing)}", "run `projectmem init`")
    if stale:
        what = f"{path}: the hooks of {', '.join(stale)} were written by another installation or version"
        yield Check("settings", NOTE, what, "run `projectmem init` with the one you want")
    if not missing and not stale:
        yield Check("settings", OK, f"hooks of {count(len(ours), 'event')} in {path}")


def _excluded(place: Place, harness: Harness, path: Path) -> Iterator[Check]:
    exclude = gitignore.exclude_file(place)
    if exclude is None or gitignore.tracked(place, path):
        return
    text = exclude.read_text(encoding="utf-8", errors="surrogateescape") if exclude.exists() else ""
    if not set(harness.ignored()) <= set(text.splitlines()):
        yield Check("settings", NOTE, f"{path} is not in {exclude} and may be committed", "run `projectmem init`")


def fired(place: Place) -> Iterator[Check]:
    """Run the registered commands as the harness would, in a scratch project, and look at what they did."""
    for name, harness in HARNESSES.items():
        for path in holders(name, harness, place):
            commands = {event: found[0] for event, found in harness.commands(path).items() if found}
            with Trial(commands, name) as trial:
                findings = list(trial.findings())
                if len({f.detail for f in findings if not f.held}) == 1 and not any(f.held for f in findings):
                    what = f"none of the hooks in {path} runs: {findings[0].detail}"
                    yield Check(f"fires: {name}", FAIL, what, f"{_init(name)} again", harness.title)
                    continue
                for finding in findings:
                    title = f"fires: {finding.event}" if name == CLAUDE else f"fires: {name} {finding.event}"
                    remedy = "" if finding.held else f"{_init(name)} again"
                    yield Check(title, OK if finding.held else FAIL, finding.detail, remedy, harness.title)

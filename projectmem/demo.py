"""The main job, end to end, in a temporary repository: an agent fails, the next one is told before it repeats, mends, goes on.

A scripted agent stands in for the model; everything else is real: `projectmem init`, the hook processes exactly as the
harness starts them from its settings file, the log, the replay. No network, nothing outside the temporary folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from typing import Any

from projectmem import output
from projectmem.errors import ProjectmemError
from projectmem.setup.command import words_of
from projectmem.units import count

WIDTH = 98
TOLD_MS = 120_000  # what the scripted harness says a failing build took: only then is a refusal worth a turn
BROKEN = "def gross(net, rate):\n    return net * (1 + rate\n"
MENDED = "def gross(net, rate):\n    return net * (1 + rate)\n"
BUILD = """import sys
for name in ("price.py",):
    try:
        compile(open(name).read(), name, "exec")
    except SyntaxError as error:
        print(f"{name}:{error.lineno}: error: {error.msg}")
        sys.exit("build failed")
print("build ok")
"""
COMMAND = "python build.py"


class Expectation(ProjectmemError):  # noqa: N818 - it names what was expected
    """The demo did not go as it must."""


def run_demo(say: Callable[[str], None], paint: output.Paint, *, keep: bool = False) -> None:
    """Play the demo, one call of `say` per line. Raises Expectation where something did not happen as it must.

    keep  leave the temporary repository for a look around.
    """
    folder = tempfile.mkdtemp(prefix="projectmem-demo-")
    try:
        _play(folder, say, paint)
        if keep:
            say(f"   left for you to look around: {folder}/shop")
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _play(folder: str, say: Callable[[str], None], paint: output.Paint) -> None:
    world = World(folder)
    say(paint("bold", "projectmem demo: a failing build, and a memory that agents must pass through"))
    say(paint("dim", "A scripted agent in a temporary repository; the hooks, the log and the gate are the real ones."))
    world.init()

    say("")
    say(paint("bold", "1  A session runs the build; it fails, and fails again"))
    first = world.session("first")
    answer, code, text = first.shell(COMMAND)
    _expect(answer is None, "nothing is known yet, so the gate must be silent before the first build", answer)
    _expect(code == 1, "the build of the broken file must fail", text)
    _shown(say, text, code)
    first.read("price.py")
    answer, code, _ = first.shell(COMMAND)
    _expect(bool(_spoken(answer)), "the gate must speak when the same build runs again with nothing changed", answer)
    say(f"   $ {COMMAND}     exit {code}; {paint('yellow', 'with the result, the agent reads that it repeated a failure')}")
    first.end()

    say("")
    say(paint("bold", "2  Another session, with no memory of the first, is about to run the same build"))
    second = world.session("second")
    other = "python3  ./build.py 2>&1 | tail -20"
    answer = second.before("Bash", {"command": other})
    spoken = _spoken(answer)
    _expect(bool(spoken), "the gate must speak before the same build runs again with nothing changed", answer)
    refused = ((answer or {}).get("hookSpecificOutput") or {}).get("permissionDecision") == "deny"
    _expect(refused, "a build that takes minutes and failed twice must be refused once", answer)
    say(f"   $ {other}" + paint("dim", "      (other words, same action)"))
    say(paint("yellow", f"   The gate {_landed(answer)}:"))
    for line in _wrapped(spoken):
        say(f"   {paint('yellow', '|')} {output.safe(line)}")
    second.refused("Bash", {"command": other}, answer)

    say("")
    say(paint("bold", "3  So it mends the file first, and the gate stays out of the way"))
    answer = second.edit("price.py", BROKEN, MENDED)
    _expect(answer is None, "the gate must be silent before the edit that mends the file", answer)
    say(f"   edited price.py       {paint('green', 'gate silent')}")
    answer, code, text = second.shell(COMMAND)
    _expect(answer is None, "the gate must be silent when the file that failed has changed", answer)
    _expect(code == 0, "the build of the mended file must succeed", text)
    say(f"   $ {COMMAND}     {paint('green', 'gate silent')}    {output.safe(text.strip())}, exit 0")
    second.end()
    third = world.session("third")
    answer = third.before("Bash", {"command": COMMAND})
    _expect(answer is None, "a success must clear the failure for every later session", answer)
    say(f"   A third session: $ {COMMAND}     {paint('green', 'gate silent')} (the success cleared the record)")

    say("")
    say(paint("bold", "4  Every decision can be recomputed, and tampering shows"))
    _audit(world, say, paint)
    say("")
    say("Next: `projectmem init` in your own repository; `projectmem failures` and `explain ID` to look in.")


def _audit(world: World, say: Callable[[str], None], paint: output.Paint) -> None:
    from projectmem_logs.verify import verify

    from projectmem.replay import DIFFERENT, SAME, replay_log

    report = replay_log(world.home, root=world.repo, verify=True)
    decided, passed = sum(report.decisions.values()), sum(report.passed.values())
    _expect(decided > 0, "at least one decision must be on record", report.to_data())
    _expect(report.ok and report.decisions[SAME] == decided, "every decision must come out the same", report.to_data())
    _expect(report.passed[DIFFERENT] == 0 and passed > 0, "every silent pass must come out the same", report.to_data())
    whole = verify(world.home)
    _expect(bool(whole.ok), "the log must verify", whole.problems)
    seen, again = count(report.events, "event"), count(decided + passed, "decision")
    say(f"   replay --verify: {seen}, {again} recomputed, all the same byte for byte")
    copy = os.path.join(world.folder, "copy")
    shutil.copytree(world.home, copy)
    _flip_one_byte(copy)
    damaged = verify(copy)
    _expect(not damaged.ok, "a changed byte in the log must not go unnoticed", damaged.problems)
    say(f"   verify: the log is {paint('green', 'whole')}")
    detail = output.safe(damaged.problems[0].detail, limit=60)
    say(f"   the same with one byte changed: {paint('red', detail)}")


def _flip_one_byte(home: str) -> None:
    log = os.path.join(home, "log")
    stream = os.path.join(log, sorted(os.listdir(log))[0])
    path = os.path.join(stream, sorted(os.listdir(stream))[0])
    with open(path, "rb") as file:
        text = file.read()
    with open(path, "wb") as file:
        file.write(text.replace(b"build failed", b"build passed", 1) if b"build failed" in text else text[:-9] + b"0" + text[-8:])


def _expect(held: bool, what: str, instead: object) -> None:
    if not held:
        shown = output.safe(instead if isinstance(instead, str) else output.to_json(instead, indent=None), limit=600)
        raise Expectation(f"the demo did not go as it must: {what}. Instead: {shown}. `projectmem doctor` may tell more")


def _spoken(answer: dict[str, Any] | None) -> str:
    specific = (answer or {}).get("hookSpecificOutput") or {}
    return str(specific.get("permissionDecisionReason") or specific.get("additionalContext") or "")


def _landed(answer: dict[str, Any] | None) -> str:
    decision = ((answer or {}).get("hookSpecificOutput") or {}).get("permissionDecision")
    if decision == "deny":
        return "refuses it once, before it runs, and the agent reads"
    return "asks a person, who reads" if decision == "ask" else "speaks up; the agent reads"


def _shown(say: Callable[[str], None], text: str, code: int) -> None:
    say(f"   $ {COMMAND}")
    for line in text.strip().splitlines()[:4]:
        say(f"   {output.safe(line, limit=WIDTH - 4)}")
    say(f"   exit {code}, after {TOLD_MS // 60_000} minutes as this story tells it")


def _wrapped(text: str) -> list[str]:
    return [row for line in text.strip().splitlines() for row in textwrap.wrap(line, WIDTH - 5) or [""]][:14]


class World:
    """The temporary repository, and an environment that holds nothing of the person's own."""

    def __init__(self, folder: str) -> None:
        self.folder, self.repo = folder, os.path.join(os.path.realpath(folder), "shop")
        self.home = os.path.join(self.repo, ".git", "projectmem")
        git = shutil.which("git")
        if git is None:
            raise ProjectmemError("the demo needs `git` on the PATH: install it and try again")
        self.git = git
        own = os.path.join(folder, "home")
        for path in (own, self.repo):
            os.makedirs(path)
        path = os.pathsep.join([os.path.dirname(git), os.path.dirname(sys.executable), os.defpath])
        self.env = {
            "PATH": path,
            "HOME": own,
            "USERPROFILE": own,
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }

    def init(self) -> None:
        """Make the repository, commit a file that does not compile, and set projectmem up in it."""
        for name, text in (("price.py", BROKEN), ("build.py", BUILD)):
            with open(os.path.join(self.repo, name), "w", encoding="utf-8") as file:
                file.write(text)
        who = ("-c", "user.name=demo", "-c", "user.email=demo@example.invalid")
        for args in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "A shop")):
            self.run([self.git, *args])
        self.run([sys.executable, "-m", "projectmem", "init", "--harness", "claude-code", "--root", self.repo])
        if not os.path.isdir(self.home):
            raise Expectation(f"`projectmem init` made no log in {self.home}")

    def run(self, argv: list[str]) -> str:
        """Run a command that must succeed; returns its output. Raises Expectation with what it said otherwise."""
        done = subprocess.run(
            argv, cwd=self.repo, env=self.env, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
        )
        _expect(done.returncode == 0, f"`{' '.join(argv[1:4])}` must succeed", done.stdout + done.stderr)
        return done.stdout

    def session(self, name: str) -> AgentSession:
        """A new session of the scripted agent."""
        with open(os.path.join(self.repo, ".claude", "settings.local.json"), encoding="utf-8") as file:
            hooks = json.load(file)["hooks"]
        session = AgentSession(self, f"demo-{name}", hooks)
        session.fire("SessionStart", {"source": "startup"})
        return session


class AgentSession:
    """What the harness does around one session: start the registered hooks with JSON on stdin, read JSON from stdout."""

    def __init__(self, world: World, name: str, hooks: dict[str, Any]) -> None:
        self.world, self.name, self.hooks, self.calls = world, name, hooks, 0

    def fire(self, event: str, payload: dict[str, Any]) -> dict[str, Any] | None:
        """Run the hooks of one event; the one JSON object they answered, None for silence."""
        common = {"session_id": self.name, "transcript_path": "", "cwd": self.world.repo, "hook_event_name": event}
        answers = []
        for group in self.hooks.get(event, []):
            for hook in group["hooks"]:
                argv = words_of(hook)
                done = subprocess.run(
                    argv, input=json.dumps({**common, **payload}), cwd=self.world.repo, env=self.world.env,
                    capture_output=True, text=True, timeout=60,
                )  # fmt: skip
                _expect(done.returncode == 0, f"the hook of {event} must exit 0", done.stdout + done.stderr)
                if done.stdout.strip():
                    answers.append(json.loads(done.stdout))
        return answers[0] if answers else None

    def before(self, tool: str, tool_input: dict[str, Any]) -> dict[str, Any] | None:
        """What the gate says before a call."""
        self.calls += 1
        return self.fire("PreToolUse", {"tool_name": tool, "tool_input": tool_input, "tool_use_id": self._call()})

    def shell(self, command: str) -> tuple[dict[str, Any] | None, int, str]:
        """(the gate's answer, exit code, output) of a shell call that the harness lets run."""
        tool_input = {"command": command}
        answer = self.before("Bash", tool_input)
        done = subprocess.run(
            [sys.executable, "build.py"], cwd=self.world.repo, env=self.world.env, capture_output=True, text=True, timeout=60
        )
        text = done.stdout + done.stderr
        error = f"Exit code {done.returncode}\n{text}"
        call = {"tool_name": "Bash", "tool_input": tool_input, "tool_use_id": self._call()}
        if done.returncode:
            self.fire("PostToolUseFailure", {**call, "error": error, "is_interrupt": False, "duration_ms": TOLD_MS})
        else:
            self.fire("PostToolUse", {**call, "tool_response": {"stdout": text, "stderr": "", "interrupted": False}})
        self.fire("PostToolBatch", {"tool_calls": [{**call, "tool_response": error if done.returncode else text}]})
        return answer, done.returncode, text

    def refused(self, tool: str, tool_input: dict[str, Any], answer: dict[str, Any] | None) -> None:
        """Tell the hooks how a call ended that they refused, as the harness does; nothing if they let it run."""
        if ((answer or {}).get("hookSpecificOutput") or {}).get("permissionDecision") == "deny":
            said = f"PreToolUse:{tool} hook error: {_spoken(answer)}"
            call = {"tool_name": tool, "tool_input": tool_input, "tool_use_id": self._call(), "tool_response": said}
            self.fire("PostToolBatch", {"tool_calls": [call]})

    def read(self, name: str) -> None:
        """Read a file the way the harness's tool does."""
        path = os.path.join(self.world.repo, name)
        tool_input = {"file_path": path}
        answer = self.before("Read", tool_input)
        _expect(answer is None, "the gate must be silent before a read", answer)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        call = {"tool_name": "Read", "tool_input": tool_input, "tool_use_id": self._call()}
        self.fire("PostToolBatch", {"tool_calls": [{**call, "tool_response": text}]})

    def edit(self, name: str, old: str, new: str) -> dict[str, Any] | None:
        """Edit a file the way the harness's tool does; returns the gate's answer."""
        path = os.path.join(self.world.repo, name)
        tool_input = {"file_path": path, "old_string": old, "new_string": new}
        answer = self.before("Edit", tool_input)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))
        said = f"The file {path} has been updated successfully."
        call = {"tool_name": "Edit", "tool_input": tool_input, "tool_use_id": self._call()}
        self.fire("PostToolUse", {**call, "tool_response": {"filePath": path}})
        self.fire("PostToolBatch", {"tool_calls": [{**call, "tool_response": said}]})
        return answer

    def end(self) -> None:
        """End the session."""
        self.fire("SessionEnd", {"reason": "other"})

    def _call(self) -> str:
        return f"toolu_{self.name}_{self.calls}"

"""Moments between a failure and the next try, through the hook as it is called, on a real work tree: half of them speak.

Each does on disk what a person, another program or the agent's own call would do there. The first forty were written before any
was tried: 36 were right at first.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.file_time import tick

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

APP = "import os\n\n\ndef total(n):\n    a = 1\n    return n + a\n"
TEST = "pytest tests/test_app.py"
TEST_ERROR = "Exit code 1\nFAILED tests/test_app.py::test_total - assert 3 == 4\n1 failed in 0.10s"
TSC_ERROR = "Exit code 2\nsrc/b.ts(1,2): error TS2305: Module './gen/schema' has no exported member 'B'."
MISSING_JS = "Exit code 1\nError: Cannot find module 'express'\nRequire stack:\n- /w/server.js"
MISSING_PY = "Exit code 1\nModuleNotFoundError: No module named 'requests'"
REFUSED = "Exit code 7\ncurl: (7) Failed to connect to localhost port 3000 after 0 ms: Connection refused"
UNZIP = "Exit code 9\nunzip:  cannot find or open x.zip, x.zip.zip or x.zip.ZIP."
NO_FILE = "Exit code 1\ncat: data.json: No such file or directory"
HOST_KEY = "Exit code 128\nHost key verification failed.\nfatal: Could not read from remote repository."
DAEMON = "Exit code 1\nCannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
NOT_MINE = "Exit code 243\nnpm error code EACCES\nnpm error syscall mkdir\nnpm error path /w/node_modules/x"
HEAP = "Exit code 134\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"
ERESOLVE = "Exit code 1\nnpm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree"
USAGE = "Exit code 2\nusage: test_app.py [-h]\ntest_app.py: error: unrecognized arguments: --zz"
FILES = {
    "src/app.py": APP,
    "tests/test_app.py": "# test\n",
    "README.md": "# x\n",
    "package.json": "{}\n",
    "packages/api/package.json": "{}\n",
    "packages/web/package.json": "{}\n",
    ".gitignore": ".env\n*.log\nnode_modules/\n.venv/\nlocal/\n__pycache__/\n",
}


class World:
    """A hooked project with files, all of them older than what is recorded."""

    def __init__(self, hooked: Any) -> None:
        self.hooked, self.root = hooked, Path(hooked.root)
        for name, text in FILES.items():
            self.write(name, text)
        self.git("add", "-A")
        self.commit()
        self.settle()

    def settle(self) -> None:
        """What is written from now on is dated later."""
        tick(self.root)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *args: str) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
        subprocess.run(["git", *who, *args], cwd=self.root, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def commits(self, path: str, text: str) -> None:
        """Somebody writes a file that git knows, and commits it."""
        self.write(path, text)
        self.git("commit", "-qam", "x")

    def fails(self, command: str, error: str) -> None:
        self.hooked.run(command, error)
        self.settle()

    def test_fails(self) -> None:
        self.fails(TEST, TEST_ERROR)

    def goes_well(self, command: str, session: str = "one") -> None:
        self.hooked.run(command, "", session)

    def edits(self, old: str, new: str) -> None:
        path = self.root / "src/app.py"
        self.hooked.calls += 1
        given = {"file_path": str(path), "old_string": old, "new_string": new}
        call = {"tool_name": "Edit", "tool_input": given, "tool_use_id": f"toolu_{self.hooked.calls}"}
        self.hooked.before(call)
        path.write_text(path.read_text().replace(old, new))
        self.hooked.batch([(call, "ok")])

    def says(self, command: str = TEST, session: str = "two") -> bool:
        return self.hooked.before(self.hooked.call(command), session) is not None


def _by_hand(name: str, text: str, command: str = TEST, error: str = TEST_ERROR) -> Callable[[World], bool]:
    """A person writes a file after the failure."""

    def moment(w: World) -> bool:
        w.fails(command, error)
        w.write(name, text)
        return w.says(command)

    return moment


def _after(command: str, error: str, between: str, again: str = "") -> Callable[[World], bool]:
    """Another call goes well after the failure."""

    def moment(w: World) -> bool:
        w.fails(command, error)
        w.goes_well(between)
        return w.says(again or command)

    return moment


def package_installed_by_hand(w: World) -> bool:
    w.write(".venv/lib/python3.11/site-packages/six.py", "")
    w.fails("python app.py", MISSING_PY)
    w.write(".venv/lib/python3.11/site-packages/requests/__init__.py", "")
    return w.says("python app.py")


def workspace_installed_by_hand(w: World) -> bool:
    w.fails("cd packages/api && npm test", MISSING_JS)
    w.write("packages/api/node_modules/.package-lock.json", '{"a": 1}')
    return w.says("cd packages/api && npm test")


def env_of_a_package(w: World) -> bool:
    w.write("packages/api/.env", "A=1")
    w.settle()
    w.fails("cd packages/api && npm test", TEST_ERROR)
    w.write("packages/api/.env", "A=2")
    return w.says("cd packages/api && npm test")


def pulled(w: World) -> bool:
    w.test_fails()
    w.write("src/b.py", "x = 1\n")
    w.git("add", "-A")
    w.commit()
    return w.says()


def another_session_passed(w: World) -> bool:
    w.test_fails()
    w.goes_well(TEST, "three")
    return w.says(session="one")


def server_started_before(w: World) -> bool:
    w.goes_well("npm run dev &")
    w.fails("curl localhost:3000", REFUSED)
    return w.says("sleep 3 && curl localhost:3000", "one")


def server_started_in_the_call(w: World) -> bool:
    w.fails("(npm run dev > dev.log 2>&1 &); sleep 1; curl localhost:3000", REFUSED)
    return w.says("sleep 5; curl localhost:3000", "one")


def fix_that_held_later(w: World) -> bool:
    w.test_fails()
    w.edits("    a = 1", "    a = 7")
    w.test_fails()
    w.edits("    a = 7", "    a = 0")
    w.goes_well(TEST)
    return w.says("sed -i 's/a = 0/a = 7/' src/app.py")


def committed_only(w: World) -> bool:
    w.test_fails()
    w.commit()
    w.goes_well("git add -A && git commit -m wip")
    return w.says()


def committed_with_another_change(w: World) -> bool:
    w.test_fails()
    w.commits("src/app.py", APP + "# more\n")
    w.goes_well("git commit -am wip")
    return w.says()


def head_moved_without_a_commit_on_record(w: World) -> bool:
    w.test_fails()
    w.commit()
    return w.says()


def file_removed_by_a_commit_of_somebody(w: World) -> bool:
    w.test_fails()
    w.git("rm", "-q", "src/app.py")
    w.commit()
    return w.says()


def pulled_a_document(w: World) -> bool:
    w.test_fails()
    w.commits("README.md", "# y\n")
    w.goes_well("git pull")
    return w.says()


def pulled_a_source(w: World) -> bool:
    w.test_fails()
    w.commits("src/app.py", APP + "# more\n")
    w.goes_well("git pull")
    return w.says()


def submodule_moved_by_a_pull(w: World) -> bool:
    w.write(".gitmodules", "")
    w.git("add", "-A")
    w.commit()
    w.settle()
    w.test_fails()
    w.commit()
    w.goes_well("git pull")
    return w.says()


def manifest_tried_and_taken_back(w: World) -> bool:
    w.test_fails()
    edit = {"file_path": str(w.root / "package.json"), "old_string": "{}", "new_string": '{"a": 1}'}
    call = {"tool_name": "Edit", "tool_input": edit, "tool_use_id": "toolu_m"}
    w.hooked.before(call)
    w.write("package.json", '{"a": 1}\n')
    w.hooked.batch([(call, "ok")])
    w.test_fails()
    w.write("package.json", "{}\n")
    return w.hooked.before({**call, "tool_use_id": "toolu_n"}, "two") is not None


def moved_and_wrong_all_the_same(w: World) -> bool:
    w.fails("python tests/test_app.py --zz", USAGE)
    w.git("mv", "tests/test_app.py", "tests/test_b.py")
    w.goes_well("git mv tests/test_app.py tests/test_b.py")
    return w.says("python tests/test_b.py --zz")


def fix_undone_by_a_patch(w: World) -> bool:
    patch = "--- a/src/app.py\n+++ b/src/app.py\n@@ -4,3 +4,3 @@\n def total(n):\n-    a = 1\n+    a = 7\n     return n + a\n"
    w.write("f.patch", patch)
    w.test_fails()
    w.edits("    a = 1", "    a = 7")
    w.test_fails()
    w.write("src/app.py", APP)
    w.goes_well("git apply -R f.patch")
    return w.says("sed -i 's/a = 1/a = 7/' src/app.py")


def lines_taken_out_again_by_sed(w: World) -> bool:
    w.test_fails()
    w.edits("import os\n\n\n", "")
    w.test_fails()
    w.write("src/app.py", APP)
    w.goes_well("git checkout -- src/app.py")
    return w.says("sed -i '1,3d' src/app.py")


def misspelt_and_committed(world: World) -> bool:
    """Whatever the repository holds, git knows no such subcommand."""
    world.fails("git psuh", "Exit code 1\ngit: 'psuh' is not a git command. See 'git --help'.")
    world.goes_well("git commit -m x")
    world.commit()
    return world.says("git psuh")


def edited_in_another_folder(world: World) -> bool:
    """Outside the repository, where the command worked."""
    other = world.root.parent / "other" / "src"
    other.mkdir(parents=True)
    (other / "m.py").write_text("1")
    world.settle()
    command = f"cd {other.parent} && pytest -q"
    world.fails(command, TEST_ERROR)
    if not world.says(command):
        return True
    world.settle()
    (other / "m.py").write_text("2")
    return world.says(command)


def sent_into_a_file(again: str) -> Callable[[World], bool]:
    """The task's own log, written by another try of it in the background."""

    def moment(world: World) -> bool:
        world.fails("npm run lint", "Exit code 1\nsrc/a.ts(1,2): error TS2305: no exported member 'B'.")
        world.write("out.txt", "x")
        world.goes_well("nohup npm run lint > out.txt 2>&1 &")
        return world.says(again)

    return moment


SILENT: dict[str, Callable[[World], bool]] = {
    "a person edits the code": _by_hand("src/app.py", APP.replace("1", "0")),
    "a person edits ignored settings": _by_hand("local/settings.cfg", "a = 2"),
    "a person writes .env": _by_hand(".env", "A=1"),
    "node_modules by hand": _by_hand("node_modules/.package-lock.json", "{}", "node server.js", MISSING_JS),
    "a file in another folder, by hand": edited_in_another_folder,
    "a package by hand": package_installed_by_hand,
    "a package of a workspace by hand": workspace_installed_by_hand,
    "the .env of a package": env_of_a_package,
    "a pull": pulled,
    "another session passed": another_session_passed,
    "another package": _after("cd packages/api && npm test", TEST_ERROR, "ls", "cd packages/web && npm test"),
    "sources generated": _after("npx tsc --noEmit", TSC_ERROR, "npm run codegen"),
    "sources generated by go": _after("go test ./...", "Exit code 1\n--- FAIL: TestA (0.00s)\nFAIL", "go generate ./..."),
    "services started": _after(TEST, TEST_ERROR, "docker compose up -d"),
    "a file downloaded": _after("unzip x.zip", UNZIP, "curl -LO https://example.com/x.zip"),
    "a file downloaded under a name": _after("unzip x.zip", UNZIP, "curl -sSLo x.zip https://example.com/x"),
    "a stash taken back": _after(TEST, TEST_ERROR, "git stash pop"),
    "a server started before": server_started_before,
    "a server started in the call": server_started_in_the_call,
    "a fix after another one held": fix_that_held_later,
    "a commit with another change": committed_with_another_change,
    "another file written by a redirection": _after("npm run lint", TEST_ERROR, "echo 1 > src/x.ts", "npm run lint > out.txt &"),
    "a file that a commit of somebody removed": file_removed_by_a_commit_of_somebody,
    "a pull of a source": pulled_a_source,
    "a pull that may have moved a submodule": submodule_moved_by_a_pull,
    "a key of the host made known": _after(
        "git clone git@github.com:o/r.git", HOST_KEY, "ssh-keyscan github.com >> ~/.ssh/known_hosts"
    ),
    "the daemon started by its window": _after("docker ps", DAEMON, "open -a Docker"),
    "the folder given to its user": _after("npm install", NOT_MINE, "sudo chown -R me node_modules"),
    "what was kept thrown away": _after(TEST, TEST_ERROR, "npx jest --clearCache"),
}
SPEAKS: dict[str, Callable[[World], bool]] = {
    "nothing": _after(TEST, TEST_ERROR, "ls src"),
    "HEAD moved by an empty commit of somebody": head_moved_without_a_commit_on_record,
    "a pull of a document": pulled_a_document,
    "a manifest tried and taken back": manifest_tried_and_taken_back,
    "a document": _by_hand("README.md", "# y\n"),
    "a document in the folder that it goes to": _by_hand(
        "packages/api/NOTES.md", "x", "cd packages/api && npx tsc --noEmit", TSC_ERROR
    ),
    "what runs leave behind": _by_hand("__pycache__/a.pyc", "x"),
    "a log": _by_hand("x.log", "x"),
    "a patch that lies about": _by_hand("fix.patch", "x"),
    "an ignored file that nothing names": _by_hand("local/data.bin", "x"),  # the limit: only settings are looked for
    "a commit alone": committed_only,
    "another ecosystem's install": _after("python app.py", MISSING_PY, "npm install left-pad"),
    "a build of the same": _after("npx tsc --noEmit", TSC_ERROR, "npm run build"),
    "the remedy's success": _after("npm run build", HEAP, "NODE_OPTIONS=--max-old-space-size=8192 npm run build"),
    "the remedy's success, exported": _after(
        "npm run build", HEAP, "export NODE_OPTIONS=--max-old-space-size=8192; npm run build"
    ),
    "an install's remedy": _after("npm ci", ERESOLVE, "npm ci --legacy-peer-deps"),
    "an unknown subcommand, after a commit": misspelt_and_committed,
    "no server": _after("curl localhost:3000", REFUSED, "ls"),
    "no server, with a wait": _after("curl localhost:3000", REFUSED, "ls", "sleep 3 && curl localhost:3000"),
    "a move that is followed": moved_and_wrong_all_the_same,
    "a fix undone by a patch": fix_undone_by_a_patch,
    "lines taken out again": lines_taken_out_again_by_sed,
    "its own log": sent_into_a_file("nohup npm run lint > out.txt 2>&1 &"),
    "its own log, otherwise": sent_into_a_file("npm run lint &> out.txt &"),
    "looking": _after(TEST, TEST_ERROR, "git status && git log --oneline | head"),
    "a folder made elsewhere": _after(
        "cat conf/a.json", "Exit code 1\ncat: conf/a.json: No such file or directory", "mkdir -p out/t"
    ),
    "a download of something else": _after("cat data.json", NO_FILE, "curl -sSLo y.tgz https://example.com/y.tgz"),
    "a wrong command after an edit": _by_hand(
        "src/app.py", "x = 1\n", "npm run tset", 'Exit code 1\nnpm error Missing script: "tset"'
    ),
}


@pytest.mark.parametrize("moment", SILENT.values(), ids=SILENT)
def test_it_is_silent(hooked: Any, moment: Callable[[World], bool]) -> None:
    """What came between may have mended the failure, or it is another try."""
    assert not moment(World(hooked))


@pytest.mark.parametrize("moment", SPEAKS.values(), ids=SPEAKS)
def test_it_speaks(hooked: Any, moment: Callable[[World], bool]) -> None:
    """Nothing that came between can have mended the failure."""
    assert moment(World(hooked))

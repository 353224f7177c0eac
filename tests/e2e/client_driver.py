"""One session of a real client against the scripted model. Run as a program, alone or in a network namespace of its own:
`python client_driver.py SPEC.json`.

SPEC: {"harness", "client", "work", "home", "path", "steps", "sub", "log", "env", "allow", "argv", "prompts", "config",
"timeout_s"}; see scripted_model.py for steps, and `sub`, a subagent's. `prompts` are what a person says in this session, one
after the other (Claude Code alone); without them "go on".
Prints {"returncode", "stdout", "stderr"} as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import clients
from scripted_model import handler

Spec = dict[str, Any]


def play(spec: Spec) -> dict[str, Any]:
    """Run the client once. Its environment holds nothing of the caller's but where programs are."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(spec["steps"], spec["log"], spec.get("sub")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    argv, own = clients.COMMANDS[spec["harness"]](spec, Path(spec["home"]), f"http://127.0.0.1:{server.server_address[1]}")
    env = {"PATH": spec["path"], "HOME": spec["home"], "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "CI": "1", **own}
    # its own process group, so that what it leaves behind can be ended and nothing else
    client = subprocess.Popen(
        [spec["client"], *argv],
        cwd=spec["work"],
        env=env | spec.get("env", {}),
        stdin=subprocess.PIPE if spec.get("prompts") else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = client.communicate(clients.said(spec) or None, timeout=spec.get("timeout_s", 280))
    except subprocess.TimeoutExpired:
        os.killpg(client.pid, 9)
        out, err = client.communicate()
        err += b"\n[timed out]"
    finally:
        try:
            os.killpg(client.pid, 9)
        except ProcessLookupError:
            pass
        _end_daemons(spec["work"])
        server.shutdown()
    return {"returncode": client.returncode, "stdout": out.decode("utf-8", "replace"), "stderr": err.decode("utf-8", "replace")}


def _end_daemons(work: str) -> None:
    """End what the client left running for this very folder (Cline's hub): its command line names it."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if work in words and "--cline-hub-daemon" in words:
            os.kill(int(entry.name), 15)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as spec_file:
        json.dump(play(json.load(spec_file)), sys.stdout)

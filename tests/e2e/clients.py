"""How each real client is started against a model on loopback: its arguments, its environment, and the settings it needs before.

Settings are merged into what is there, since `init` puts the hooks into the same files.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

Spec = dict[str, Any]
Started = tuple[list[str], dict[str, str]]


def _merge(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, **data}, indent=1))


def claude(spec: Spec, home: Path, url: str) -> Started:
    """Claude Code. Several prompts come over standard input; `argv` is added to its words."""
    argv = [
        "-p",
        *(["--input-format", "stream-json"] if spec.get("prompts") else ["go on"]),
        "--model",
        "claude-sonnet-4-5",
        "--output-format",
        "stream-json",
        "--verbose",
    ]
    argv += ["--allowedTools", spec.get("allow", "Bash,Edit,Write,Read"), *spec.get("argv", ())]
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING")
    return argv, {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "dummy-key", **dict.fromkeys(quiet, "1")}


def said(spec: Spec) -> bytes:
    """What a client reads from its standard input: the prompts, as messages in Claude Code's form; mostly nothing."""
    messages = [{"type": "user", "message": {"role": "user", "content": text}} for text in spec.get("prompts", ())]
    return "".join(json.dumps(message) + "\n" for message in messages).encode()


def codex(spec: Spec, home: Path, url: str) -> Started:
    """Codex CLI. The model's name decides whether it has `apply_patch`; `config` is added to its settings; with `asks` it runs
    only hooks that these say are trusted."""
    folder = home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        'model = "gpt-5.5"\nmodel_provider = "scripted"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        "check_for_update_on_startup = false\n[model_providers.scripted]\n"
        f'name = "scripted"\nbase_url = "{url}/v1"\nenv_key = "MODEL_KEY"\nwire_api = "responses"\n'
        "request_max_retries = 0\nstream_max_retries = 0\n[analytics]\nenabled = false\n"
        f'[projects."{spec["work"]}"]\ntrust_level = "trusted"\n{spec.get("config", "")}'
    )
    bypass = [] if spec.get("asks") else ["--dangerously-bypass-hook-trust"]
    argv = ["exec", "--skip-git-repo-check", "--json", *bypass, "go on"]
    return argv, {"MODEL_KEY": "dummy-key", "CODEX_HOME": str(folder)}


def gemini(spec: Spec, home: Path, url: str) -> Started:
    """Gemini CLI. With `asks` its folders must be trusted."""
    _merge(
        home / ".gemini" / "settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": bool(spec.get("asks"))}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        },
    )
    argv = ["-p", "go on", "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "--skip-trust", "-o", "stream-json"]
    return argv, {"GEMINI_API_KEY": "dummy-key", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_NO_RELAUNCH": "true"}


def qwen(spec: Spec, home: Path, url: str) -> Started:
    """Qwen Code."""
    _merge(
        home / ".qwen" / "settings.json",
        {
            "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        },
    )
    argv = ["-p", "go on", "-m", "scripted", "--approval-mode", "yolo", "-o", "stream-json"]
    return argv, {"OPENAI_API_KEY": "dummy-key", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted"}


def copilot(spec: Spec, home: Path, url: str) -> Started:
    """GitHub Copilot CLI. With `asks` its folders must be trusted."""
    trusts = [] if spec.get("asks") else ["--trust-folder"]
    argv = ["-p", "go on", *trusts, "--no-auto-update", "--disable-builtin-mcps", "--no-ask-user"]
    argv += ["--output-format", "json", "--no-color", "--allow-all-tools"]
    names = {"BASE_URL": f"{url}/v1", "API_KEY": "dummy-key", "TYPE": "openai"}
    env = {f"COPILOT_PROVIDER_{name}": value for name, value in names.items()}
    return argv, {**env, "COPILOT_MODEL": "scripted", "COPILOT_AUTO_UPDATE": "false", "COPILOT_OFFLINE": "true"}


def opencode(spec: Spec, home: Path, url: str) -> Started:
    """opencode. Without a network it waits for ever for its plugin package, unless that is there: `seed` beside the client."""
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    seed = Path(spec["client"]).parents[2] / "seed"
    work = Path(spec["work"])
    for target in (folder, *(above / ".opencode" for above in (work, *work.parents))):  # it looks upward
        if target.is_dir() and not (target / "node_modules").exists():
            shutil.copytree(seed, target, dirs_exist_ok=True, symlinks=True)
    model = {"name": "Scripted", "tool_call": True, "limit": {"context": 200000, "output": 8192}}
    options = {"baseURL": f"{url}/v1", "apiKey": "dummy-key"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": options, "models": {"scripted": model}}
    named = dict.fromkeys(("model", "small_model"), "scripted/scripted")
    rest = {"autoupdate": False, "share": "disabled", "permission": {"*": "allow"}}
    (folder / "opencode.json").write_text(json.dumps({"provider": {"scripted": provider}, **named, **rest}))
    quiet = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return ["run", "--format", "json", "--print-logs", "go on"], {f"OPENCODE_DISABLE_{name}": "1" for name in quiet}


def droid(spec: Spec, home: Path, url: str) -> Started:
    """Factory Droid."""
    model = {"model": "scripted", "displayName": "Scripted", "baseUrl": f"{url}/v1", "apiKey": "dummy", "maxOutputTokens": 8192}
    model["provider"] = "generic-chat-completion-api"
    _merge(home / ".factory" / "settings.json", {"customModels": [model]})
    return ["exec", "--auto", "high", "-m", "custom:scripted", "-o", "json", "go on"], {"FACTORY_API_KEY": "fk-dummy"}


def pi(spec: Spec, home: Path, url: str) -> Started:
    """pi."""
    model = {
        "id": "scripted",
        "name": "Scripted",
        "contextWindow": 200000,
        "maxTokens": 8192,
        "input": ["text"],
        "reasoning": False,
    }
    model["cost"] = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    provider = {"baseUrl": f"{url}/v1", "apiKey": "dummy", "api": "openai-completions", "models": [model]}
    _merge(home / ".pi" / "agent" / "models.json", {"providers": {"scripted": provider}})
    return ["-p", "--mode", "json", "--provider", "scripted", "--model", "scripted", "go on"], {}


def cline(spec: Spec, home: Path, url: str) -> Started:
    """Cline."""
    settings = {"provider": "openai-compatible", "apiKey": "dummy", "model": "scripted", "baseUrl": f"{url}/v1"}
    kept = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    data = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {"openai-compatible": kept}}
    _merge(home / ".cline" / "data" / "settings" / "providers.json", data)
    argv = [
        "--json",
        "--auto-approve",
        "true",
        "-P",
        "openai-compatible",
        "-k",
        "dummy",
        "-m",
        "scripted",
        "-c",
        spec["work"],
        "go on",
    ]
    return argv, {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "dummy"}


COMMANDS = {"claude": claude, "codex": codex, "gemini": gemini, "qwen": qwen, "copilot": copilot, "opencode": opencode}
COMMANDS |= {"droid": droid, "pi": pi, "cline": cline}

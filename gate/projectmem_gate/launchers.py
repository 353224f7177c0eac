"""[H] Commands that run another command, and which words and options belong to them: the tables that wrappers.py reads by."""

from __future__ import annotations

# neutral wrapper -> its options that take a value
NEUTRAL = {
    "time": ("-f", "-o", "--format", "--output"),
    "nice": ("-n", "--adjustment"),
    "ionice": ("-c", "-n", "-p"),
    "nohup": (),
    "setsid": (),
    "stdbuf": ("-i", "-o", "-e"),
    "unbuffer": (),
    "command": (),
    "builtin": (),
    "exec": ("-a",),
    "caffeinate": ("-t", "-w"),
    "chronic": (),
    "noglob": (),
}

# wrapper that matters -> (words it needs after it, options that take a value, options that do not matter)
KEPT: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "sudo": ((), ("-u", "-g", "-p", "-h", "-C", "-D", "--user", "--group", "--prompt"), ("-n", "--non-interactive", "-S", "-k")),
    "env": ((), ("-u", "--unset", "-C", "--chdir"), ("-v", "--debug")),
    "watch": ((), ("-n", "--interval"), ("-d", "-t", "-c", "-g", "-e")),
    "flock": ((), ("-w", "-E", "--timeout"), ("-v",)),
    "uvx": ((), ("--with", "--from", "--python", "-p"), ("-q", "--quiet")),
    "pipx": (("run",), ("--spec", "--python"), ("-q", "--quiet")),
    "doas": ((), ("-u",), ("-n",)),
    "uv": (
        ("run",),
        tuple(
            """--with --with-editable --with-requirements --python -p --extra --group --project --env-file --package --index-url
            --default-index --only-group --no-group""".split()
        ),
        ("-q", "--quiet", "-v", "--verbose", "--no-progress"),
    ),
    "poetry": (("run",), ("-P", "--project"), ("-q", "-v", "-n", "--no-interaction", "--no-ansi")),
    "pipenv": (("run",), (), ()),
    "pdm": (("run",), ("-p", "--project"), ("-q", "--quiet", "-v", "--verbose")),
    "rye": (("run",), ("--pyproject",), ("-q", "--quiet", "-v", "--verbose")),
    "hatch": (("run",), ("-e", "--env", "-p", "--project"), ("-q", "--quiet", "-v", "--verbose")),
    "bundle": (("exec",), (), ()),
    "npx": ((), ("-p", "--package", "-w", "--workspace"), ("-y", "--yes", "--no-install", "-q", "--quiet")),
    "bunx": ((), ("-p", "--package"), ("--silent", "--verbose")),
    "conda": (("run",), ("-n", "-p", "--name", "--prefix"), ("--no-capture-output", "--live-stream")),
    "direnv": (("exec",), (), ()),
    "rtk": ((), (), ("-v", "--verbose")),
    "corepack": ((), (), ()),
    "time": ((), ("-f", "-o", "--format", "--output"), ("-p", "-v")),
    "xvfb-run": ((), ("-n", "-s", "--server-args"), ("-a", "--auto-servernum")),
    "doppler": (("run",), ("-p", "-c"), ()),
    "dotenv": ((), ("-f", "-e"), ()),
}
TWO_WORDS = {
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "npm": ("exec", "x"),
    "bun": ("x",),
    "mise": ("exec", "x"),
    "asdf": ("exec",),
    "op": ("run",),
}
PACKAGES = ("-p", "--package", "--filter", "-F", "-w", "--workspace")

# One launcher by two names, and its options.
LONG_HAND = (
    (("bun", "x"), ("bunx",)),
    (("uv", "tool", "run"), ("uvx",)),
    (("pnpx",), ("pnpm", "dlx")),
    (("mise", "x"), ("mise", "exec")),
)
# Their options that say in which folder to work: as good as a `cd` in front.
FOLDER = {
    "uv": ("--directory",),
    "poetry": ("-C", "--directory"),
    "pnpm": ("-C", "--dir"),
    "yarn": ("--cwd",),
    "npm": ("--prefix", "-C"),
    "bun": ("--cwd",),
    "bunx": ("--cwd",),
    "mise": ("-C", "--cd"),
    "sudo": ("-D", "--chdir"),
    "env": ("-C", "--chdir"),
}
LONG = {("uv", "-p"): "--python", ("uvx", "-p"): "--python", ("npx", "-p"): "--package", ("bunx", "-p"): "--package",
         ("poetry", "-C"): "--directory", ("poetry", "-P"): "--project", ("conda", "-n"): "--name", ("conda", "-p"): "--prefix",
         ("sudo", "-u"): "--user", ("sudo", "-g"): "--group", ("pnpm", "-F"): "--filter", ("npx", "-w"): "--workspace",
         ("hatch", "-e"): "--env", ("hatch", "-p"): "--project", ("pdm", "-p"): "--project"}  # fmt: skip


STARTERS = frozenset((*KEPT, *TWO_WORDS, "nix", *(words[0] for words, _ in LONG_HAND)))


def values_of(launcher: str) -> tuple[str, ...]:
    """The options of a launcher that take a value."""
    kept = KEPT[launcher][1] if launcher in KEPT else NEUTRAL.get(launcher, PACKAGES)
    return (*kept, *[long for (name, _), long in LONG.items() if name == launcher])

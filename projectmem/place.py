"""Where a project and its log are, found without running git; the only module that reads the environment.

On the hook's path. Git's layout is read from its files (gitrepository-layout(5)): `.git` is a folder, or a file naming
one (worktrees, submodules); a worktree's folder names the shared one in `commondir`. The log lives in the shared folder,
so that worktrees and subfolders see the same one; a submodule is a repository of its own.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HOME_VARIABLE = "PROJECTMEM_GATE_HOME"  # overrides where the log is
SWITCH_VARIABLE = "PROJECTMEM_GATE"  # `off` turns the hook off
MCP_SERVER_VARIABLE = "PROJECTMEM_MCP_SERVER"  # the entry of an MCP server over HTTP that the proxy stands before
FOLDER = "projectmem"  # inside the git common directory
FOLDER_OUTSIDE_GIT = ".projectmem-gate"
MAX_POINTER_BYTES = 4096  # of a `.git` or `commondir` file

# Set by harnesses for the processes they start. CLAUDE_PROJECT_DIR is set by several of them.
HARNESS_VARIABLES = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_PROJECT_DIR",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "QWEN_CODE",
    "COPILOT_CLI",
    "CLINE_ACTIVE",
    "OPENCODE",
    "FACTORY_PROJECT_DIR",
    "CURSOR_AGENT",
)


class Place:
    """One project.

    root      absolute top folder of the work tree the caller is in (or the folder with `.projectmem-gate`)
    home      absolute folder of the log; it exists only where `ready`
    worktree  git's name of a linked worktree, "" in the main one and outside git
    git_dir   absolute git folder of this work tree, "" outside git;  common_dir the one shared by all worktrees
    """

    __slots__ = ("_project", "common_dir", "git_dir", "home", "root", "worktree")

    def __init__(self, root: str, home: str, worktree: str = "", git_dir: str = "", common_dir: str = "") -> None:
        self.root, self.home, self.worktree = root, home, worktree
        self.git_dir, self.common_dir = git_dir, common_dir
        self._project: str | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a log at all: its folder has its `project.json`."""
        return os.path.isfile(f"{self.home}/project.json")

    @property
    def foreign(self) -> bool:
        """Whether the log came with the files around it (an archive, a copy) and `init` has not accepted it here.

        Inside a git folder nothing that a repository ships can lie; beside a work tree's files it can.
        """
        if os.path.basename(self.home) != FOLDER_OUTSIDE_GIT or not self.exists:
            return False
        from projectmem_logs.origin import accepted

        return not accepted(self.home)

    @property
    def ready(self) -> bool:
        """Whether `init` has been run here."""
        return self.exists and not self.foreign

    @property
    def project(self) -> str:
        """The project's random id, "" where there is none (yet) or it cannot be read."""
        if self._project is None:
            self._project = _read_project(self.home)
        return self._project

    def __repr__(self) -> str:
        return f"Place(root={self.root!r}, home={self.home!r}, worktree={self.worktree!r})"


def find(cwd: str, environ: Mapping[str, str] | None = None) -> Place | None:
    """The place that `cwd` belongs to, or None where nothing is set up. `cwd` may be gone already."""
    place = locate(cwd, environ)
    return place if place is not None and place.ready else None


def of_session(environ: Mapping[str, str] | None = None) -> Place | None:
    """The place of the project that the harness was started in, as it tells the hooks it runs: where a session's shell has left
    for a folder without a log, its rules hold all the same. None where the harness does not tell."""
    started = env("CLAUDE_PROJECT_DIR", environ=environ)
    return find(started, environ) if started else None


def locate(cwd: str, environ: Mapping[str, str] | None = None) -> Place | None:
    """The place that `cwd` belongs to whether or not it is set up; None outside git where no parent has a log's folder."""
    override = env(HOME_VARIABLE, environ=environ)
    start = os.path.abspath(cwd or ".")
    place = _search(start)
    if override:
        home = os.path.abspath(os.path.expanduser(override))
        if place is None:
            return Place(start, home)
        place.home = home
    return place


def env(name: str, default: str = "", *, environ: Mapping[str, str] | None = None) -> str:
    """One environment variable, "" (or `default`) where it is unset."""
    return (os.environ if environ is None else environ).get(name) or default


def switched_off(environ: Mapping[str, str] | None = None) -> bool:
    """Whether the person turned the hook off for this process (`PROJECTMEM_GATE=off`)."""
    return env(SWITCH_VARIABLE, environ=environ).lower() in ("off", "0", "false", "no")


def harness_marker(environ: Mapping[str, str] | None = None) -> str:
    """The variable that shows that a harness started this process, "" where none does."""
    for name in HARNESS_VARIABLES:
        if env(name, environ=environ):
            return name
    return ""


def claude_config_dir(environ: Mapping[str, str] | None = None) -> str:
    """Claude Code's own folder: `CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    return config_dir("CLAUDE_CONFIG_DIR", "~/.claude", environ)


def _search(start: str) -> Place | None:
    """Walk up from `start` to the first git work tree. Only outside of any does the nearest log folder or bare repository
    count: inside one, either may be among the files that the repository ships."""
    folder, nearest = start, None
    while True:
        found = _from_dot_git(folder, f"{folder.rstrip('/')}/.git")
        if found is not None:
            return found
        if nearest is None:
            outside = f"{folder.rstrip('/')}/{FOLDER_OUTSIDE_GIT}"
            if os.path.isdir(outside):
                nearest = Place(folder, outside)
            elif _is_git_dir(folder):
                nearest = _inside_git_dir(folder)
        parent = os.path.dirname(folder)
        if parent == folder:
            return nearest
        folder = parent


def _from_dot_git(folder: str, dot_git: str) -> Place | None:
    try:
        mode = os.stat(dot_git).st_mode & 0o170000
    except (OSError, ValueError):
        return None
    if mode == 0o040000:
        return _place(folder, dot_git, "") if _is_git_dir(dot_git) else None
    pointer = _read_pointer(dot_git)
    if not pointer.startswith("gitdir:"):
        return None
    git_dir = os.path.normpath(os.path.join(folder, pointer[7:].strip()))
    worktree = os.path.basename(git_dir) if os.path.basename(os.path.dirname(git_dir)) == "worktrees" else ""
    return _place(folder, git_dir, worktree) if os.path.isdir(git_dir) else None


def _place(folder: str, git_dir: str, worktree: str) -> Place:
    shared = _read_pointer(f"{git_dir}/commondir")
    common = os.path.normpath(os.path.join(git_dir, shared)) if shared else git_dir
    return Place(folder, f"{common}/{FOLDER}", worktree, git_dir, common)


def _inside_git_dir(folder: str) -> Place:
    """`folder` is a bare repository or the inside of a `.git` (then the work tree is its parent)."""
    root = os.path.dirname(folder) if os.path.basename(folder) == ".git" else folder
    return _place(root, folder, "")


def _is_git_dir(folder: str) -> bool:
    """Git's own test, without running it: a HEAD, objects and refs (worktrees' folders have a commondir instead)."""
    try:
        os.stat(f"{folder}/HEAD")
        os.stat(f"{folder}/objects")
        os.stat(f"{folder}/refs")
    except (OSError, ValueError):
        return False
    return True


def _read_pointer(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(MAX_POINTER_BYTES)).strip()
    except (OSError, ValueError):
        return ""


def _read_project(home: str) -> str:
    from projectmem_logs.fastjson import loads

    try:
        with open(f"{home}/project.json", "rb") as file:
            data = loads(file.read(65_536))
    except (OSError, ValueError):
        return ""
    project = data.get("project") if isinstance(data, dict) else None
    return project if isinstance(project, str) else ""


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """A copy of this process's environment with `changes`, for a process that is started."""
    return {**os.environ, **changes}


# What a harness puts in place of the part of its folder's path before the last name, or of all of it ("").
_ELSEWHERE = {
    "~/.gemini": ("GEMINI_CLI_HOME", ".gemini"),
    "~/.factory": ("FACTORY_HOME_OVERRIDE", ".factory"),
    "~/.config/opencode": ("XDG_CONFIG_HOME", "opencode"),
    "~/.cline": ("CLINE_DIR", ""),
}


def config_dir(variable: str, default: str, environ: Mapping[str, str] | None = None) -> str:
    """A harness's own folder: what the variable says, else `default` (which may begin with `~`), or where the harness looks for
    that by another variable."""
    path = env(variable, environ=environ) if variable else ""
    if not path and default in _ELSEWHERE:
        instead, name = _ELSEWHERE[default]
        above = env(instead, environ=environ)
        path = os.path.join(above, name) if above else ""
    return os.path.abspath(_from_home(path or default))


def _from_home(path: str) -> str:
    """The path with the person's home for `~`. A `HOME` that is empty or relative is none: nobody means `/.claude` by it."""
    home = os.environ.get("HOME")
    if path[:1] == "~" and path[1:2] in ("", "/") and os.name == "posix" and home is not None and not os.path.isabs(home):
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir + path[1:]
    return os.path.expanduser(path)

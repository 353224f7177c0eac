"""[H] Code on the command line (`python -c`, `node -e`, a here-document): does it write, and which files?"""

from __future__ import annotations

from projectmem_gate.words import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERPRETERS = ("python", "node", "ruby", "perl", "bun", "deno", "php")
_FLAGS = ("-c", "-e", "-p", "-pe", "-ne", "--eval", "--print", "-r")
_MODES = (",'w", ',"w', ",'a'", ',"a"', ",'r+", ',"r+', ",'x'", ',"x"', "mode='w", 'mode="w', ",'wb", ',"wb')
_WRITERS = (
    "write_text", "write_bytes", ".write(", "os.remove", "unlink", "rename(", "os.replace", "shutil", "subprocess", "os.system",
    "mkdir", "makedirs", "rmtree", "writeFile", "appendFile", "rmSync", "execSync", "spawn", "Popen", "to_csv", "savefig",
    ".save(", "dump(", "extractall", "symlink", "copyFile", "cpSync", "File.write", "touch(", "exec(", "os.chmod",
    "call_command(", "execute_from_command_line", ".commit()", "create_all(",
)  # fmt: skip
_PATH = r"""\(\s*['"]([^'"\n{]{1,200})['"]"""
_OPENED = r"open" + _PATH + r"""\s*,\s*(?:mode\s*=\s*)?['"][wax]"""
_CALLED = r"(?:writeFileSync|appendFileSync|writeFile|appendFile)" + _PATH
_METHOD = r"Path" + _PATH + r"\)\.(?:write_|unlink|touch|rename)"
# A variable that is opened for writing or written to, and what it holds.
_BY_NAME = r"""\bopen\(\s*([A-Za-z_]\w*)\s*,\s*(?:mode\s*=\s*)?['"][wax]|\b([A-Za-z_]\w*)\.(?:write_text|write_bytes|unlink)\("""
_HELD = r"""(?:pathlib\.)?(?:Path\(\s*)?['"]([^'"\n{]{1,200})['"]"""
_NAMED = r"""\b(?:path|file|fname|filename|file_path|filepath|p|f|target)\s*=\s*(?:Path\(\s*)?['"]([^'"\n]{1,200}\.\w{1,6})['"]"""


def code(name: str, argv: Sequence[str], stdin: tuple[str, str], operands: Sequence[str]) -> str | None:
    """The source an interpreter is given in place, None when it runs a file."""
    if name not in INTERPRETERS:
        return None
    for i, word in enumerate(argv[:-1]):
        if i and word in _FLAGS:
            return shown(argv[i + 1])
        if i and word == "-m":
            return None
    return shown(stdin[1]) if stdin[0] == "text" and not operands else None


def written(source: str) -> list[str] | None:
    """Paths that a snippet writes; [] when it only reads; None when it writes something that cannot be named."""
    tight = source.replace(" ", "")
    if not any(mark in source for mark in _WRITERS) and not any(mark in tight for mark in _MODES):
        return []
    import re

    found = [path for pattern in (_OPENED, _CALLED, _METHOD) for path in re.findall(pattern, source)]
    for pair in re.findall(_BY_NAME, source):
        found += re.findall(rf"\b{pair[0] or pair[1]}\s*=\s*{_HELD}", source)
    found = found or re.findall(_NAMED, source)
    return list(dict.fromkeys(found))[:16] or None

"""[H] What is known about programs: their names, which only look, and which only filter output.

What options.py adds is how each program's options are ordered and which of them only change how output looks.
"""

from __future__ import annotations

from projectmem_gate.lines import names
from projectmem_gate.words import is_static

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BIN = (
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/sbin/",
    "/opt/homebrew/bin/",
    "/opt/local/bin/",
)
_PYTHON_REST = frozenset("0123456789.")

# Programs that only look. Their success mends nothing and, inside $(...), they are no action of their own.
PURE = names(
    """
    ls cat head tail grep egrep fgrep rg ag ack find fd fdfind wc sort uniq cut tr column fold fmt nl rev tac less
    more bat file stat du df tree pwd date whoami id hostname uname which type whereis command basename dirname
    realpath readlink test [ [[ true false : echo printf env printenv set seq sleep wait jobs ps pgrep lsof top free
    uptime diff cmp comm mktemp uuidgen md5 base64 shasum md5sum sha1sum sha256sum shasum cksum xxd hexdump od strings
    jq yq awk gawk sed nm objdump otool man help history tty stty locale getconf nproc arch sw_vers lscpu lsblk
    ifconfig ip ss netstat ping dig nslookup host ldd column cloc tokei scc exa eza tput clear read expr bc dc look
    paste join tsort sum yes cd pushd popd dirs exit return break continue shift trap umask ulimit local declare
    typeset readonly let shopt alias getopts
    """
)
# Never to blame when a chain fails, and no action worth remembering.
TRIVIAL = names(
    """
    Set-Location Push-Location Pop-Location set-location push-location pop-location
    cd pushd popd chdir dirs echo printf pwd true false : export unset set shopt alias unalias local declare typeset
    readonly exit return break continue shift trap umask ulimit sleep wait jobs clear tput test [ [[ date read let
    hash times fg bg disown chcp yes
    """
)

_FILTERS = names(
    """
    tail head grep egrep fgrep rg ag cat bat tee less more sort uniq wc sed awk gawk cut tr column fold fmt nl rev tac
    xxd hexdump od strings ts pr expand unexpand iconv ansi2txt ansifilter col colrm gtail ghead true most cowsay
    """
)
# filters whose first operand is a script or pattern
_SCRIPTED = {
    "grep": "-e -f --regexp --file",
    "egrep": "-e -f",
    "fgrep": "-e -f",
    "rg": "-e -f --regexp --file",
    "ag": "",
    "sed": "-e -f",
    "awk": "-f",
    "gawk": "-f",
}
_FILTER_VALUES = names(
    """
    -n -c -k -t -d -f -F -s -w -b -m -A -B -C -e -v -o -O -i -l --lines --bytes --max-count --after-context
    --before-context --context --regexp --file --fields --delimiter --key --field-separator --width -g --glob --type
    -T -j --color --include --exclude --format
    """
)


def program(word: str) -> str:
    """Name of a command word: folders of the system dropped, `python3.11` = `python`; words with a folder of their own stay."""
    if "/" in word:
        for folder in _BIN:
            if word.startswith(folder) and "/" not in word[len(folder) :]:
                word = word[len(folder) :]
                break
        else:
            return word
    if word.endswith((".exe", ".cmd", ".bat")):
        word = word[:-4]
    if word[:6] == "python" and _PYTHON_REST.issuperset(word[6:]):
        return "python"
    if word[:3] == "pip" and word[3:] and _PYTHON_REST.issuperset(word[3:]):
        return "pip"
    return word


def is_filter(argv: Sequence[str]) -> bool:
    """Does `... | argv` only cut down or pretty-print what it reads? (no file operands, no in-place edit)"""
    if not argv:
        return False
    name = program(argv[0])
    if name not in _FILTERS:
        return False
    if name in ("tee", "true", "tr"):
        return True
    operands, i, n = 0, 1, len(argv)
    scripted = _SCRIPTED.get(name)
    explicit = False
    while i < n:
        word = argv[i]
        if word[:1] == "-" and len(word) > 1:
            if name == "sed" and (
                word[:2] == "-i" or word.startswith("--in-place") or (word[1] in "nErsuz" and "i" in word[1:] and word[1] != "-")
            ):
                return False
            if scripted is not None and word in scripted.split():
                explicit = True
            if name in ("sed", "awk", "gawk"):
                i += word in ("-e", "-f", "-F", "-v", "-l")
            elif word in _FILTER_VALUES and not _glued(name, word):
                i += 1
        elif word != "-":
            operands += 1
            if name in ("awk", "gawk") and ("system(" in word or "print >" in word or "print>" in word):
                return False
        i += 1
    if scripted is not None and not explicit:
        operands -= 1
    return operands <= 0


def _glued(name: str, word: str) -> bool:
    """Options that take a value elsewhere but not in this program."""
    if name in ("grep", "egrep", "fgrep"):
        return word not in (
            "-m",
            "-A",
            "-B",
            "-C",
            "-e",
            "-f",
            "-d",
            "--regexp",
            "--file",
            "--max-count",
            "--include",
            "--exclude",
        )
    if name == "rg":
        return word not in ("-m", "-A", "-B", "-C", "-e", "-f", "-g", "-t", "-T", "-j", "--glob", "--type", "--regexp", "--file")
    if name in ("head", "tail"):
        return word not in ("-n", "-c", "-s", "--lines", "--bytes")
    if name == "sort":
        return word not in ("-k", "-t", "-o", "-T", "--key", "--field-separator")
    if name == "uniq":
        return word not in ("-f", "-s", "-w")
    if name in ("cat", "bat", "wc", "rev", "tac", "less", "more"):
        return word not in ("-l",) or name != "bat"
    if name == "column":
        return word not in ("-t", "-s", "-c", "-o") or word == "-t"
    return False


_GIT_LOOKS = names(
    """
    status log diff show blame grep ls-files ls-tree ls-remote rev-parse rev-list describe shortlog cat-file show-ref
    for-each-ref merge-base name-rev reflog count-objects check-ignore check-attr fsck diff-tree diff-files diff-index
    whatchanged var version help range-diff cherry verify-commit verify-tag symbolic-ref
    """
)


def is_pure(argv: Sequence[str]) -> bool:
    """Only looks: nothing it does can mend a failure."""
    if not argv:
        return True
    name = program(argv[0])
    if name == "git":
        return any(w in _GIT_LOOKS for w in argv[1:4])
    if name == "sed":
        return not any(w[:2] == "-i" or w.startswith("--in-place") for w in argv[1:])
    return name in PURE or (any(w in ("--version", "--help", "-h") for w in argv[1:]) and is_static(argv[0]))

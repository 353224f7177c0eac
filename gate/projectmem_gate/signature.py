"""The lines that show a failure, and the signature made of them: the error without its volatile parts.

The same failure gives the same signature on another day, in another worktree, with another process id or temporary folder.
"""

from __future__ import annotations

from projectmem_gate.lines import basename, clean, rx, tail_lines
from projectmem_gate.telling import is_exception

MAX_SIGNATURE = 200
MAX_EXCERPT = 1000

# Most telling first: of the lines that match, those of the first pattern that matches any are the error. Cheap filter first.
_TELLING: tuple[tuple[tuple[str, ...], str], ...] = (
    (("command not found", ": not found", "is not recognized"),
     r"command not found|^\S*sh: (?:\d+: |line \d+: )?\S+: not found|is not recognized as an? "),
    (("tool_use_error>",), r"^<tool_use_error>"),
    (("━━",), r"^\s*(?:at )?\S+ (?:(?:lint|assist|suppressions)/\S+|format|organizeImports|parse)\s.*━"),
    ((": C0", ": W0", ": E0", ": R0", ": F0", ": E1", ": W1"), r"^\S+:\d+:\d+: [CEFRW]\d{4}: "),
    (("error[E", "error TS", "error CS"), r"error\[E\d+\]|\berror (?:TS|CS)\d+"),
    (("proposed edit",), r"^- [A-Z]\d{3} "),
    (("CONFLICT (",), r"^CONFLICT \("),
    (("FAILED ", "ERROR "), r"^(?:FAILED|ERROR) (?:\S+\.py|\S+::)"),
    (("--- FAIL",), r"^\s*--- FAIL: "),
    ((".go:",), r"^(?:vet: )?(?:\./)?\S+\.go:\d+:\d+: "),
    (("FAIL:", "ERROR:"), r"^(?:FAIL|ERROR): \w+ \("),
    (("● ",), r"^\s*● (?!Console\b|Validation )\S"),
    ((" [E]",), r"^\d\d:\d\d \+\d+.* -\d+: .* \[E\]$"),
    (("(fail)", "✗", "✘", " FAIL "), r"^\s*(?:\(fail\)|✗|✘)|^\s*FAIL\s"),
    (("rror: ", "rror["), r"^\S+:\d+(?::\d+)?:? (?:fatal )?error"),
    (("fatal: ",), r"^fatal: "),
    (("are ignored by one",), r"^The following paths are ignored by one of your "),
    (("[rejected]", "[remote rejected]"), r"^ ! \[(?:remote )?rejected\]"),
    (("panic: ",), r"^panic: "),
    (("tests finished",), r"tests finished: .*\b[1-9]\d* (?:failed|exceptions)"),
    (("ERR_PNPM_",), r"^\s*ERR_PNPM_\w+"),
    (("npm ERR!", "npm error"),
     r"^npm (?:ERR!|error) (?!code |path |errno |command |A complete|syscall |signal |lifecycle |\d{3}\s*$)"),
    (("rror: ", "RROR: ", "rror - "), r"^(?:[│|✗\u00d7!] *)?(?:\S+: )?(?:\[?[Ee]rror\]?|ERROR)(?: response from daemon)?: \S"),
    (("rror: ", "xception: "), r"^(?:Uncaught )?[A-Za-z]*(?:Error|Exception)(?: \[\w+\])?: "),
    (("✖", "\u00d7"), r"^\s*[✖\u00d7] "),
    (('"message":', '"error":', '"detail":'), r'^\s*\{?\s*"(?:message|error|detail)":\s*"\S'),
    (("o such file", "annot ", "an't ", "not found", "enied", "nknown ", "nrecognized", "nvalid ", "not exist", "refused",
      "ailed", "ould not ", "ouldn't ", "is not defined"),
     r"[Nn]o such file|[Cc]annot |[Cc]an't |not found|[Dd]enied|[Uu]nknown |[Uu]nrecognized|[Ii]nvalid |not exist|refused"
     r"|[Ff]ailed|[Cc]ould not |[Cc]ouldn't |\" is not defined"),
    (("rror",), r"[Ee]rror"),
    (("* ",), r"^(?:\[[\w:.-]+\] )?\* [a-z]\w+: \d+$"),
    (("***",), r"^g?make(?:\[\d+\])?: \*\*\* "),
    ((": ",), r"^[a-z][\w.-]{0,20}: \S"),
    (("Exception in thread ",), r'^Exception in thread "'),
)  # fmt: skip
# Lines that say only that something failed, not what: a digest of the rest makes their signatures differ where they should.
_WEAK = (
    r"^(?:FAIL(?:\s.*)?|FAILED \(.*|.*ERROR task failed|error: script \".*|error Command failed.*|.*Process completed with exit"
    r" code.*|g?make(?:\[\d+\])?: \*\*\*.*|npm error (?:Lifecycle script|command failed).*|ELIFECYCLE.*|exit status.*"
    r"|BUILD FAILED.*|Error: Process .*|CMake Error at .*:|FAILURES!|ERRORS!|rake aborted!|> Task :.* FAILED|Failed!.*"
    r"|[1-9]\d* (?:failed|failing|errors?),?|Tests?:? .*\bfailed\b.*|Test (?:Suites:|Files) .*|● Test suite failed to run"
    r"|(?:<n> )?tests? completed, \d+ failed|Found \d+ errors?\b.*|Executed \d+ tests?, .*|Some tests failed\."
    r"|\S+\.l?hs:<n>: error: \[GHC-<n>\]|\u00d7 .*:|error: \d+ errors? occurred:|\d+ errored|✖ .*targets? failed.*)$"
)
# How a line begins that _WEAK may match, and what is in one that begins otherwise: without them the pattern, which is the longest
# of all, need not be compiled.
_WEAK_STARTS = (
    "FAIL", "ERROR", "error: ", "error Command failed", "make", "gmake", "npm error ", "ELIFECYCLE", "exit status",
    "BUILD FAILED", "Error: Process ", "CMake Error at ", "rake aborted!", "> Task :", "Failed!", "Test", "test",
    "\u25cf ", "<n> ", "Found ", "Executed ", "Some tests failed.", "\u00d7 ", "\u2716 ",
)  # fmt: skip
_WEAK_INSIDE = ("ERROR task failed", "Process completed with exit code", "hs:<n>: error: ")
_NOISE = (
    "$ ",
    "> ",
    "+ ",
    "=== RUN",
    "Exit code ",
    "<returncode>",
    "ok  \t",
    "warning:",
    "Warning:",
    "Exit status",
    "platform ",
    "rootdir:",
    "hint: ",
    "Shell cwd was reset",
    "Creating test database",
    "Cloning test database",
    "Destroying test database",
    "Your code has been rated",
    "<warning>",
    "<output_",
    "</",
)
# Progress, and what went well: no part of what failed, and in another order each time.
_WENT_WELL = (
    "=== ", "--- PASS", "--- SKIP", "ok  ", "PASS", "?   ", "(pass)", "(skip)", "✓ ", "✔ ", "Checked ", "Finished in", "Ran ",
    "Compiling ", "Downloading ", "Downloaded ", "Installed ", "Resolved ", "Building ", "Fetching ", "Using ",
    "Start at ", "Duration ", "Time: ", "Snapshots: ", "Test Files ", "Test Suites: ", "Tests: ", "Tests  ", "Cached: ",
)  # fmt: skip
_CODE_LINE = r"^\W*(?:[Ee]xit|EXIT|rc|RC|[Ss]tatus|[Cc]ode|ret)[\w ]*\W{0,4}\d{1,3}\W*$"
MANY = 3  # failing tests or compile errors that make up one signature


def telling_lines(output: str) -> list[str]:
    """The lines that say what went wrong, at most three, in order of occurrence; [] for silent failures."""
    last = _last[0]
    if last[0] != output:
        last = _last[0] = output, _telling_lines(clean(output))
    return list(last[1])


_last: list[tuple[str, list[str]]] = [("", [])]  # class, signature and excerpt of one failure all ask for its lines


def _telling_lines(text: str) -> list[str]:
    traced = _exception(text)
    lines = [_unprefixed(line) for line in text.split("\n") if line.strip()]
    joined = "\n".join(lines)
    if len(lines) > 1 and lines[-1][-1:].isdigit() and rx(_CODE_LINE).match(lines[-1]):
        lines.pop()  # `; echo "exit: $?"`
    for needles, pattern in _TELLING:
        if any(n in text for n in needles):
            match = rx(pattern).search
            if not match(joined):  # a line that it matches, it matches among others too
                continue
            hits = list(dict.fromkeys(line for line in lines if match(line) and not line.lstrip().startswith(_NOISE)))
            if hits:
                if traced and needles[0] not in ("command not found", "FAILED ", "FAIL:"):
                    break
                return _some(hits)
    if traced:
        return [traced]
    plain = [line for line in lines if not line.lstrip().startswith(_NOISE) and sum(c.isalnum() for c in line) > 3]
    return ([line for line in plain if not line.lstrip().startswith(_WENT_WELL)] or plain)[-1:]


def _some(hits: list[str]) -> list[str]:
    """A stable choice of several failing lines: sorted, as many runners report in random order."""
    if hits[0].startswith(("FAILED ", "ERROR ", "--- FAIL", "FAIL: ", "ERROR: ")):
        hits = sorted(hits)
    return hits[:MANY] if hits[0][:1] != "<" else hits[:1]


def _exception(text: str) -> str:
    """The exception of the last Python traceback, "" when there is none."""
    at = text.rfind("Traceback (most recent call last)")
    if at < 0:
        return ""
    for line in text[at:].split("\n")[1:]:
        if line[:1] not in ("", " ", "\t") and is_exception(line):
            if not line.rstrip().endswith(":"):
                return line
            after = text[text.index(line, at) + len(line) :].split("\n")
            return f"{line} {next((more.strip() for more in after if more.strip()), '')}".rstrip()
    last = tail_lines(text, 1)
    return last[0] if last and last[0][:1] != " " else ""


def signature(cls: str, text: str) -> str:
    """`text` (an output, or its telling lines) as a signature of at most 200 characters. Equal failures, equal signatures."""
    lines = list(dict.fromkeys(line for line in map(normal, telling_lines(text)) if line))
    if not lines:
        return f"{cls} without output" if cls else ""
    if all(is_weak(line) for line in lines):
        rest = "\n".join(_remainder(text))
        from zlib import crc32

        return f"{' | '.join(lines)[: MAX_SIGNATURE - 10]} #{crc32(rest.encode('utf-8', 'replace')):08x}"
    return " | ".join(lines)[:MAX_SIGNATURE]


def is_weak(line: str) -> bool:
    """Does a normalised line say no more than that something failed?"""
    may_be = line.startswith(_WEAK_STARTS) or line[:1].isdigit() or any(mark in line for mark in _WEAK_INSIDE)
    return may_be and rx(_WEAK).match(line) is not None


def _remainder(text: str) -> list[str]:
    """The other lines of an output, normalised, without progress and logs of it, in one order whatever theirs was."""
    lines = [line.strip() for line in clean(text).split("\n")[-40:] if any(map(str.isalpha, line))]
    kept = [line for line in lines if not line.startswith(_WENT_WELL) and " INFO " not in line and " DEBUG " not in line]
    return sorted({normal(line) for line in kept or lines})


def _unprefixed(line: str) -> str:
    """The line without the task, container or step that a runner puts before each line it passes on."""
    if line[:1] in ("[", "#") or " | " in line[:40]:
        return rx(r"^(?:\[[\w:.@/-]{1,40}\] |#\d+ \d+\.\d+ |[\w.-]{1,30} +\| )").sub("", line, count=1) or line
    return line


def normal(line: str) -> str:
    """One line without what differs between two runs of the same failure. Each pattern waits for characters that it needs."""
    line = line.strip()
    for start in ("<tool_use_error>", "Error: Exit code"):
        line = line.removeprefix(start)
    line = line.split("</tool_use_error>", 1)[0]
    if "Ran " in line or "passed" in line or " in " in line:
        line = rx(r"\b\d+ (?:passed|skipped|deselected|warnings?|xfailed|xpassed)\b,? ?").sub("", line)
    if line.count("-") > 1 or line.count("/") > 1:
        line = rx(r"\b\d{4}([-/])\d\d\1\d\d[T _]\d\d[:_-]\d\d(?:[:_-]\d\d)?(?:[.,_]\d+)?(?:Z\b|[+-]\d\d:?\d\d)?").sub(
            "<time>", line
        )
    if line.count(":") > 1:
        line = rx(r"\[?\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b\]?").sub("<time>", line)
    if line.count("-") > 3:
        line = rx(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b").sub("<id>", line)
    if line.count("-") > 1:
        line = rx(_POD).sub("-<pod>", line)
    if "otal" in line or "completed" in line or "checked " in line:
        line = rx(_LOOKED_AT).sub("", line)
    if "+" in line and " -" in line:
        line = rx(r"^\d\d:\d\d \+\d+(?: ~\d+)? (-\d+: )").sub(r"\1", line)  # Dart's clock and its count
    if "<secret:" in line:  # which secret it was is no part of the failure, and a mark may happen to be a number
        line = rx(r"<secret:[0-9a-f]{1,64}>").sub("<secret>", line)
    if "0x" in line:
        line = rx(r"\b0x[0-9a-fA-F]+\b").sub("<hex>", line)
    if (digits := sum(map(line.count, "0123456789"))) and _has_run(line, 7):
        line = rx(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b").sub("<hex>", line)
    if _has_run(line, 32):
        line = rx(r"\b(?:sha256:)?[0-9a-f]{32,}\b").sub("<hex>", line)
    if (last := line[-1:]) and (last * 6 in line or any(mark * 6 in line for mark in "━─═=-_*!.~#")):
        line = rx(r"([^\w\s])\1{5,}").sub("", line)
    if "│" in line or " | " in line:
        line = rx(r"^>?\s*\d+(?:\s+\d+)?\s+(?=[│|])").sub("", line)
    if "/" in line or "\\" in line:
        line = rx(r"(?<![\w<:/])(?:[A-Za-z]:)?[\w.~@+\-]*(?:[/\\][\w.~@+\-]+){1,}/?").sub(_shorten_path, line)
        line = rx(r"(?<![\w./:<])([\w.-]*\w)/(?=[\s:'\",;)]|$)").sub(r"\1", line)  # `ls: dist/:` and `ls: /srv/x/dist:`
    return " ".join((_without_numbers(line) if digits or not line.isascii() else line).split())


# A pod's name ends in a hash of its set and five letters of its own (Kubernetes' alphabet for both).
_POD = r"-(?=[b-df-hj-np-tv-z\d]*\d)[b-df-hj-np-tv-z\d]{8,10}-[b-df-hj-np-tv-z\d]{5}\b"
# What a runner looked at besides what failed: `12 total`, `4 tests completed`, `(checked 14 source files)`, .NET's sums.
_LOOKED_AT = (
    r",? \d+ total\b|\b\d+ (?=tests? completed, [1-9]\d* failed)| \(checked \d+ source files?\)"
    r"|, Passed: +\d+, Skipped: +\d+, Total: +\d+(?:, Duration: .*)?$"
)


def _has_run(line: str, length: int) -> bool:
    """Whether the line may hold a run of so many hexadecimal digits."""
    return any(len(word) >= length for word in line.translate(_RUNS).split())


_RUNS = {c: " " for c in range(128) if chr(c) not in "0123456789abcdef"}


def _without_numbers(line: str) -> str:
    if "tmp" in line or "temp" in line or "pytest-" in line:
        line = rx(r"\b(?:tmp|temp|pytest-of-|pytest-)[\w\-]*\d[\w\-]*").sub("<tmp>", line)
    if ":" in line:
        line = rx(r":\d+(?::\d+)?(?=$|[\s:,)\]'\"])").sub(":<n>", line)
    if "(" in line and "," in line:
        line = rx(r"\(\d+,\d+\)").sub("(<n>)", line)
    if any(word in line for word in _COUNTED) and not ("ail" in line or "rror" in line):
        line = rx(r"\b\d[\d,]* (files?|tests?|modules?|packages?|assertions?|expect|calls?|suites?|specs?|crates?)\b").sub(
            r"<n> \1", line
        )
    if any(word in line for word in ("line", "pid", "PID", "port", "rocess", "job")):
        line = rx(r"\b(line|lines|pid|PID|port|process|job|Process) #?\d+").sub(r"\1 <n>", line)
    if any(c.isdecimal() for c in line):
        line = rx(r"\b\d+(?:\.\d+)?\s?(?:ms|µs|us|ns|secs?|seconds?|s|m\d+s|min|minutes|[KMG]i?B|bytes)\b").sub("<t>", line)
        if sum(map(line.count, "0123456789")) > 4 or not line.isascii():
            line = rx(r"\b\d{5,}\b").sub("<n>", line)
    return line


# What a program looked at: it grows with the project, and says nothing of the failure. (What failed is counted apart.)
_COUNTED = (" file", " test", " module", " package", " assertion", " expect", " call", " suite", " spec", " crate")


def _shorten_path(match: object) -> str:
    text: str = match.group(0)  # type: ignore[attr-defined]
    if "//" in text or text.startswith(("http", "www.")) or (text[:1] == "@" and text.count("/") == 1):
        return text  # an address, or a package of somebody's: `@testing-library/react` is not `react`
    if rx(r"^[\w-]+\.(?:com|org|io|net|dev|in)/[\w.~-]+/[\w.~-]+").match(text):
        return text  # an import path
    if rx(r"(?:^|/)(?:tmp|T|folders)/").search(text) and not rx(r"\.\w{1,5}$").search(text):
        return "<tmp>"
    return basename(text)


def excerpt(output: str) -> str:
    """What a person would look at: the telling lines and some around them, at most 1,000 characters."""
    text = clean(output).strip()
    if len(text) <= MAX_EXCERPT:
        return text
    lines = text.split("\n")
    telling = telling_lines(text)
    at = next((i for i, line in enumerate(lines) if telling and line.endswith(telling[0])), len(lines) - 8)
    chosen: list[str] = []
    size = 0
    for line in lines[max(0, at - 2) : at + 14]:
        piece = line[:240]
        if size + len(piece) + 1 > MAX_EXCERPT:
            break
        chosen.append(piece)
        size += len(piece) + 1
    return "\n".join(chosen).strip("\n") or text[-MAX_EXCERPT:]

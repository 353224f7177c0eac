"""What a person sees: escaping of untrusted text, colour, times, durations, tables, JSON and progress.

Text from the log was written by programs, web pages and models. `safe` makes every control character and terminal
escape visible instead of obeyed; nothing from the log is printed without it. Nothing here reads clock or environment.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from projectmem_gate import spans

if TYPE_CHECKING:
    from projectmem_logs.redact import Redactor

SECOND = spans.SECOND
span = spans.span

# C0 and C1 controls, DEL, line and paragraph separators, bidirectional controls, byte-order mark, lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")
_UNSAFE_JSON = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "bold": "1", "dim": "2"}


def safe(text: object, *, lines: bool = False, limit: int = 0) -> str:
    r"""`text` with control characters spelled out (`\x1b`, `\n`); with `lines`, newlines and tabs are kept.

    limit  cut to that many characters with `…` at the end (0 = do not cut).
    What looks like a secret is replaced, should it have got into the log in spite of all (by an older version, another tool).
    """
    out = hide_secrets(str(text))
    if limit and len(out) > limit:
        out = out[: limit - 1] + "…"
    keep = "\n\t" if lines else ""
    if lines:
        out = out.replace("\r\n", "\n")
    return _UNSAFE.sub(lambda m: m.group() if m.group() in keep else _spell(m.group()), out)


def _spell(char: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    code = ord(char)
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def hide_secrets(text: str) -> str:
    """`text` with what looks like a secret replaced."""
    return _redactor().text(text)


@functools.cache
def _redactor() -> Redactor:
    """Under a key of this process alone: a mark that is made for showing cannot be tried out against guesses."""
    import os

    from projectmem_logs.redact import Redactor

    return Redactor(os.urandom(32))


def to_json(value: object, *, indent: int | None = 2) -> str:
    """`value` as JSON that is valid UTF-8 and safe on a terminal (what is risky is written as \\uXXXX)."""
    plain = json.loads(json.dumps(value, ensure_ascii=False, sort_keys=False, default=_plain))
    text = json.dumps(_redactor().tree(plain), ensure_ascii=False, indent=indent, sort_keys=False)
    return _UNSAFE_JSON.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def _plain(value: object) -> object:
    to_data = getattr(value, "to_data", None)
    if to_data is not None:
        return to_data()
    slots = getattr(type(value), "__slots__", None)
    if slots:
        return {name: getattr(value, name) for name in slots}
    if hasattr(value, "__dict__"):
        return vars(value)
    return list(value) if isinstance(value, (set, frozenset)) else str(value)


class Paint:
    """Colour when it is wanted, plain text otherwise. `Paint(True)("red", "x")`."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, colour: str, text: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.on and text else text


VERDICT_COLOURS = {"allow": "green", "warn": "yellow", "ask": "yellow", "deny": "red"}


def when(at: int) -> str:
    """A time in microseconds as `2026-11-30 13:05:09Z`; `never` for 0 and below, the number itself where no date fits."""
    if at <= 0:
        return "never"
    try:
        return datetime.fromtimestamp(at // SECOND, tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{at} us"


def ago(at: int, now: int) -> str:
    """`12 min ago`, `in 3 h`, `just now`; `never` for no time at all."""
    if at <= 0:
        return "never"
    return spans.ago(now - at) if now >= at else f"in {spans.span(at - now)}"


def table(rows: Sequence[Sequence[str]], head: Sequence[str], *, width: int = 100) -> list[str]:
    """Aligned columns; the last one is cut so that a line fits `width`. Cells must be `safe` and free of colour."""
    if not rows:
        return []
    cells = [list(head), *([*row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        start = "  ".join(cell.ljust(widths[i]) for i, cell in enumerate(row[:-1]))
        room = max(16, width - len(start) - 2)
        last = row[-1] if len(row[-1]) <= room else row[-1][: room - 1] + "…"
        lines.append(f"{start}  {last}".rstrip())
    return lines


_still = False


def still() -> None:
    """From now on this process shows no bar and no spinner: many threads answer in it, and a terminal has room for one."""
    global _still
    _still = True


def _shows(stream: IO[str]) -> bool:
    return stream.isatty() and not _still


def wrapped(text: str, width: int) -> str:
    """`text` with lines of at most `width`, broken at spaces and indented further than the line they go on; `> ` and `| ` of a
    quotation stand before each part of it. A longer word stays whole, and so does a command in backticks, to be copied."""
    import textwrap

    out, text = [], re.sub(r"`[^`\n]*`", lambda found: found.group().replace(" ", "\0"), text)
    for line in text.split("\n"):
        lead = line[: len(line) - len(line.lstrip())]
        mark = lead + line[len(lead) : len(lead) + 2] if line[len(lead) : len(lead) + 2] in ("> ", "| ") else ""
        later = mark or f"{lead}    "
        parts = textwrap.wrap(line, width, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)
        out += parts if len(line) > width and parts else [line]
    return "\n".join(out).replace("\0", " ")


def progress(items: Iterable[Any], label: str, *, total: int | None = None, stream: IO[str] | None = None) -> Iterator[Any]:
    """Pass `items` through, showing a bar on `stream` (default stderr) once a second has gone by, on a terminal only."""
    err = stream if stream is not None else sys.stderr
    if not _shows(err):
        yield from items
        return
    started, bar, task = time.monotonic(), None, None
    try:
        for count, item in enumerate(items, 1):
            yield item
            if count & 0xFF:
                continue
            if bar is None and time.monotonic() - started > 1:
                bar = _bar(err)
                bar.start()
                task = bar.add_task(label, total=total)
            if bar is not None:
                bar.update(task, completed=count)
    finally:
        if bar is not None:
            bar.stop()


def reading(sources: Iterable[Any], label: str = "reading sessions", *, stream: IO[str] | None = None) -> Iterator[Any]:
    """Pass (file, reader) pairs through with a bar of the files' bytes and a count of calls, once a second has gone by, on a
    terminal only. It moves within a file too: one file may be most of the work."""
    err, files = stream if stream is not None else sys.stderr, list(sources)
    if not _shows(err):
        yield from files
        return
    sizes = [path.stat().st_size if path.is_file() else 0 for path, _ in files]
    shown = _Reading(err, label, len(files), sum(sizes))
    try:
        for number, ((path, reader), size) in enumerate(zip(files, sizes, strict=True)):
            yield path, shown.through(reader)
            shown.passed(number + 1, size)
    finally:
        shown.stop()


class _Reading:
    """The bar of `reading`."""

    def __init__(self, err: IO[str], label: str, files: int, size: int) -> None:
        self.err, self.label, self.files, self.size = err, label, files, size
        self.done = self.read = self.calls = 0
        self.started, self.drawn = time.monotonic(), 0.0
        self.bar: Any = None
        self.task: Any = None

    def through(self, reader: Any) -> Any:
        """The same reader, whose calls are counted."""

        def read(*given: Any) -> Iterator[Any]:
            for call in reader(*given):
                self.calls += 1
                yield call
                self.draw()

        return read

    def passed(self, files: int, size: int) -> None:
        """One more file was read."""
        self.done, self.read = files, self.read + size
        self.draw()

    def draw(self) -> None:
        """Show how far it is, ten times a second at most."""
        now = time.monotonic()
        if now - self.drawn < 0.1 or now - self.started < 1:
            return
        self.drawn = now
        if self.bar is None:
            self.bar = _bar(self.err, counted=False)
            self.bar.start()
            self.task = self.bar.add_task(self.label, total=max(1, self.size))
        said = f"{self.label}: {self.done} of {spans.count(self.files, 'file')}, {spans.count(self.calls, 'call')}"
        self.bar.update(self.task, completed=self.read, description=said)

    def stop(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()


def _bar(err: IO[str], *, counted: bool = True) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    counts = (MofNCompleteColumn(),) if counted else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), *counts, TimeElapsedColumn())
    return Progress(*columns, console=Console(file=err), transient=True)


class Waiting:
    """A spinner on stderr for one long step without a count; silent where stderr is not a terminal."""

    def __init__(self, label: str, stream: IO[str] | None = None) -> None:
        self.label, self.stream, self.status = label, stream if stream is not None else sys.stderr, None

    def __enter__(self) -> Waiting:
        if _shows(self.stream):
            from rich.console import Console

            status: Any = Console(file=self.stream).status(self.label)
            status.start()
            self.status = status
        return self

    def tell(self, done: int, total: int) -> None:
        """How far it is, where that is known."""
        if self.status is not None:
            self.status.update(f"{self.label} {done * 100 // max(1, total)} %")

    def __exit__(self, *exc: object) -> None:
        if self.status is not None:
            self.status.stop()

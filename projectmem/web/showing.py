"""Turns what the use cases say into HTML. Everything that a template prints passes `shown`: secrets and control characters made
visible as on a terminal (output.safe), then escaped. Nothing is printed as it is but what this module itself made."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from projectmem import logview, output, render
from projectmem.logview import short

TEXT_MAX = 4_000  # characters of one recorded text
WHOLE_MAX = 200_000  # of one record
_TICKED = re.compile(r"`([^`\n]{1,2000})`")
_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}(?:-[0-9a-f]{4}-[0-9a-f]{12})?\b")
VERDICTS = {"allow": "good", "warn": "look", "ask": "stop", "deny": "stop", "silent": "dim"}
OUTCOMES = {"ok": "good", "failed": "stop", "heeded": "good"}
STATUSES = {"ok": "good", "note": "look", "fail": "stop"}


def shown(value: Any) -> Any:
    """What stands for a value on the page; Markup is what this module made."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else output.safe(value, lines=True, limit=TEXT_MAX)


def environment(folder: str) -> Environment:
    """The templates, for pages under `folder`."""
    made = Environment(
        loader=PackageLoader("projectmem.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(whole_max=WHOLE_MAX, base=folder, verdicts=VERDICTS, outcomes=OUTCOMES, statuses=STATUSES)
    made.filters.update(
        about=logview.about,
        ago=output.ago,
        told=render.told,
        whole=lambda text: escape(text[:WHOLE_MAX]),
        when=output.when,
        span=output.span,
        short=short,
        count=lambda number: f"{number:,}",
        flat=lambda text, limit=300: output.safe(text, limit=limit),
        query=lambda fields: urlencode({k: v for k, v in fields.items() if v}),
        iso=iso,
        prose=lambda text: prose(text, folder),
        json=output.to_json,
    )
    return made


def iso(at: int) -> str:
    """A time in microseconds for a machine, "" where no date fits."""
    try:
        return datetime.fromtimestamp(at // output.SECOND, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at > 0 else ""
    except (OverflowError, ValueError, OSError):
        return ""


def prose(text: object, folder: str) -> Markup:
    """A line that was written for a terminal: what stands in backticks as code, ids as links to their events."""
    said, out, at = output.safe(text, lines=True, limit=TEXT_MAX), [], 0
    for found in _TICKED.finditer(said):
        out += [_linked(said[at : found.start()], folder), Markup("<code>{}</code>").format(found.group(1))]
        at = found.end()
    return Markup("").join([*out, _linked(said[at:], folder)])


def _linked(text: str, folder: str) -> Markup:
    out, at = [], 0
    for found in _ID.finditer(text):
        link = Markup('<a class="id" href="{}/event/{}">{}</a>').format(folder, found.group(), short(found.group()))
        out += [escape(text[at : found.start()]), link]
        at = found.end()
    return Markup("").join([*out, escape(text[at:])])


def sections(text: str) -> tuple[str, list[tuple[str, list[str]]]]:
    """(title, [(heading or "", lines)]) of an explanation in plain text: a block begins behind an empty line, its heading is not
    indented where lines below it are."""
    title, *rest = text.split("\n")
    blocks: list[tuple[str, list[str]]] = []
    for block in "\n".join(rest).strip("\n").split("\n\n"):
        head, *lines = block.split("\n")
        if head.startswith(" ") or not all(line.startswith(" ") for line in lines) or not lines:
            head, lines = "", [head, *lines] if head else lines
        if lines:
            blocks.append((head, [line.removeprefix("  ") for line in lines]))
    return title, blocks

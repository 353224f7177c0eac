"""Reads files that a person names: JUnit XML reports (what a test run in CI said) and mini-swe-agent's trajectories; and
finds the readers of the other formats.

Both are recorded as calls in the project's top folder, with the time that the file tells, else that of the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import orjson

from projectmem.errors import BadInputError
from projectmem.hook.payload import call_of, exited
from projectmem.importers import formats, pytest_reports, sources
from projectmem.importers.reading import Call, Counts, ended, parsed, payload_of, time_us, whole

FORMATS = ("junit", "pytest", "mini-swe-agent", "swe-agent", "atif", *sources.SOURCES)
MAX_NAMED = 50  # failing tests whose names and messages are kept
_COMMAND = re.compile(r"```(?:bash|sh|mswea_bash_command)\s*\n(.*?)\n?```", re.DOTALL)
_CODE = re.compile(r"<returncode>\s*(-?\d{1,6})\s*</returncode>")
_OUTPUT = "<output>", "</output>"


def reader(form: str, root: str, command: str) -> Callable[[Path, Counts], Iterator[Call]]:
    """The reader of a format, for calls made in `root`. Raises BadInputError for what it cannot read."""
    if form == "junit":
        if not command.strip():
            raise BadInputError('a JUnit report does not say what was run: add --command "pytest" (or what it was)')
        return partial(_junit, root=root, command=command.strip())
    if form == "mini-swe-agent":
        return partial(_mini, root=root)
    if form == "pytest":
        return partial(pytest_reports.read_pytest, root=root, command=command.strip() or "pytest")
    if form == "swe-agent":
        return partial(formats.read_swe_agent, root=root)
    if form == "atif":
        return partial(formats.read_atif, root=root)
    if form in sources.SOURCES:
        return sources.named(form)
    raise BadInputError(f"unknown format `{form}`: this version reads {', '.join((*FORMATS, 'git', 'projectmem'))}")


def _junit(path: Path, counts: Counts, root: str, command: str) -> Iterator[Call]:
    raw, written = whole(path, counts)
    if not raw:
        return
    try:
        top = ElementTree.fromstring(raw)  # noqa: S314 - expat since 2.4.1 refuses entities that blow up; nothing external is read
    except ElementTree.ParseError:
        counts.bad(path)
        return
    if top.tag not in ("testsuites", "testsuite"):  # some other XML would count as a run without failures
        counts.bad(path)
        return
    cases = list(top.iter("testcase"))
    if not cases:  # a run in which no test ran did not go well (pytest exits 5); nor can it clear a failure
        counts.bad(path)
        return
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    lines = [line for case in failed[:MAX_NAMED] for line in _told(case)]
    suites = [suite for suite in top.iter("testsuite") if suite.get("timestamp")]
    at = time_us(suites[0].get("timestamp")) if suites else 0
    lines.append(f"{len(failed)} failed, {len(cases) - len(failed)} passed")
    id = f"junit:{_content(top)}"
    call = call_of(payload_of(f"junit:{path.name}", root), "junit", "Bash", {"command": command}, id)
    yield ended(exited(call, int(bool(failed)), "\n".join(lines)), at or written)


def _content(top: ElementTree.Element) -> str:
    """What a report says, as a hash: comments, indentation and the order of attributes are not part of it."""
    content = hashlib.sha256()
    for element in top.iter():
        said = [element.tag, sorted(element.attrib.items()), (element.text or "").strip(), (element.tail or "").strip()]
        content.update(repr(said).encode("utf-8", "surrogatepass"))
    return content.hexdigest()[:24]


def _told(case: ElementTree.Element) -> list[str]:
    """A failing test as pytest names it, and what it said."""
    what = case.find("failure")
    what = what if what is not None else case.find("error")
    file, name = case.get("file") or str(case.get("classname") or "").replace(".", "/"), case.get("name") or ""
    message = (what.get("message") or what.text or "").strip().split("\n", 1)[0][:400] if what is not None else ""
    return [f"FAILED {file}::{name} - {message}"]


def _mini(path: Path, counts: Counts, root: str) -> Iterator[Call]:
    raw, written = whole(path, counts)
    if not raw:
        return
    try:
        data = parsed(raw)
        messages = [m for m in data["messages"] if isinstance(m, dict)]
    except (ValueError, KeyError, TypeError):
        counts.bad(path)
        return
    # A step is known by all that was said up to its end: what is added to the file later changes no step's id.
    upto = hashlib.sha256(b"".join(_canonical(message) for message in messages[:1]))
    session, model = f"mini:{hashlib.sha256(b''.join(map(_canonical, messages[:3]))).hexdigest()[:24]}", _model(data)
    for said, told in pairwise(messages):
        upto.update(_canonical(told))
        if said.get("role") != "assistant":
            continue
        command, output = _COMMAND.search(_text(said)), _text(told)
        code = _CODE.search(output)
        if command is None or code is None:
            continue
        id = f"mini:{upto.hexdigest()[:24]}"
        call = call_of(payload_of(session, root, model), "mini-swe-agent", "bash", {"command": command.group(1)}, id)
        yield ended(exited(call, int(code.group(1)), _body(output)), written)


def _body(told: str) -> str:
    """What stands between the marks of the output, without the line breaks beside them; all where there are none."""
    start, end = (told.find(mark) for mark in _OUTPUT)
    if start < 0:
        return told
    start += len(_OUTPUT[0])
    end = end if end >= start else told.find(_OUTPUT[1], start)
    return told if end < 0 else told[start:end].removeprefix("\n").removesuffix("\n")


def _canonical(message: dict[str, Any]) -> bytes:
    return orjson.dumps(message, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _model(data: dict[str, Any]) -> str:
    info = data.get("info")
    config = info.get("config") if isinstance(info, dict) else None
    model = config.get("model") if isinstance(config, dict) else None
    return str(model.get("model_name") or "") if isinstance(model, dict) else ""


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""

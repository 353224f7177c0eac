"""The page's style: every text that it paints can be read on its ground, light and dark; and nothing comes from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import projectmem.web as web

FOLDER = Path(web.__file__).parent
CSS = (FOLDER / "static" / "page.css").read_text(encoding="utf-8")
TEXTS = {  # what is written on what
    "ink": ("ground", "paper", "plain-ground", "good-ground", "look-ground", "stop-ground"),
    "soft": ("ground", "paper"),
    "link": ("ground", "paper", "good-ground", "look-ground", "stop-ground"),
    "good": ("good-ground",),
    "look": ("look-ground",),
    "stop": ("stop-ground",),
}
BORDERS = {"soft": ("ground", "paper"), "focus": ("ground", "paper")}  # of fields, and around what has the focus


def _light(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_light(one), _light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_and_borders_have_contrast(scheme: int) -> None:
    """4.5 for text, 3 for borders that mean something."""
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", CSS.split(":root {")[scheme + 1].split("}")[0]))
    low = [
        (one, other, round(_contrast(colours[one], colours[other]), 2))
        for least, pairs in ((4.5, TEXTS), (3.0, BORDERS))
        for one, others in pairs.items()
        for other in others
        if _contrast(colours[one], colours[other]) < least
    ]
    assert low == []


def test_colours_are_named_once() -> None:
    """What the check above sees is all that there is."""
    assert len(re.findall("#[0-9a-f]{3,8}", CSS.partition("*, *::before")[2])) == 0


def test_nothing_is_loaded_from_elsewhere_and_nothing_runs() -> None:
    """No script, no inline style, no address of another host, in any file of the page."""
    files = [*FOLDER.glob("templates/*.html"), *FOLDER.glob("static/*")]
    assert len(files) > 12
    for file in files:
        text = file.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not re.search(r"https?:|//[a-z]|<script|style=|\son\w+=|@import|url\(", text), file.name
        assert "| safe" not in text and "|safe" not in text and "autoescape" not in text, file.name

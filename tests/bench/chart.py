"""Draws cost against log size, both logarithmic, as an SVG without any library."""

from __future__ import annotations

import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 60, 210, 20, 40
COLOURS = (
    "#1b6ca8",
    "#12355b",
    "#2a9d8f",
    "#d1495b",
    "#8d1d2c",
    "#8a8a8a",
    "#b5651d",
    "#6a4c93",
    "#e07a1f",
    "#555555",
    "#3a7d44",
)


def draw(found: dict[int, dict[str, float | None]]) -> str:
    """`found` is {events: {case: milliseconds or None}}."""
    sizes = sorted(found)
    values = [ms for row in found.values() for ms in row.values() if ms]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def x(size: int) -> float:
        return LEFT + (math.log10(size) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(ms: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(ms) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for power in range(low, high + 1):
        at = y(10**power)
        parts.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10**power:g} ms</text>')
    foot = f'y="{HEIGHT - BOTTOM + 18}" text-anchor="middle"'
    parts += [f'<text x="{x(size):.1f}" {foot}>{size:,} events</text>' for size in sizes]
    rows = []
    for number, name in enumerate(found[sizes[0]]):
        points = [(x(size), y(ms)) for size in sizes if (ms := found[size].get(name))]
        if points:
            rows.append((points[-1][1], points, name, COLOURS[number % len(COLOURS)]))
    label = float(TOP)
    for at, points, name, colour in sorted(rows):
        label = max(label + 13, at)
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{label + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"

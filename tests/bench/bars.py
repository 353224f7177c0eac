"""Says beside a figure whether it holds its bar: a page of figures that leaves that to its reader flatters."""

from __future__ import annotations

# Of the hook's process against the barest Python that can read JSON: what runs before every call, and after it. What a prompt
# costs has no bar.
HOOK = {"pre, no candidate": 1.4, "pre, candidate": 2.0, "batch": 2.0, "failure": 2.0, "pre, project not set up": 1.4}


def at_most(value: float, bar: float, unit: str = "x") -> str:
    """` (MISSES the bar of 2 ms)` or nothing."""
    return f"  (MISSES the bar of {bar:g}{unit})" if value > bar else ""


def at_least(value: float, bar: float, unit: str = "x") -> str:
    """The same for a figure that should not be lower."""
    return f"  (MISSES the bar of {bar:g}{unit})" if value < bar else ""


def hook(case: str, ratio: float) -> str:
    """Of a case of the hook's benches."""
    bar = next((bar for name, bar in HOOK.items() if case.startswith(name)), None)
    return at_most(ratio, bar) if bar is not None else ""

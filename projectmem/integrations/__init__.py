"""The gate inside a Python program: agent frameworks that run tools in their own process. See README.md.

`core.py` is the gate, `shapes.py` what a framework's calls and results are in the hook's terms; every other module is one
framework's side and imports that framework. Importing this package imports none of them.
"""

from projectmem.integrations.core import Gate, Verdict

__all__ = ["Gate", "Verdict"]

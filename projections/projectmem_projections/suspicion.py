"""Recorded text that reads like an instruction to a model. Pure; on the hook's path.

A flag, not a filter: such text is kept, shown only in quotes and said to be data, and held for review where it was written
by an agent.
"""

from __future__ import annotations

import re

HEAD = 4_000  # characters that are looked at
_PATTERN = (
    r"(?i)\b(?:ignore|disregard|forget|override)\b[^.]{0,40}\b(?:previous|prior|above|earlier|all|any|your|these|other)\b[^.]{0,20}"
    r"\b(?:instructions?|rules?|prompts?|guidelines?|context|polic(?:y|ies))"
    r"|\byou (?:are|will be) now\b|\bfrom now on,? you\b|\bnew (?:system )?instructions?\b|\bsystem prompt\b"
    r"|\byou (?:must|should|have to) (?:always |never |now |first )?(?:run|execute|call|use|install|send|post|upload|delete"
    r"|reveal|reply|respond|output)\b"
    r"|\b(?:do not|don't|never) (?:tell|inform|mention|show|ask)\b[^.]{0,20}\b(?:user|anyone|human|person)\b"
    r"|\bwithout (?:asking|telling|informing) (?:the )?(?:user|anyone|human)\b"
    r"|\bcurl\b[^|\n]{0,200}\|\s*(?:sudo )?(?:ba|z)?sh\b"
    r"|\b(?:assistant|system|developer|user)\s*:\s*\S|<\/?(?:system|assistant|instructions?|im_start|im_end)\b|\[/?INST\]"
)
_compiled: list[re.Pattern[str]] = []


def instructs(text: str) -> bool:
    """

    Whether a text reads like an instruction to whoever reads it (an over-eager guess: it only decides about quotes and review).
    """
    if not _compiled:
        _compiled.append(re.compile(_PATTERN))
    return _compiled[0].search(" ".join(text[:HEAD].split())) is not None

"""The compiled policy: integers and strings, so that it can be stored in the snapshot, hashed, and recorded with decisions.

`DEFAULT` is what the shipped text (`policy_text.DEFAULT_TOML`) compiles to; a test holds the two together, so that the
hook never reads TOML. Texts are read by `policy_text.parse`.
"""

from __future__ import annotations

from projectmem_gate.model import CLASSES, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND

MODES = ("observe", "advise", "enforce")
ON_ERROR = ("allow", "deny")
ASK_BY = ("agent", "person")
TARGETS = ("path", "command", "tool")
EFFECTS = ("allow", "warn", "ask", "deny")


class PolicyError(ValueError):
    """The policy text cannot be used. str(e) is one line a person can act on: `file:line: key: what is wrong`."""


class Rule(Value):
    """One rule a person wrote.

    target   path (what an action writes) | command (a shell command's family or text) | tool (the harness's tool name)
    pattern  a glob;  effect  allow (records never object) | warn | ask | deny;  review  ISO date, past which it only warns
    """

    __slots__ = ("effect", "name", "pattern", "reason", "review", "target")

    def __init__(self, name: str, target: str, pattern: str, effect: str, reason: str = "", review: str = "") -> None:
        self.name, self.target, self.pattern = name, target, pattern
        self.effect, self.reason, self.review = effect, reason, review


class Policy(Value):
    """Everything `decide` may be told. Durations in microseconds, chances per mille.

    mode, on_error, ask_by   see README.md
    turn_us, margin          what a wasted turn costs; how many times that (per mille) an expected loss must exceed for an ask
    ask_after, deny_after    identical observed failures in a row, nothing changed, that lead to ask and (enforce) to deny
    floor_warn, floor_ask    chances below which nothing, or at most a warning, is said
    ttl_warn, ttl_ask        class -> how long a failure may warn, and ask or deny;  0 = never
    cooldown                 class -> how long network and lock failures count
    rules                    in the order written
    strongest                the most that the rule of a decision may do
    contradicts, window_us   how many past successes of how long it may object to and still do more than warn
    """

    __slots__ = (
        "ask_after",
        "ask_by",
        "contradicts",
        "cooldown",
        "deny_after",
        "floor_ask",
        "floor_warn",
        "margin",
        "mode",
        "on_error",
        "rules",
        "strongest",
        "ttl_ask",
        "ttl_warn",
        "turn_us",
        "window_us",
    )  # fmt: skip

    def __init__(self, **fields: Any) -> None:
        self.mode: str = fields.get("mode", "advise")
        self.on_error: str = fields.get("on_error", "allow")
        self.ask_by: str = fields.get("ask_by", "agent")
        self.turn_us: int = fields.get("turn_us", 15 * SECOND)
        self.margin: int = fields.get("margin", 2000)
        self.ask_after: int = fields.get("ask_after", 2)
        self.deny_after: int = fields.get("deny_after", 3)
        self.floor_warn: int = fields.get("floor_warn", 400)
        self.floor_ask: int = fields.get("floor_ask", 700)
        self.ttl_warn: dict[str, int] = {**TTL_WARN, **fields.get("ttl_warn", {})}
        self.ttl_ask: dict[str, int] = {**TTL_ASK, **fields.get("ttl_ask", {})}
        self.cooldown: dict[str, int] = {**COOLDOWN, **fields.get("cooldown", {})}
        self.strongest: str = fields.get("strongest", "deny")
        self.contradicts: int = fields.get("contradicts", 3)
        self.window_us: int = fields.get("window_us", 30 * DAY)
        self.rules: tuple[Rule, ...] = tuple(fields.get("rules", ()))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Policy:
        """The inverse of `to_data`; unknown keys (a newer writer's) are ignored, missing ones take the default."""
        fields = {k: data[k] for k in cls.__slots__ if k in data and k != "rules"}
        rules: Sequence[Mapping[str, Any]] = data.get("rules", ())
        return cls(**fields, rules=[Rule(**{k: r[k] for k in Rule.__slots__ if k in r}) for r in rules])

    @property
    def hash(self) -> str:
        """SHA-256 (64 hex digits) of the canonical data: comments and layout of the text do not count."""
        import json

        text = json.dumps(self.to_data(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return _sha256_hex(text.encode())


def _sha256_hex(data: bytes) -> str:
    try:
        from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # Python 3.12+: a tenth of hashlib's import
    except ImportError:
        try:
            from _sha256 import sha256  # type: ignore[import-not-found,no-redef,unused-ignore]
        except ImportError:
            from hashlib import sha256
    digest: str = sha256(data).hexdigest()
    return digest


TTL_WARN = {
    **dict.fromkeys(CLASSES, 7 * DAY),
    "network": 10 * MINUTE,
    "lock": 10 * MINUTE,
    "timeout": DAY,
    "resource": 6 * HOUR,
    "edit-mismatch": DAY,
    "unknown": DAY,
}
TTL_ASK = {**dict.fromkeys(CLASSES, DAY), "network": 10 * MINUTE, "lock": 10 * MINUTE, "resource": HOUR, "unknown": 0}
COOLDOWN = {"network": 10 * MINUTE, "lock": 10 * MINUTE}

DEFAULT = Policy()

"""Replaces secrets by `<secret:HMAC12>` before anything is canonicalised, so that none ever reaches the log. Pure.

The same secret gives the same mark in one installation (its key), so identity survives. Three layers: tokens that show
what they are (vendor prefixes, JWTs, private keys), secrets that their place gives away (URL credentials, Authorization,
a few command lines), and assignments to names such as password or api_key. Hash values, UUIDs, variables, type
annotations and placeholders stay.

Cost: a clean text is searched for fixed substrings only; a pattern is compiled the first time its substring is seen.
"""

from __future__ import annotations

from .digest import hmac_sha256_hex
from .redact_names import assigned, named, names
from .redact_places import BASIC, GATES, JUDGED, PLACES, WRAPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

ROUNDS = 4
_KEY_LONGEST = 16_384  # characters of a private key before its last line
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_PAIRS = (("name", "value"), ("Name", "Value"), ("key", "value"), ("Key", "Value"), ("header", "value"), ("variable", "value"))
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "auth", "_auth", "client-key-data"})
_AUTH = ("auth:", "auth=", 'auth"', "auth'", "auth\\", "auth :", "auth =")  # before what decodes to user:password
_COMMANDS = frozenset({"aws", "setx", "config", "configure"})
_START = r"(?<![A-Za-z0-9_])"

# Tokens that show what they are: ((substrings), pattern), group 1 is the secret. All but the last group are one run of
# the characters in _RUN, at least _LONG of them, so only such runs are searched for the substrings.
_LONG = 16
_TOKENS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("AKIA", "ASIA", "ABIA", "ACCA"), r"(?<![A-Za-z0-9/+_])((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})(?![A-Za-z0-9/+])"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _START + r"(gh[pousr]_[A-Za-z0-9]{20,255})"),
    (("github_pat_",), r"(github_pat_[A-Za-z0-9_]{20,255})"),
    (("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-", "gloas-"),
     _START + r"(gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas)-[A-Za-z0-9_.-]{16,})"),
    (("xox", "xapp-"), r"((?:xox[a-e]\.xox[bp]|xox[abcdeoprs]|xapp)-[A-Za-z0-9%-]{11,})"),
    (("sk_live_", "sk_test_", "rk_live_", "rk_test_"), _START + r"((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,})"),
    (("whsec_",), _START + r"(whsec_[A-Za-z0-9+/=]{16,})"),
    (("sk-",), _START + r"(sk-(?:ant|or|proj|svcacct|admin)-[A-Za-z0-9_-]{16,})"),
    (("sk-",), r"(?<![A-Za-z0-9_-])(sk-(?=[A-Za-z_-]{0,200}\d)"
     r"(?!(?:(?:[a-z]+|v?\d{1,4})-)+(?:[a-z]+\d{0,2}|v?\d+)(?![\w-]))[A-Za-z0-9_-]{20,})"),
    (("AIza",), _START + r"(AIza[A-Za-z0-9_-]{30,})"),
    (("ya29.",), r"(ya29\.[A-Za-z0-9_-]{16,})"),
    (("GOCSPX-",), r"(GOCSPX-[A-Za-z0-9_-]{16,})"),
    (("npm_",), _START + r"(npm_[A-Za-z0-9]{30,})"),
    (("pypi-",), _START + r"(pypi-(?:AgE[A-Za-z0-9_-]{12,}|(?=[a-z-]{0,200}[A-Z0-9])[A-Za-z0-9_-]{50,}))"),
    (("hf_", "r8_", "gsk_", "sbp_", "glsa_"), _START + r"((?:hf|r8|gsk|sbp|glsa)_[A-Za-z0-9_]{30,})"),
    (("SG.",), _START + r"(SG\.[\w-]{16,}\.[\w-]{16,})"),
    (("dop_v1_", "doo_v1_", "dor_v1_"), r"(do[por]_v1_[a-f0-9]{40,})"),
    (("shpat_", "shpca_", "shppa_", "shpss_"), r"(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{24,})"),
    (("dckr_pat_", "lin_api_", "figd_"), r"((?:dckr_pat|lin_api|figd)_[\w-]{20,})"),
    (("hvs.", "hvb."), _START + r"(hv[sb]\.[\w-]{20,})"),
    (("xai-", "pplx-", "dapi", "PMAK-", "NRAK-", "ATATT3", "tskey-", "AGE-SECRET-KEY-"),
     _START + r"(xai-[A-Za-z0-9]{30,}|pplx-[a-zA-Z0-9]{30,}|dapi[0-9a-f]{32}|PMAK-[a-f0-9-]{30,}|NRAK-[A-Z0-9]{20,}"
     r"|ATATT3[\w=-]{30,}|tskey-[\w-]{16,}|AGE-SECRET-KEY-1[0-9A-Z]{40,})"),
    (("SK",), r"(?<![A-Za-z0-9])(SK[0-9a-f]{32})(?![A-Za-z0-9])"),
    (("AA",), r"(?<!\d)(\d{8,10}:AA[\w-]{30,})"),
    (("eyJ",), r"(?<![A-Za-z0-9])(eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,})"),
    (("eyJ",), r"(?<![A-Za-z0-9])(eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){4})(?![.\w-])"),
)  # fmt: skip
_NEEDLES = tuple(dict.fromkeys(needle for needles, _ in _TOKENS for needle in needles))
_RUN = bytes(97 if (chr(c).isalnum() and c < 128) or chr(c) in "_-.%" else 32 for c in range(256))
_LONG_RUN = b"a" * _LONG

# The same over the whole text: tokens that are no such run.
_BLOCKS: tuple[tuple[str, str], ...] = (
    ("PRIVATE KEY",
     r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----((?:(?!-----(?:BEGIN|END)).)+)-----END [A-Z0-9 ]*PRIVATE KEY"),
    ("PRIVATE KEY",  # cut off before its end: the lines that look like a key's
     r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
     r"(?:\s|\\+[nr]|[A-Za-z-]+: [^\n\\]*(?:\n|\\+n)|(?<=[\nnr])(?:[>|+-]|\d{1,6}[:\t|-]))*"
     r"([A-Za-z0-9+/=]{8,}(?:(?:\s|\\+[nr])+(?:(?:[>|+-]|\d{1,6}[:\t|-])[ \t]?)?[A-Za-z0-9+/=]{16,})*"
     r"(?:(?:\s|\\+[nr])+[A-Za-z0-9+/=]+(?=\s*$))?)"),
    ("PuTTY-User", r"Private-Lines: ?\d+\s+((?:[A-Za-z0-9+/=]+\s*)+)"),
    ("hooks.slack", r"hooks\.slack\.com/services/([A-Za-z0-9/+_-]{20,})"),
    ("/webhooks/", r"discord(?:app)?\.com/api/webhooks/(\d+/[\w-]{20,})"),
    ("Key=", r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{20,})"),
)  # fmt: skip


class Redactor:
    """Replaces what looks like a secret, under one installation's key.

    Idempotent: what it has replaced stays as it is. Total: any text, any JSON value.
    """

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.count = 0  # secrets replaced so far, for reports
        self._found: dict[str, str] | None = None  # while a command line that is a list is looked at: what was replaced

    def text(self, s: str) -> str:
        """`s` with every secret replaced."""
        if len(s) < _LONG and s.isalpha():  # a word gives nothing away, and most keys are one
            return s
        for _ in range(ROUNDS):
            out = self._once(s)
            if out == s:
                break
            s = out
        return s

    def tree(self, obj: Any) -> Any:
        """A JSON value with every text in it redacted, and every value that its key gives away. Keys are redacted too."""
        t = type(obj)
        if t is str:
            return self._short(obj) if len(obj) <= _NAME_LONGEST else self.text(obj)
        if t is dict:
            return self._dict(obj)
        if t is list or t is tuple:
            return self._items(obj)
        return obj

    def _dict(self, obj: dict[Any, Any]) -> dict[Any, Any]:
        out = {self._short(k) if type(k) is str else k: self._member(k, v) for k, v in obj.items()}
        if 2 <= len(obj) <= 8:  # {"name": "DB_PASSWORD", "value": "..."}
            for name, value in _PAIRS:
                if type(obj.get(name)) is str and type(obj.get(value)) is str:
                    out[value] = self._member(obj[name], out[value])
        return out

    def _short(self, text: str) -> str:
        """A member's name or a short value, redacted. The same few come again and again: those in which nothing was found are
        remembered."""
        if text in _clean:
            return text
        found = self.text(text)
        if found == text and len(text) <= _NAME_LONGEST:
            if len(_clean) >= _CLEAN_MAX:
                _clean.clear()
            _clean.add(text)
        return found

    def _items(self, items: Any) -> list[Any]:
        """A list: each item, and those that give each other away as words of one command line."""
        out = [self.tree(v) for v in items]
        words = [v for v in out if type(v) is str and v]
        if len(words) < 2 or len(words) > 200 or not any(w[0] == "-" or w in _COMMANDS for w in words):
            return out
        kept, self._found = self._found, {}
        self.text(" ".join(words))
        found, self._found = self._found, kept
        for secret, mark in found.items():
            out = [_swapped(v, secret, mark) if type(v) is str else v for v in out]
        for i in range(1, len(out)):
            flag, value = out[i - 1], out[i]
            if (
                type(flag) is str
                and type(value) is str
                and flag[:2] == "--"
                and value[:1] not in ("-", "")
                and named(flag, value)
            ):
                out[i] = self.mark(value)
        return out

    def _member(self, key: Any, value: Any) -> Any:
        if type(key) is not str or not value or len(key) > 80 or "\n" in key:
            return self.tree(value)
        if type(value) is list and len(value) <= 20 and not any(type(v) is not str or _spaced(v) for v in value):
            return self._items([self._member(key, v) for v in value])
        if type(value) is str and key not in _innocent:
            low = key.lower()
            if low not in _HEADERS and not names(low):
                if len(_innocent) < _CLEAN_MAX:
                    _innocent.add(key)
            elif named(key, value):
                return self.mark(value)
            elif low in _HEADERS:
                whole, head = self.text(f"{key}: {value}"), f"{key}: "
                if whole.startswith(head):
                    value = whole[len(head) :]
        return self.tree(value)

    def mark(self, secret: str) -> str:
        """The replacement of one secret."""
        self.count += 1
        mark = f"<secret:{hmac_sha256_hex(self.key, secret.encode('utf-8', 'surrogatepass'))[:12]}>"
        if self._found is not None:
            self._found[secret] = mark
        return mark

    def _once(self, s: str) -> str:
        runs = _long_runs(s)
        if runs and any(map(runs.__contains__, _NEEDLES)):
            for needles, pattern in _TOKENS:
                for needle in needles:
                    if needle in runs:
                        s = _compiled(pattern).sub(self._swap, s)
                        break
        for needle, pattern in _BLOCKS:
            if needle in s:
                s = _compiled(pattern).sub(self._swap, s)
        if "LS0tLS1CRUdJTi" in s:
            s = _compiled(WRAPPED).sub(self._swap_wrapped, s)
        if "-----END" in s and "PRIVATE KEY" in s:
            s = self._headless(s)
        low = _lower(s)
        for needles, pattern, judged in _behind(tuple([gate for gate in GATES if gate in low])):
            if not needles or _any(needles, low):
                new = _compiled(pattern).sub(self._swap_judged if judged else self._swap, s)
                if new != s:
                    s, low = new, _lower(new)
        if "auth" in low and _any(_AUTH, low):
            new = _compiled(BASIC).sub(self._swap_basic, s)
            if new != s:
                s, low = new, _lower(new)
        spans = assigned(s, low)
        return self._splice(s, spans) if spans else s

    def _swap(self, m: re.Match[str]) -> str:
        whole, secret = m.group(0), m.group(1)
        if not secret.strip() or placeholder(secret.strip()):
            return whole
        i = m.start(1) - m.start(0)
        return f"{whole[:i]}{self.mark(secret)}{whole[i + len(secret) :]}"

    def _swap_judged(self, m: re.Match[str]) -> str:
        whole, last = m.group(0), m.lastindex or 1
        secret, name = m.group(last), (m.group(1) if last > 1 else "password")
        if "<secret:" in secret or not named(name.strip() or "password", secret):
            return whole
        i = m.start(last) - m.start(0)
        return f"{whole[:i]}{self.mark(secret)}{whole[i + len(secret) :]}"

    def _swap_basic(self, m: re.Match[str]) -> str:
        clear = _decoded(m.group(1))
        return self._swap(m) if b":" in clear[1:-1] and clear.isascii() and clear.decode().isprintable() else m.group(0)

    def _swap_wrapped(self, m: re.Match[str]) -> str:
        return self._swap(m) if b"PRIVATE KEY" in _decoded(m.group(1)[:64]) else m.group(0)

    def _headless(self, s: str) -> str:
        """The lines of a private key whose first line is not there."""
        at = s.find("-----END")
        while at >= 0:
            following = s.find("-----END", at + 8)
            if "PRIVATE KEY" in s[at : at + 48]:
                begin, end = _key_lines(s, max(s.rfind("-----", 0, at) + 5, at - _KEY_LONGEST, 0), at)
                if end - begin >= 40:
                    mark = self.mark(s[begin:end])
                    following += len(mark) - (end - begin) if following >= 0 else 0
                    s = s[:begin] + mark + s[end:]
            at = following
        return s

    def _splice(self, s: str, spans: list[tuple[int, int]]) -> str:
        out, at = [], 0
        for start, end in spans:
            out += [s[at:start], self.mark(s[start:end])]
            at = end
        return "".join(out) + s[at:] if out else s


def placeholder(value: str) -> bool:
    """True for what stands for a secret without being one: a variable, a template, stars, our own mark."""
    return value[0] in "$%{<*[(" or value.startswith(("\\$", "...", "xxx", "XXX", "secret:")) or set(value) <= set("*xX.•-_")


def _key_lines(s: str, floor: int, at: int) -> tuple[int, int]:
    """(start, end) of the run of lines of base64 that ends before `at`; empty when there is none."""
    flat = s[floor:at]
    for said in ("\\r", "\\n"):
        flat = flat.replace(said, "  ")
    flat = flat.replace("\\", " ")
    begin = end = len(flat.rstrip())
    for word in reversed(flat.split()):
        if (begin < end and len(word) < 16) or not set(word) <= _BASE64:
            break
        begin = flat.rindex(word, 0, begin)
    return floor + begin, floor + end


def _decoded(text: str) -> bytes:
    """What base64 says; nothing where it is none."""
    from binascii import Error, a2b_base64  # only for what may be a secret

    try:
        return a2b_base64(text)
    except (Error, ValueError):
        return b""


def _spaced(text: str) -> bool:
    return not text or any(c.isspace() for c in text)


def _swapped(word: str, secret: str, mark: str) -> str:
    if word == secret:
        return mark
    return word.replace(secret, mark) if len(secret) >= 4 and word.endswith(secret) else word


def _long_runs(s: str) -> str:
    """The runs of at least _LONG characters that tokens are made of, with a blank between them."""
    raw = s.encode("utf-8", "replace") + b" "
    flat = raw.translate(_RUN)
    found = []
    at = flat.find(_LONG_RUN)
    while at >= 0:
        end = flat.find(b" ", at)
        found.append(raw[at:end])
        at = flat.find(_LONG_RUN, end)
    return b" ".join(found).decode()


def _behind(gates: tuple[str, ...]) -> list[tuple[tuple[str, ...], str, bool]]:
    """What is looked for in a text that holds these of GATES: (further substrings, pattern, whether a name judges it)."""
    found = _rows.get(gates)
    if found is None:
        tables = ((PLACES, False), (JUDGED, True))
        found = [(needles, pattern, judged) for table, judged in tables for gate, needles, pattern in table if gate in gates]
        if len(_rows) >= _CLEAN_MAX:
            _rows.clear()
        _rows[gates] = found
    return found


_rows: dict[tuple[str, ...], list[tuple[tuple[str, ...], str, bool]]] = {}


def _any(needles: tuple[str, ...], low: str) -> bool:
    for n in needles:  # noqa: SIM110 (twice as fast as a generator)
        if n in low:
            return True
    return False


def _lower(s: str) -> str:
    low = s.lower()
    return low if len(low) == len(s) else "".join(c.lower() if c < "\x80" else c for c in s)


_NAME_LONGEST, _CLEAN_MAX = 64, 2_048
_clean: set[str] = set()  # short texts in which nothing was found
_innocent: set[str] = set()  # names that give no value away
_cache: dict[str, re.Pattern[str]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    found = _cache.get(pattern)
    if found is None:
        import re  # only a text that may hold a secret pays for it

        found = _cache[pattern] = re.compile(pattern, re.DOTALL if "BEGIN" in pattern else 0)
    return found

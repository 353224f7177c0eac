"""Replaces secrets by `<secret:HMAC12>` before anything is canonicalised, so that none ever reaches the log. Pure.

The same secret gives the same mark in one installation (its key), so identity survives. Three layers: tokens that show
what they are (vendor prefixes, JWTs, private keys), secrets that their place gives away (URL credentials, Authorization,
a few command lines), and assignments to names such as password or api_key. Hash values, UUIDs, variables, type
annotations and placeholders stay.

Cost: a clean text is searched for fixed substrings only; a pattern is compiled the first time its substring is seen.
"""

from __future__ import annotations

from .digest import hmac_sha256_hex
from .redact_names import assigned

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

ROUNDS = 4
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
    (("sk-",), r"(?<![A-Za-z0-9_-])(sk-(?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{20,})"),
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
_RUN = bytes(c if (chr(c).isalnum() and c < 128) or chr(c) in "_-.%" else 32 for c in range(256))

# The same over the whole text: tokens that are no such run.
_BLOCKS: tuple[tuple[str, str], ...] = (
    ("PRIVATE KEY",
     r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----((?:(?!-----(?:BEGIN|END)).)+)-----END [A-Z0-9 ]*PRIVATE KEY"),
    ("PRIVATE KEY",  # cut off before its end: the lines that look like a key's
     r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr]|[A-Za-z-]+: [^\n\\]*(?:\n|\\n))*([A-Za-z0-9+/=]{8,}"
     r"(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{16,})*(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]+(?=\s*$))?)"),
    ("PuTTY-User", r"Private-Lines: ?\d+\s+((?:[A-Za-z0-9+/=]+\s*)+)"),
    ("hooks.slack", r"hooks\.slack\.com/services/([A-Za-z0-9/+_-]{20,})"),
    ("/webhooks/", r"discord(?:app)?\.com/api/webhooks/(\d+/[\w-]{20,})"),
    ("Key=", r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{20,})"),
)  # fmt: skip

# Places that give a secret away: (substring of the lower-cased text, further ones of which one must be there, pattern).
_PLACES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("auth", ("authorization",),
     r"(?i)authorization\\?[\"']?\s*[:=,]\s*\\?[\"'`]?"
     r"(?:(?:bearer|basic|token|digest|apikey|negotiate)\s+|(?=[^\s\"'`]{0,200}\d))([^\s\"'`\\,;)]{7,})"),
    ("bearer ", (), r"[bB](?<![A-Za-z].)(?i:earer\s+((?=[^\s\"']{0,200}\d)[A-Za-z0-9._~+/=-]{12,}))"),
    ("://", ("@",), r"://[^\s/:@\"'`<>]*:([^\s/@\"'`<>]+(?:@[^\s/@\"'`<>:]+)*)@"),
    ("://", ("@",), r"://((?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{20,})@"),
    (" -u", ("curl", "http", "wget"), r"\s-u\s?\\?[\"']?[^\s:\"'$\\]+:([^\s\"'\\]+)"),
    ("user", ("--user", "--proxy-user"), r"\s--(?:proxy-)?user[= ]\\?[\"']?[^\s:\"'$\\]+:([^\s\"'\\]+)"),
    (" -p", ("sshpass",), r"sshpass\s+-p\s?\\?[\"']?([^\s\"'\\]+)"),
    (" -p", ("mysql", "mariadb"), r"(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;&]{0,400}?\s-p\\?[\"']?([^\s\"'\\]+)"),
    (" -p", ("login",), r"(?:docker|podman|helm|az|oc)\s[^\n|;&]{0,80}?\blogin\b[^\n|;&]{0,300}?\s-p[ =]?\\?[\"']?([^\s\"'\\]+)"),
    ("sig", ("x-amz-signature=", "sig="), r"(?i)(?:x-amz-signature|[?&]sig)=([A-Za-z0-9%/+_-]{16,})"),
    ("export ", ("=",),
     r"(?i:export)\s+\w+=\\?[\"']?((?=[^\s\"']{0,200}[a-z])(?=[^\s\"']{0,200}[A-Z])(?=[^\s\"']{0,200}\d)[\w+=-]{24,})(?![\w/+=-]|[.:]\S)"),
    ("_key", ("_key=",),
     r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]*_KEY=\\?[\"']?((?=[^\s\"']{0,200}\d)[^\s\"'\\;&|<>$/~.][^\s\"'\\;&|<>$]{7,})"),
)  # fmt: skip


class Redactor:
    """Replaces what looks like a secret, under one installation's key.

    Idempotent: what it has replaced stays as it is. Total: any text, any JSON value.
    """

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.count = 0  # secrets replaced so far, for reports

    def text(self, s: str) -> str:
        """`s` with every secret replaced."""
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
            return self.text(obj)
        if t is dict:
            return {self.text(k) if type(k) is str else k: self._member(k, v) for k, v in obj.items()}
        if t is list or t is tuple:
            return [self.tree(v) for v in obj]
        return obj

    def _member(self, key: Any, value: Any) -> Any:
        if type(value) is str and type(key) is str and value and len(key) <= 80 and "\n" not in key and '"' not in value:
            probe = f'"{key}":"{value}"'
            for start, end in assigned(probe, probe.lower()):
                if start == len(key) + 4 and end == len(probe) - 1:
                    return self.mark(value)
        return self.tree(value)

    def mark(self, secret: str) -> str:
        """The replacement of one secret."""
        self.count += 1
        return f"<secret:{hmac_sha256_hex(self.key, secret.encode('utf-8', 'surrogatepass'))[:12]}>"

    def _once(self, s: str) -> str:
        words = s.encode("utf-8", "replace").translate(_RUN).split()
        if long := [w for w in words if len(w) >= _LONG]:
            runs = b" ".join(long).decode()
            for needles, pattern in _TOKENS:
                for needle in needles:
                    if needle in runs:
                        s = _compiled(pattern).sub(self._swap, s)
                        break
        for needle, pattern in _BLOCKS:
            if needle in s:
                s = _compiled(pattern).sub(self._swap, s)
        low = _lower(s)
        for gate, needles, pattern in _PLACES:
            if gate in low and (not needles or _any(needles, low)):
                new = _compiled(pattern).sub(self._swap, s)
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

    def _splice(self, s: str, spans: list[tuple[int, int]]) -> str:
        out, at = [], 0
        for start, end in spans:
            out += [s[at:start], self.mark(s[start:end])]
            at = end
        return "".join(out) + s[at:] if out else s


def placeholder(value: str) -> bool:
    """True for what stands for a secret without being one: a variable, a template, stars, our own mark."""
    return value[0] in "$%{<*[(" or value.startswith(("\\$", "...", "xxx", "XXX", "secret:")) or set(value) <= set("*xX.•-_")


def _any(needles: tuple[str, ...], low: str) -> bool:
    for n in needles:  # noqa: SIM110 (twice as fast as a generator)
        if n in low:
            return True
    return False


def _lower(s: str) -> str:
    low = s.lower()
    return low if len(low) == len(s) else "".join(c.lower() if c < "\x80" else c for c in s)


_cache: dict[str, re.Pattern[str]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    found = _cache.get(pattern)
    if found is None:
        import re  # only a text that may hold a secret pays for it

        found = _cache[pattern] = re.compile(pattern, re.DOTALL if "BEGIN" in pattern else 0)
    return found

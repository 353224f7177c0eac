"""Places that give a secret away by what stands around it, as patterns; what each is tried on is in redact.py. Pure data.

Nothing is compiled here: a pattern is, the first time that the substrings it asks for are seen. It begins with characters where
it can: what begins with a flag or a look around is tried at every place of a text.
"""

from __future__ import annotations

# Places that give a secret away: (substring of the lower-cased text, further ones of which one must be there, pattern).
PLACES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("auth", ("authorization",),
     r"(?i)authorization\\?[\"']?\s*[:=,]\s*\\?[\"'`]?"
     r"(?:(?:bearer|basic|token|digest|apikey|negotiate)\s+|(?=[^\s\"'`]{0,200}\d))([^\s\"'`\\,;)]{7,})"),
    ("bearer", ("bearer ",), r"[bB](?<![A-Za-z].)(?i:earer\s+((?=[^\s\"']{0,200}\d)[A-Za-z0-9._~+/=-]{12,}))"),
    ("://", ("@",), r"://[^\s/:@\"'`<>]*:(?!\d+[/?#,;(])([^\s/@\"'`<>]+(?:@[^\s/@\"'`<>:]+)*)@"),
    ("://", ("postgres", "mysql", "maria", "mongodb", "redis", "amqp", "mssql", "sqlserver", "clickhouse"),  # `/`, `'`, a space
     r"(?i)(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|clickhouse)(?:\+\w+)?://[^\s/:@\"'`<>]*:"
     r"(?!\d+[^\w@%.!*+=~^-])([^\s/@\"'`<>]+(?:[ '/][^\s/@\"'`<>]+){1,6})@(?=[\w.\[])"),
    ("://", ("@",), r"://((?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{20,})@"),
    (" -", ("curl", "http", "wget"), r"\s-u\s?\\?[\"']?[^\s:\"'$\\]+:([^\s\"'\\]+)"),
    (" -", ("--user", "--proxy-user"), r"\s--(?:proxy-)?user[= ]\\?[\"']?[^\s:\"'$\\]+:([^\s\"'\\]+)"),
    (" -", ("sshpass",), r"sshpass\s+-p\s?\\?[\"']?([^\s\"'\\]+)"),
    (" -", ("mysql", "mariadb"), r"(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;&]{0,400}?\s-p\\?[\"']?([^\s\"'\\]+)"),
    (" -", ("login",), r"(?:docker|podman|helm|az|oc)\s[^\n|;&]{0,80}?\blogin\b[^\n|;&]{0,300}?\s-p[ =]?\\?[\"']?([^\s\"'\\]+)"),
    ("sig", ("x-amz-signature=", "sig="), r"(?i)(?:x-amz-signature|[?&]sig)=([A-Za-z0-9%/+_-]{16,})"),
    ("export ", ("=",),
     r"[eE](?i:xport)\s+(?!\w*(?i:id|sha|hash|commit|digest|image|tag|version|name|url|ref|path|release|build)=)\w+=\\?[\"']?((?=[^\s\"']{0,200}[a-z])(?=[^\s\"']{0,200}[A-Z])(?=[^\s\"']{0,200}\d)[\w+=-]{24,})(?![\w/+=-]|[.:]\S)"),
    ("key", ("_key=",),
     r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]*(?<!CACHE)(?<!SORT)(?<!PARTITION)(?<!PRIMARY)(?<!FOREIGN)(?<!PUBLIC)(?<!GPG)(?<!INDEX)"
     r"(?<!GROUP)_KEY=\\?[\"']?(?!(?:[a-z]+[-_])+(?:[a-z]+|v?\d+)(?![^\s\"'\\;&|<>$]))((?=[^\s\"']{0,200}\d)[^\s\"'\\;&|<>$/~.][^\s\"'\\;&|<>$]{7,})"),
)  # fmt: skip

_ITEM = r"\\*[\"'`]?([^\s\"'`\\|;&]+)"  # a word of a command line, quoted or not
_SEP = r"(?:\s|\\+[nr])+"

# More of them, where a variable, a word of the language or a template is left: (gate, further ones, pattern). The secret is
# the last group that took part; a first of two is the name that judges it.
JUDGED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("cookie", ("cookie:", "cookie\"", "cookie'", "cookie\\"),
     r"(?i)(?<!\w)(?:set-)?cookie\\*[\"']?\s*:\s*\\*[\"'`]?(?=[^\s=;\"'\\]+=[^$<{%*\s])"
     r"([^\s=;\"'\\{}()]+=[^\s;\"'\\]{6,}(?:;\s*[^\s=;\"'\\]+=[^\s;\"'\\]+)*)"),
    ("curl", (" -b", "--cookie"), r"curl\b[^\n|;&]{0,400}?\s(?:-b|--cookie)[ =]?\s?\\*[\"']?(?=[^\s=;\"'\\]+=[^$<{%*\s])"
     r"([^\s\"'=;\\/]+=[^\s\"'\\]{6,})"),
    ("pass", (" -pass",), r"\s-pass(?:in|out)?\s+\\*[\"']?pass:([^\s\"'\\]+)"),
    ("--", ("--pw",), r"(?<![\w-])--pw[= ]" + _ITEM),
    ("pass", ("htpasswd",), r"htpasswd\s+-(?=\w*b)(?=\w*n)\w+\s+\S+\s+" + _ITEM),
    ("pass", ("htpasswd",), r"htpasswd\s+-(?=\w*b)(?!\w*n)\w+\s+\S+\s+[^\s-]\S*\s+" + _ITEM),
    (" -", ("ldap",), r"ldap(?:search|modify|add|delete|whoami|passwd|modrdn)\b[^\n|;&]{0,400}?\s-w\s?" + _ITEM),
    ("pass", ("machine",), r"machine(?<!\wmachine)" + _SEP + r"[^\s\\]+" + _SEP + r"login" + _SEP + r"[^\s\\]+" + _SEP
     + r"password" + _SEP + r"([^\s\"'\\]+)"),
    (":5432:", (), r"(?<![\w.:-])[\w.*-]+:5432:[A-Za-z*_][\w*-]*:[\w*.-]+:([^\s\"'\\]{3,})"),
    ("</", ("password>", "passwd>", "passphrase>", "secret>", "token>", "pwd>", "key>"),
     r"(?i)<([\w.:-]{0,60}(?:password|passwd|passphrase|secret|token|pwd|api-?_?key))(?:\s[^<>]{0,200})?>\s*([^<>\s]{3,200})\s*</"),
    ("env ", (), r"ENV(?<![^\s\"'n]ENV)[ \t]+(\w+)[ \t]+" + _ITEM),
    ("arg ", (), r"ARG(?<![^\s\"'n]ARG)[ \t]+(\w+)[ \t]+" + _ITEM),
    ("set", ("set -", "setx ", "configure set ", "config set "),
     r"(?:^|[\s\"'`;&|(])(?:set[ \t]+-\w+|setx(?:\.exe)?|\w+[ \t]+(?:configure|config)[ \t]+set)"
     r"[ \t]+([\w./:@-]+)[ \t]+" + _ITEM),
    ("key", ("?key=", "&key="),
     r"[?&]key=((?=[^\s&\"']{0,200}[a-z])(?=[^\s&\"']{0,200}[A-Z])(?=[^\s&\"']{0,200}\d)[\w.%~-]{12,})"),
    ("pwd={", (), r"(?i)(?:^|;)\s*pwd=\{(?=[^}\n]*[\d;])([^}\n\"'()\[\]${]{3,})\}"),
    ("secret", ("gh secret set",), r"gh secret set\b[^\n|;&]{0,200}?\s(?:--body|-b)[= ]\s?" + _ITEM),
    ("bearer", ("bearer:", "bearer=", 'bearer":'), r"(?i)bearer\\*[\"']?[:=]\s*\\*[\"']?((?=[^\s\"']{0,200}\d)[\w.~+/=-]{12,})"),
    ("key", ("client-key-data",), r"client-key-data\\*[\"']?\s*[:=]\s*\\*[\"']?([A-Za-z0-9+/=]{16,})"),
    ("pass", ("password: |", "password: >", "password:|", "passwd: |", "phrase: |"),
     r"(?im)^([ \t]*)[\w.-]{0,60}(?:password|passwd|passphrase):[ \t]*[|>][+-]?[ \t]*\n\1[ \t]+"
     r"(\S{3,}(?:\n\1[ \t]+\S{3,})*)[ \t]*$"),
    ("secret", ("secret: |", "secret: >", "secret:|"), r"(?im)^([ \t]*)[\w.-]{0,60}secret:[ \t]*[|>][+-]?[ \t]*\n\1[ \t]+"
     r"(\S{3,}(?:\n\1[ \t]+\S{3,})*)[ \t]*$"),
    ("pass", ("password:\n", "password: \n", "passwd:\n", "phrase:\n"),
     r"(?im)^([ \t]*)[\w.-]{0,60}(?:password|passwd|passphrase):[ \t]*\n\1[ \t]+"
     r"(?=\S{0,200}\d)([^\s\"':#-][^\s\"':]{3,})[ \t]*$"),
)  # fmt: skip

# HTTP's `user:password` in base64: only what decodes to that.
BASIC = r"(?i)(?<![A-Za-z0-9])_?auth\\*[\"']?\s*[:=]\s*\\*[\"']?([A-Za-z0-9+/]{8,8192}={0,2})(?![A-Za-z0-9+/=])"
# A private key's text in base64 once more, as Kubernetes keeps it.
WRAPPED = r"(LS0tLS1CRUdJTi[A-Za-z0-9+/]{16,}={0,2}(?:" + _SEP + r"[A-Za-z0-9+/]{16,}={0,2})*)"

GATES = tuple(dict.fromkeys(gate for gate, _, _ in (*PLACES, *JUDGED)))  # each is looked for once in a text

"""Secrets go, everything else stays: shapes that must be replaced, look-alikes that must not, and idempotence.

The sample secrets are made up and put together at run time, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

from typing import Any

import pytest
from projectmem_logs import redact
from projectmem_logs.redact import Redactor

KEY = b"k" * 32
R = Redactor(KEY)
PW = "hunter2"
MIX = "a1B2c3D4e5F6g7H8i9J0" * 3
PEM = "-----BEGIN {0}PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END {0}PRIVATE KEY-----"

SECRETS: list[tuple[str, str]] = [
    # text with one secret in it, the secret
    *[(f"found {t} here", t) for t in (
        "AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE", "ghp_" + MIX[:36], "gho_" + MIX[:36], "ghs_" + MIX[:36],
        "github_pat_" + MIX[:50], "glpat-" + MIX[:20], "xoxb-" + "123456789012-" + MIX[:20], "xoxp-" + MIX[:30],
        "sk_live_" + MIX[:24], "rk_test_" + MIX[:24], "whsec_" + MIX[:24], "sk-" + MIX[:40], "sk-proj-" + MIX[:40],
        "sk-ant-api03-" + MIX[:40], "AIza" + MIX[:35], "GOCSPX-" + MIX[:24], "ya29." + MIX[:30], "npm_" + MIX[:36],
        "pypi-" + "AgEIcHlwaS5vcmc" + MIX[:30], "hf_" + MIX[:34], "SG." + MIX[:22] + "." + MIX[:43], "dop_v1_" + "0a" * 32,
        "shpat_" + "0a" * 16, "dckr_pat_" + MIX[:27], "hvs." + MIX[:24], "gsk_" + MIX[:40], "SK" + "0a" * 16,
        "123456789:AA" + MIX[:33], "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0." + MIX[:30],
    )],
    (PEM.format("RSA "), "MIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC"),
    (PEM.format(""), "hkiG9w0BAQEFAASC"),
    (PEM.format("OPENSSH ").replace("\n", "\\n"), "hkiG9w0BAQEFAASC"),
    (PEM.format("EC ")[:60], "MIIEvQIBADANBgkq"),
    (PEM.format("EC ")[:60] + "\nand more text", "MIIEvQIBADANBgkq"),
    (f"password={PW}", PW),
    (f"PASSWORD={PW} make deploy", PW),
    (f"export DB_PASSWORD='{PW}'", PW),
    ("export DB_PASSWORD=swordfish", "swordfish"),
    (f"MYSQL_PWD={PW} mysql", PW),
    (f"passwd: {PW}", PW),
    (f"passphrase = \"{PW}\"", PW),
    (f'"password": "{PW}"', PW),
    (f"'password' => '{PW}'", PW),
    (f'{{\\"password\\": \\"{PW}\\"}}', PW),
    (f'{{"db": {{"userPassword":"{PW}"}}}}', PW),
    (f"password: str = \"{PW}\"", PW),
    (f"define('DB_PASSWORD', '{PW}')", PW),
    (f"client_secret: {PW}", PW),
    (f"secret={PW}", PW),
    ("api_key=abcd1234efgh", "abcd1234efgh"),
    ("apiKey: 'abcd1234efgh'", "abcd1234efgh"),
    ("X-Api-Key: abcd1234efgh", "abcd1234efgh"),
    ("auth_token = \"abcd1234efgh\"", "abcd1234efgh"),
    ("accessToken:abcd1234efgh", "abcd1234efgh"),
    ("TOKEN=swordfish ./run", "swordfish"),
    ("tool --token abcd1234efgh", "abcd1234efgh"),
    ("tool --token=swordfish", "swordfish"),
    (f"tool --password {PW} x", PW),
    ("GET /?access_token=abcd1234efgh&x=1", "abcd1234efgh"),
    ("//registry.npmjs.org/:_authToken=abcd1234efgh", "abcd1234efgh"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("SECRET_KEY = 'django-insecure-3x@mple'", "django-insecure-3x@mple"),
    ("export OPENAI_KEY=abcd1234efgh", "abcd1234efgh"),
    (f"export X={MIX[:40]}", MIX[:40]),
    (f"export X={MIX[:40]}: and what came of it", MIX[:40]),
    (f"They say export X={MIX[:40]}. Do not.", MIX[:40]),
    (f"postgres://bob:{PW}@localhost/db", PW),
    (f"https://bob:{PW}@host:8080/x", PW),
    (f"redis://:{PW}@cache:6379/0", PW),
    (f"git clone https://{MIX[:30]}@github.com/a/b.git", MIX[:30]),
    ("Authorization: Bearer abc.def.ghi123", "abc.def.ghi123"),
    ('-H "Authorization: Basic Ym9iOmh1bnRlcjI="', "Ym9iOmh1bnRlcjI="),
    ("'authorization': 'token abcd1234efgh'", "abcd1234efgh"),
    (f"bearer {MIX[:30]}", MIX[:30]),
    (f"curl -u bob:{PW} https://x.y", PW),
    (f"curl --user bob:{PW} https://x.y", PW),
    (f"mysql -u root -p{PW} db", PW),
    (f"sshpass -p {PW} ssh host", PW),
    (f"docker login -u bob -p {PW}", PW),
]  # fmt: skip

CLEAN = [
    "password=$VAR", 'password="$PASSWORD"', "password=${VAR}", "PASSWORD=${{ secrets.PASSWORD }}", "password: ********",
    "password: <your password>", "password={{ vault_password }}", "token: string", "token: str", "token?: string;",
    "token: Optional[str] = None", "password: string;", "secret: boolean", "password: SecretStr", "api_key=None",
    'api_key=os.environ["API_KEY"]', "token = get_token()", 'token = request.headers.get("x")', "password=password",
    "connect(user=user, password=pwd, token=tok)", "max_tokens=4096", '"input_tokens": 12345', "token_count=123456789",
    'tokenizer="bert-base-uncased12"', 'token_type: "Bearer1234"', "PWD=/home/me/x1", "OLDPWD=/home/me/repo2",
    'secretName: my-secret1234', 'passwordField: "abc123456"', "x = tokens[0]", "def login(user: str, password: str) -> Token:",
    "if password == other: pass", "the password is wrong", "1 passed, 2 failed", "--password-stdin", "bypass=1234567a",
    "docker build --secret id=foo,src=bar1 .", 'git commit -m "rotate the token and password handling"',
    "export PATH=/usr/local/bin:$PATH", "export NODE_ENV=production", "export PYTHONPATH=src:lib",
    "git@github.com:a/b.git", "ssh://git@host/x", "https://user:$PASS@host/x", "https://example.com/a@b", "http://localhost:8080/@x",
    "Authorization: Bearer $TOKEN", '"Authorization": `Bearer ${token}`', "Authorization: required",
    "commit 8f15288aabbccddeeff00112233445566778899a", "550e8400-e29b-41d4-a716-446655440000",
    "sha512-abcDEF123+/abcDEF123abcDEF123abcDEF123abcDEF123abcDEF123abcDEF123abcDEF123abcDEF12==",
    '"integrity": "sha512-abcDEF123+/abcDEF123abcDEF123abcDEF123abcDEF123abcDEF123abcDEF123abcDEF12=="',
    'hash = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"',
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkq\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkq\n-----END PUBLIC KEY-----", "task-queue-with-a-very-long-name-1234567890",
    "disk-usage-report-generator-v2-final", "const token = response.data.token;", "xox is a game", "skip", "eyJ",
    'key: value', "sort_key=created_at", "primary_key=True", "curl -u $USER:$PASS https://x.y", "mysql -u root -p db",
]  # fmt: skip


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=range(len(SECRETS)))
def test_a_secret_goes_and_its_surroundings_stay(text: str, secret: str) -> None:
    """The secret is gone whole, one mark stands for it, what is around it stays, and a second pass changes nothing."""
    out = R.text(f"before {text} after")
    assert secret not in out and out.count("<secret:") == 1
    assert out.startswith("before ") and out.endswith((" after", ">")) and R.text(out) == out


@pytest.mark.parametrize("text", CLEAN, ids=range(len(CLEAN)))
def test_what_is_no_secret_stays(text: str) -> None:
    """Hashes, variables, types, placeholders and prose are not touched, alone or among other lines."""
    assert R.text(text) == text
    assert R.text(f"x = 1\n{text}\ny = 2\n") == f"x = 1\n{text}\ny = 2\n"


def test_the_same_secret_has_the_same_mark_under_one_key_only() -> None:
    """Identity survives within an installation, and says nothing outside it."""
    a, b = R.text(f"password={PW}"), R.text(f'"passwd": "{PW}"')
    mark = a.removeprefix("password=")
    assert mark in b and len(mark) == len("<secret:>") + 12
    assert Redactor(b"x" * 32).text(f"password={PW}") != a


def test_trees_are_redacted_by_key_and_by_text() -> None:
    """A value whose key gives it away, texts at any depth, keys themselves; other values untouched."""
    given: dict[str, Any] = {
        "password": PW, "n": 1, "ok": True, "none": None, "list": ["api_key=abcd1234efgh"], "deep": {"apiToken": "abcd1234efgh"},
        "token": {"type": "x"}, "AKIA" + "IOSFODNN7EXAMPLE": "x", "max_tokens": "4096",
    }  # fmt: skip
    out = R.tree(given)
    assert PW not in str(out["password"]) and out["n"] == 1 and out["ok"] is True and out["none"] is None
    assert "abcd1234efgh" not in str(out) and out["token"] == {"type": "x"} and out["max_tokens"] == "4096"
    assert not any(k.startswith("AKIA") for k in out) and R.tree(out) == out


def test_many_secrets_in_one_text() -> None:
    """Each gets its mark; the count is kept."""
    r = Redactor(KEY)
    text = "\n".join(t for t, _ in SECRETS)
    out = r.text(text)
    assert not [s for _, s in SECRETS if s in out and s not in ("swordfish",)]
    assert r.count >= len(SECRETS) - 2 and r.text(out) == out


def test_a_clean_text_meets_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in ordinary code makes one worth trying: that is what keeps redaction cheap."""
    tried: list[str] = []
    real = redact._compiled
    monkeypatch.setattr(redact, "_compiled", lambda pattern: tried.append(pattern) or real(pattern))
    text = "def total(xs):\n    return sum(x.price for x in xs)  # plain code, nothing to see\n" * 40
    assert R.text(text) == text and not tried
    R.text(f"{text}curl -u me:hunter2 http://x")
    assert tried

"""Secrets that only their place gives away, and look-alikes in the same places; members, lists and pairs of a JSON value."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from projectmem_logs.redact import Redactor

R = Redactor(b"k" * 32)
S = "Zq7" + "Xk29LmPq81"
AUTH = base64.b64encode(b"user:password12").decode()
BODY = ["MIIEpAIBAAKCAQEAabcdefghijklmnop", "qrstuvwxyzABCDEFGHIJKLMNOP012345", "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZ9"]
HEAD, TAIL = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"


def nested(value: Any, times: int) -> str:
    """JSON within JSON."""
    text = json.dumps(value)
    for _ in range(times - 1):
        text = json.dumps(text)
    return text


SECRETS: list[tuple[str, str]] = [
    (f'{{"auths": {{"h": {{"auth": "{AUTH}"}}}}}}', AUTH),
    (f"_auth={AUTH}", AUTH),
    ("_auth=" + "dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlF", "BSU0EgUFJJVkFURSBLRVkt"),
    (f"machine github.com login bob password {S}", S),
    (f"machine github.com\n  login bob\n  password {S}", S),
    (f"db.host:5432:app:bob:{S}", S),
    (f"<password>{S}</password>", S),
    (f"<db:apiKey kind='x'>{S}</db:apiKey>", S),
    (f"ENV DB_PASSWORD {S}", S),
    (f"ARG NPM_TOKEN {S}", S),
    (f"set -x DB_PASSWORD {S}", S),
    (f"setx API_KEY {S}", S),
    (f"aws configure set aws_secret_access_key {S}", S),
    (f"npm config set //r.example/:_authToken {S}", S),
    (f"openssl rsa -passin pass:{S}", S),
    (f"tool --pass {S}", S),
    (f"tool --pw={S}", S),
    (f"htpasswd -b f bob {S}", S),
    (f"htpasswd -nb bob {S}", S),
    (f"ldapsearch -D cn=x -w {S}", S),
    (f"gh secret set NAME --body {S}", S),
    (f"https://h/?key={S}", S),
    ("Driver=x;Uid=sa;PWD={my;Se9cret}", "my;Se9cret"),
    (f"curl -H 'Cookie: session={S}' h", S),
    (f"curl -b 'sid={S}' h", S),
    (f"bearer: {S}", S),
    ("postgres://bob:pa/ss9word@host/db", "pa/ss9word"),
    ("postgres://bob:pa'ss9word@host/db", "pa'ss9word"),
    ("postgres://bob:pass word1@host/db", "pass word1"),
    (f"password: |\n  {S}\n", S),
    (f"db:\n  password:\n    {S}\n", S),
    ('password: "correct horse battery staple"', "correct horse battery staple"),
    ('{"password": "ab\\"cd9efgh"}', "cd9efgh"),
    *[(nested({"password": S}, depth), S) for depth in range(1, 6)],
    *[(nested("\n".join([HEAD, *BODY]), depth), BODY[1]) for depth in range(1, 5)],
    ("".join(f"> {line}\n" for line in [HEAD, *BODY]), BODY[1]),
    ("".join(f"{i}: {line}\n" for i, line in enumerate([HEAD, *BODY])), BODY[1]),
    ("".join(f"+{line}\n" for line in [HEAD, *BODY]), BODY[1]),
    ("\n".join([*BODY, TAIL]), BODY[0]),
    (json.dumps("\n".join([*BODY, TAIL])), BODY[0]),
]

CLEAN = [
    "CACHE_KEY=node-modules-v2-linux", "SORT_KEY=created_at_2024", "PARTITION_KEY=user_id_12345", "PRIMARY_KEY=order_items_2",
    "GPG_KEY=E3FF2839C048B25C084DEBE9B26995E310250568", "APP_KEY=release-notes-2024",
    "secret: sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
    "token: 123e4567-e89b-12d3-a456-426614174000", "SyntaxError: Unexpected token: 0x1234abcd9",
    "error: token: unexpected_identifier_42", "num_pass: 12345678", "first-pass=1000ms", "tests_pass=4000000",
    "http://localhost:3000?email=a@b.co", "ftp://host:21;me@x", "http://h:8080#frag@x", "http://a:3000(me@b)",
    "redis://localhost:6379/0 user@h", "postgres://h:5432, me@x", "mail 'postgres://h:5432' to a@b",
    "sk-learn-contrib-version-20240101", "scikit sk-something-longer-than-20-chars9", "export BUILD_ID=ABCdef1234567890abcdefGHI",
    "export TF_VAR_image=RepoName2024ReleaseCandidateX1", "export GIT_SHA=9fceb02d0aE598e95dc970b74767f19372d61af8",
    '"auth": "required2x"', "auth: OAuth2Bearer12", "_auth: true", "cookie: { httpOnly: true }", "Cookie: session=$SID",
    "ENV NODE_VERSION 20.11.1", "ENV PASSWORD_FILE /run/secrets/pw1", "set -e", "set -x PATH /usr/bin1", "openssl -passin env:PW",
    "<password>string</password>", "<label>Password</label>", "<token>{token}</token>", "https://h/?key=user_id_2024",
    "PWD={pwd}", 'f"UID={uid};PWD={password};"', "main.c:5432:5:error:undefined", "password:\n  type: string\n",
    "password:\n  - required2\n", "password: |\n  The password is checked here.\n", '"password": "Enter your password here"',
    '"password": "is too short"', "ldapsearch -w $PW", "htpasswd -b f bob $PW", "tool --pw=$PW", "mkdir -p dir1",
    "--pass-with-no-tests 3", "-----BEGIN PUBLIC KEY-----\n" + "A" * 64 + "\n-----END PUBLIC KEY-----",
]  # fmt: skip

# (a JSON value, the secret in it)
TREES: list[tuple[Any, str]] = [
    ({"headers": {"Authorization": f"Basic {AUTH}"}}, AUTH),
    ({"Cookie": f"sid={S}"}, S),
    ({"auth": AUTH}, AUTH),
    ({"password": 'q"uote9secret'}, "uote9secret"),
    ({"password": "l1secret\nl2secret"}, "l2secret"),
    ({"password": "ends in\\9x\\"}, "9x"),
    ({"password": [S]}, S),
    ({"db": {"pass": S}}, S),
    ({"args": ["--password", S]}, S),
    ({"argv": ["mysql", f"-p{S}", "db"]}, S),
    ({"argv": ["curl", "-u", f"bob:{S}"]}, S),
    (["aws", "configure", "set", "aws_secret_access_key", S], S),
    ({"env": [{"name": "DB_PASSWORD", "value": S}]}, S),
    ([{"Key": "API_TOKEN", "Value": S}], S),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=range(len(SECRETS)))
def test_a_secret_that_its_place_gives_away_goes(text: str, secret: str) -> None:
    """It is gone, and a second pass changes nothing."""
    out = R.text(text)
    assert secret in text or "\n" in secret
    assert secret not in out and "<secret:" in out and R.text(out) == out


@pytest.mark.parametrize("text", CLEAN, ids=range(len(CLEAN)))
def test_what_stands_in_such_a_place_and_is_none_stays(text: str) -> None:
    """Alone, and among other lines."""
    assert R.text(text) == text
    assert R.text(f"x = 1\n{text}\ny = 2\n") == f"x = 1\n{text}\ny = 2\n"


@pytest.mark.parametrize(("value", "secret"), TREES, ids=range(len(TREES)))
def test_members_pairs_and_words_of_a_command_line(value: Any, secret: str) -> None:
    """In a JSON value it goes too, and what is left is a fixed point."""
    out = R.tree(value)
    assert secret not in json.dumps(out) and "<secret:" in json.dumps(out) and R.tree(out) == out


def test_other_values_stay() -> None:
    """Lists and pairs that only look so."""
    given: dict[str, Any] = {
        "args": ["--verbose", "x1y2z3a4", "--token-file", "/a/b1"], "todo": ["- rotate the token", "then ship 2"],
        "env": [{"name": "NODE_ENV", "value": "production2"}, {"name": "PASSWORD_FILE", "value": "/run/x1"}],
        "errors": {"password": ["is too short (minimum is 8 characters)"]}, "auth": "required2x", "cookie": "none", "pass": "12",
    }  # fmt: skip
    assert R.tree(given) == given

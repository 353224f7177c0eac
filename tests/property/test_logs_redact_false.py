"""What looks like a secret and is none stays: shapes of hashes, ids, images and built code, with any contents."""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Callable

import pytest
from projectmem_logs.redact import Redactor

R = Redactor(b"k" * 32)
TIMES = 300
PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0"
HEX, NIX = "0123456789abcdef", "0123456789abcdfghijklmnpqrsvwxyz"
WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def some(rng: random.Random, alphabet: str, count: int) -> str:
    """A random text."""
    return "".join(rng.choices(alphabet, k=count))


def b64(rng: random.Random, size: int) -> str:
    """Random bytes in base64."""
    return base64.b64encode(rng.randbytes(size)).decode()


def image(rng: random.Random, head: bytes, size: int = 900) -> str:
    """A picture in base64."""
    return base64.b64encode(head + rng.randbytes(size)).decode()


def minified(rng: random.Random) -> str:
    """A line of built JavaScript."""
    names = [some(rng, WORD[:52], rng.randint(1, 2)) for _ in range(12)]
    parts = [
        f"function {a}({b},{c}){{return {b}.{d}({c}).then((e)=>e.token?e.token:null)}}"
        f"var {a}={{key:{b},auth:!0,t:{rng.randrange(9999)}}};"
        for a, b, c, d in zip(names[::4], names[1::4], names[2::4], names[3::4], strict=True)
    ]
    return "!function(e,t){" + "".join(parts) + "}(this,0);//# sourceMappingURL=main." + some(rng, HEX, 20) + ".js.map"


SHAPES: dict[str, Callable[[random.Random], str]] = {
    "git sha": lambda r: f"commit {some(r, HEX, 40)}\nindex {some(r, HEX, 7)}..{some(r, HEX, 7)} 100644",
    "git log": lambda r: f"{some(r, HEX, 10)} Rotate the API key and password handling (#{r.randrange(999)})",
    "sha256": lambda r: f"{some(r, HEX, 64)}  dist/app-1.2.tar.gz",
    "md5": lambda r: f"MD5 (file) = {some(r, HEX, 32)}",
    "uuid": lambda r: f'"id": "{uuid.UUID(bytes=r.randbytes(16), version=4)}"',
    "docker digest": lambda r: f"python@sha256:{some(r, HEX, 64)}",
    "npm integrity": lambda r: f'"integrity": "sha512-{b64(r, 64)}"',
    "yarn resolved": lambda r: f'  resolved "https://registry.yarnpkg.com/a/-/a-1.0.0.tgz#{some(r, HEX, 40)}"',
    "pnpm": lambda r: f"    resolution: {{integrity: sha512-{b64(r, 64)}}}",
    "pip hash": lambda r: f"    --hash=sha256:{some(r, HEX, 64)} \\",
    "cargo lock": lambda r: f'checksum = "{some(r, HEX, 64)}"',
    "go.sum": lambda r: f"golang.org/x/crypto v0.17.0 h1:{b64(r, 32)}",
    "uv lock": lambda r: f'hash = "sha256:{some(r, HEX, 64)}", size = {r.randrange(10**6)}',
    "nix": lambda r: f"/nix/store/{some(r, NIX, 32)}-openssl-3.0.13",
    "sri": lambda r: f'<script src="/a.js" integrity="sha384-{b64(r, 48)}" crossorigin="anonymous"></script>',
    "png": lambda r: f"data:image/png;base64,{image(r, PNG)}",
    "jpeg": lambda r: f"url(data:image/jpeg;base64,{image(r, JPEG)})",
    "woff": lambda r: f"src: url(data:font/woff2;base64,{image(r, b'wOF2')}) format('woff2');",
    "bare image": lambda r: image(r, PNG, 300),
    "minified": minified,
    "source map": lambda r: '{"version":3,"mappings":"' + ";".join(some(r, WORD + ",", 40) for _ in range(8)) + '"}',
    "etag": lambda r: f'etag: "{some(r, HEX, 32)}"\ncache-control: max-age=600',
    "trace id": lambda r: f"traceparent: 00-{some(r, HEX, 32)}-{some(r, HEX, 16)}-01",
    "pod": lambda r: f"pod/web-{some(r, HEX, 9)}-{some(r, NIX[10:], 5)} 1/1 Running",
    "address": lambda r: f"0x{some(r, HEX, 12)} <main+{r.randrange(999)}> at frame #{r.randrange(9)}",
    "ulid": lambda r: f"event {some(r, '0123456789ABCDEFGHJKMNPQRSTVWXYZ', 26)} done",
    "s3 path": lambda r: f"s3://bucket/build/{some(r, HEX, 40)}/artifact.zip",
    "ssh fingerprint": lambda r: f"256 SHA256:{b64(r, 32).rstrip('=')} user@host (ED25519)",
    "cache key": lambda r: f"CACHE_KEY=node-modules-{some(r, HEX, 12)}",
    "sort key": lambda r: f"SORT_KEY=created_at_{r.randrange(9999)}",
    "gpg key": lambda r: f"GPG_KEY={some(r, HEX, 40).upper()}",
    "digest named secret": lambda r: f"secret: sha256:{some(r, HEX, 64)}",
    "uuid named token": lambda r: f"token: {uuid.UUID(bytes=r.randbytes(16), version=4)}",
    "number named token": lambda r: f"SyntaxError: Unexpected token: 0x{some(r, HEX, 9)}",
    "counts": lambda r: f"num_pass: {r.randrange(10**9)} first-pass={r.randrange(10**6)}ms",
    "port and address": lambda r: f"http://localhost:{r.randrange(1024, 65536)}{r.choice('/?#,;(')}email=a@b.co",
    "package": lambda r: f"sk-learn-contrib-version-{r.randrange(20200101, 20301231)}",
    "build id": lambda r: f"export BUILD_ID={some(r, WORD, 24)}",
    "public key": lambda r: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b64(r, 32).rstrip('=')} user@host",
}


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_a_look_alike_stays_whatever_it_holds(shape: str) -> None:
    """Not one of hundreds is taken for a secret, alone or among other lines."""
    rng = random.Random(shape)
    for _ in range(TIMES):
        text = SHAPES[shape](rng)
        assert R.text(text) == text
        assert R.text(f"step 1\n{text}\nstep 2") == f"step 1\n{text}\nstep 2"

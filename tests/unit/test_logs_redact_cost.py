"""Redaction looks at each character a bounded number of times, whatever a program prints."""

from __future__ import annotations

import time

import pytest
from projectmem_logs.redact import Redactor

HOSTILE = [
    "curl -b a=", "cookie: a=", "ldapsearch -w", "machine a login ", "<password a</", "?key=aA1", "auth: aaaaaaaa", "setx a ",
    "password: |\n  abc\n", "  password:\n", 'password="\\', "-----END " + "PRIVATE KEY-----", "postgres://a:b/c'd/e/",
    "A" * 60 + "\n-----END " + "PRIVATE KEY-----\n", "-----BEGIN " + "PRIVATE KEY-----\n1:",
]  # fmt: skip
NEAR = ["password", "://a:", "-----BEGIN PRIVATE KEY-----", "sk-", "eyJ.", "Authorization:", "a-", "curl -u ", "export X="]


@pytest.mark.parametrize("unit", ["password=", "secret:", "pwd=/", "[token]=", "mysql ", "docker login ", *NEAR, *HOSTILE])
def test_time_grows_with_the_text_and_not_with_its_square(unit: str) -> None:
    """A hook that thinks about an output for a minute is a hook that is off."""
    redactor = Redactor(b"k" * 32)

    def cost(size: int) -> float:
        text = unit * (size // len(unit)) + "\n -p x"
        start = time.process_time()
        redactor.text(text)
        return time.process_time() - start

    cost(1_000)  # imports and patterns
    # Ten times as much of the processor's time if it is linear, a hundred if not. A machine that falters once is asked again.
    assert any(cost(200_000) < 60 * max(cost(20_000), 0.01) for _ in range(3))


def test_a_secret_at_the_end_of_a_long_value_is_found() -> None:
    """Where one value holds many names, each is still looked at."""
    text = Redactor(b"k" * 32).text("x" * 9_000 + "password=" * 1_000 + "hunter2 and more")
    assert "hunter2" not in text
    assert text.endswith(" and more")


@pytest.mark.parametrize("name", ["password", "secret", "token", "api_key", "credentials", "_auth"])
@pytest.mark.parametrize(
    "assigned", ["{}=Zq8vBn3xWq7tRk5m", "{}: Zq8vBn3xWq7tRk5m", "--{} Zq8vBn3xWq7tRk5m", '{}: Annotated[str] = "Zq8vBn3x"']
)
def test_names_without_a_value_are_passed_over_and_not_the_one_that_has_it(name: str, assigned: str) -> None:
    """The search goes from one separator to the next; what stands before, between and behind is left as it is."""
    text, more = f"{name} " * 300, assigned.format(f"my{name}" if name == "_auth" else name)
    for before, behind in ((text, ""), ("", f" {text}"), (text, f" {text}"), (text + "x=1 " + text, f" {text}, {text}")):
        found = Redactor(b"k" * 32).text(f"{before}{more}{behind}")
        assert "Zq8v" not in found and found.count("<secret:") == 1, found
        assert found.startswith(before) and found.endswith(behind)

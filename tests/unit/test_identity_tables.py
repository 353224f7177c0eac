"""Traps of the option tables: what may not be sorted, what is the same without being written, and what is only akin."""

from __future__ import annotations

import pytest
from projectmem_gate.hints import raw_words
from projectmem_gate.identify import identify
from projectmem_gate.model import Action

ROOT = "/srv/acme"


def sh(command: str, tool: str = "Bash") -> Action:
    return identify(tool, {"command": command}, root=ROOT, cwd=ROOT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("aws s3 sync . s3://b --exclude '*' --include '*.txt'", "aws s3 sync . s3://b --include '*.txt' --exclude '*'"),
        ("rsync -a --include=a --exclude=b x/ y/", "rsync -a --exclude=b --include=a x/ y/"),
        ("mysql -pab shop", "mysql -pba shop"),
        ("mysql -p shop", "mysql -pshop"),
        ("jq --arg a b .x f.json", "jq --arg b a .x f.json"),
        ("grep x .", "grep x"),
        ("rg x src", "rg x"),
        ("cat a | rg x .", "cat a | rg x"),
        ("turbo prune web", "turbo run prune"),
    ],
)
def test_the_order_and_the_place_of_some_words_count(one: str, other: str) -> None:
    assert sh(one).key != sh(other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rg -e x .", "rg -e x"),
        ("grep -r x .", "grep -r x"),
        ("ls -la .", "ls -la"),
        ("turbo build test", "turbo run build test"),
        ("turbo --cwd web build", "cd web && turbo build"),
        ("swift build --package-path=Core", "cd Core && swift build"),
        ("ffmpeg -i a b -hide_banner", "ffmpeg -i a b"),
    ],
)
def test_what_goes_without_saying_may_be_said(one: str, other: str) -> None:
    assert sh(one).key == sh(other).key


def test_powershell_s_parameters_by_name_and_by_place() -> None:
    by_name = sh("Copy-Item -Destination b -Path a -Recurse", "powershell")
    assert by_name.key == sh("copy-item a b -recurse", "powershell").key
    assert by_name.key != sh("Copy-Item b a -Recurse", "powershell").key
    assert sh("Select-String -Path f -Pattern x", "powershell").key == sh("Select-String x f", "powershell").key


def test_a_script_and_a_shell_that_runs_it_are_akin_and_not_the_same() -> None:
    """`sh gradlew` is what one does where `./gradlew` may not be executed."""
    for one, other in (("./gradlew test", "sh gradlew test"), ("./scripts/a.sh", "sh scripts/a.sh"), ("./a.bash", "bash a.bash")):
        assert sh(one).key != sh(other).key
        assert sh(one).kin == (sh(other).key,), one
        assert sh(other).kin == (sh(one).key,), other
        assert set(sh(other).parts[0].words) <= raw_words(one)  # so that the hook's first look finds it
    assert sh("./build").kin == sh("sh -x a.sh").kin == ()

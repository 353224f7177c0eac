"""A file by another name: behind a symbolic link, or moved on record. The hook's first look must not miss it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from projectmem_projections.quick import nothing_objects
from projectmem_projections.snapshot import Snapshot

from projectmem import failures
from projectmem.hook.spelling import input_words

MISSING = "<tool_use_error>String to replace not found in file.\nString: price = 1</tool_use_error>"
PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-price = 1\n+price = 2\n*** End Patch"


def edit(hooked: Any, path: str) -> dict[str, Any]:
    given = {"file_path": f"{hooked.root}/{path}", "old_string": "price = 1", "new_string": "price = 2"}
    return {**hooked.call(""), "tool_name": "Edit", "tool_input": given}


def seen(hooked: Any, given: Any) -> bool:
    """Whether the first look lets this input through to the second."""
    place = hooked.place
    call: Any = {"input": given, "cwd": place.root}
    words = input_words(call, place.root)
    return not nothing_objects(f"{place.home}/projections/gate.sqlite", place.home, words, "two", "", 1 << 60)


@pytest.fixture
def shop(hooked: Any) -> Any:
    """A repository with one file that an edit did not fit."""
    root = Path(hooked.root)
    (root / "src").mkdir(exist_ok=True)
    (root / "src" / "tariff.py").write_text("price = 3\n")
    hooked.fails(edit(hooked, "src/tariff.py"), MISSING)
    return hooked


def test_a_link_by_another_name_is_seen(shop: Any) -> None:
    """Whatever names it: an edit, a patch, a patch in a shell, a relative path, a chain of links."""
    root = Path(shop.root)
    os.symlink("src/tariff.py", root / "linked.md")
    os.symlink("linked.md", root / "again")
    fields = {"old_string": "price = 1", "new_string": "price = 2"}
    for name in ("linked.md", "again", f"{root}/again", "./linked.md"):
        assert seen(shop, {"file_path": name, **fields}), name
        assert seen(shop, {"input": PATCH.format(name)}), name
        assert seen(shop, {"command": f"apply_patch <<'EOF'\n{PATCH.format(name)}\nEOF"}), name
        assert seen(shop, {"patch": f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-price = 1\n+price = 2\n"}), name
    assert not seen(shop, {"file_path": "else.md", **fields})
    assert not seen(shop, {"command": "ls linked"})


def test_a_moved_file_is_seen_and_known_as_what_it_was(shop: Any) -> None:
    """`git mv` on record: the edit that did not fit still does not, under the new name; facts are read where the file is now."""
    root = Path(shop.root)
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    subprocess.run(["git", "mv", "src/tariff.py", "src/rates.py"], cwd=root, check=True)
    again = edit(shop, "src/rates.py")
    assert not seen(shop, again["tool_input"])
    shop.run("git mv src/tariff.py src/rates.py")
    assert seen(shop, again["tool_input"])
    with Snapshot(f"{shop.place.home}/projections/gate.sqlite") as state:
        assert state.moves() == ["src/tariff.py\tsrc/rates.py"]
    assert [(row.says, row.fresh) for row in failures.failures(shop.place, shop.now)] == [("warn", "same")]
    assert "not found" in str(shop.before(again))
    (root / "src" / "rates.py").write_text("price = 1\n")
    assert "not found" not in str(shop.before(edit(shop, "src/rates.py")))
    assert [row.why for row in failures.failures(shop.place, shop.now)] == ["tariff.py changed"]

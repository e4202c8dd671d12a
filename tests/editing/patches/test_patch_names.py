"""File names with white space other than blanks, which is part of the name and not trimmed."""

from __future__ import annotations

import pytest

from tests.editing.patches.patched import filesystem
from weakfs.editing import PatchFormat, apply_patch

PATCHES: dict[PatchFormat, str] = {
    "v4a": "*** Begin Patch\n*** Update File: {name}\n@@\n-a\n+b\n*** End Patch\n",
    "unified": "--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n",
    "search_replace": "`{name}`\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
}


@pytest.mark.parametrize("patch_format", PATCHES)
@pytest.mark.parametrize(
    "name", ["\u00a0x", "x\u00a0", "x\u3000", "\u2003x", "x\x0c", "x\u202fPM", "e\u0301", "\u00e9"]
)
def test_the_named_file_is_changed_and_not_another(name: str, patch_format: PatchFormat) -> None:
    fs = filesystem("a\n", f"/{name}")
    fs.write("/x", "a\n")

    apply_patch(fs, PATCHES[patch_format].format(name=name), patch_format=patch_format)

    assert fs.read(f"/{name}").content == "b\n"
    assert fs.read("/x").content == "a\n"


def test_a_file_is_moved_to_the_named_path() -> None:
    fs = filesystem("a\n")
    apply_patch(fs, "*** Begin Patch\n*** Update File: a \n*** Move to:  x\u00a0\t\n*** End Patch\n")
    assert [entry.path for entry in fs.walk() if entry.is_file] == ["/x\u00a0"]


def test_an_empty_search_creates_the_named_file() -> None:
    fs = filesystem("a\n", "/x")
    apply_patch(fs, "`x\u00a0`\n<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n", patch_format="search_replace")
    assert (fs.read("/x").content, fs.read("/x\u00a0").content) == ("a\n", "b\n")

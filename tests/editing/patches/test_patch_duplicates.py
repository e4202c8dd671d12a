"""The same hunk or block twice in a patch: what it adds is never put in twice at the same place."""

from __future__ import annotations

import pytest

from tests.editing.patches.patched import filesystem, refused, updated
from weakfs.editing import HunkRejected, PatchFormat, apply_patch

HUNK = (" a", "+new", " b")
DIFF = "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n a\n+new\n b\n@@ -1,2 +2,3 @@\n a\n+new\n b\n"
BLOCK = "<<<<<<< SEARCH\na\n=======\na\nnew\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize("hunk", [HUNK, (" a", "+new"), ("+new", " a"), ("+new",)])
def test_a_repeated_hunk_is_refused(hunk: tuple[str, ...]) -> None:
    error = refused("a\nb\n", "@@", *hunk, "@@", *hunk)
    assert "hunk 2, line" in str(error)
    assert "hunk 1 is the same" in str(error)


@pytest.mark.parametrize(("patch_format", "patch"), [("unified", DIFF), ("search_replace", f"a\n{BLOCK}{BLOCK}")])
def test_a_repeated_hunk_of_a_diff_and_a_repeated_block_are_refused(patch_format: PatchFormat, patch: str) -> None:
    fs = filesystem("a\nb\n")
    with pytest.raises(HunkRejected, match="1 is the same"):
        apply_patch(fs, patch, patch_format=patch_format)
    assert fs.read("/a").content == "a\nb\n"


def test_equal_hunks_at_different_places_are_applied() -> None:
    text = "class A:\n    x\nclass B:\n    x\n"
    both = updated(text, "@@ class A:", "     x", "+    y", "@@ class B:", "     x", "+    y")
    assert both == "class A:\n    x\n    y\nclass B:\n    x\n    y\n"


def test_different_additions_at_one_place_are_applied_in_their_order() -> None:
    assert updated("a\nb\n", "@@", " a", "+1", "@@", " a", "+2", " b") == "a\n1\n2\nb\n"


def test_the_first_place_of_a_repeated_hunk_may_be_asked_for() -> None:
    fs = filesystem("a\n")
    patch = "*** Begin Patch\n*** Update File: a\n@@\n+1\n@@\n+1\n*** End Patch"
    apply_patch(fs, patch, on_ambiguous="first")
    assert fs.read("/a").content == "a\n1\n1\n"

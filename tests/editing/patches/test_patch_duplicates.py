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


# The same section twice


@pytest.mark.parametrize("hunk", [(" a", "+new"), ("+new", " b"), ("+new",), ("@@ a", "+new"), ("+1", " a", "+new")])
def test_a_repeated_section_is_refused(hunk: tuple[str, ...]) -> None:
    section = ("@@", *hunk) if not hunk[0].startswith("@@") else hunk
    error = refused("a\nb\n", *section, "*** Update File: a", *section)
    assert "the hunk on line 3 of the patch is the same, at the same place" in str(error)


def test_a_hunk_of_the_section_before_is_refused() -> None:
    first = ("@@", " a", "+1", "@@", " b", "-c", "+2", "+3", "@@", " e", "+4")
    error = refused("a\nb\nc\nd\ne\nf\n", *first, "*** Update File: a", "@@", " e", "+4")
    assert "the hunk on line 11 of the patch is the same" in str(error)


def test_a_repeated_section_is_refused_after_a_move_and_after_sections_of_other_files() -> None:
    fs = filesystem("a\nb\n")
    fs.write("/other", "x\n")
    hunk = "@@\n a\n+new\n"
    moved = f"*** Update File: a\n*** Move to: c\n{hunk}*** Delete File: other\n*** Update File: c\n{hunk}"
    with pytest.raises(HunkRejected, match="the same, at the same place"):
        apply_patch(fs, f"*** Begin Patch\n{moved}*** End Patch")
    assert (fs.read("/a").content, fs.read("/other").content) == ("a\nb\n", "x\n")


def test_a_repeated_diff_of_a_file_is_refused() -> None:
    fs = filesystem("a\nb\n")
    diff = "--- a/a\n+++ b/a\n@@ -1,1 +1,2 @@\n a\n+new\n"
    with pytest.raises(HunkRejected, match="the same, at the same place"):
        apply_patch(fs, diff + diff, patch_format="unified")
    assert fs.read("/a").content == "a\nb\n"


def test_equal_sections_at_different_places_are_applied() -> None:
    text = "class A:\n    x\nclass B:\n    x\n"
    hunk = "     x", "+    y"
    both = updated(text, "@@ class A:", *hunk, "*** Update File: a", "@@ class B:", *hunk)
    assert both == "class A:\n    x\n    y\nclass B:\n    x\n    y\n"


def test_a_change_that_is_made_undone_and_made_again_is_applied() -> None:
    section = "*** Update File: a", "@@", " a"
    assert updated("a\nb\n", *section[1:], "+1", *section, "-1", *section, "+1") == "a\n1\nb\n"

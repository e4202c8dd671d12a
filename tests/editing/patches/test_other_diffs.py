"""Diffs in other formats than the unified one, alone and as a part of a patch: refused, and nothing is changed."""

from __future__ import annotations

import pytest

from weakfs.backends import InMemoryFilesystem
from weakfs.editing import PatchParseError, apply_patch

HUNK = "@@ -1 +1 @@\n-a\n+b\n"
DIFF = f"--- a/a\n+++ b/a\n{HUNK}"
CONTEXT = "*** x\t2024\n--- x\t2025\n***************\n*** 1,2 ****\n! p\n  q\n--- 1,2 ----\n! P\n  q\n"
NORMAL = "diff -r old/x new/x\n1c1\n< p\n---\n> P\n"
ADDING = "diff old/x new/x\n1a2\n> P\n"
SCRIPT = "diff -e old/x new/x\n1c\nP\n.\n"
RCS = "diff -n old/x new/x\nd1 1\na1 1\nP\n"
COMBINED = "diff --cc x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1,2 -1,2 +1,2 @@@\n- p\n -o\n++P\n  q\n"
UNNAMED = "--- a/x\n+++ b/x\n@@@ -1,2 -1,2 +1,2 @@@\n- p\n++P\n  q\n"
SUBMODULE = "Submodule lib 1111111..2222222:\n  > a commit\n"
PICTURE = "Index: y.png\n=====\nCannot display: file marked as a binary type.\nsvn:mime-type = image/png\n"


def filesystem(**files: str) -> InMemoryFilesystem:
    fs = InMemoryFilesystem()
    for path, text in files.items():
        fs.write(path, text)
    return fs


@pytest.mark.parametrize("order", ["alone", "first", "last", "last, apart"])
@pytest.mark.parametrize(
    ("other", "says"),
    [
        (CONTEXT, "it is a context diff"),
        (NORMAL, "as diff writes it without options"),
        (ADDING, "as diff writes it without options"),
        (SCRIPT, "it is a script for ed"),
        (RCS, "it is a script for ed"),
        (COMBINED, "a combined diff of a merge"),
        (UNNAMED, "a combined diff of a merge"),
        (SUBMODULE, "it changes a submodule"),
        (PICTURE, "it changes a binary file"),
        ("Binary file y.png has changed\n", "it changes a binary file"),
    ],
)
def test_a_part_in_another_format_is_never_left_out(other: str, says: str, order: str) -> None:
    fs = filesystem(a="a\n", x="p\nq\n")
    patch = {"alone": other, "first": other + DIFF, "last": DIFF + other, "last, apart": DIFF + "\n" + other}[order]

    with pytest.raises(PatchParseError, match=says):
        apply_patch(fs, patch, patch_format="unified")

    assert (fs.read("a").content, fs.read("x").content) == ("a\n", "p\nq\n")


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("Only in new: x\nOnly in new/y: z\n", "only names files that differ"),
        ("Files a/a and b/a differ\n", "only names files that differ"),
        ("1c\nb\n.\nw\n", "it is a script for ed"),
        (f"\x1b[1m--- a/a\x1b[m\n\x1b[1m+++ b/a\x1b[m\n\x1b[36m{HUNK}", "codes of terminal colors"),
    ],
)
def test_the_refusal_of_a_patch_without_a_diff_says_what_it_is(patch: str, says: str) -> None:
    with pytest.raises(PatchParseError, match=says):
        apply_patch(filesystem(a="a\n"), patch, patch_format="unified")


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        (CONTEXT, "it is a context diff; send a unified diff"),
        (NORMAL.partition("\n")[2], "as diff writes it without options"),
        (COMBINED, "a combined diff of a merge"),
        ("diff -u a b\n" + DIFF, "apply it with patch_format='unified'"),
    ],
)
def test_the_refusal_of_another_diff_in_place_of_a_v4a_patch_says_what_it_is(patch: str, says: str) -> None:
    with pytest.raises(PatchParseError, match=says):
        apply_patch(filesystem(a="a\n", x="p\n"), patch)


@pytest.mark.parametrize(
    "text",
    [
        "Only in new: x\n",
        "Submodule lib contains untracked content\n",
        "1a\n> quoted\n",
        "Submodule lib 1111111..2222222:\n",
        "diff -u shows what changed:\n",
        "*** Important ***\n",
        "From: A\nSubject: [PATCH 1/2] x\n\n> 1c1\n> < a\n---\n",
    ],
)
def test_text_above_a_diff_is_skipped(text: str) -> None:
    fs = filesystem(a="a\n")
    apply_patch(fs, f"{text}diff -u a/a b/a\n{DIFF}", patch_format="unified")
    assert fs.read("a").content == "b\n"


def test_the_diff_of_a_file_in_a_submodule_is_applied_to_the_file() -> None:
    fs = filesystem(**{"lib/a": "a\n"})
    patch = f"Submodule lib 1111111..2222222:\ndiff --git a/lib/a b/lib/a\n--- a/lib/a\n+++ b/lib/a\n{HUNK}"
    apply_patch(fs, patch, patch_format="unified")
    assert fs.read("lib/a").content == "b\n"


def test_the_mails_of_several_commits_are_applied_one_after_another() -> None:
    fs = filesystem(a="a\n")
    mail = "From 0123 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: [PATCH] x\n\n---\n a | 2 +-\n\n"
    second = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-b\n+c\n"
    apply_patch(fs, f"{mail}{DIFF}-- \n2.39.2\n\n{mail}{second}-- \n2.39.2\n\n", patch_format="unified")
    assert fs.read("a").content == "c\n"


# Files that do not exist


def test_subversion_names_files_that_do_not_exist() -> None:
    fs = filesystem(gone="a\n")
    added = "Index: new\n=====\n--- new\t(nonexistent)\n+++ new\t(working copy)\n@@ -0,0 +1 @@\n+a\n"
    added_long_ago = "Index: old\n=====\n--- old\t(revision 0)\n+++ old\t(revision 0)\n@@ -0,0 +1 @@\n+a\n"
    deleted = "Index: gone\n=====\n--- gone\t(revision 4)\n+++ gone\t(nonexistent)\n@@ -1 +0,0 @@\n-a\n"
    apply_patch(fs, added + added_long_ago + deleted, patch_format="unified")
    assert {entry.path: fs.read(entry.path).content for entry in fs.list()} == {"/new": "a\n", "/old": "a\n"}


def test_a_file_that_subversion_adds_is_never_put_above_one_that_exists() -> None:
    fs = filesystem(new="kept\n")
    patch = "--- new\t(nonexistent)\n+++ new\t(working copy)\n@@ -0,0 +1 @@\n+a\n"
    report = apply_patch(fs, patch, patch_format="unified")
    assert fs.read("new").content == "a\n"
    assert report.replaced == ("/new",)


def test_a_file_with_the_time_of_a_missing_one_is_updated() -> None:
    fs = filesystem(a="a\n")
    epoch = "1970-01-01 00:00:00.000000000 +0000"
    patch = f"--- old/a\t{epoch}\n+++ new/a\t{epoch}\n{HUNK}"
    apply_patch(fs, patch, patch_format="unified")
    assert fs.read("a").content == "b\n"


def test_backslashes_in_the_names_of_a_diff_separate_directories() -> None:
    fs = filesystem(**{"src/a": "a\n"})
    apply_patch(fs, f"--- a\\src\\a\n+++ b\\src\\a\n{HUNK}", patch_format="unified")
    assert fs.read("src/a").content == "b\n"


def test_diff_names_files_that_do_not_exist_below_the_directories_that_it_compares() -> None:
    fs = filesystem(**{"is gone": "a\n", "d/kept": "a\n", "v2/other": "x\n"})
    epoch, now = "1970-01-01 00:00:00.000000000 +0000", "2025-01-01 00:00:00.000000000 +0000"
    added = f"diff -ruN v1/d/new v2/d/new\n--- v1/d/new\t{epoch}\n+++ v2/d/new\t{now}\n@@ -0,0 +1 @@\n+a\n"
    changed = f"diff -ruN v1/d/kept v2/d/kept\n--- v1/d/kept\t{now}\n+++ v2/d/kept\t{now}\n{HUNK}"
    deleted = f'--- "v1/is gone"\t{now}\n+++ "v2/is gone"\t{epoch}\n@@ -1 +0,0 @@\n-a\n'
    apply_patch(fs, added + changed + deleted, patch_format="unified")
    left = {entry.path: fs.read(entry.path).content for entry in fs.walk() if entry.is_file}
    assert left == {"/d/new": "a\n", "/d/kept": "b\n", "/v2/other": "x\n"}

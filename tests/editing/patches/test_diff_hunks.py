"""Where a hunk of a unified diff ends: no line with a mark is left out, whatever the counts say."""

from __future__ import annotations

import pytest

from tests.models import patches
from weakfs.editing import PatchParseError, apply_patch

NAMES = "--- a/f\n+++ b/f\n"
CONTENT = "one\ntwo\nthree\n\nfive\nsix\nseven\n"


def patched(hunks: str, content: str = CONTENT) -> str:
    fs = patches.filesystem_of({"f": content})
    apply_patch(fs, NAMES + hunks, patch_format="unified")
    return fs.read_bytes("/f").content.decode()


@pytest.mark.parametrize("counts", ["-1,3 +1,3", "-1,4 +1,4", "-1,9 +1,9"])
def test_a_blank_line_without_its_mark_does_not_end_a_hunk(counts: str) -> None:
    changed = patched(f"@@ {counts} @@\n one\n-two\n+2\n three\n\n-five\n+5\n six\n")

    assert changed == "one\n2\nthree\n\n5\nsix\nseven\n"


@pytest.mark.parametrize("counts", [",2", ",9"])
@pytest.mark.parametrize("blanks", ["\n", "\n\n"])
def test_blank_lines_between_hunks_are_skipped(counts: str, blanks: str) -> None:
    changed = patched(
        f"@@ -1{counts} +1{counts} @@\n-one\n+1\n two\n{blanks}@@ -6{counts} +6{counts} @@\n six\n-seven\n+7\n{blanks}"
    )

    assert changed == "1\ntwo\nthree\n\nfive\nsix\n7\n"


def test_several_blank_lines_before_context_and_a_change() -> None:
    changed = patched(
        "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\n\n five\n-six\n+6\n", "one\ntwo\nthree\n\n\nfive\nsix\n"
    )

    assert changed == "one\n2\nthree\n\n\nfive\n6\n"


@pytest.mark.parametrize(
    ("hunk", "line", "ended_by"),
    [
        ("@@ -1,9 +1,9 @@\n one\n-two\n+2\nthree\n \n-five\n+5\n six\n", 9, "three"),
        ("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n# and then\n-five\n+5\n six\n", 9, "# and then"),
        ("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n...\n six\n-seven\n+7\n", 10, "..."),
        ("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\n@ -6,2 +6,2 @@\n six\n-seven\n+7\n", 11, "@ -6,2 +6,2 @@"),
        ("@@\n one\n-two\n+2\n\tthree\n-five\n+5\n", 8, "\\tthree"),
    ],
)
def test_changes_below_a_line_that_ends_the_hunk_are_refused(hunk: str, line: int, ended_by: str) -> None:
    with pytest.raises(PatchParseError) as caught:
        patched(hunk)

    assert caught.value.line == line
    assert f"is in no hunk, since '{ended_by}' on line" in str(caught.value)


@pytest.mark.parametrize("header", ["@@ -1,2 +1,2 @@", "@@ -1,3 +1,3 @@", "@@ -1,7 +1,9 @@", "@@"])
def test_a_removed_dash_is_not_the_signature_of_a_mail(header: str) -> None:
    assert patched(f"{header}\n steps:\n--\n+- run\n", "steps:\n-\nend\n") == "steps:\n- run\nend\n"
    assert patched(f"{header}\n steps:\n--\n", "steps:\n-\nend\n") == ("steps:\nend\n")
    assert patched(f"{header}\n steps:\n--\n\nThat is all.\n", "steps:\n-\nend\n") == ("steps:\nend\n")


def test_a_removed_dash_at_the_end_of_a_fenced_diff() -> None:
    fs = patches.filesystem_of({"f": "steps:\n-\nend\n"})

    apply_patch(fs, f"```diff\n{NAMES}@@\n steps:\n--\n```\n", patch_format="unified")

    assert fs.read("/f").content == "steps:\nend\n"


@pytest.mark.parametrize("header", ["@@ -1,3 +1,3 @@", "@@ -1,9 +1,9 @@", "@@"])
@pytest.mark.parametrize("signature", ["-- \n2.47.1\n", "--\n2.47.1.windows.1\n\n"])
def test_the_signature_of_a_mail_ends_the_last_hunk(header: str, signature: str) -> None:
    assert patched(f"{header}\n one\n-two\n+2\n three\n{signature}") == CONTENT.replace("two", "2")


@pytest.mark.parametrize("signature", ["--\n", "-- \n", "--\n\n"])
def test_a_signature_without_a_version_ends_a_hunk_whose_counts_are_right(signature: str) -> None:
    assert patched(f"@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n{signature}") == CONTENT.replace("two", "2")


@pytest.mark.parametrize(
    "text",
    [
        "\ncommit 0123abc\nAuthor: Ann\n\n    - a list\n- of words\n",
        "\nProperty changes on: f\n___\nAdded: svn:eol-style\n## -0,0 +1 ##\n+native\n",
        "-- \n2.47.1\n\nFrom 0123abc Mon Sep 17 00:00:00 2001\n- a list\n",
        "\nThat is all.\n",
    ],
)
def test_text_between_the_diffs_of_files_is_skipped(text: str) -> None:
    assert patched(f"@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n{text}") == CONTENT.replace("two", "2")


def test_a_list_below_a_fenced_diff_is_skipped() -> None:
    fs = patches.filesystem_of({"f": CONTENT})

    apply_patch(fs, f"```diff\n{NAMES}@@ -2 +2 @@\n-two\n+2\n```\nThis\n- changes two\n", patch_format="unified")

    assert fs.read("/f").content == CONTENT.replace("two", "2")


@pytest.mark.parametrize("header", ["@@ -6,2 +6,2 @@", "@@ -6 +6 @@"])
def test_only_the_last_line_can_lack_a_newline(header: str) -> None:
    changed = patched(f"{header}\n-six\n+6\n\\ No newline at end of file\n seven\n")

    assert changed == CONTENT.replace("six", "6")


@pytest.mark.parametrize(
    ("line", "other"),
    [
        (1, "*** Delete File: g\n"),
        (2, "f\n<<<<<<< SEARCH\nsix\n=======\n6\n>>>>>>> REPLACE\n"),
    ],
)
@pytest.mark.parametrize("is_above", [True, False])
def test_a_patch_of_another_format_beside_a_diff_is_refused(line: int, other: str, is_above: bool) -> None:
    diff = f"{NAMES}@@ -2 +2 @@\n-two\n+2\n"
    fs = patches.filesystem_of({"f": CONTENT, "g": ""})

    with pytest.raises(PatchParseError, match="is not part of a diff") as caught:
        apply_patch(fs, other + diff if is_above else diff + other, patch_format="unified")

    assert caught.value.line == line + (0 if is_above else diff.count("\n"))


@pytest.mark.parametrize("header", ["@@ -2 +2 @@", "@@ -2,4 +2,4 @@", "@@"])
def test_the_name_of_a_file_without_its_first_line_is_not_an_added_line(header: str) -> None:
    with pytest.raises(PatchParseError, match="may name a file or be an added line") as caught:
        patched(f"{header}\n-two\n+2\n+++ b/g\n@@ -5 +5 @@\n-five\n+5\n")

    assert caught.value.line == 6


def test_an_added_line_that_looks_like_a_name_is_one_if_the_counts_say_so() -> None:
    changed = patched("@@ -2 +2,2 @@\n-two\n+2\n+++ b/g\n@@ -5 +6 @@\n-five\n+5\n")

    assert changed == "one\n2\n++ b/g\nthree\n\n5\nsix\nseven\n"

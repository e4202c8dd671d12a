"""Reading V4A patches: what is accepted around them, and which line is at fault."""

from __future__ import annotations

import pytest

from weakfs.editing import PatchParseError
from weakfs.editing.patches.operations import AddFile, DeleteFile, Hunk, UpdateFile
from weakfs.editing.patches.v4a import parse_v4a

BODY = "*** Begin Patch\n*** Delete File: a\n*** End Patch"


def test_operations_know_their_lines() -> None:
    patch = """*** Begin Patch
*** Add File: dir/new file.txt
+one
++two
+
*** Delete File: gone

*** Update File: a
*** Move to: b
 x
@@ class A:
@@   def f():
-y
+z

*** End of File
*** End Patch
"""
    assert parse_v4a(patch) == (
        AddFile("dir/new file.txt", 2, ("one", "+two", "")),
        DeleteFile("gone", 6),
        UpdateFile(
            "a",
            8,
            (
                Hunk(10, (" x",)),
                Hunk(11, ("-y", "+z", " "), ("class A:", "  def f():"), at_end=True, trailing_blanks=1),
            ),
            "b",
        ),
    )


@pytest.mark.parametrize(
    "patch",
    [
        BODY,
        f"\n  \n{BODY}\n\n",
        f"\ufeff{BODY}",
        BODY.replace("\n", "\r\n"),
        BODY.replace("*** Begin Patch", "  *** Begin Patch \t").replace("*** End Patch", " *** End Patch "),
        f"<<EOF\n{BODY}\nEOF\n",
        f"<<'EOF'\n{BODY}\nEOF",
        f"apply_patch <<'PATCH'\n{BODY}\nPATCH\n",
        f'apply_patch <<-"X"\n{BODY}\n\nX\n\n',
        f"cat <<'EOF' | apply_patch\n{BODY}\nEOF",
        f"applypatch << EOF\n{BODY}\n",
    ],
)
def test_a_heredoc_and_blanks_around_a_patch_are_passed_over(patch: str) -> None:
    (operation,) = parse_v4a(patch)
    assert isinstance(operation, DeleteFile)
    assert operation.path == "a"


def test_markers_behind_a_mark_are_lines_like_others() -> None:
    lines = (" *** End Patch", "-*** Add File: b", "+@@", " *** End of File")
    (operation,) = parse_v4a("\n".join(("*** Begin Patch", "*** Update File: a", "@@", *lines, "*** End Patch")))
    assert isinstance(operation, UpdateFile)
    assert operation.hunks[0].lines == lines


@pytest.mark.parametrize(
    ("patch", "line", "says"),
    [
        ("", 1, "the patch is empty"),
        ("\n\n", 1, "the patch is empty"),
        ("hello\n", 1, "a patch cannot start with 'hello'"),
        ("--- a/x\n+++ b/x\n", 1, "it looks like a unified diff: apply it with patch_format='unified'"),
        ("*** Begin Patch", 1, "'*** End Patch' is missing: the patch was cut off"),
        ("*** Begin Patch\n*** Add File: a\n+x\n+*** End Patch", 4, "the patch was cut off"),
        (f"{BODY}\nthat was it", 4, "there is text after '*** End Patch'"),
        ("*** Begin Patch\n*** Rename File: a\n*** End Patch", 2, "'*** Rename File: a' is no operation"),
        ("*** Begin Patch\n*** Add File:\n*** End Patch", 2, "without a path"),
        ("*** Begin Patch\n*** Add File: a\n+x\ny\n*** End Patch", 4, "'y' is no line of an added file"),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", 3, "takes a path and nothing else"),
        ("*** Begin Patch\n*** Move to: a\n*** End Patch", 2, "can only stand right below"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", 2, "has no lines"),
        ("*** Begin Patch\n*** Update File: a\n@@ b\n*** End Patch", 3, "the hunk has no lines"),
        ("*** Begin Patch\n*** Update File: a\n@@\n-b\nc\n*** End Patch", 5, "'c' has no mark"),
        ("*** Begin Patch\n*** Update File: a\n@@\n\tb\n*** End Patch", 4, "has no mark"),
        ("*** Begin Patch\n*** Update File: a\n@@b\n-b\n*** End Patch", 3, "is no anchor; write '@@ '"),
        ("*** Begin Patch\n*** Update File: a\n@@\n-b\n*** End of File\n-c\n*** End Patch", 6, "start it with '@@'"),
        ("*** Begin Patch\n*** End Patch\n*** Begin Patch\n*** End Patch", 2, "send one patch"),
    ],
)
def test_a_malformed_patch_is_refused_with_the_line(patch: str, line: int, says: str) -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_v4a(patch)
    assert says in str(caught.value)
    assert caught.value.line == line
    assert (caught.value.status, caught.value.error_code) == ("parse_error", "patch_parse_error")


def test_a_message_quotes_no_more_than_a_little() -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_v4a("*** Begin Patch\n" + "x" * 100_000 + "\n*** End Patch")
    assert len(str(caught.value)) < 500

"""Reading V4A patches: what is accepted around them, and which line is at fault."""

from __future__ import annotations

import pytest

from weakfs.editing import PatchParseError
from weakfs.editing.patches.formats.v4a import parse_v4a
from weakfs.editing.patches.operations import AddFile, DeleteFile, Hunk, UpdateFile

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
                Hunk(10, (" x",), body=10),
                Hunk(11, ("-y", "+z", " "), ("class A:", "  def f():"), at_end=True, trailing_blanks=1, body=13),
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
        f"bash -lc 'apply_patch <<\"EOF\"\n{BODY}\nEOF'\n",
        f"/bin/sh -c 'apply_patch <<EOF\n{BODY}\nEOF\n'",
        f"apply_patch \"$(cat <<'EOF'\n{BODY}\nEOF\n)\"\n",
        f"apply_patch $(cat <<EOF\n{BODY}\nEOF\n)",
        f'bash -lc \'apply_patch "$(cat <<"EOF"\n{BODY}\nEOF\n)"\'',
        f"/usr/bin/apply_patch <<'EOF'\n{BODY}\nEOF",
        f"apply_patch - <<'EOF'\n{BODY}\nEOF",
        f"cat <<'EOF' | /usr/bin/apply_patch -\n{BODY}\nEOF",
        f"apply_patch <<\\EOF\n{BODY}\nEOF",
        f"$ apply_patch <<EOF\n{BODY}\nEOF",
        f"apply_patch <<'END-OF-PATCH'\n{BODY}\nEND-OF-PATCH\n",
        f"```\n{BODY}\n```\n",
        f"```diff\r\n{BODY}\r\n```",
        f"~~~~ \n\n{BODY}\n\n~~~~",
        f"$   bash  -lc  'apply_patch   -   << \"EOF\"\n{BODY}\nEOF'",
        f"```sh\napply_patch <<'EOF'\n{BODY}\nEOF\n```",
    ],
)
def test_a_heredoc_a_fence_and_blanks_around_a_patch_are_ignored(patch: str) -> None:
    (operation,) = parse_v4a(patch)
    assert isinstance(operation, DeleteFile)
    assert operation.path == "a"


def test_quotes_in_a_shell_word_are_unquoted() -> None:
    (operation,) = parse_v4a(
        "bash -lc 'apply_patch <<EOF\n*** Begin Patch\n*** Add File: a\n+it'\\''s\n*** End Patch\nEOF'"
    )
    assert isinstance(operation, AddFile)
    assert operation.lines == ("it's",)


def test_lines_of_a_file_do_not_end_the_wrapper_of_a_patch() -> None:
    body = "*** Begin Patch\n*** Add File: a\n+EOF\n+```\n*** End Patch"
    for patch in (f"apply_patch <<EOF\n{body}\nEOF", f"```\n{body}\n```"):
        (operation,) = parse_v4a(patch)
        assert isinstance(operation, AddFile)
        assert operation.lines == ("EOF", "```")


def test_markers_after_a_line_mark_are_ordinary_lines() -> None:
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
        (f"cd foo && apply_patch <<'EOF'\n{BODY}\nEOF", 1, "leave the 'cd' out, and give all paths from the root"),
        (f"bash -lc 'cd foo; apply_patch <<EOF\n{BODY}\nEOF'", 1, "leave the 'cd' out"),
        (f"cd foo\napply_patch <<EOF\n{BODY}\nEOF", 1, "leave the 'cd' out"),
        (f"```\n{BODY}\nthat was it\n```", 5, "there is text after '*** End Patch'"),
        ("apply_patch <<'" + "E" * 100_000, 1, "a patch cannot start with"),
        (f"{BODY}\nthat was it", 4, "there is text after '*** End Patch'"),
        ("*** Begin Patch\n*** Rename File: a\n*** End Patch", 2, "write '*** Update File: old path', and below it"),
        ("*** Begin Patch\n*** Frob File: a\n*** End Patch", 2, "'*** Frob File: a' is not an operation"),
        ("*** Begin Patch\n*** Add File:\n*** End Patch", 2, "has no path"),
        ("*** Begin Patch\n*** Add File: a\n+x\ny\n*** End Patch", 4, "'y' is not a line of an added file"),
        ("*** Begin Patch\n*** Add File: a\n+x\n\n\n+y\n*** End Patch", 4, "a blank line is not a line of an added"),
        (
            "*** Begin Patch\n*** Add File: a\n+x\n\\ No newline at end of file\n+y\n*** End Patch",
            4,
            " No newline at end of file' is not a line of an added file",
        ),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", 3, "takes only a path"),
        ("*** Begin Patch\n*** Move to: a\n*** End Patch", 2, "must be right below"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", 2, "has no lines"),
        ("*** Begin Patch\n*** Update File: a\n@@ b\n*** End Patch", 3, "the hunk has no lines"),
        ("*** Begin Patch\n*** Update File: a\n@@b\n-b\n*** End Patch", 3, "is not an anchor; write '@@ '"),
        ("*** Begin Patch\n*** Update File: a\n@@\n-b\n*** End of File\n-c\n*** End Patch", 6, "start it with '@@'"),
        ("*** Begin Patch\n*** End Patch\n*** Begin Patch\n*** End Patch", 2, "send one patch"),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n-b\n+c\n+++ b/d\n@@\n-e\n+f\n*** End Patch",
            6,
            "'+++ b/d' names a file as in a diff",
        ),
    ],
)
def test_a_malformed_patch_is_refused_with_the_line(patch: str, line: int, says: str) -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_v4a(patch)
    assert says in str(caught.value)
    assert caught.value.line == line
    assert (caught.value.status, caught.value.error_code) == ("parse_error", "patch_parse_error")


def test_a_message_quotes_only_a_little() -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_v4a("*** Begin Patch\n" + "x" * 100_000 + "\n*** End Patch")
    assert len(str(caught.value)) < 500

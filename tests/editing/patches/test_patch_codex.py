"""The dialect of Codex, compared with a straightforward model of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models import codex_patch
from tests.sampling import share
from weakfs.backends import InMemoryFilesystem
from weakfs.editing import HunkRejected
from weakfs.editing.patches.apply import apply_patch_as_codex
from weakfs.editing.patches.formats.v4a import parse_v4a
from weakfs.editing.patches.operations import UpdateFile

line = st.sampled_from(("a", "b", " a", "a ", "", "", "\u201cq\u201d", '"q"', "a\r", "\ufeffa", "-"))
text = st.builds(
    lambda lines, end: "\n".join(lines) + end, st.lists(line, max_size=8), st.sampled_from(("\n", "", "\n\n"))
)
body = st.lists(st.builds(str.__add__, st.sampled_from((" ", "-", "+", "")), line), min_size=1, max_size=4)
hunk = st.builds(
    lambda anchor, lines, end: [*anchor, *lines, *end],
    st.sampled_from((["@@"], ["@@"], ["@@ a"], ["@@ b"], ["@@ "])),
    body,
    st.sampled_from(([], [], ["*** End of File"])),
)


def as_codex(content: str, patch: str) -> str | None:
    fs = InMemoryFilesystem()
    fs.write_bytes("/f", content.encode())
    try:
        apply_patch_as_codex(fs, patch)
    except HunkRejected:
        assert fs.read_bytes("/f").content == content.encode()
        return None
    return fs.read_bytes("/f").content.decode()


@settings(max_examples=share(400))
@given(content=text, hunks=st.lists(hunk, min_size=1, max_size=3))
def test_an_update_gives_the_same_bytes_as_codex(content: str, hunks: list[list[str]]) -> None:
    lines = [line for one in hunks for line in one]
    # A line without a prefix ends a patch in both; that is tested with the parser.
    if any(line[:1] not in ("", " ", "-", "+", "@", "*") for line in lines):
        return
    patch = "\n".join(("*** Begin Patch", "*** Update File: f", *lines, "*** End Patch"))
    (operation,) = parse_v4a(patch, as_codex=True)
    assert isinstance(operation, UpdateFile)

    assert as_codex(content, patch) == codex_patch.updated(content, operation.hunks)


@pytest.mark.parametrize(
    ("content", "hunk", "expected"),
    [
        ("x\na\nx\n", "@@\n-x\n+y\n", "y\na\nx\n"),
        ("a\nb\n", "@@ a\n+x\n", "a\nb\nx\n"),
        ("a", "@@\n-a\n+b\n", "b\n"),
        ("a\nb\n\n", "@@\n-a\n+x\n", "x\nb\n"),
        ("a\n\n", "@@\n+x\n", "a\nx\n"),
        ("  a\nb\n", "@@\n a\n-b\n+x\n", "a\nx\n"),
        ("a\r\nb\r\n", "@@\n a\n-b\n+x\n", "a\nx\n"),
        ("a\nb\n", "@@ nowhere\n-b\n+x\n", None),
    ],
)
def test_the_dialect_of_codex(content: str, hunk: str, expected: str | None) -> None:
    assert as_codex(content, f"*** Begin Patch\n*** Update File: f\n{hunk}*** End Patch") == expected

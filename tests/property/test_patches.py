"""Patches of any content: they do what they say, a dry run predicts it, and nonsense is refused with its line."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

import pytest
from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.editing.patches.test_patch_atomic import Plain
from tests.models import patches
from tests.sampling import share
from weakfs.backends import InMemoryFilesystem
from weakfs.editing import PatchError, PatchFormat, PatchReport, apply_patch
from weakfs.filesystem import Filesystem
from weakfs.reducers.events import Event

blocks_text = patches.text | st.lists(
    st.sampled_from(("x", "y", "xy", " x", "", "=====", "=======", ">>>>>> REPLACE")), max_size=12
).map("\n".join)


@settings(max_examples=share(300))
@given(old=patches.files, new=patches.files)
def test_a_patch_that_names_every_line_turns_one_set_of_files_into_the_other(
    old: dict[str, str], new: dict[str, str]
) -> None:
    fs, patch = patches.filesystem_of(old), patches.v4a(old, new)
    # A patch without operations is refused.
    assume(len(patch.splitlines()) > 2)
    report = apply_patch(fs, patch)

    expected = {path: ending_as(old.get(path, "\n"), content) for path, content in new.items()}
    left = {path: new[path] if old.get(path) == new[path] else expected[path] for path in new}
    assert patches.files_of(fs) == left
    assert set(report.changed_paths) == {"/" + path for path in {*old, *left} if old.get(path) != left.get(path)}


def ending_as(old: str, new: str) -> str:
    """Return a text with or without a final newline, like the old text."""
    lines = patches.lines_of(new)
    return "\n".join(lines) + "\n" * (bool(lines) and (not old or old.endswith("\n")))


@settings(max_examples=share(300))
@given(old=blocks_text, new=blocks_text)
def test_blocks_made_from_a_difference_turn_one_text_into_the_other(old: str, new: str) -> None:
    assume(old != new and ending_as(old, new) != old and (old.strip() or (not old and new.strip())))
    fs = patches.filesystem_of({"a b.txt": old, "c": "c\n"})
    apply_patch(fs, patches.search_replace("a b.txt", old, new), patch_format="search_replace")
    assert patches.files_of(fs) == {"a b.txt": ending_as(old, new), "c": "c\n"}


few_lines = st.lists(st.sampled_from(("x", "y", " x", "  x", "x ", "xy", "x y", "(x", ")", "x,", "")), max_size=8)


@settings(max_examples=share(500))
@given(lines=few_lines, search=few_lines.map(lambda made: made[:3]), new=few_lines.map(lambda made: made[:2]))
def test_a_block_replaces_whole_lines_with_the_words_that_it_searches_for(
    lines: list[str], search: list[str], new: list[str]
) -> None:
    assume("".join(search).strip() and search != new)
    fs = patches.filesystem_of({"a.txt": "".join(line + "\n" for line in lines)})
    windows = [(at, at + size) for size in range(1, len(lines) + 1) for at in range(len(lines) - size + 1)]
    exact = [(start, stop) for start, stop in windows if lines[start:stop] == search]
    text = "\n".join(("a.txt", "<<<<<<< SEARCH", *search, "=======", *new, ">>>>>>> REPLACE"))
    try:
        apply_patch(fs, text, patch_format="search_replace")
    except PatchError:
        assert len(exact) != 1
        return
    left = patches.lines_of(fs.read_bytes("/a.txt").content.decode())
    if exact:
        ((start, stop),) = exact
        assert left == lines[:start] + new + lines[stop:]
        return
    words = "".join(search).split()
    assert any(
        left[:start] == lines[:start]
        and left[len(left) - len(lines) + stop :] == lines[stop:]
        and "".join("".join(lines[start:stop]).split()) == "".join(words)
        for start, stop in windows
    )


@settings(max_examples=share(100))
@given(old=blocks_text, new=blocks_text, last=st.sampled_from(("c\n", "")))
def test_a_last_block_that_does_not_fit_leaves_everything_as_it_was(old: str, new: str, last: str) -> None:
    assume(old.strip() and new.strip() and old != new)
    fs = patches.filesystem_of({"a.txt": old, "c": "c\n"})
    before = fs.tree().fingerprint
    wrong = f"c\n<<<<<<< SEARCH\n{last}x\n=======\ny\n>>>>>>> REPLACE\n"
    patch = patches.search_replace("a.txt", old, new) + wrong
    with pytest.raises(PatchError):
        apply_patch(fs, patch, patch_format="search_replace")
    assert fs.tree().fingerprint == before


V4A_LINES = (
    "*** Begin Patch",
    "*** End Patch",
    "*** Add File: a.txt",
    "*** Add File: d",
    "*** Add File: d/c.txt",
    "*** Delete File: a.txt",
    "*** Update File: a.txt",
    "*** Update File: b.txt",
    "*** Update File: d/c.txt",
    "*** Move to: b.txt",
    "*** Move to: d/new",
    "*** End of File",
    "@@",
    "@@ x",
    "@@ y",
    " x",
    "-x",
    "+x",
    " y",
    "-y",
    "+z",
    "",
    " ",
    "\r",
    "x",
    "<<EOF",
)
UNIFIED_LINES = (
    "diff --git a/a.txt b/a.txt",
    "diff --git a/a.txt b/b.txt",
    'diff --git "a/a.txt" b/b.txt',
    "new file mode 100644",
    "deleted file mode 100644",
    "old mode 100644",
    "new mode 100755",
    "new mode 120000",
    "rename from a.txt",
    "rename to b.txt",
    "copy from b.txt",
    "copy to d/new",
    "index 12..34 100644",
    "--- a/a.txt",
    "+++ b/a.txt",
    "--- /dev/null",
    "+++ /dev/null",
    "@@ -1 +1 @@",
    "@@ -1,2 +1 @@",
    "@@ -0,0 +1 @@",
    "@@ -1 +0,0 @@",
    "@@ -7,2 +7,2 @@",
    " x",
    "-x",
    "+x",
    " y",
    "+",
    "",
    "\\ No newline at end of file",
    "-- ",
    "GIT binary patch",
)

BLOCK_LINES = (
    "a.txt",
    "`b.txt`",
    "### d/c.txt",
    "n",
    "Some words:",
    "```",
    "<<<<<<< SEARCH",
    "<<<<<<< SEARCH",
    "<<<<< ORIGINAL\r",
    "=======",
    "=======",
    "=====",
    ">>>>>>> REPLACE",
    ">>>>>>> REPLACE",
    ">>>>> UPDATED",
    "x",
    "y",
    "xy",
    " x ",
    "x\r",
    "",
    "\ufeffx",
)

small = st.text("xy\n\r\ufeff", max_size=8)
small_files = st.dictionaries(st.sampled_from(("a.txt", "b.txt", "d/c.txt")), small, max_size=3)


def v4a_like() -> st.SearchStrategy[str]:
    lines = st.lists(st.sampled_from(V4A_LINES), max_size=14)
    return lines.map(lambda made: "\n".join(("*** Begin Patch", *made, "*** End Patch")))


def unified_like() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(UNIFIED_LINES), max_size=16).map("\n".join)


def blocks_like() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(BLOCK_LINES), max_size=16).map("\n".join)


sides = st.lists(st.sampled_from(("x", "y", " x", "xy", "", "=====")), max_size=3)
well_formed_blocks = st.lists(
    st.builds(
        lambda name, old, new: [*name, "<<<<<<< SEARCH", *old, "=======", *new, ">>>>>>> REPLACE"],
        st.sampled_from(([], ["a.txt"], ["/a.txt"], ["b.txt"], ["d/c.txt"], ["n"])),
        sides,
        sides,
    ),
    max_size=5,
).map(lambda made: "\n".join(("a.txt", *(line for lines in made for line in lines))))


hunk = st.lists(st.sampled_from((" x", " y", "-x", "-y", "+x", "+z", "+")), min_size=1, max_size=4)
operation = st.one_of(
    st.builds(
        lambda path, lines: [f"*** Add File: {path}", *lines],
        st.sampled_from(("a.txt", "n", "d")),
        st.lists(st.just("+x"), max_size=2),
    ),
    st.builds(lambda path: [f"*** Delete File: {path}"], st.sampled_from(("a.txt", "b.txt", "d/c.txt"))),
    st.builds(
        lambda path, move, lines: [f"*** Update File: {path}", *move, "@@", *lines],
        st.sampled_from(("a.txt", "b.txt", "d/c.txt", "n")),
        st.sampled_from(([], ["*** Move to: b.txt"], ["*** Move to: d"], ["*** Move to: a.txt/n"])),
        hunk,
    ),
)
well_formed = st.lists(operation, max_size=5).map(
    lambda made: "\n".join(("*** Begin Patch", *(line for lines in made for line in lines), "*** End Patch"))
)


def outcome(
    fs: InMemoryFilesystem, patch: str, patch_format: PatchFormat, *, dry_run: bool
) -> PatchReport | PatchError:
    try:
        return apply_patch(fs, patch, patch_format=patch_format, dry_run=dry_run)
    except PatchError as error:
        return error


def check(files: dict[str, str], patch: str, patch_format: PatchFormat) -> None:
    fs = patches.filesystem_of(files)
    before = fs.tree().fingerprint
    planned = outcome(fs, patch, patch_format, dry_run=True)
    assert fs.tree().fingerprint == before
    done = outcome(fs, patch, patch_format, dry_run=False)

    if isinstance(done, PatchReport):
        assert planned == evolve(done, dry_run=True)
        return
    assert isinstance(planned, PatchError)
    assert (type(planned), planned.errors) == (type(done), done.errors)
    assert done.line is not None
    assert 1 <= done.line <= patch.count("\n") + 1
    assert len(str(done)) < 20_000
    assert fs.tree().fingerprint == before


@settings(max_examples=share(500))
@given(files=small_files, patch=v4a_like() | well_formed)
def test_any_v4a_patch_does_what_its_dry_run_says_or_nothing(files: dict[str, str], patch: str) -> None:
    check(files, patch, "v4a")


@settings(max_examples=share(500))
@given(files=small_files, patch=unified_like())
def test_any_diff_does_what_its_dry_run_says_or_nothing(files: dict[str, str], patch: str) -> None:
    check(files, patch, "unified")


@settings(max_examples=share(500))
@given(files=small_files, patch=blocks_like() | well_formed_blocks)
def test_any_blocks_do_what_their_dry_run_says_or_nothing(files: dict[str, str], patch: str) -> None:
    check(files, patch, "search_replace")


@settings(max_examples=share(200))
@given(
    patch=st.text() | st.text("*+- @\n\r\\Begin Patch End", max_size=60),
    patch_format=st.sampled_from(("v4a", "unified", "search_replace")),
)
def test_any_text_is_a_patch_or_an_error_with_a_line(patch: str, patch_format: PatchFormat) -> None:
    check({"a.txt": "x\n"}, patch, patch_format)


@settings(max_examples=share(200))
@given(files=small_files, patch=well_formed, step=st.integers(1, 6), is_plain=st.booleans())
def test_a_failure_at_any_change_leaves_everything_as_it_was(
    files: dict[str, str], patch: str, step: int, is_plain: bool
) -> None:
    fs = Failing()
    for path, content in files.items():
        fs.write_bytes(path, content.encode())
    before = fs.tree().fingerprint
    fs.left = step
    given_fs = cast(Filesystem, Plain(fs)) if is_plain else fs
    with suppress(PatchError, OSError):
        apply_patch(given_fs, patch)
        return
    assert fs.tree().fingerprint == before


class Failing(InMemoryFilesystem):
    """Makes one change fail, the `left`-th from now."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        super().__init__()
        self.left = 0

    def apply(self, event: Event) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError("the disk is on fire")
        super().apply(event)


@settings(max_examples=share(200))
@given(count=st.integers(1, 6), data=st.data(), added=st.lists(st.sampled_from(("new", "", "line 0")), min_size=1))
def test_a_hunk_that_is_given_twice_is_never_applied_twice(count: int, data: st.DataObject, added: list[str]) -> None:
    lines = [f"line {number}" for number in range(count)]
    at = data.draw(st.integers(0, count))
    start = data.draw(st.integers(0, at))
    stop = data.draw(st.integers(at, count))
    body = [f" {line}" for line in lines[start:at]] + [f"+{line}" for line in added]
    hunk = ["@@", *body, *(f" {line}" for line in lines[at:stop])]
    text = "".join(f"{line}\n" for line in lines)
    fs = patches.filesystem_of({"a": text})

    with pytest.raises(PatchError):
        apply_patch(fs, "\n".join(["*** Begin Patch", "*** Update File: a", *hunk, *hunk, "*** End Patch"]))

    assert patches.files_of(fs) == {"a": text}

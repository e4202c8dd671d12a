"""Compare a grep of a whole tree with a search of one file after another, line by line."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.models.grep import PATTERNS, TEXTS, line_by_line
from tests.sampling import share
from weakfs import InMemoryFilesystem
from weakfs.filesystem import GrepMatch
from weakfs.filesystem.operations import search as searching
from weakfs.search import compile_glob

NAMES = st.sampled_from(["a", "a.b", "a-b", "ab", "B", "é", ".h", "~"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
HUGE = st.sampled_from([b"x" * 9_000, b"x" * 8_190 + b"\naxb_\0", b"x" * 8_191 + b"\0", b"x" * 8_192 + b"\0\na"])
FILES = st.dictionaries(PATHS, TEXTS | HUGE | st.tuples(TEXTS, HUGE, TEXTS).map(b"".join), max_size=12)


class Answer(NamedTuple):
    matches: list[GrepMatch]
    truncated: bool
    files_searched: int
    binary_skipped: int


def one_by_one(files: dict[str, bytes], pattern: str, most: int, *, case_insensitive: bool) -> Answer:
    """Search the files in order of their paths, up to the one in which there are too many matches."""
    texts = {path: data for path, data in sorted(files.items()) if b"\0" not in data[: 8 * 1024]}
    matches = [
        GrepMatch(path, *hit)
        for path, data in texts.items()
        for hit in line_by_line(pattern, data, case_insensitive=case_insensitive)
    ]
    seen = [path for path in sorted(files) if len(matches) <= most or path <= matches[most].path]
    searched = sum(path in texts for path in seen)
    return Answer(matches[:most], len(matches) > most, searched, len(seen) - searched)


def made(files: dict[str, bytes]) -> tuple[InMemoryFilesystem, dict[str, bytes]]:
    """Write the files, some in two pieces, and links to some; leave out those that are below a file."""
    fs = InMemoryFilesystem()
    written: dict[str, bytes] = {}
    for number, (path, data) in enumerate(sorted(files.items())):
        if any(path.startswith(f"{other}/") for other in written):
            continue
        half = len(data) // 2 if number % 5 == 1 else len(data)
        fs.write_bytes(path, data[:half])
        if half < len(data):
            fs.write_bytes(path, data[half:], mode="append")
        if number % 5 == 2:
            fs.symlink(path, f"{path}~link")
        written[path] = data
    return fs, written


@settings(max_examples=share(400))
@given(FILES, PATTERNS, st.booleans(), st.integers(0, 6) | st.just(1_000), st.sampled_from([1, 30, 1 << 16]))
@example({}, "", False, 1, 1)
@example({"/a": b"\0", "/b": b"\0"}, "", False, 1, 1 << 16)
@example({"/a": b"", "/b": b"\n", "/c": b"a"}, "$", False, 2, 1 << 16)
@example({"/a/b": b"a", "/a-b": b"a", "/a.b": b"a", "/ab": b"a"}, "a", False, 3, 1 << 16)
def test_a_grep_of_a_tree_equals_a_search_of_each_file(
    files: dict[str, bytes], pattern: str, case_insensitive: bool, most: int, batch: int
) -> None:
    fs, written = made(files)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "BATCH", batch)
        found = fs.grep(pattern, case_insensitive=case_insensitive, max_matches=most)

    expected = one_by_one(written, pattern, most, case_insensitive=case_insensitive)
    assert Answer(list(found), found.truncated, found.files_searched, found.binary_skipped) == expected


@settings(max_examples=share(300))
@given(
    FILES,
    PATTERNS,
    st.sampled_from(["a*", "*.b", "a/**", "{B,é}", "**/a*/*", ".*"]),
    st.sampled_from(["/", "/a"]),
    st.booleans(),
)
@example({"/a/B": b"x", "/a/a": b"x", "/b/B": b"x"}, "x", "a*", "/", False)
@example({"/a/B": b"x", "/a/a": b"x", "/b/a/B": b"x"}, "x", "a/**", "/", True)
@example({"/a/.B": b"x", "/.a/a": b"x"}, "x", "*", "/", False)
def test_a_grep_of_some_files_equals_a_search_of_each(
    files: dict[str, bytes], pattern: str, glob: str, below: str, hidden: bool
) -> None:
    fs, written = made(files)
    if not fs.exists(below):
        return

    found = fs.grep(pattern, path=below, glob=glob, hidden=hidden)

    chosen = compile_glob(glob, hidden=hidden)
    top = "/" if not fs.is_directory(below) else below
    written = {
        path: data
        for path, data in written.items()
        if (path == below or path.startswith(f"{below.rstrip('/')}/")) and chosen.matches_path(path, base=top)
    }
    expected = one_by_one(written, pattern, 1_000, case_insensitive=False)
    assert Answer(list(found), found.truncated, found.files_searched, found.binary_skipped) == expected


@pytest.mark.parametrize("directory", ["/d", "/d{0}", "/d{0}/e"])
def test_at_most_two_batches_of_bytes_are_joined_at_a_time(directory: str) -> None:
    fs = InMemoryFilesystem()
    for number in range(40):
        fs.write(f"{directory.format(number // 20)}/{number}", "x" * (number if number % 9 else 150))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "BATCH", 100)
        batches = [batch.texts for batch in searching._batches(fs, "/", (), None)]

    assert all(len(b"\n".join(texts)) < 200 for texts in batches)
    assert all(len(texts) == 1 for texts in batches for data in texts if len(data) > 100)
    assert sum(map(len, batches)) == 40
    assert len(batches) < 40


STEPS = st.lists(
    st.tuples(st.just("write"), PATHS, TEXTS | HUGE)
    | st.tuples(st.just("append"), PATHS, TEXTS)
    | st.tuples(st.sampled_from(["delete", "move", "copy", "link"]), PATHS, PATHS)
    | st.tuples(st.just("fill"), PATHS, st.integers(30, 34)),
    max_size=12,
)


def take(fs: InMemoryFilesystem, step: tuple[str, str, object]) -> None:
    """Make one change, or none if it is impossible."""
    what, path, with_what = step
    try:
        if what == "fill":
            assert isinstance(with_what, int)
            for number in range(with_what):
                fs.write(f"{path}/{number}", f"axb_ {number}\n")
        elif isinstance(with_what, bytes):
            fs.write_bytes(path, with_what, mode="append" if what == "append" else "overwrite")
        elif what == "delete":
            fs.delete(path, recursive=True)
        elif what == "link":
            fs.symlink("/a", path)
        else:
            assert isinstance(with_what, str)
            (fs.move if what == "move" else fs.copy)(path, with_what)
    except (OSError, ValueError):
        pass


def answer(fs: InMemoryFilesystem, pattern: str, most: int) -> Answer:
    found = fs.grep(pattern, max_matches=most)
    return Answer(list(found), found.truncated, found.files_searched, found.binary_skipped)


def contents(fs: InMemoryFilesystem) -> dict[str, bytes]:
    return {entry.path: fs.read_bytes(entry.path).content for entry in fs.walk() if entry.is_file}


@settings(max_examples=share(300))
@given(STEPS, PATTERNS, st.integers(0, 6) | st.just(1_000))
@example([("fill", "/a", 32), ("write", "/a/x", b"axb_"), ("delete", "/a/3", "/"), ("delete", "/a/x", "/")], "axb_", 99)
@example([("write", "/a/b", b"a"), ("write", "/a/b", b"b"), ("append", "/a/b", b"a"), ("move", "/a", "/~")], "a", 9)
@example([("write", "/a/b", b"\0"), ("write", "/a/B", b"a"), ("write", "/a/b", b"a"), ("copy", "/a", "/ab")], "a", 9)
def test_a_grep_after_each_change_equals_a_search_of_each_file(
    steps: list[tuple[str, str, object]], pattern: str, most: int
) -> None:
    fs = InMemoryFilesystem()
    seen: list[tuple[InMemoryFilesystem, Answer]] = []
    for step in steps:
        take(fs, step)
        expected = one_by_one(contents(fs), pattern, most, case_insensitive=False)
        assert answer(fs, pattern, most) == expected
        assert fs.session is not None
        seen.append((InMemoryFilesystem(fs.session.view()), expected))

    for then, expected in seen:
        assert answer(then, pattern, most) == expected

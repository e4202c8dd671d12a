"""Blocks of SEARCH/REPLACE patches: which lines they match, and what they leave unchanged."""

from __future__ import annotations

import pytest

from tests.editing.patches.search_replace import PATCH, applied, block, filesystem, refused, text
from weakfs.backends import InMemoryFilesystem
from weakfs.editing import (
    HunkRejected,
    PatchError,
    PatchPathForbidden,
    UpdateTargetNotFound,
    UpdateTargetNotText,
    apply_patch,
    replacement,
)
from weakfs.reducers.events import FileSpliced


@pytest.mark.parametrize(
    ("content", "search"), [("abc\n", "b\n"), ("ab\n", "b\n"), ("a b c\n", "b\n"), ("xy\nz", "y\nz\n")]
)
def test_a_part_of_a_line_is_not_replaced(content: str, search: str) -> None:
    error = refused(filesystem(a=content), "a.txt\n" + block(search, "B\n"))
    assert isinstance(error, HunkRejected)
    assert "whole lines" in str(error) or "not in it" in str(error)


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ("ab\n b\nb c\n", "ab\n B\nb c\n"),
        ("ab\nb \nab\n", "ab\nB \nab\n"),
        ("x b\n\tb\n", "x b\n\tB\n"),
    ],
)
def test_longer_lines_that_contain_the_text_do_not_make_a_block_ambiguous(content: str, left: str) -> None:
    fs = filesystem(a=content)
    applied(fs, PATCH)
    assert text(fs) == left


def test_an_exact_match_is_preferred_to_an_equivalent_one() -> None:
    fs = filesystem(a="  b\nb\nb \n")
    applied(fs, PATCH)
    assert text(fs) == "  b\nB\nb \n"


@pytest.mark.parametrize(
    ("content", "search", "lines"),
    [
        ("b\nx\nb\n", "b\n", (1, 3)),
        ("b\nb\n", "b\n", (1, 2)),
        ("b\nb\nb\n", "b\nb\n", (1, 2)),
        (" b\nx\nb \n", "b\n", (1, 3)),
        ("b x \nb x \nb x \n", "b  x\nb  x\n", (1, 2)),
    ],
)
def test_a_block_that_fits_in_several_places_is_refused_with_their_lines(
    content: str, search: str, lines: tuple[int, ...]
) -> None:
    error = refused(filesystem(a=content), "a.txt\n" + block(search, "B\n"))

    assert isinstance(error, HunkRejected)
    assert error.errors[0].file_lines == lines
    assert f"is in the file 2 times, on lines {lines[0]} and {lines[1]}" in str(error)
    assert "replace_all" not in str(error)


def test_the_refusal_of_a_block_with_very_many_places_names_the_first_lines() -> None:
    error = refused(filesystem(a="b\n" * 2000), PATCH)
    assert "more than 1000 times, on lines 1, 2, 3" in str(error)
    assert len(str(error)) < 1000


def test_the_first_place_is_used_on_request() -> None:
    fs = filesystem(a="b\nb\n", d=" d\n d\n")
    patch = PATCH + "d.txt\n" + block("d\n", "D\n")
    apply_patch(fs, patch, patch_format="search_replace", on_ambiguous="first")
    assert (text(fs), text(fs, "/d.txt")) == ("B\nb\n", " D\n d\n")


@pytest.mark.parametrize(
    ("content", "old", "new", "left"),
    [
        (
            "class A:\n    def f(self):\n        return 1\n",
            "def f(self):\n    return 1\n",
            "def f(self):\n    x = 1\n    return x\n",
            "class A:\n    def f(self):\n        x = 1\n        return x\n",
        ),
        ("\ufeffb\n", "\ufeffb\n", "\ufeffB\n", "\ufeffB\n"),
        ("a\n\n  b  c\n\nd\n", "\nb c\n\n", "\n\n", "a\n\n\nd\n"),
        ("a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nx\nc\nd\n", "a\r\nx\nc\r\nd\n"),
        ("a\r\nb\n", "a\nb\n", "x\na\nb\n", "x\r\na\r\nb\n"),
    ],
    ids=["indentation", "byte order mark", "blank lines around it", "lines that do not change", "the first line"],
)
def test_a_block_keeps_the_conventions_of_the_file(content: str, old: str, new: str, left: str) -> None:
    fs = filesystem(a=content)
    applied(fs, "a.txt\n" + block(old, new))
    assert text(fs) == left


def test_a_block_that_does_not_occur_is_refused_with_the_nearest_lines() -> None:
    error = refused(
        filesystem(a="one\ndef f(first, second):\n    return 1\n"), "a.txt\n" + block("def f(first, third):\n", "x\n")
    )

    assert isinstance(error, HunkRejected)
    assert str(error).startswith(
        "cannot apply the patch: /a.txt: block 1, line 2 of the patch, does not fit: "
        "the text to replace is not in it; did you mean line 2?"
    )
    assert (error.errors[0].hunk, error.errors[0].file_lines) == (1, (2, 2))


def test_every_block_that_does_not_fit_is_reported() -> None:
    patch = "a.txt\n" + block("x\n", "1\n") + block("b\n", "2\n") + block("y\n", "3\n") + "no\n" + block("z\n", "4\n")
    error = refused(filesystem(a="b\n"), patch)
    assert [(problem.error_code, problem.hunk) for problem in error.errors] == [
        ("hunk_rejected", 1),
        ("hunk_rejected", 3),
        ("update_target_not_found", None),
    ]


def test_at_most_ten_problems_are_reported() -> None:
    patch = "a.txt\n" + "".join(block(f"x{number}\n", "1\n") for number in range(12))
    assert len(refused(filesystem(a="b\n"), patch).errors) == 10


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nB2\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\r\nB\nB2\nc\r\n"),
        ("\ufeffb\nc\n", "\ufeffB\nB2\nc\n"),
        ("a\nb", "a\nB\nB2"),
        ("a\r\nb", "a\r\nB\r\nB2"),
        ("a\r\n b ", "a\r\n B\r\n B2 "),
    ],
)
def test_line_endings_byte_order_mark_and_end_of_file_are_kept(content: str, left: str) -> None:
    fs = filesystem(a=content)
    applied(fs, "a.txt\n" + block("b\n", "B\nB2\n"))
    assert text(fs) == left


def test_blocks_far_apart_are_recorded_as_small_pieces() -> None:
    fs = filesystem(a="".join(f"line {number}\n" for number in range(2000)))
    applied(
        fs,
        "a.txt\n"
        + block("line 1500\n", "one\n")
        + block("line 3\nline 4\n", "line 3\ntwo\n")
        + block("one\n", "three\n"),
    )

    assert (text(fs).count("three\n"), text(fs).count("line 3\ntwo\n")) == (1, 1)
    assert last_pieces(fs) == [b"two\n", b"three\n"]


def last_pieces(fs: InMemoryFilesystem) -> list[bytes]:
    assert fs.session is not None
    *_, record = fs.session.records.since(0)
    assert isinstance(record.event, FileSpliced)
    return [content for _, _, content in record.event.pieces]


@pytest.mark.parametrize("names", [("a.txt", "./a.txt", "a.txt"), ("a.txt", "./a.txt", "/a.txt")])
def test_one_file_may_be_named_in_several_ways(names: tuple[str, ...]) -> None:
    fs = filesystem(a="".join(f"line {number}\n" for number in range(500)))
    places = (400, 7, 70)
    applied(fs, "".join(f"{name}\n" + block(f"line {at}\n", "") for name, at in zip(names, places, strict=True)))

    assert text(fs).split("\n") == [*(f"line {number}" for number in range(500) if number not in places), ""]
    assert sum(map(len, last_pieces(fs))) < len(text(fs))


def test_a_file_that_has_grown_may_be_named_in_another_way() -> None:
    fs = filesystem(a="a\nb\n")
    names = ("a.txt", "./a.txt", "/a.txt")
    searches = ("a\n", "x\n", "b\n")
    applied(fs, "".join(f"{name}\n" + block(old, "x\ny\nz\n") for name, old in zip(names, searches, strict=True)))
    assert text(fs) == "x\ny\nz\ny\nz\nx\ny\nz\n"


def test_a_dry_run_reports_the_same_and_changes_nothing() -> None:
    fs = filesystem(a="b\n")
    planned = applied(fs, PATCH, dry_run=True)
    assert text(fs) == "b\n"
    done = applied(fs, PATCH)
    assert (planned.summary, planned.hunks, planned.dry_run) == (done.summary, done.hunks, True)


def test_the_target_of_a_link_is_changed_and_the_link_stays() -> None:
    fs = InMemoryFilesystem(follow_symlinks="within_root_only")
    fs.write_bytes("/a.txt", b"b\n")
    fs.symlink("a.txt", "/link")
    applied(fs, "link\n" + block("b\n", "c\n") + "a.txt\n" + block("c\n", "d\n"))
    assert text(fs) == "d\n"
    assert fs.readlink("/link") == "a.txt"


@pytest.mark.parametrize(
    ("path", "kind", "remedy"),
    [
        ("b.txt", UpdateTargetNotFound, "did you mean '/a.txt'?"),
        ("../a.txt", PatchPathForbidden, ""),
        ("bin", UpdateTargetNotText, "only text can be patched"),
        ("d", PatchPathForbidden, "name a file inside it"),
    ],
)
def test_files_that_cannot_be_changed_have_their_own_kind_of_error(
    path: str, kind: type[PatchError], remedy: str
) -> None:
    fs = filesystem(a="b\n")
    fs.write_bytes("/bin", b"\xff\n")
    fs.mkdir("/d")
    error = refused(fs, f"{path}\n" + block("b\n", "c\n"))

    assert type(error) is kind
    assert error.line == 1
    assert remedy in str(error)


def test_a_line_inserted_above_the_first_uses_its_line_ending() -> None:
    fs = filesystem(a="b\r\nc")
    applied(fs, "a.txt\n" + block("b\n", "new\nb\n"))
    assert text(fs).startswith("new\r\nb")


def test_inexact_blocks_of_a_large_file_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "MOST_SEARCHED", 50_000)
    content = "".join([f"line {number};  end\n" for number in range(1_000)])
    exact = [block(f"line {number};  end\n", f"LINE {number}\n") for number in range(0, 1_000, 100)]
    inexact = [one.replace("  end", " end") for one in exact]

    error = refused(filesystem(a=content), "a.txt\n" + "".join(inexact))

    assert "block 4, " in str(error)
    assert "so many inexact ones before it" in str(error)
    fs = filesystem(a=content)
    applied(fs, "a.txt\n" + "".join([*inexact[:3], *exact[3:]]))
    assert text(fs).count("LINE") == len(exact)

"""SEARCH/REPLACE patches: how they are read, what their blocks match, and which line is at fault."""

from __future__ import annotations

import pytest

from weakfs.backends import InMemoryFilesystem
from weakfs.editing import (
    HunkFit,
    HunkRejected,
    PatchError,
    PatchOps,
    PatchParseError,
    PatchPathForbidden,
    PatchReport,
    UpdateTargetNotFound,
    UpdateTargetNotText,
    apply_patch,
)
from weakfs.editing.patches.search_replace import looks_like_search_replace
from weakfs.reducers.events import FileSpliced


def block(search: str, replacement: str, signs: int = 7) -> str:
    return f"{'<' * signs} SEARCH\n{search}{'=' * signs}\n{replacement}{'>' * signs} REPLACE\n"


PATCH = "a.txt\n" + block("b\n", "B\n")


def filesystem(**contents: str) -> InMemoryFilesystem:
    fs = InMemoryFilesystem()
    for name, content in contents.items():
        fs.write_bytes(f"/{name}.txt", content.encode())
    return fs


def text(fs: InMemoryFilesystem, path: str = "/a.txt") -> str:
    return fs.read_bytes(path).content.decode()


def applied(fs: InMemoryFilesystem, patch: str, *, dry_run: bool = False) -> PatchReport:
    return apply_patch(fs, patch, patch_format="search_replace", dry_run=dry_run)


def refused(fs: InMemoryFilesystem, patch: str) -> PatchError:
    before = fs.tree().fingerprint
    with pytest.raises(PatchError) as caught:
        applied(fs, patch)
    assert fs.tree().fingerprint == before
    return caught.value


def test_blocks_change_several_files_and_the_report_tells_how_each_fitted() -> None:
    fs = filesystem(a="a\nb\nc\n", d="d\n")
    report = applied(fs, "a.txt\n" + block("b\n", "B\n") + block("c  \n", "C\n") + "d.txt\n" + block("d\n", "D\n"))

    assert (text(fs), text(fs, "/d.txt")) == ("a\nB\nC\n", "D\n")
    assert report.changed_paths == ("/a.txt", "/d.txt")
    assert report.ops == PatchOps(update=2)
    assert [(fit.path, fit.hunk, fit.line) for fit in report.hunks] == [
        ("/a.txt", 1, 2),
        ("/a.txt", 2, 7),
        ("/d.txt", 1, 13),
    ]
    assert [fit.fit == "exact" for fit in report.hunks] == [True, False, True]


@pytest.mark.parametrize(
    "name",
    [
        "a.txt",
        "./a.txt",
        "/a.txt",
        "`a.txt`",
        "**a.txt**",
        "**`a.txt`**",
        "**a.txt:**",
        "# a.txt",
        "### a.txt",
        "### `a.txt`:",
        "a.txt:",
        "`a.txt`:",
        "  a.txt  ",
        "a.txt\n",
        "a.txt\n\n```text\n",
        "```\na.txt",
        "Here is the change:\n\na.txt\n~~~",
        "---\n\na.txt\n---",
    ],
)
def test_a_file_name_may_be_written_as_models_write_it(name: str) -> None:
    fs = filesystem(a="b\n")
    applied(fs, f"{name}\n" + block("b\n", "B\n") + "```\nThat is all.\n")
    assert text(fs) == "B\n"


@pytest.mark.parametrize("name", ["my file.txt", "Then:", "ends with a dot."])
def test_a_name_in_backticks_is_taken_as_it_is(name: str) -> None:
    fs = InMemoryFilesystem()
    applied(fs, f"`{name}`\n" + block("", "x\n"))
    assert text(fs, f"/{name}") == "x\n"


@pytest.mark.parametrize(
    "line", ["Change a.txt as follows", "Done.", "Then:", "Now `a.txt`:", "```a.txt", "src/", "**"]
)
def test_text_above_a_block_that_may_be_prose_is_no_file_name(line: str) -> None:
    fs = filesystem(a="b\n")
    error = refused(fs, PATCH + f"{line}\n" + block("B\n", "C\n"))

    assert isinstance(error, PatchParseError)
    assert error.line == 7
    assert "put the file name on a line of its own" in str(error)


@pytest.mark.parametrize(
    "patch",
    [
        PATCH.replace("<<<<<<< SEARCH", "<<<<<<< ORIGINAL").replace(">>>>>>> REPLACE", ">>>>>>> UPDATED"),
        "a.txt\n" + block("b\n", "B\n", signs=5),
        "a.txt\n" + block("b\n", "B\n", signs=9),
        PATCH.replace("SEARCH\n", "SEARCH \t\n").replace("=======\n", "=======  \n").replace("REPLACE\n", "REPLACE "),
        PATCH.replace("=======", "======"),
        PATCH.replace("\n", "\r\n"),
        "\ufeff" + PATCH,
        PATCH.removesuffix("\n"),
    ],
)
def test_markers_may_be_written_in_other_ways(patch: str) -> None:
    fs = filesystem(a="a\nb\n")
    applied(fs, patch)
    assert text(fs) == "a\nB\n"


def test_a_block_works_on_what_the_blocks_above_it_left() -> None:
    fs = filesystem(a="a\nb\n", d="d\n")
    blocks = ("a.txt\n" + block("b\n", "c\nd\n"), "d.txt\n" + block("d\n", "D\n"), "a.txt\n" + block("c\n", "b\n"))
    report = applied(fs, "".join(blocks))

    assert text(fs) == "a\nb\nd\n"
    assert [fit.hunk for fit in report.hunks] == [1, 2, 1]


def test_the_lines_of_an_empty_replace_go_with_their_line_ends() -> None:
    fs = filesystem(a="a\nb\nc\n", d="  d \ne\n", e="e")
    applied(fs, "a.txt\n" + block("b\n", "") + "d.txt\n" + block("d\n", "") + "e.txt\n" + block("e\n", ""))
    assert (text(fs), text(fs, "/d.txt"), text(fs, "/e.txt")) == ("a\nc\n", "e\n", "")


def test_an_empty_search_creates_a_file_that_later_blocks_can_change() -> None:
    fs = InMemoryFilesystem()
    report = applied(fs, "d/n.txt\n" + block("", "a\n\nb\n") + block("b\n", "c\n"))

    assert text(fs, "/d/n.txt") == "a\n\nc\n"
    assert report.hunks == (HunkFit("/d/n.txt", 2, 8, "exact"),)


@pytest.mark.parametrize("search", ["", "\n", "  \n"])
def test_an_empty_search_fills_an_empty_file_and_replaces_no_other(search: str) -> None:
    fs = filesystem(a="", d="\n")
    fs.chmod("/a.txt", 0o755)
    applied(fs, "a.txt\n" + block(search, "x\n"))
    assert (text(fs), fs.stat("/a.txt").mode) == ("x\n", 0o755)

    for name in ("a.txt", "d.txt"):
        error = refused(fs, f"{name}\n" + block(search, "y\n"))
        assert isinstance(error, HunkRejected)
        assert "give the lines to replace in SEARCH, or write the whole file with write_file" in str(error)


def test_an_empty_search_never_replaces_what_an_earlier_block_put_there() -> None:
    error = refused(InMemoryFilesystem(), "n\n" + block("", "x\n") + block("", "y\n"))
    assert isinstance(error, HunkRejected)
    assert error.line == 6


def test_an_empty_file_is_not_filled_where_nothing_may_be_replaced() -> None:
    fs = filesystem(a="")
    with pytest.raises(HunkRejected, match="is not to be replaced"):
        apply_patch(fs, "a.txt\n" + block("", "x\n"), patch_format="search_replace", on_existing="reject")


# What is matched


@pytest.mark.parametrize(
    ("content", "search"), [("abc\n", "b\n"), ("ab\n", "b\n"), ("a b c\n", "b\n"), ("xy\nz", "y\nz\n")]
)
def test_a_part_of_a_line_is_not_replaced(content: str, search: str) -> None:
    error = refused(filesystem(a=content), "a.txt\n" + block(search, "B\n"))
    assert isinstance(error, HunkRejected)
    assert "whole lines" in str(error) or "not in it" in str(error)


@pytest.mark.parametrize("content", ["ab\n b\nb c\n", "ab\nb \nab\n", "x b\n\tb\n"])
def test_lines_that_hold_the_text_among_others_make_no_block_ambiguous(content: str) -> None:
    fs = filesystem(a=content)
    applied(fs, "a.txt\n" + block("b\n", "B\n"))
    assert text(fs).split() == [
        "B" if word == "b" and line.split() == ["b"] else word for line in content.splitlines() for word in line.split()
    ]


def test_an_exact_match_counts_before_an_equivalent_one() -> None:
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
    assert f"is in it 2 times, on lines {lines[0]} and {lines[1]}" in str(error)
    assert "replace_all" not in str(error)


def test_a_block_that_fits_in_a_great_many_places_names_the_first_lines() -> None:
    error = refused(filesystem(a="b\n" * 2000), PATCH)
    assert "more than 1000 times, on lines 1, 2, 3" in str(error)
    assert len(str(error)) < 1000


def test_the_first_place_is_taken_if_that_is_asked_for() -> None:
    fs = filesystem(a="b\nb\n", d=" d\n d\n")
    patch = PATCH + "d.txt\n" + block("d\n", "D\n")
    apply_patch(fs, patch, patch_format="search_replace", on_ambiguous="first")
    assert (text(fs), text(fs, "/d.txt")) == ("B\nb\n", " D\n d\n")


def test_a_block_takes_the_indentation_of_the_lines_that_it_matches() -> None:
    fs = filesystem(a="class A:\n    def f(self):\n        return 1\n")
    applied(fs, "a.txt\n" + block("def f(self):\n    return 1\n", "def f(self):\n    x = 1\n    return x\n"))
    assert text(fs) == "class A:\n    def f(self):\n        x = 1\n        return x\n"


def test_a_block_that_is_not_there_is_refused_with_the_nearest_lines() -> None:
    error = refused(
        filesystem(a="one\ndef f(first, second):\n    return 1\n"), "a.txt\n" + block("def f(first, third):\n", "x\n")
    )

    assert isinstance(error, HunkRejected)
    assert str(error).startswith(
        "cannot apply the patch: /a.txt: block 1, line 2 of the patch, does not fit: "
        "the text to replace is not in it; did you mean line 2?"
    )
    assert (error.errors[0].hunk, error.errors[0].file_lines) == (1, (2, 2))


def test_every_block_that_does_not_fit_is_told() -> None:
    patch = "a.txt\n" + block("x\n", "1\n") + block("b\n", "2\n") + block("y\n", "3\n") + "no\n" + block("z\n", "4\n")
    error = refused(filesystem(a="b\n"), patch)
    assert [(problem.error_code, problem.hunk) for problem in error.errors] == [
        ("hunk_rejected", 1),
        ("hunk_rejected", 3),
        ("update_target_not_found", None),
    ]


def test_at_most_ten_problems_are_told() -> None:
    patch = "a.txt\n" + "".join(block(f"x{number}\n", "1\n") for number in range(12))
    assert len(refused(filesystem(a="b\n"), patch).errors) == 10


# Bytes that stay


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
def test_line_ends_the_byte_order_mark_and_the_end_of_the_file_stay(content: str, left: str) -> None:
    fs = filesystem(a=content)
    applied(fs, "a.txt\n" + block("b\n", "B\nB2\n"))
    assert text(fs) == left


def test_lines_of_a_block_that_do_not_change_stay_byte_for_byte() -> None:
    fs = filesystem(a="a\r\nb\nc\r\nd\n")
    applied(fs, "a.txt\n" + block("a\nb\nc\nd\n", "a\nx\nc\nd\n"))
    assert text(fs) == "a\r\nx\nc\r\nd\n"


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


def test_a_dry_run_reports_the_same_and_changes_nothing() -> None:
    fs = filesystem(a="b\n")
    planned = applied(fs, PATCH, dry_run=True)
    assert text(fs) == "b\n"
    done = applied(fs, PATCH)
    assert (planned.summary, planned.hunks, planned.dry_run) == (done.summary, done.hunks, True)


def test_a_file_behind_a_link_is_changed_and_the_link_stays() -> None:
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
def test_what_cannot_be_changed_has_its_own_kind_of_error(path: str, kind: type[PatchError], remedy: str) -> None:
    fs = filesystem(a="b\n")
    fs.write_bytes("/bin", b"\xff\n")
    fs.mkdir("/d")
    error = refused(fs, f"{path}\n" + block("b\n", "c\n"))

    assert type(error) is kind
    assert error.line == 1
    assert remedy in str(error)


# Markers in contents


def test_underlines_of_headings_with_another_number_of_signs_are_contents() -> None:
    fs = filesystem(a="Title\n=====\n\ntext\n")
    applied(fs, "a.txt\n" + block("Title\n=====\n", "Heading\n=========\n"))
    assert text(fs) == "Heading\n=========\n\ntext\n"


def test_a_block_with_other_numbers_of_signs_may_hold_blocks() -> None:
    inner = block("x\n", "y\n")
    fs = filesystem(a=f"example:\n{inner}")
    applied(fs, "a.txt\n" + block(inner, inner.replace("y", "z"), signs=9) + block("example:\n", "Example\n=====\n"))
    assert text(fs) == "Example\n=====\n" + inner.replace("y", "z")


def test_a_closing_marker_that_would_end_no_block_is_contents() -> None:
    fs = filesystem(a="b\n")
    applied(fs, "a.txt\n" + block("b\n", "B\n>>>>>>> REPLACE\n", signs=5) + block("B\n", "=======\n", signs=6))
    assert text(fs) == "=======\n>>>>>>> REPLACE\n"


def test_markers_with_miscounted_signs_are_read() -> None:
    fs = filesystem(a="b\nc\n")
    patch = "a.txt\n" + block("b\n", "B\n").replace(">>>>>>>", ">>>>>>>>") + block("c\n", "C\n")
    applied(fs, patch.replace("=======", "======", 1))
    assert text(fs) == "B\nC\n"


def test_an_underline_outside_a_block_is_passed_over() -> None:
    fs = filesystem(a="b\n")
    applied(fs, "Changes\n=======\n\n" + PATCH + "\nNotes\n=======\n")
    assert text(fs) == "B\n"


@pytest.mark.parametrize(
    ("patch", "line", "message"),
    [
        ("", 1, "there is no block in it"),
        ("some words\n", 1, "there is no block in it"),
        ("*** Begin Patch\n*** End Patch\n", 1, "it looks like a V4A patch: apply it with patch_format='v4a'"),
        ("\ndiff --git a/x b/x\n", 2, "it looks like a unified diff: apply it with patch_format='unified'"),
        ("--- a/x\n+++ b/x\n", 1, "it looks like a unified diff: apply it with patch_format='unified'"),
        (block("a\n", "b\n"), 1, "there is no file name above the first block"),
        ("```\n" + block("a\n", "b\n"), 2, "there is no file name above the first block"),
        ("a.txt\n" + block("b\n", "b\n"), 2, "SEARCH and REPLACE are the same"),
        ("a.txt\n" + block("b\r\n", "b\n"), 2, "SEARCH and REPLACE are the same"),
        ("a.txt\n" + block("", ""), 2, "the block has no text"),
        ("a.txt\n" + block("\n", "\n\n"), 2, "the block has no text"),
        ("a.txt\n<<<<<<< SEARCH\nb\n>>>>>>> REPLACE\n", 2, "has no '======='"),
        ("a.txt\n<<<<<<< SEARCH\nb\n", 2, "'=======' is missing: the patch was cut off"),
        ("a.txt\n<<<<<<< SEARCH\nb\n=======\nc\n", 2, "'>>>>>>> REPLACE' is missing: the patch was cut off"),
        ("a.txt\n<<<<<<< SEARCH\nb\n=======\nc\n" + PATCH, 2, "above the next one, on line 7"),
        ("a.txt\n<<<<<<< SEARCH\nb\n" + block("c\n", "d\n"), 2, "above the next one, on line 4"),
        ("a.txt\nb\n=======\nc\n>>>>>>> REPLACE\n", 5, "without a block that it ends"),
        (PATCH + ">>>>>>> REPLACE\n", 7, "without a block that it ends"),
        ("a.txt\n" + block("b\n=======\n", "c\n"), 2, "lines 4 and 5 of the patch may all divide the block"),
        ("a.txt\n" + block("b\n=====\nd\n=====\n", "c\n").replace("\n=======", ""), 2, "lines 4 and 6 of the patch"),
        (
            "a.txt\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>>> REPLACE\n<<<<< SEARCH\nd\n=====\n>>>>>>> REPLACE\n",
            2,
            "may end at line 6 or at line 10 of the patch",
        ),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(patch: str, line: int, message: str) -> None:
    error = refused(filesystem(a="b\n"), patch)

    assert isinstance(error, PatchParseError)
    assert error.line == line
    assert f"line {line} of the patch: " in str(error)
    assert message in str(error)


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    for patch in ("a.txt\n" + block("b\n", "\ud800\n"), "n\n" + block("", "\ud800\n")):
        assert isinstance(refused(filesystem(a="b\n"), patch), PatchParseError)
    assert isinstance(refused(filesystem(a="b\n"), "a.txt\n" + block("\ud800\n", "c\n")), HunkRejected)


def test_the_format_is_known_by_the_opening_line_of_a_block() -> None:
    assert looks_like_search_replace(PATCH)
    assert looks_like_search_replace(PATCH.replace("\n", "\r\n"))
    assert not looks_like_search_replace("+<<<<<<< SEARCH\n<<<<<<< HEAD\n=======\n>>>>>>> REPLACE\n")


@pytest.mark.parametrize(
    "patch",
    [
        "a.txt\n" + "<<<<<<< SEARCH\nb\n=======\n" * 20_000,
        "a.txt\n" + "=======\n" * 100_000,
        "a.txt\n" + "<<<<<<< SEARCH" + " " * 200_000 + "x\n",
        "```" + " " * 200_000 + ".\n" + block("b\n", "c\n"),
        "#" + " " * 200_000 + "\n" + block("b\n", "c\n"),
        "x" * 200_000 + ".\n" + block("b\n", "c\n"),
    ],
)
def test_a_long_text_that_is_no_patch_is_refused(patch: str) -> None:
    assert len(str(refused(filesystem(a="b\n"), patch))) < 2000


def test_many_blocks_are_applied_one_after_another() -> None:
    fs = filesystem(a="".join(f"{number}\n" for number in range(3000)))
    applied(fs, "a.txt\n" + "".join(block(f"{number}\n", f"x{number}\n") for number in range(0, 3000, 2)))
    assert text(fs).startswith("x0\n1\nx2\n3\n")
    assert text(fs).count("x") == 1500

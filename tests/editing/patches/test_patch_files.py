"""What a V4A patch does with whole files: added, deleted, moved, several times, in any order, on any filesystem."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.editing import (
    DeleteTargetNotFound,
    PatchError,
    PatchOps,
    PatchParseError,
    PatchPathForbidden,
    PatchReport,
    UpdateTargetNotFound,
    apply_patch,
)
from weakfs.filesystem import Filesystem, Limits
from weakfs.filesystem.protocol import MOST_READ
from weakfs.reducers.events import EntryMoved, FileSpliced


def filesystem(**files: str) -> InMemoryFilesystem:
    fs = InMemoryFilesystem()
    for name, content in files.items():
        fs.write(name, content)
    return fs


def apply(fs: Filesystem, *lines: str) -> PatchReport:
    return apply_patch(fs, "\n".join(("*** Begin Patch", *lines, "*** End Patch")))


def contents(fs: Filesystem) -> dict[str, str]:
    return {entry.path: fs.read(entry.path).content for entry in fs.walk() if entry.is_file}


def test_a_report_lists_paths_in_the_order_of_the_patch_and_counts_operations() -> None:
    fs = filesystem(a="1\n", b="2\n", c="3\n")
    report = apply(
        fs,
        *("*** Update File: c", "*** Move to: d/e", "@@", "-3", "+4"),
        *("*** Add File: z", "+5"),
        "*** Delete File: a",
        *("*** Update File: ./b", "*** Move to: /y"),
    )
    assert report.changed_paths == ("/c", "/d/e", "/z", "/a", "/b", "/y")
    assert report.files_changed == 6
    assert report.ops == PatchOps(add=1, update=1, delete=1, move=2)
    assert contents(fs) == {"/d/e": "4\n", "/z": "5\n", "/y": "2\n"}


def test_later_operations_see_the_results_of_earlier_ones() -> None:
    fs = filesystem(a="1\n", b="2\n")
    report = apply(
        fs,
        *("*** Add File: new", "+x", "+y"),
        *("*** Update File: new", "@@", "-x", "+z"),
        *("*** Update File: new", "*** Move to: newer", "@@", " z", "-y"),
        "*** Delete File: a",
        *("*** Add File: a", "+again"),
        *("*** Update File: b", "@@", "-2", "+3"),
        *("*** Update File: b", "@@", "-3", "+4"),
        *("*** Add File: gone", "+x"),
        "*** Delete File: gone",
    )
    assert contents(fs) == {"/newer": "z\n", "/a": "again\n", "/b": "4\n"}
    assert report.changed_paths == ("/newer", "/a", "/b")


def test_files_may_be_swapped() -> None:
    fs = filesystem(a="1\n", b="2\n")
    fs.chmod("/a", 0o755)
    apply(
        fs,
        *("*** Update File: a", "*** Move to: t"),
        *("*** Update File: b", "*** Move to: a"),
        *("*** Update File: t", "*** Move to: b"),
    )
    assert contents(fs) == {"/a": "2\n", "/b": "1\n"}
    assert (fs.stat("/a").mode, fs.stat("/b").mode) == (0o644, 0o755)


def test_a_chain_of_moves_has_the_right_result() -> None:
    fs = filesystem(a="1\n", b="2\n")
    report = apply(fs, "*** Update File: b", "*** Move to: c", "*** Update File: a", "*** Move to: b")
    assert contents(fs) == {"/b": "1\n", "/c": "2\n"}
    assert report.replaced == ()


def test_updated_and_moved_files_keep_their_mode() -> None:
    fs = filesystem(a="1\n", b="1\n", c="1\n")
    for path in ("/a", "/b", "/c"):
        fs.chmod(path, 0o750)
    apply(
        fs,
        *("*** Update File: a", "@@", "-1", "+2"),
        *("*** Update File: b", "*** Move to: d", "@@", "-1", "+2"),
        *("*** Add File: c", "+2"),
    )
    assert {path: fs.stat(path).mode for path in ("/a", "/c", "/d")} == dict.fromkeys(("/a", "/c", "/d"), 0o750)


def test_records_are_as_small_as_the_change() -> None:
    fs = filesystem(a="\u00e4\n" + "line\n" * 1000 + "x\n")
    assert fs.session is not None
    before = fs.session.seq
    apply(fs, "*** Update File: a", "*** Move to: b", "@@", "-\u00e4", "+\u00f6", "@@", "-x", "+y")
    moved, spliced = (record.event for record in fs.session.records.since(before))
    assert isinstance(moved, EntryMoved)
    assert isinstance(spliced, FileSpliced)
    assert spliced.pieces == ((0, 3, "\u00f6\n".encode()), (5003, 5005, b"y\n"))


def test_an_added_file_may_be_empty_and_in_new_directories() -> None:
    fs = filesystem()
    apply(fs, "*** Add File: x/y/z", "*** Add File: blank", "+")
    assert contents(fs) == {"/blank": "\n", "/x/y/z": ""}


def test_replacing_an_existing_file_is_reported_or_refused() -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+new\n*** Update File: b\n*** Move to: c\n*** End Patch"
    fs = filesystem(a="1\n", b="2\n", c="3\n")
    with pytest.raises(PatchError, match="'/a' exists already and must not be replaced") as caught:
        apply_patch(fs, patch, on_existing="reject")
    assert caught.value.status == "reject"
    assert len(caught.value.errors) == 2
    assert contents(fs) == {"/a": "1\n", "/b": "2\n", "/c": "3\n"}

    assert apply_patch(fs, patch).replaced == ("/a", "/c")
    assert contents(fs) == {"/a": "new\n", "/c": "2\n"}


def test_a_move_to_its_own_path_is_an_update() -> None:
    fs = filesystem(a="1\n")
    report = apply(fs, "*** Update File: a", "*** Move to: ./a", "@@", "-1", "+2")
    assert (report.replaced, report.changed_paths) == ((), ("/a",))
    assert report.ops == PatchOps(update=1)
    assert contents(fs) == {"/a": "2\n"}


def test_a_directory_that_the_patch_empties_may_become_a_file_and_the_other_way_round() -> None:
    fs = filesystem(**{"d/a": "1\n", "d/e/b": "2\n", "f": "3\n"})
    apply(
        fs,
        "*** Delete File: d/a",
        "*** Update File: d/e/b",
        "*** Move to: d",
        "*** Delete File: f",
        "*** Add File: f/g",
    )
    assert contents(fs) == {"/d": "2\n", "/f/g": ""}


def test_a_patch_without_operations_is_refused() -> None:
    with pytest.raises(PatchParseError, match="the patch has no operations"):
        apply(filesystem(a="1\n"))


# Refusals


@pytest.mark.parametrize(
    ("lines", "kind", "says"),
    [
        (("*** Update File: appe.py", "@@", "-1"), UpdateTargetNotFound, "did you mean '/app.py'?"),
        (("*** Update File: no", "*** Move to: b"), UpdateTargetNotFound, "cannot move '/no'"),
        (("*** Delete File: no/no",), DeleteTargetNotFound, "no directory '/no' in '/'; list '/' to see"),
        (("*** Delete File: app.py", "*** Delete File: app.py"), DeleteTargetNotFound, "no such file"),
        (("*** Delete File: app.py", "*** Update File: app.py", "@@", "-1"), UpdateTargetNotFound, "no such file"),
        (("*** Add File: ../x", "+1"), PatchPathForbidden, "climbs above the root"),
        (("*** Add File: a/../../x", "+1"), PatchPathForbidden, "climbs above the root"),
        (("*** Add File: x\0y", "+1"), PatchPathForbidden, "NUL"),
        (("*** Add File: /", "+1"), PatchPathForbidden, "it is the root"),
        (("*** Add File: d", "+1"), PatchPathForbidden, "it is a directory"),
        (("*** Delete File: d",), PatchPathForbidden, "it is a directory"),
        (("*** Update File: app.py", "*** Move to: d"), PatchPathForbidden, "it is a directory"),
        (("*** Add File: app.py/x", "+1"), PatchPathForbidden, "'/app.py' is a file, not a directory"),
        (("*** Add File: n", "+1", "*** Add File: n/x", "+1"), PatchPathForbidden, "'/n' is a file"),
        (("*** Add File: n/x", "+1", "*** Add File: n", "+1"), PatchPathForbidden, "it is a directory"),
        (("*** Add File: " + "d/" * 70 + "x", "+1"), PatchPathForbidden, "64 are allowed"),
        (("*** Add File: " + "n" * 300, "+1"), PatchPathForbidden, "255 are allowed"),
        (("*** Update File: link", "@@", "-1"), PatchPathForbidden, "symbolic link"),
        (("*** Add File: link", "+1"), PatchPathForbidden, "symbolic link"),
        (("*** Add File: links/x", "+1"), PatchPathForbidden, "symbolic link"),
    ],
)
def test_a_path_that_cannot_be_used_is_named_with_its_line(
    lines: tuple[str, ...], kind: type[PatchError], says: str
) -> None:
    fs = filesystem(**{"app.py": "1\n", "d/x": "1\n"})
    fs.symlink("app.py", "/link")
    fs.symlink("d", "/links")
    before = fs.tree().fingerprint

    with pytest.raises(kind) as caught:
        apply(fs, *lines)

    assert says in str(caught.value)
    assert caught.value.line is not None
    assert lines[caught.value.line - 2].startswith("*** ")
    assert fs.tree().fingerprint == before


def test_problems_of_several_files_are_reported_together_without_consequential_ones() -> None:
    with pytest.raises(PatchError) as caught:
        apply(
            filesystem(a="1\n"),
            *("*** Update File: a", "@@", "-2", "+3"),
            *("*** Update File: a", "@@", "-3", "+4"),
            "*** Delete File: b",
        )
    assert [problem.error_code for problem in caught.value.errors] == ["hunk_rejected", "delete_target_not_found"]


def test_an_update_follows_links_as_the_filesystem_does_and_a_deletion_removes_the_link() -> None:
    fs = InMemoryFilesystem(follow_symlinks="within_root_only")
    fs.write("/d/a", "1\n")
    fs.symlink("d", "/l")
    fs.symlink("d/a", "/m")
    report = apply(
        fs, "*** Update File: l/a", "@@", "-1", "+2", "*** Update File: m", "@@", "-2", "+3", "*** Delete File: m"
    )
    assert report.changed_paths == ("/d/a", "/m")
    assert fs.read("/d/a").content == "3\n"
    assert not fs.exists("/m")
    assert fs.readlink("/l") == "d"


def test_a_read_only_filesystem_refuses() -> None:
    fs = InMemoryFilesystem(filesystem(a="1\n").session, read_only=True)
    with pytest.raises(PermissionError) as caught:
        apply(fs, "*** Delete File: a")
    assert caught.value.errno == errno.EROFS


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("limits", "number"),
    [
        (Limits(max_file_size=10), errno.EFBIG),
        (Limits(max_total_size=11), errno.EDQUOT),
        (Limits(max_node_count=2), errno.EDQUOT),
    ],
)
def test_a_limit_refuses_the_whole_patch(limits: Limits, number: int, dry_run: bool) -> None:
    fs = InMemoryFilesystem(limits=limits)
    fs.write("/a", "1\n")
    before = fs.tree().fingerprint
    patch = "*** Begin Patch\n*** Add File: b/c/d\n+12345678901\n*** Delete File: a\n*** End Patch"
    with pytest.raises(OSError, match="cannot") as caught:
        apply_patch(fs, patch, dry_run=dry_run)
    assert caught.value.errno == number
    assert fs.tree().fingerprint == before


def test_a_patch_within_the_quota_at_the_end_never_exceeds_it() -> None:
    fs = InMemoryFilesystem(limits=Limits(max_total_size=20, max_node_count=2))
    fs.write("/a", "x" * 8 + "\n")
    fs.write("/b", "y" * 8 + "\n")
    apply(fs, "*** Add File: c", "+" + "z" * 15, "*** Delete File: a", "*** Update File: b", "@@", "-" + "y" * 8, "+1")
    assert contents(fs) == {"/b": "1\n", "/c": "z" * 15 + "\n"}


def test_a_file_with_unchanged_content_is_not_written() -> None:
    fs = filesystem(a="1\n", b="2\n", c="3\n")
    same = ("*** Update File: a", "@@", " 1", "*** Update File: b", "@@", "-2", "+2", "*** Add File: c", "+3")
    report = apply(fs, *same)
    assert (report.files_changed, report.changed_paths, report.replaced) == (0, (), ())
    assert report.summary == "nothing changed"

    report = apply(fs, *same, "*** Update File: b", "@@", "-2", "+4")
    assert report.changed_paths == ("/b",)


@pytest.mark.parametrize("again", [["*** Update File: app.py", "@@", "-1", "+2"], ["*** Delete File: app.py"]])
@pytest.mark.parametrize(
    ("gone", "says"),
    [
        (["*** Delete File: app.py"], "an earlier operation of this patch deletes it"),
        (["*** Update File: app.py", "*** Move to: b"], "an earlier operation of this patch moves it to '/b'"),
    ],
)
def test_the_error_says_if_the_patch_itself_removed_a_file(gone: list[str], says: str, again: list[str]) -> None:
    fs = filesystem(**{"app.py": "1\n", "apps.py": ""})
    with pytest.raises(PatchError, match=says) as caught:
        apply(fs, *gone, *again)
    assert "did you mean" not in str(caught.value)


def test_an_absolute_host_path_means_the_file_that_it_names(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    fs = HostFilesystem(root, store=tmp_path / "store")
    fs.write("/a", "1\n")
    report = apply(
        fs,
        f"*** Update File: {root}/a",
        "@@",
        "-1",
        "+2",
        f"*** Add File: {root}/d/n",
        "+3",
        "*** Update File: d/n",
        "@@",
        "+4",
    )
    assert report.changed_paths == ("/a", "/d/n")
    assert (root / "d" / "n").read_text() == "3\n4\n"
    assert (root / "a").read_text() == "2\n"


def test_wrong_options_are_named() -> None:
    with pytest.raises(ValueError, match="on_ambiguous is 'maybe'; use 'reject' or 'first'"):
        apply_patch(filesystem(), "", on_ambiguous="maybe")  # type: ignore[arg-type]  # the error is what is tested
    with pytest.raises(TypeError, match="a patch is text, not bytes"):
        apply_patch(filesystem(), b"")  # type: ignore[arg-type]  # the error is what is tested


@pytest.mark.parametrize("name", ["big.txt", "link.txt"])
def test_a_file_that_is_too_large_to_be_read_at_once_is_not_read_for_a_patch(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with open(root / "big.txt", "wb") as stream:
        stream.write(b"one\n")
        stream.truncate(MOST_READ + 1)
    (root / "link.txt").symlink_to("big.txt")
    fs = HostFilesystem(root, store=tmp_path / "store", follow_symlinks="within_root_only")
    monkeypatch.setattr(HostFilesystem, "content", lambda *_: pytest.fail("it was read"))

    with pytest.raises(OSError, match=r"cannot read all of '/big.txt': that is 268435457 bytes") as caught:
        apply_patch(fs, f"*** Begin Patch\n*** Update File: {name}\n@@\n-one\n+two\n*** End Patch\n")

    assert caught.value.errno == errno.EFBIG


@pytest.mark.parametrize("path", ["a -> b", "a => b", "a \u2192 b", "old/a -> b"])
def test_the_refusal_of_two_paths_in_one_line_says_how_to_move_a_file(path: str) -> None:
    fs = InMemoryFilesystem()
    fs.write("/a", "x\n")

    with pytest.raises(
        UpdateTargetNotFound, match="give its old path here, and '\\*\\*\\* Move to: new path' below it"
    ):
        apply_patch(fs, f"*** Begin Patch\n*** Update File: {path}\n@@\n-x\n+y\n*** End Patch")


def test_a_file_whose_name_has_an_arrow_is_updated() -> None:
    fs = InMemoryFilesystem()
    fs.write("/a -> b", "x\n")

    apply_patch(fs, "*** Begin Patch\n*** Update File: a -> b\n@@\n-x\n+y\n*** End Patch")

    assert fs.read("/a -> b").content == "y\n"

"""A patch that names files through a link to a directory: a file has one path, however it is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from attrs import evolve

from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.editing import HunkRejected, PatchError, PatchPathForbidden, PatchReport, apply_patch
from weakfs.filesystem import Filesystem, SymlinkPolicy

Make = Callable[[SymlinkPolicy], Filesystem]


@pytest.fixture(params=["memory", "host"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def made(policy: SymlinkPolicy) -> Filesystem:
        if request.param == "memory":
            return InMemoryFilesystem(follow_symlinks=policy)
        return HostFilesystem(tmp_path, follow_symlinks=policy)

    return made


@pytest.fixture
def fs(make: Make) -> Filesystem:
    fs = make("within_root_only")
    fs.write("/d/x", "1\n")
    fs.write("/d/w", "2\n")
    fs.mkdir("/empty")
    for name, target in {
        "l": "d",
        "again": "./l",
        "hollow": "empty",
        "nowhere": "not/yet",
        "d/up": "../again/../empty",
    }.items():
        fs.symlink(target, name)
    return fs


def apply(fs: Filesystem, *lines: str, on_existing: Literal["replace", "reject"] = "replace") -> PatchReport:
    """Apply a patch, whose dry run must report the same."""
    patch = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    planned = planned_error = None
    try:
        planned = apply_patch(fs, patch, dry_run=True, on_existing=on_existing)
    except PatchError as error:
        planned_error = error
    if planned_error is not None:
        with pytest.raises(type(planned_error), match=re.escape(str(planned_error))):
            apply_patch(fs, patch, on_existing=on_existing)
        raise planned_error
    report = apply_patch(fs, patch, on_existing=on_existing)
    assert planned == evolve(report, dry_run=True)
    return report


def test_two_moves_to_one_file_under_two_names_are_detected(fs: Filesystem) -> None:
    moves = ("*** Update File: d/x", "*** Move to: l/z", "*** Update File: d/w", "*** Move to: again/z")
    with pytest.raises(HunkRejected, match="'/d/z' exists already"):
        apply(fs, *moves, on_existing="reject")
    assert fs.read("/d/x").content == "1\n"

    report = apply(fs, *moves)
    assert report.replaced == ("/d/z",)
    assert report.changed_paths == ("/d/x", "/d/z", "/d/w")


@pytest.mark.parametrize(
    ("link", "real"),
    [
        ("l", "/d"),
        ("again", "/d"),
        ("hollow", "/empty"),
        ("nowhere", "/not/yet"),
        ("d/up", "/empty"),
        ("l/up/in", "/empty/in"),
    ],
)
def test_a_new_file_below_a_link_has_the_resolved_path(fs: Filesystem, link: str, real: str) -> None:
    report = apply(fs, f"*** Add File: {link}/new", "+1", f"*** Add File: {real}/new", "+2")
    assert report.changed_paths == (f"{real}/new",)
    assert report.replaced == (f"{real}/new",)
    assert fs.read(f"{real}/new").content == "2\n"


def test_a_link_with_an_unnormalized_name_is_resolved_as_by_the_filesystem(fs: Filesystem) -> None:
    fs.write("/caf\u00e9/x", "1\n")
    fs.symlink("caf\u00e9", "/composed")
    report = apply(fs, "*** Add File: composed/new", "+1", "*** Add File: caf\u00e9/new", "+2")
    assert report.changed_paths == ("/caf\u00e9/new",)


def test_an_absolute_target_is_resolved_as_by_the_filesystem(fs: Filesystem) -> None:
    fs.symlink(f"{fs.root.rstrip('/')}/empty", "/absolute")
    report = apply(fs, "*** Add File: absolute/new", "+1")
    assert report.changed_paths == ("/empty/new",)
    assert fs.read("/empty/new").content == "1\n"


def test_a_file_added_under_one_name_can_be_updated_under_the_other(fs: Filesystem) -> None:
    apply(fs, "*** Add File: l/new", "+1", "*** Update File: d/new", "@@", "-1", "+2")
    assert fs.read("/d/new").content == "2\n"


def test_no_file_is_created_below_another_under_two_names(fs: Filesystem) -> None:
    with pytest.raises(PatchPathForbidden, match="'/d/n' is a file, not a directory"):
        apply(fs, "*** Add File: l/n", "+1", "*** Add File: d/n/m", "+2")
    assert not fs.exists("/d/n")


def test_if_links_are_not_followed_paths_below_a_link_are_refused(make: Make) -> None:
    fs = make("deny")
    fs.write("/d/x", "1\n")
    fs.symlink("d", "/l")
    for lines in (("*** Add File: l/new", "+1"), ("*** Update File: d/x", "*** Move to: l/y")):
        with pytest.raises(PatchPathForbidden, match="links are not followed here"):
            apply(fs, *lines)
    assert [entry.path for entry in fs.walk()] == ["/d", "/d/x", "/l"]


@pytest.mark.parametrize(
    "taking", [("*** Delete File: l",), ("*** Update File: l", "*** Move to: m"), ("*** Delete File: again/../l",)]
)
def test_paths_through_a_link_that_the_patch_removes_are_refused(fs: Filesystem, taking: tuple[str, ...]) -> None:
    with pytest.raises(PatchPathForbidden, match="'/l' is a symbolic link that this patch removes"):
        apply(fs, *taking, "*** Add File: l/x", "+other")
    assert fs.read("/d/x").content == "1\n"


def test_a_diff_that_turns_a_link_into_a_directory_is_refused(fs: Filesystem) -> None:
    diff = (
        "diff --git a/l b/l\ndeleted file mode 120000\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-d\n"
        "\\ No newline at end of file\n"
        "diff --git a/l/x b/l/x\nnew file mode 100644\n--- /dev/null\n+++ b/l/x\n@@ -0,0 +1 @@\n+other\n"
    )
    with pytest.raises(PatchPathForbidden, match="removes"):
        apply_patch(fs, diff, patch_format="unified")
    assert fs.read("/d/x").content == "1\n"

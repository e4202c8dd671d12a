"""Unified diffs: the output of git and diff -u, and what people and models turn it into."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.models import patches
from weakfs.backends import InMemoryFilesystem
from weakfs.editing import (
    HunkRejected,
    PatchError,
    PatchOps,
    PatchParseError,
    PatchReport,
    UpdateTargetNotFound,
    apply_patch,
)


def filesystem(**files: str) -> InMemoryFilesystem:
    return patches.filesystem_of(files)


def apply(fs: InMemoryFilesystem, diff: str, *, dry_run: bool = False) -> PatchReport:
    return apply_patch(fs, diff, patch_format="unified", dry_run=dry_run)


def repository(root: Path) -> Path:
    patches.git(root, "init", "-q")
    patches.git(root, "config", "core.autocrlf", "false")
    return root


def committed_diff(root: Path, *options: str) -> str:
    """Diff what is staged against what was committed."""
    return patches.git(root, "diff", "--cached", "--no-color", *options).decode()


# What git writes


def test_renames_copies_modes_links_and_odd_names_of_git(tmp_path: Path) -> None:
    root = repository(tmp_path)
    for name in ("old name.txt", "copied.txt", "\u00e4.txt", 'q"t\tab', "run.sh", "becomes-link", "empty", "goes"):
        own = "".join(f"{name} {number}\n" for number in range(20))
        (root / name).write_text("" if name == "empty" else own)
    os.symlink("first", root / "link")
    os.symlink("gone", root / "link2")
    patches.git(root, "add", "-A")
    patches.git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    fs = InMemoryFilesystem()
    for entry in root.iterdir():
        if entry.is_symlink():
            fs.symlink(os.readlink(entry), entry.name)
        elif entry.is_file():
            fs.write_bytes(entry.name, entry.read_bytes())

    (root / "d").mkdir()
    (root / "old name.txt").rename(root / "d" / "new name.txt")
    (root / "d" / "new name.txt").write_text((root / "d" / "new name.txt").read_text().replace(" 3\n", " three\n"))
    (root / "copy \u00fc.txt").write_text((root / "copied.txt").read_text() + "more\n")
    (root / "copied.txt").write_text((root / "copied.txt").read_text() + "else\n")
    (root / "\u00e4.txt").write_text((root / "\u00e4.txt").read_text() + "\u00f6\n")
    (root / 'q"t\tab').rename(root / "plain")
    (root / "run.sh").chmod(0o755)
    (root / "new.sh").write_text("#!/bin/sh\n")
    (root / "new.sh").chmod(0o755)
    (root / "becomes-link").unlink()
    os.symlink("d/new name.txt", root / "becomes-link")
    (root / "link").unlink()
    os.symlink("second", root / "link")
    (root / "link2").unlink()
    (root / "empty").unlink()
    (root / "goes").unlink()
    (root / "empty2").write_text("")
    patches.git(root, "add", "-A")
    diff = committed_diff(root, "-M", "-C", "--find-copies-harder")
    for word in ("rename from", "copy from", "old mode", "new file mode 120000", '"a/\\303\\244.txt"', "deleted file"):
        assert word in diff

    planned = apply(fs, diff, dry_run=True)
    report = apply(fs, diff)

    assert (planned.changed_paths, planned.ops) == (report.changed_paths, report.ops)
    expected = {
        path.relative_to(root).as_posix(): path
        for path in root.rglob("*")
        if ".git" not in path.parts and not path.is_dir()
    }
    found = {entry.path[1:]: entry for entry in fs.walk() if not entry.is_directory}
    assert found.keys() == expected.keys()
    for name, path in expected.items():
        if path.is_symlink():
            assert fs.readlink(name) == os.readlink(path)
        else:
            assert fs.read_bytes(name).content == path.read_bytes()
            assert fs.stat(name).mode == (0o755 if path.stat().st_mode & 0o100 else 0o644)


def test_a_swap_of_two_files_in_one_diff(tmp_path: Path) -> None:
    root = repository(tmp_path)
    one, two = ("".join(f"{word} {number}\n" for number in range(200)) for word in ("one", "two"))
    diff = patches.git_diff(root, {"a": one, "b": two}, {"a": two, "b": one}, "-B", "-M")
    assert diff.count("rename from") == 2
    fs = filesystem(a=one, b=two)
    report = apply(fs, diff)
    assert patches.files_of(fs) == {"a": two, "b": one}
    assert report.replaced == ()


def test_a_series_of_patches_in_one_mail_box_applies_in_order(tmp_path: Path) -> None:
    root = repository(tmp_path)
    commit = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm")
    states = [
        {"a": "1\n2\n3\n"},
        {"a": "1\n2\nx\n", "b": "new\n"},
        {"a": "1\ny\nx\n", "c": "new\nmore\n"},
        {"a": "1\n"},
    ]
    for state in states:
        patches.lay_out(root, state)
        patches.git(root, *commit, f"subject\n\n- a list\n--- not a diff\n@ {len(state)}")
    mails = patches.git(root, "format-patch", "--stdout", "--root").decode()
    fs = InMemoryFilesystem()
    apply(fs, mails)
    assert patches.files_of(fs) == states[-1]


def test_paths_without_a_prefix_and_directories_named_like_one(tmp_path: Path) -> None:
    root = repository(tmp_path)
    old, new = {"a/x": "1\n", "b/y": "1\n"}, {"a/x": "2\n", "b/y": "2\n", "b/new": "3\n"}
    for options in ((), ("--no-prefix",), ("--src-prefix=x/y/", "--dst-prefix=x/y/")[:0]):
        fs = patches.filesystem_of(old)
        apply(fs, patches.git_diff(root, old, new, *options))
        assert patches.files_of(fs) == new


def test_output_of_diff_with_times_and_directories(tmp_path: Path) -> None:
    for side, files in {"old": {"d/f": "1\n2\n", "gone": "x\n"}, "new": {"d/f": "1\n3", "made": "y\n"}}.items():
        for name, content in files.items():
            path = tmp_path / side / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    done = subprocess.run(["diff", "-ruN", "old", "new"], cwd=tmp_path, capture_output=True, check=False)
    fs = filesystem(**{"d/f": "1\n2\n", "gone": "x\n"})
    apply(fs, done.stdout.decode().replace("+++ new/made", "+++ made").replace("--- old/gone", "--- gone"))
    assert patches.files_of(fs) == {"d/f": "1\n3", "made": "y\n"}


# Lines


def diff_of(*hunks: str, path: str = "a") -> str:
    return f"--- a/{path}\n+++ b/{path}\n" + "".join(hunks)


def test_line_numbers_are_only_advice() -> None:
    content = "".join(f"{number}\n" for number in range(50))
    fs = filesystem(a=content)
    report = apply(fs, diff_of("@@ -3,3 +3,3 @@\n 29\n-30\n+x\n 31\n", "@@ -12,2 +12,2 @@\n 39\n-40\n+y\n"))
    assert fs.read("/a").content == content.replace("\n30\n", "\nx\n").replace("\n40\n", "\ny\n")
    assert [fit.fit for fit in report.hunks] == ["exact", "exact"]
    assert [fit.notes for fit in report.hunks] == [
        ("its place is 27 lines below the stated one",),
        ("its place is 28 lines below the stated one",),
    ]


@pytest.mark.parametrize(
    ("start", "notes"),
    [
        (10, ("its place is 2 lines below the stated one",)),
        (14, ("its place is 2 lines above the stated one",)),
        (12, ()),
    ],
)
def test_a_distance_is_counted_from_the_line_in_the_header(start: int, notes: tuple[str, ...]) -> None:
    fs = filesystem(a="".join(f"{number}\n" for number in range(1, 20)))
    report = apply(fs, diff_of("@@ -1,2 +1,2 @@\n 4\n-5\n+x\n", f"@@ -{start},2 +{start},2 @@\n 12\n-13\n+y\n"))
    assert [fit.notes for fit in report.hunks] == [("its place is 3 lines below the stated one",), notes]


def test_only_the_stated_line_decides_between_places() -> None:
    fs = filesystem(a="x\ny\n" * 5)
    apply(fs, diff_of("@@ -5,2 +5,2 @@\n x\n-y\n+z\n"))
    assert fs.read("/a").content == "x\ny\nx\ny\nx\nz\nx\ny\nx\ny\n"
    with pytest.raises(HunkRejected, match="at lines 1, 3, 7, 9"):
        apply(fs, diff_of("@@ -40,2 +40,2 @@\n x\n-y\n+z\n"))


@pytest.mark.parametrize(
    ("content", "hunk", "expected"),
    [
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n", "a\nc\n"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n", "a\nc"),
        ("a\nb", "@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n", "a\n"),
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\nc"),
        ("a\n", "@@ -1 +1,2 @@\n a\n+\n", "a\n\n"),
        ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\r\nc\r\n"),
        ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\n", "a\r\nc\n"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\r\n", "a\nb\r\n"),
        ("\ufeffa\n", "@@ -1 +1 @@\n-\ufeffa\n+b\n", "b\n"),
        ("\ufeffa\n", "@@ -1 +1 @@\n-a\n+b\n", "\ufeffb\n"),
        ("a\nb\n", "@@ -1,0 +2 @@ heading\n+x\n", "a\nx\nb\n"),
    ],
)
def test_line_endings_follow_the_diff_or_else_the_file(content: str, hunk: str, expected: str) -> None:
    fs = filesystem(a=content)
    apply(fs, diff_of(hunk))
    assert fs.read_bytes("/a").content.decode() == expected


def test_a_diff_with_carriage_returns() -> None:
    fs = filesystem(a="a\nb\n")
    apply(fs, diff_of("@@ -1,2 +1,2 @@\n a\n-b\n+c\n").replace("\n", "\r\n"))
    assert fs.read("/a").content == "a\nc\n"


def test_a_new_and_a_deleted_file() -> None:
    fs = filesystem(gone="1\n2\n")
    report = apply(
        fs, "--- /dev/null\n+++ b/d/new\n@@ -0,0 +1,2 @@\n+a\n+b\n--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n"
    )
    assert patches.files_of(fs) == {"d/new": "a\nb\n"}
    assert report.ops == PatchOps(add=1, delete=1)


@pytest.mark.parametrize("names", ["--- a/d/new\n+++ b/d/new\n", "--- d/new\n+++ d/new\n"])
def test_lines_added_to_nothing_make_a_missing_file(names: str) -> None:
    fs = filesystem()
    report = apply(fs, f"{names}@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n")
    assert patches.files_of(fs) == {"d/new": "a\nb"}
    assert report.ops == PatchOps(add=1)


@pytest.mark.parametrize(
    "diff",
    [
        "--- a/d/new\n+++ b/d/new\n@@ -1 +1,2 @@\n x\n+a\n",
        "--- a/d/new\n+++ b/d/new\n@@ -4,0 +5 @@\n+a\n",
        "--- a/d/new\n+++ b/d/new\n@@ -0,0 +1 @@\n+a\n@@ -4,0 +6 @@\n+b\n",
        "--- old/new\n+++ other/new\n@@ -0,0 +1 @@\n+a\n",
        "--- a/new\n+++ a/new\n@@ -0,0 +1 @@\n+a\n",
        "diff --git a/new b/new\n--- a/new\n+++ b/new\n@@ -0,0 +1 @@\n+a\n",
    ],
)
def test_another_diff_of_a_missing_file_is_refused(diff: str) -> None:
    fs = filesystem()
    with pytest.raises(UpdateTargetNotFound):
        apply(fs, diff)
    assert patches.files_of(fs) == {}


def test_lines_added_before_the_first_line_of_a_file() -> None:
    fs = filesystem(a="x\n")
    assert apply(fs, diff_of("@@ -0,0 +1 @@\n+a\n")).ops == PatchOps(update=1)
    assert patches.files_of(fs) == {"a": "a\nx\n"}


def test_a_file_that_holds_more_than_the_diff_says_is_not_deleted() -> None:
    fs = filesystem(gone="1\n2\n3\n")
    with pytest.raises(HunkRejected, match="it contains more than the patch says"):
        apply(fs, "--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n")
    assert patches.files_of(fs) == {"gone": "1\n2\n3\n"}


# Malformed patches


@pytest.mark.parametrize(
    ("diff", "line", "says"),
    [
        ("", 1, "there is no diff in it"),
        ("nothing\nof the kind\n", 1, "there is no diff in it"),
        (diff_of("@@ -1,3 +1,3 @@\n a\n-b\n+c"), 3, "it was cut off"),
        (diff_of("@@ -1,9 +1,9 @@\n"), 3, "the hunk has no lines"),
        (diff_of(), 2, "there is no hunk below the names"),
        ("@@ -1 +1 @@\n-a\n+b\n", 1, "a hunk without a file"),
        ("x\ndiff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 1\n", 4, "it changes a binary file"),
        ("diff --git a/x b/x\nindex 12..34\nBinary files a/x and b/x differ\n", 3, "it changes a binary file"),
        ("diff --git a/x b/x\nnew file mode 160000\n", 2, "it changes a submodule"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 1x\n", 3, "is not a mode"),
        ("diff --git a/x b/x\nrename from x\n", 1, "names one path"),
        ("diff --git a/x b/x\n", 1, "is empty; leave it out"),
        ("diff --git a b c d\nold mode 100644\nnew mode 100755\n", 1, "cannot be told apart"),
        ("diff --cc x\nindex 1,2..3\n", 1, "a combined diff"),
        ('--- "a/x\n+++ "b/x\n@@ -1 +1 @@\n-a\n+b\n', 1, "names no file"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", 1, "neither name is a file"),
        ("--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", 3, "has old lines"),
    ],
)
def test_a_malformed_diff_is_refused_with_the_line(diff: str, line: int, says: str) -> None:
    with pytest.raises(PatchParseError) as caught:
        apply(filesystem(a="a\nb\n", x="a\n"), diff)
    assert says in str(caught.value)
    assert caught.value.line == line


def test_a_path_that_climbs_out_is_refused() -> None:
    for path in ("../x", "d/../../x"):
        with pytest.raises(PatchError) as caught:
            apply(filesystem(), f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+a\n")
        assert caught.value.error_code == "path_forbidden"


def test_the_refusal_of_an_ambiguous_hunk_has_advice_for_diffs() -> None:
    with pytest.raises(HunkRejected, match="at lines 1, 3; add more lines of context, or correct the line numbers"):
        apply(filesystem(a="x\nb\nx\nb\n"), "--- a/a\n+++ b/a\n@@ -9 +9 @@\n-x\n+y\n")


def test_one_hunk_reveals_the_line_endings_of_another() -> None:
    fs = InMemoryFilesystem()
    fs.write_bytes("a", b"1\r\n2\r\n3\r\n")
    apply(fs, "--- a/a\n+++ b/a\n@@ -1 +0,0 @@\n-1\r\n@@ -2,0 +2 @@\n+new\n")
    assert fs.read_bytes("a").content == b"2\r\nnew\n3\r\n"
    apply(fs, "--- a/a\n+++ b/a\n@@ -1 +0,0 @@\n-2\n@@ -3,0 +3 @@\n+more\n")
    assert fs.read_bytes("a").content == b"new\n3\r\nmore\r\n"


# Mistakes of models


def test_wrong_counts_are_recounted() -> None:
    for ranges in ("-1,9 +1,9", "-1 +1", "-1,1 +1,4"):
        fs = filesystem(a="a\nb\nc\n")
        report = apply(fs, diff_of(f"@@ {ranges} @@\n a\n-b\n+B\n c\n"))
        assert fs.read("/a").content == "a\nB\nc\n"
        assert report.hunks[0].notes == ("the counts in its header do not match its lines, which were all used",)
    fs = filesystem()
    apply(fs, "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n+c\n")
    assert fs.read("/n").content == "a\nb\nc\n"


def test_a_diff_with_wrong_counts_ends_where_the_next_begins() -> None:
    fs = filesystem(a="a\n-- b\n", x="x\n")
    apply(fs, "--- a/a\n+++ b/a\n@@ -1,7 +1,7 @@\n a\n--- b\n+++ c\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n")
    assert (fs.read("/a").content, fs.read("/x").content) == ("a\n++ c\n", "y\n")


@pytest.mark.parametrize("header", ["@@", "@@ ... @@", "@@ @@", "@@ def f(): @@", "@@ def f():"])
def test_a_header_needs_no_numbers(header: str) -> None:
    fs = filesystem(a="def f():\n    x\n")
    apply(fs, diff_of(f"{header}\n-    x\n+    y\n"))
    assert fs.read("/a").content == "def f():\n    y\n"


def test_the_place_nearest_to_the_stated_line_is_preferred() -> None:
    lines = ["-"] * 50
    lines[9], lines[10], lines[40] = "    x", "  y", "  x"
    fs = filesystem(a="\n".join(lines) + "\n")
    apply(fs, diff_of("@@ -10 +10 @@\n-  x\n+  z\n"))
    assert fs.read("/a").content == "\n".join(lines).replace("    x", "    z") + "\n"


@pytest.mark.parametrize(("stated", "chosen"), [(1, 3), (4, 3), (6, 3), (10, 13), (15, 13), (22, 13)])
def test_a_place_is_chosen_if_the_next_is_more_than_twice_as_far_from_the_stated_line(stated: int, chosen: int) -> None:
    lines = [f"{number}" for number in range(1, 21)]
    lines[2] = lines[12] = "x"
    changed = list(lines)
    changed[chosen - 1] = "y"
    fs = filesystem(a="\n".join(lines) + "\n")
    diff = diff_of(f"@@ -{stated} +{stated} @@\n-x\n+y\n")
    apply(fs, diff)
    assert fs.read("/a").content == "\n".join(changed) + "\n"


def test_several_places_near_the_stated_line_are_refused_unless_the_heading_decides() -> None:
    content = "def f():\n    x\n\ndef g():\n    x\n"
    with pytest.raises(HunkRejected, match="several places, at lines 2, 5"):
        apply(filesystem(a=content), diff_of("@@ -8 +8 @@\n-    x\n+    y\n"))
    fs = filesystem(a=content)
    apply(fs, diff_of("@@ -8 +8 @@ def g():\n-    x\n+    y\n"))
    assert fs.read("/a").content == "def f():\n    x\n\ndef g():\n    y\n"


def test_a_near_place_that_fits_loosely_and_a_far_one_exactly_are_refused_unless_the_heading_decides() -> None:
    lines = ["-"] * 40
    lines[5:7], lines[30:32] = ["def f():", "    x"], ["def g():", "  x"]
    content = "\n".join(lines) + "\n"
    with pytest.raises(HunkRejected, match="several places, at lines 7, 32"):
        apply(filesystem(a=content), diff_of("@@ -9 +9 @@\n-  x\n+  y\n"))
    fs = filesystem(a=content)
    apply(fs, diff_of("@@ -9 +9 @@ def f():\n-  x\n+  y\n"))
    assert fs.read("/a").content == content.replace("    x", "    y")


def test_context_without_its_mark_is_accepted_if_it_matches_exactly() -> None:
    fs = filesystem(a="a\nb\nc\n")
    apply(fs, diff_of("@@ -1,3 +1,3 @@\na\n-b\n+B\nc\n"))
    assert fs.read("/a").content == "a\nB\nc\n"


def test_each_format_is_recognized() -> None:
    v4a = "*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n*** End Patch\n"
    blocks = "a\n<<<<<<< SEARCH\na\n=======\nA\n>>>>>>> REPLACE\n"
    unified = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+A\n"
    sent = [(v4a, "v4a"), (unified, "unified"), (blocks, "search_replace")]
    for patch, name in sent:
        for _, other in sent:
            if other != name:
                with pytest.raises(PatchParseError, match=f"patch_format='{name}'"):
                    apply_patch(filesystem(a="a\n"), patch, patch_format=other)  # type: ignore[arg-type]  # a format


@pytest.mark.slow
def test_thousands_of_hunks_that_fit_apart_from_indentation_take_linear_time() -> None:
    """Quadratic work here would take minutes."""
    fs, numbers = InMemoryFilesystem(), range(80_000)
    fs.write("/f", "".join(f"    line {number}\n" for number in numbers))
    hunks = (f"@@ -9,1 +9,1 @@\n-line {number}\n+new {number}\n" for number in numbers[::8])

    apply_patch(fs, "--- a/f\n+++ b/f\n" + "".join(hunks), patch_format="unified")

    assert fs.read("/f").content == "".join(f"    {'line' if number % 8 else 'new'} {number}\n" for number in numbers)

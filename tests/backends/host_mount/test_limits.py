"""How much of a host tree is mounted: limits of the filesystem and of the mount, patterns, permissions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from errno import EDQUOT, ENAMETOOLONG
from pathlib import Path

import pytest

from tests.models.trees import Plain, lay
from weakfs import Session
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.filesystem import Limits

D = ("d", 0o755)


def f(size: int = 10) -> tuple[str, bytes, int]:
    return ("f", b"x" * size, 0o644)


def paths(fs: InMemoryFilesystem) -> list[str]:
    return [entry.path for entry in fs.walk()]


def skipped(fs: InMemoryFilesystem) -> list[str]:
    return [path for report in fs.mounts for path, _ in report.skipped]


def test_a_file_above_the_size_limit_is_skipped_and_reported_with_its_size(tmp_path: Path) -> None:
    lay(tmp_path, {"/fits": f(10), "/large": f(11)})
    fs = InMemoryFilesystem(mounts=[HostMount(str(tmp_path))], limits=Limits(max_file_size=10))
    assert paths(fs) == ["/fits"]
    assert fs.mounts[0].skipped == (("/large", "has 11 bytes, more than the limits allow"),)


def test_max_bytes_limits_the_total_and_files_that_still_fit_are_copied(tmp_path: Path) -> None:
    lay(tmp_path, {"/a": f(10), "/b": f(15), "/c": f(5), "/d": f(0)})
    fs = InMemoryFilesystem(mounts=[HostMount(str(tmp_path), max_bytes=16)])
    assert paths(fs) == ["/a", "/c", "/d"]
    assert skipped(fs) == ["/b"]
    assert fs.statistics().total_size <= 16


@pytest.mark.parametrize("most", range(8))
def test_the_entry_quota_is_never_exceeded(most: int, tmp_path: Path) -> None:
    lay(tmp_path, {"/d": D, "/d/e": D, "/d/e/f": f(), "/d/g": f(), "/h": f(), "/l": ("l", "h")})
    fs = InMemoryFilesystem(mounts=[HostMount(str(tmp_path))], limits=Limits(max_node_count=most))
    assert fs.statistics().node_count == min(most, 6)
    assert bool(skipped(fs)) == (most < 6)


def test_the_byte_quota_includes_other_mounts_and_writes(tmp_path: Path) -> None:
    lay(tmp_path, {"/d": D, "/d/a": f(10), "/d/b": f(10)})
    session = Session()
    InMemoryFilesystem(session).write("/own", "12345")
    mounts = [HostMount(str(tmp_path), "/one/x"), HostMount(str(tmp_path), "/two")]
    fs = InMemoryFilesystem(session, mounts=mounts, limits=Limits(max_total_size=25))
    assert fs.statistics().total_size == 25
    assert skipped(fs) == ["/two/d/a", "/two/d/b"]


def test_the_entry_quota_includes_existing_entries_and_parents_of_the_mount(tmp_path: Path) -> None:
    lay(tmp_path, {"/d": D, "/d/a": f(10), "/d/b": f(10)})
    session = Session()
    InMemoryFilesystem(session).write("/own", "12345")
    limits = Limits(max_node_count=5)
    fs = InMemoryFilesystem(session, mounts=[HostMount(str(tmp_path), "/one/x")], limits=limits)
    assert paths(fs) == ["/one", "/one/x", "/one/x/d", "/one/x/d/a", "/own"]
    assert skipped(fs) == ["/one/x/d/b"]
    with pytest.raises(OSError, match="are allowed") as caught:
        InMemoryFilesystem(session, mounts=[HostMount(str(tmp_path), "/two")], limits=limits)
    assert caught.value.errno == EDQUOT
    assert session.seq == 2


@pytest.mark.parametrize("limits", [Limits(max_path_depth=1), Limits(max_segment_length=3)])
def test_a_mount_path_that_breaks_the_limits_is_refused(limits: Limits, tmp_path: Path) -> None:
    session = Session()
    with pytest.raises(OSError, match="are allowed") as caught:
        InMemoryFilesystem(session, mounts=[HostMount(str(tmp_path), "/a/long")], limits=limits)
    assert caught.value.errno == ENAMETOOLONG
    assert session.seq == 0


def test_depth_counts_from_the_root_of_the_filesystem(tmp_path: Path) -> None:
    lay(tmp_path, {"/1": D, "/1/2": D, "/1/2/3": f(), "/1/f": f()})
    fs = InMemoryFilesystem(mounts=[HostMount(str(tmp_path), "/m")], limits=Limits(max_path_depth=3))
    assert paths(fs) == ["/m", "/m/1", "/m/1/2", "/m/1/f"]
    assert skipped(fs) == ["/m/1/2/3"]


def test_a_directory_whose_name_is_too_long_is_skipped_with_its_contents(tmp_path: Path) -> None:
    lay(tmp_path, {"/abcd": D, "/abcd/f": f(), "/\u00e9\u00e9": f(), "/abc": f()})
    fs = InMemoryFilesystem(mounts=[HostMount(str(tmp_path))], limits=Limits(max_segment_length=3))
    assert paths(fs) == ["/abc"]
    assert skipped(fs) == ["/abcd", "/\u00e9\u00e9"]


def test_mounted_files_can_be_rewritten_under_the_same_limits(tmp_path: Path) -> None:
    limits = Limits(max_file_size=10, max_path_depth=2, max_segment_length=4, max_total_size=30, max_node_count=4)
    lay(tmp_path, {"/d": D, "/d/a": f(10), "/d/long2": f(1), "/e": f(9), "/g": f(9), "/h": f(9), "/i": f(0)})
    fs = InMemoryFilesystem(mounts=[HostMount(str(tmp_path))], limits=limits)
    again = InMemoryFilesystem(limits=limits)
    again.import_bytes(fs.export_bytes())
    assert again.tree().fingerprint == fs.tree().fingerprint


SOURCES: Plain = {
    "/setup.py": f(),
    "/src": D,
    "/src/a.py": f(),
    "/src/.hidden.py": f(),
    "/src/notes.txt": f(),
    "/src/deep": D,
    "/src/deep/b.py": f(),
    "/build": D,
    "/build/out.py": f(),
    "/docs": D,
    "/docs/index.md": f(),
    "/empty": D,
    "/link.py": ("l", "setup.py"),
}


@pytest.mark.parametrize(
    ("include", "exclude", "wanted"),
    [
        ((), (), sorted(SOURCES)),
        (
            "*.py",
            (),
            [
                "/build",
                "/build/out.py",
                "/link.py",
                "/setup.py",
                "/src",
                "/src/.hidden.py",
                "/src/a.py",
                "/src/deep",
                "/src/deep/b.py",
            ],
        ),
        ("*.md", (), ["/docs", "/docs/index.md"]),
        ("/*.py", (), ["/link.py", "/setup.py"]),
        ("src/*.py", (), ["/src", "/src/.hidden.py", "/src/a.py"]),
        (("docs/**", "src/deep/*"), (), ["/docs", "/docs/index.md", "/src", "/src/deep", "/src/deep/b.py"]),
        ("*.nothing", (), []),
        ((), ("build/", "src", "empty"), ["/docs", "/docs/index.md", "/link.py", "/setup.py"]),
        ((), ("*.py", "*.md"), ["/build", "/docs", "/empty", "/src", "/src/deep", "/src/notes.txt"]),
        ("*.py", ("build/", "src/deep"), ["/link.py", "/setup.py", "/src", "/src/.hidden.py", "/src/a.py"]),
        ("*.py", "*.py", []),
        ("{*.md,notes.*}", (), ["/docs", "/docs/index.md", "/src", "/src/notes.txt"]),
    ],
)
def test_include_and_exclude_choose_what_is_copied(
    include: str | tuple[str, ...], exclude: str | tuple[str, ...], wanted: list[str], tmp_path: Path
) -> None:
    lay(tmp_path, SOURCES)
    fs = InMemoryFilesystem(mounts=[HostMount(str(tmp_path), "/", include, exclude)])
    assert sorted(paths(fs)) == wanted
    assert skipped(fs) == []


def test_excluded_files_are_neither_read_nor_counted_nor_reported(tmp_path: Path) -> None:
    lay(tmp_path, {"/a.py": f(10), "/b.txt": f(1000), "/c": D, "/c/d.txt": f(1000)})
    os.mkfifo(tmp_path / "fifo.txt")
    wanted = HostMount(str(tmp_path), include="*.py", max_bytes=10)
    fs = InMemoryFilesystem(mounts=[wanted], limits=Limits(max_node_count=2))
    assert paths(fs) == ["/a.py"]
    assert skipped(fs) == []


def test_a_directory_without_included_files_uses_no_quota(tmp_path: Path) -> None:
    lay(tmp_path, {"/a": D, "/a/b": D, "/a/b/c.txt": f(), "/d": D, "/d/e.py": f(), "/g.txt": f()})
    wanted = HostMount(str(tmp_path), include="*.py")
    fs = InMemoryFilesystem(mounts=[wanted], limits=Limits(max_node_count=2))
    assert paths(fs) == ["/d", "/d/e.py"]
    assert skipped(fs) == []


def test_a_malformed_pattern_is_refused_before_anything_is_mounted(tmp_path: Path) -> None:
    session = Session()
    with pytest.raises(ValueError, match=r"\["):
        InMemoryFilesystem(session, mounts=[HostMount(str(tmp_path), include="[a")])
    assert session.seq == 0


@contextmanager
def as_somebody() -> Generator[None]:
    """Temporarily drop the privileges of root."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_unreadable_entries_are_skipped_and_the_rest_is_copied() -> None:
    with tempfile.TemporaryDirectory(prefix="weakfs-mount-") as name:
        root = Path(name)
        lay(root, {"/closed": D, "/closed/f": f(), "/secret": f(), "/open": f()})
        root.chmod(0o755)
        (root / "secret").chmod(0)
        (root / "closed").chmod(0)
        with as_somebody():
            fs = InMemoryFilesystem(mounts=[HostMount(name)])
        (root / "closed").chmod(0o755)
        assert paths(fs) == ["/open"]
        assert fs.mounts[0].skipped == (("/closed", "Permission denied"), ("/secret", "Permission denied"))

"""The suite itself: no case hides another, it detects what it checks for, and its imports are lazy."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections import Counter

import pytest

from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Filesystem
from weakfs.testing import FilesystemConformance, refused


@pytest.fixture
def fs() -> Filesystem:
    return InMemoryFilesystem()


def test_no_case_hides_another_of_the_same_name() -> None:
    names = Counter(name for home in FilesystemConformance.__mro__ for name in vars(home) if name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []
    assert len(names) > 250


def test_a_class_without_a_filesystem_says_what_to_override() -> None:
    class TestNothing(FilesystemConformance):
        pass

    with pytest.raises(NotImplementedError, match=r"TestNothing has no filesystem; override make_fs\("):
        TestNothing().make_fs()


def test_refused_passes_if_the_error_is_raised_and_nothing_changes(fs: Filesystem) -> None:
    with refused(fs, FileNotFoundError, errno.ENOENT) as caught:
        fs.read("/missing")
    assert "/missing" in str(caught.value)


def test_refused_fails_if_no_error_is_raised(fs: Filesystem) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"), refused(fs, FileNotFoundError):
        fs.write("/a.txt", "text")


def test_refused_propagates_another_error(fs: Filesystem) -> None:
    with pytest.raises(FileNotFoundError), refused(fs, PermissionError):
        fs.read("/missing")


def test_refused_fails_if_the_errno_differs(fs: Filesystem) -> None:
    with pytest.raises(AssertionError), refused(fs, OSError, errno.EDQUOT):
        fs.read("/missing")


def test_refused_fails_if_something_is_left_behind(fs: Filesystem) -> None:
    def leave_something_behind() -> None:
        fs.mkdir("/left")
        fs.read("/missing")

    with pytest.raises(AssertionError, match="left something behind"), refused(fs, FileNotFoundError):
        leave_something_behind()


@pytest.mark.parametrize("module", ["weakfs", "weakfs.testing", "weakfs.backends.mock"])
def test_pytest_is_not_imported_before_it_is_needed(module: str) -> None:
    code = f"import {module}, sys; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_name_is_an_attribute_error() -> None:
    import weakfs.testing

    with pytest.raises(AttributeError, match=r"it has .*FilesystemConformance"):
        getattr(weakfs.testing, "Missing")  # noqa: B009
    assert "FilesystemConformance" in dir(weakfs.testing)

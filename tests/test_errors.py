"""Errors that are copied and pickled, so that they can be raised in another process."""

from __future__ import annotations

import copy
import errno
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from weakfs import (
    HostFilesystem,
    InMemoryFilesystem,
    MergeConflict,
    MissingBlob,
    RollbackIncomplete,
    Session,
    SessionFileError,
    WeakfsError,
)
from weakfs.backends import MountedFilesystem
from weakfs.editing import apply_patch, replace
from weakfs.filesystem import Filesystem, Limits
from weakfs.filesystem.errors import absence_in
from weakfs.reducers.tree.repeated_subtrees import TreeTooLarge
from weakfs.session import Conflict, ConflictEntry, SessionConflict
from weakfs.storage import FrameDamaged, LeaseLost, StorageError, StreamConflict
from weakfs.storage.folder.errors import JournalDamaged, failure
from weakfs.tools import ToolValidationError
from weakfs.tools.errors import PolicyDenied

PATCH = "*** Begin Patch\n*** Update File: /a\n@@\n-absent\n+x\n*** End Patch"


def raised(call: Callable[[], object]) -> WeakfsError:
    with pytest.raises(WeakfsError) as caught:
        call()
    return caught.value


def patched() -> object:
    files = InMemoryFilesystem()
    files.write("/a", "one\n")
    return apply_patch(files, PATCH)


ERRORS: dict[str, Callable[[], WeakfsError]] = {
    "merge conflict": lambda: MergeConflict((ConflictEntry("/a", "content", "fs/tree"),)),
    "conflict of a slice": lambda: Conflict("/a", "/b"),
    "tree that is too large": lambda: TreeTooLarge("16 copies"),
    "session conflict": lambda: SessionConflict("s", 1, 2),
    "incomplete rollback": lambda: RollbackIncomplete({"host": "not put back"}),
    "session file": lambda: SessionFileError("it is not a list", where="$.slices"),
    "missing blob": lambda: MissingBlob("gone", where="$.blobs", digest=b"d"),
    "stream conflict": lambda: StreamConflict("s", 5, 2),
    "lease": lambda: LeaseLost("leased", owner="w"),
    "damaged frames": lambda: FrameDamaged("s", 3, 4, "they are missing", "sqlite:a.db"),
    "journal": lambda: JournalDamaged("/j", 7, None, "checksum"),
    "system call": lambda: failure("write '/j'", OSError(errno.ENOSPC, "No space left on device")),
    "edit": lambda: raised(lambda: replace("a a", "a", "b")),
    "edit that finds nothing": lambda: raised(lambda: replace("port = 80\n", "prt = 80", "b")),
    "patch": lambda: raised(patched),
    "arguments": lambda: ToolValidationError("path: missing", "limit: not a number"),
    "policy": lambda: PolicyDenied("denied: secret", "secret"),
}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_is_the_same_after_a_copy_or_pickling(kind: str, again: Callable[[WeakfsError], WeakfsError]) -> None:
    error = ERRORS[kind]()
    error.add_note("in the second attempt")

    other = again(error)

    assert type(other) is type(error)
    assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))
    assert getattr(other, "errno", None) == getattr(error, "errno", None)


def filesystem(backend: str, root: Path, *, read_only: bool = False) -> Filesystem:
    """Return a filesystem with a file and a directory that has an entry."""
    session, limits = Session(), Limits(max_file_size=20)
    if backend == "host":
        (root / "d").mkdir()
        (root / "d" / "g").write_text("text")
        (root / "f").write_text("text")
        return HostFilesystem(root, session=session, limits=limits, read_only=read_only)
    files = InMemoryFilesystem(session)
    files.write("/f", "text")
    files.write("/d/g", "text")
    files = InMemoryFilesystem(session, limits=limits, read_only=read_only)
    return MountedFilesystem(files, "/workspace") if backend == "mounted" else files


BUILT_IN: dict[str, tuple[Callable[[Filesystem], object], int]] = {
    "not found": (lambda fs: fs.read("x"), errno.ENOENT),
    "exists": (lambda fs: fs.write("f", "", mode="create"), errno.EEXIST),
    "a file on the way": (lambda fs: fs.write("f/x", ""), errno.ENOTDIR),
    "a directory": (lambda fs: fs.write("d", ""), errno.EISDIR),
    "not empty": (lambda fs: fs.delete("d"), errno.ENOTEMPTY),
    "too large": (lambda fs: fs.write("f", "x" * 21), errno.EFBIG),
    "a pattern above the root": (lambda fs: fs.glob("../x"), errno.EACCES),
    "read-only": (lambda fs: fs.delete("f"), errno.EROFS),
}


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda error: pickle.loads(pickle.dumps(error)),
        lambda error: copy.copy(pickle.loads(pickle.dumps(copy.deepcopy(pickle.loads(pickle.dumps(error)))))),
    ],
    ids=["copy", "deepcopy", "pickle", "several times"],
)
@pytest.mark.parametrize("backend", ["memory", "host", "mounted"])
@pytest.mark.parametrize("kind", BUILT_IN)
def test_a_built_in_error_of_a_filesystem_keeps_its_number(
    tmp_path: Path, kind: str, backend: str, again: Callable[[OSError], OSError]
) -> None:
    call, number = BUILT_IN[kind]
    with pytest.raises(OSError, match=r"^cannot ") as caught:
        call(filesystem(backend, tmp_path, read_only=kind == "read-only"))
    error = caught.value
    error.add_note("in the second attempt")

    other = again(error)

    assert type(other) is type(error)
    assert other.errno == error.errno == number
    assert (str(other), other.args, other.__notes__) == (str(error), error.args, error.__notes__)
    assert absence_in(other) == absence_in(error)


def test_the_number_of_an_operating_system_error_is_kept() -> None:
    error = failure("write '/j'", OSError(errno.ENOSPC, "No space left on device"))

    assert pickle.loads(pickle.dumps(error)).errno == errno.ENOSPC
    assert isinstance(error, StorageError)

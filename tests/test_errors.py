"""Errors that weakfs defines: copied and pickled, so that they can be raised in another process."""

from __future__ import annotations

import copy
import errno
import pickle
from collections.abc import Callable

import pytest

from weakfs import InMemoryFilesystem, MergeConflict, MissingBlob, RollbackIncomplete, SessionFileError, WeakfsError
from weakfs.editing import apply_patch, replace
from weakfs.session import ConflictEntry, SessionConflict
from weakfs.storage import LeaseLost, StorageError, StreamConflict
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
    "session conflict": lambda: SessionConflict("s", 1, 2),
    "incomplete rollback": lambda: RollbackIncomplete({"host": "not put back"}),
    "session file": lambda: SessionFileError("it is not a list", where="$.slices"),
    "missing blob": lambda: MissingBlob("gone", where="$.blobs", digest=b"d"),
    "stream conflict": lambda: StreamConflict("s", 5, 2),
    "lease": lambda: LeaseLost("leased", owner="w"),
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


def test_the_number_of_an_operating_system_error_is_kept() -> None:
    error = failure("write '/j'", OSError(errno.ENOSPC, "No space left on device"))

    assert pickle.loads(pickle.dumps(error)).errno == errno.ENOSPC
    assert isinstance(error, StorageError)

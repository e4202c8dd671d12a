"""The log of an undo journal: a file with one line of JSON for each step. See docs/formats/undo-journal.md."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from errno import EBADMSG
from typing import IO, Any

import orjson
from attrs import fields

from weakfs.errors import fault
from weakfs.platforms import NOT_A_REGULAR_FILE
from weakfs.session.external_filesystems import CommitPlace
from weakfs.snapshots.undo_journal.checked_lines import checked_line, read_lines

# One line of the log.
Frame = dict[str, Any]

LOG = b"log"

BEGUN = "begun"
PREPARED = "prepared"
PLACE = tuple(attribute.name for attribute in fields(CommitPlace))

# The fields that undoing a step needs, for each kind of step.
FIELDS = {
    "absent": {"path", "parents"},
    "kept": {"path", "as", "was", "aside", "parents"},
    "contents": {"path", "as", "names", "was", "held", "mode", "at", "parents"},
    "moved": {"path", "to", "was", "parents"},
    "status": {"path", "mode", "at"},
    "tree": {"ref"},
    BEGUN: {"log", "root"},
    PREPARED: {*PLACE},
}


def open_log(journal: str, flags: int = os.O_RDONLY, *, directory: int | None = None) -> int:
    """Open the log of a journal without waiting. `directory` is the directory of the journal if that is open.

    Raises `FileNotFoundError` if there is no log, and `OSError` (EBADMSG) if it is not a regular file.
    """
    name = LOG if directory is not None else os.path.join(os.fsencode(journal), LOG)
    try:
        found = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except IsADirectoryError:
        raise damaged(journal, "it is not a regular file") from None
    except OSError as error:
        if error.errno not in NOT_A_REGULAR_FILE:
            raise
        raise damaged(journal, "it is not a regular file") from None
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise damaged(journal, "it is not a regular file")
    return found


def begun(log: int, root: int | None) -> Frame:
    """Return the first line of a log: the inode numbers of the log and, if permanent, of the changed directory."""
    return {"op": BEGUN, "log": log, "root": root}


def is_elsewhere(frame: Frame, log: os.stat_result, root: os.stat_result) -> bool:
    """Return whether a log is a copy, or another directory has taken the place of the one that the work changed."""
    return frame["log"] != log.st_ino or frame["root"] not in (None, root.st_ino)


def encoded(frame: Frame, offset: int) -> bytes:
    """Return the line of a step that begins at an offset of the log."""
    try:
        return checked_line(orjson.dumps(frame), offset)
    except TypeError:
        # Some filesystems keep times that do not fit in 64 bits.
        return checked_line(json.dumps(frame).encode(), offset)


def read_frames(log: IO[bytes], journal: str) -> Iterator[tuple[Frame, int]]:
    """Yield the steps in the log of a journal, each with the length of its line.

    A truncated last line is ignored: its change did not happen. Raises `OSError` (EBADMSG) for a line that is not a
    step, or is damaged.
    """
    try:
        for text, length in read_lines(log):
            # Not orjson, which reads integers of more than 64 bits as floats.
            frame = json.loads(text)
            if not FIELDS[frame["op"]] <= frame.keys():
                raise ValueError(f"a step {frame['op']!r} lacks a field")
            if frame["op"] == "tree":
                bytes.fromhex(frame["ref"])
            yield frame, length
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise damaged(journal, f"a line is not a step that this version knows: {error}") from None


def damaged(journal: str, cause: str) -> OSError:
    """Return the error for a journal whose log cannot be read."""
    return fault(
        OSError,
        EBADMSG,
        f"the log of the unfinished work in {journal!r} is damaged: {cause}; move that directory away to give up "
        f"undoing the work",
    )

"""Imported commits as calls: the call that represents a commit has everything that determines the commit's id.

An export therefore writes the same commit again.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from typing import Any, cast

from weakfs.class_decorators import frozen
from weakfs.messages import clip, one_line
from weakfs.tools import ToolCall
from weakfs.tools.calls.call_json import recorded

TOOL = "git_commit"
_ID = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")
# The author and committer lines that git fast-import writes unchanged.
_PERSON = re.compile(rb"(?P<name>[^<>\n\0]*?) ?<[^<>\n\0]*> (?P<seconds>[0-9]{1,12}) [+-](?:0[0-9]|1[0-3])[0-5][0-9]")


@frozen
class GitCommit:
    """A commit as git stores it. `author` and `committer` are whole lines: name, address, seconds and time zone.

    `is_plain` is false if git stores more about it, such as a signature or an encoding.
    """

    object_id: str
    tree: str
    parents: tuple[str, ...]
    author: bytes
    committer: bytes
    message: bytes
    is_plain: bool = True

    @property
    def at(self) -> int:
        """The time of the commit in nanoseconds; 0 if it cannot be determined."""
        found = _PERSON.fullmatch(self.committer)
        return int(found["seconds"]) * 1_000_000_000 if found else 0

    @property
    def caller(self) -> str | None:
        """The name of the author."""
        found = _PERSON.fullmatch(self.author)
        return one_line(found["name"].decode("utf-8", "replace")) or None if found else None

    @property
    def can_be_written(self) -> bool:
        """Whether git fast-import writes the commit unchanged."""
        people = (_PERSON.fullmatch(self.author), _PERSON.fullmatch(self.committer))
        return self.is_plain and all(people) and b"\0" not in self.message


def call_of(commit: GitCommit, first: int | None, last: int | None) -> ToolCall:
    """Return the call that represents a commit; its records are `first` to `last`."""
    arguments = {
        "commit": commit.object_id,
        "parents": list(commit.parents),
        "author": _text(commit.author),
        "committer": _text(commit.committer),
        "message": _text(commit.message),
        "plain": commit.is_plain,
    }
    subject = clip(one_line(commit.message.split(b"\n", 1)[0].decode("utf-8", "replace")), 200)
    return ToolCall(
        commit.object_id,
        TOOL,
        recorded(arguments),
        "{}",
        "ok",
        None,
        subject,
        commit.caller,
        commit.at,
        commit.at,
        first,
        last,
    )


def commit_of(call: ToolCall) -> GitCommit | None:
    """Return the commit that a call represents; `None` for any other call."""
    if call.tool != TOOL or not _ID.fullmatch(call.call_id):
        return None
    try:
        given = cast("dict[str, Any]", call.read_arguments())
        commit = GitCommit(
            given["commit"],
            "",
            tuple(given["parents"]),
            _bytes(given["author"]),
            _bytes(given["committer"]),
            _bytes(given["message"]),
            given["plain"],
        )
    except (ValueError, KeyError, TypeError):
        # A program may have its own tool with that name.
        return None
    return commit if commit.object_id == call.call_id else None


def _text(data: bytes) -> object:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _bytes(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return b64decode(cast("dict[str, str]", value)["base64"], validate=True)

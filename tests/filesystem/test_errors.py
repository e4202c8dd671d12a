"""Errors as programs see them: the class, the number, and a message without a prefix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import (
    EACCES,
    EDQUOT,
    EEXIST,
    EFBIG,
    EINVAL,
    EISDIR,
    ELOOP,
    ENAMETOOLONG,
    ENOENT,
    ENOTDIR,
    ENOTEMPTY,
    EROFS,
)

import pytest

from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.errors import fault
from weakfs.filesystem import Filesystem, Limits
from weakfs.reducers.tree.node import Node
from weakfs.testing.conformance import read_only_cases
from weakfs.testing.conformance.read_only_cases import MUTATIONS


def workspace(**options: object) -> InMemoryFilesystem:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/f", "text")
    fs.write("/d/g", "text")
    fs.symlink("f", "/link")
    fs.symlink("/d", "/to_d")
    fs.symlink("loop", "/loop")
    fs.symlink("../../out", "/out")
    return InMemoryFilesystem(session, **options)  # type: ignore[arg-type]  # passed through


TIGHT = Limits(max_file_size=20, max_path_depth=3, max_segment_length=5, max_total_size=30, max_node_count=8)

Call = Callable[[Filesystem], object]

REFUSED: dict[str, tuple[Call, type[OSError], int]] = {
    "nothing there": (lambda fs: fs.read("/x"), FileNotFoundError, ENOENT),
    "nothing there to list": (lambda fs: fs.list("/d/x"), FileNotFoundError, ENOENT),
    "no parent": (lambda fs: fs.mkdir("/x/y", parents=False), FileNotFoundError, ENOENT),
    "a file on the way": (lambda fs: fs.read("/f/x"), NotADirectoryError, ENOTDIR),
    "a file on the way for a write": (lambda fs: fs.write("/f/x/y", ""), NotADirectoryError, ENOTDIR),
    "a file is not a directory": (lambda fs: fs.list("/f"), NotADirectoryError, ENOTDIR),
    "a directory onto a file": (lambda fs: fs.move("/d", "/f"), NotADirectoryError, ENOTDIR),
    "a directory is not a file": (lambda fs: fs.splice("/d", []), IsADirectoryError, EISDIR),
    "a directory in its place": (lambda fs: fs.copy("/f", "/d"), IsADirectoryError, EISDIR),
    "something there": (lambda fs: fs.write("/f", "", mode="create"), FileExistsError, EEXIST),
    "something there for a stream": (lambda fs: fs.open("/f", "x"), FileExistsError, EEXIST),
    "a directory with entries": (lambda fs: fs.delete("/d"), OSError, ENOTEMPTY),
    "the root": (lambda fs: fs.delete("/", recursive=True), PermissionError, EACCES),
    "above the root": (lambda fs: fs.exists("/.."), PermissionError, EACCES),
    "a link": (lambda fs: fs.read("/link"), PermissionError, EACCES),
    "a link on the way": (lambda fs: fs.write("/to_d/new", ""), PermissionError, EACCES),
    "no link": (lambda fs: fs.readlink("/f"), OSError, EINVAL),
    "too large": (lambda fs: fs.append("/f", "x" * 17), OSError, EFBIG),
    "too deep": (lambda fs: fs.mkdir("/1/2/3/4"), OSError, ENAMETOOLONG),
    "too long": (lambda fs: fs.symlink("f", "/123456"), OSError, ENAMETOOLONG),
    "too many bytes": (lambda fs: [fs.write(f"/{n}", "x" * 8) for n in "12345"], OSError, EDQUOT),
    "too many entries": (lambda fs: fs.write("/h/i/j", ""), OSError, EDQUOT),
}


@pytest.mark.parametrize(("call", "kind", "number"), REFUSED.values(), ids=REFUSED)
def test_an_error_has_a_class_a_number_and_a_message_without_a_prefix(
    call: Call, kind: type[OSError], number: int
) -> None:
    fs = workspace(limits=TIGHT)
    with pytest.raises(kind) as caught:
        call(fs)
    assert type(caught.value) is kind
    assert caught.value.errno == number
    message = str(caught.value)
    assert message.startswith(("cannot ", "the path "))
    assert ";" in message
    assert caught.value.args == (message,)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_read_only_refuses_every_mutation_even_one_that_would_change_nothing(mutation: str) -> None:
    session = Session()
    read_only_cases.workspace(InMemoryFilesystem(session))
    fs = InMemoryFilesystem(session, read_only=True)
    before = fs.tree()
    with pytest.raises(PermissionError, match="read-only; open it for writing to make changes") as caught:
        MUTATIONS[mutation](fs)
    assert caught.value.errno == EROFS
    assert fs.tree() is before


THROUGH_LINKS: list[tuple[Call, type[OSError], int]] = [
    (lambda fs: fs.read("/loop"), OSError, ELOOP),
    (lambda fs: fs.read("/out"), PermissionError, EACCES),
    (lambda fs: fs.read("/link/x"), NotADirectoryError, ENOTDIR),
    (lambda fs: fs.read("/to_d"), IsADirectoryError, EISDIR),
    (lambda fs: fs.write("/to_d", ""), IsADirectoryError, EISDIR),
    (lambda fs: fs.read("/to_d/gone"), FileNotFoundError, ENOENT),
]


@pytest.mark.parametrize(("call", "kind", "number"), THROUGH_LINKS)
def test_errors_when_links_are_followed(call: Call, kind: type[OSError], number: int) -> None:
    with pytest.raises(kind) as caught:
        call(workspace(follow_symlinks="within_root_only"))
    assert caught.value.errno == number


def test_a_path_may_lead_through_forty_links() -> None:
    fs = InMemoryFilesystem(follow_symlinks="within_root_only")
    fs.write("/0", "reached")
    for number in range(1, 42):
        fs.symlink(str(number - 1), f"/{number}")
    assert fs.read("/40").content == "reached"
    with pytest.raises(OSError, match="more than 40 symbolic links") as caught:
        fs.read("/41")
    assert caught.value.errno == ELOOP


def test_a_fault_is_an_error_with_a_number_and_the_message_as_its_text() -> None:
    error = fault(FileNotFoundError, ENOENT, "cannot read '/a': it is gone; look elsewhere")
    assert (type(error), error.errno) == (FileNotFoundError, ENOENT)
    assert str(error) == "cannot read '/a': it is gone; look elsewhere"


@pytest.mark.parametrize("path", ["/gone" + "/d" * 60, "/d/gone" + "/d" * 60])
def test_nothing_is_looked_up_below_a_missing_directory(path: str) -> None:
    class Counting(InMemoryFilesystem):
        lookups = 0

        def lookup(self, segments: Sequence[str]) -> Node | None:
            self.lookups += 1
            return super().lookup(segments)

    fs = Counting()
    fs.mkdir("/d")
    for call in (fs.exists, fs.read_bytes):
        fs.lookups = 0
        with suppress(FileNotFoundError):
            call(path)
        assert fs.lookups <= 10


@pytest.mark.parametrize("path", ["/.." * 1000, "/a" * 3000, "/a" * 1000, "/" + "a" * 3000, "/a" * 1000 + "\0"])
def test_a_message_leaves_out_the_middle_of_a_long_path(path: str) -> None:
    fs = InMemoryFilesystem()
    for call in (fs.read, fs.list, fs.delete, fs.mkdir):
        with pytest.raises((OSError, ValueError), match=r" \.\.\. ") as caught:
            call(path)
        assert len(str(caught.value)) < 400

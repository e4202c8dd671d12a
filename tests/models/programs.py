"""Operations on a filesystem as plain values, and hypothesis strategies for programs that consist of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from attrs import frozen
from hypothesis import strategies as st

from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Limits

from .plainfs import PlainFilesystem
from .trees import Plain

Either = InMemoryFilesystem | PlainFilesystem

# The limits of a machine: none that is ever reached, some that are reached now and then, and all at once.
LIMITS = (
    Limits(),
    Limits(max_total_size=60, max_node_count=9),
    Limits(max_file_size=12, max_path_depth=3, max_segment_length=3),
    Limits(max_file_size=30, max_path_depth=4, max_total_size=100, max_node_count=12),
)


@frozen
class Place:
    """A path that depends on what exists: the entry with that number among those of a kind, or a name inside it."""

    number: int
    kind: str = ""
    name: str = ""

    def among(self, files: Plain) -> str:
        """Return the path."""
        there = sorted(path for path, entry in files.items() if entry[0] == self.kind)
        there = there or sorted(files)[1:] or ["/"]
        path = there[self.number % len(there)]
        return f"{path}/{self.name}" if self.name else path


@frozen
class Operation:
    """One call, by name; `on` makes it on a filesystem or on the model."""

    name: str
    arguments: tuple[Any, ...]

    def placed(self, files: Plain) -> Operation:
        """Return the same call with paths instead of `Place`."""
        arguments = tuple(value.among(files) if isinstance(value, Place) else value for value in self.arguments)
        return Operation(self.name, arguments)

    def on(self, fs: Either) -> object:
        """Make the call, and return the part of its result that the model knows too."""
        return DONE[self.name](fs, *self.arguments)


# What a transaction does: operations, and nested transactions that may fail.
Step = Operation | tuple[tuple[Any, ...], bool]


def _write(fs: Either, path: str, text: str, mode: str, create_parents: bool) -> None:
    if isinstance(fs, PlainFilesystem):
        fs.write(path, text.encode(), mode, create_parents)
    else:
        assert fs.write(path, text, mode=cast(Any, mode), create_parents=create_parents).bytes_written == len(
            text.encode()
        )


def _write_bytes(fs: Either, path: str, data: bytes, mode: str, create_parents: bool) -> None:
    if isinstance(fs, PlainFilesystem):
        fs.write(path, data, mode, create_parents)
    else:
        fs.write_bytes(path, data, mode=cast(Any, mode), create_parents=create_parents)


def _append(fs: Either, path: str, text: str) -> None:
    if isinstance(fs, PlainFilesystem):
        fs.write(path, text.encode(), "append")
    else:
        fs.append(path, text)


def _write_lines(fs: Either, path: str, lines: tuple[str, ...]) -> None:
    if isinstance(fs, PlainFilesystem):
        ended = [line.removesuffix("\n") + "\n" for line in lines[:-1]]
        fs.write(path, "".join((*ended, *lines[-1:])).encode())
    else:
        fs.write_lines(path, lines)


def _splice(fs: Either, path: str, pieces: tuple[tuple[int, int, bytes], ...]) -> None:
    fs.splice(path, pieces)


def _mkdir(fs: Either, path: str, parents: bool, exist_ok: bool) -> None:
    fs.mkdir(path, parents=parents, exist_ok=exist_ok)


def _delete(fs: Either, path: str, recursive: bool) -> int:
    return fs.delete(path, recursive=recursive)


def _move(fs: Either, src: str, dst: str) -> None:
    fs.move(src, dst)


def _copy(fs: Either, src: str, dst: str) -> None:
    fs.copy(src, dst)


def _chmod(fs: Either, path: str, mode: int) -> None:
    fs.chmod(path, mode)


def _symlink(fs: Either, target: str, path: str) -> None:
    fs.symlink(target, path)


def _stream(fs: Either, path: str, mode: str, pieces: tuple[bytes, ...], fails: bool) -> None:
    """Write through a stream whose block succeeds or fails."""
    write_mode = {"w": "overwrite", "x": "create", "a": "append"}[mode]
    if isinstance(fs, PlainFilesystem):
        fs.check_open(path, write_mode)
        if not fails:
            fs.write(path, b"".join(pieces), write_mode)
        return
    try:
        with fs.open(path, cast(Literal["wb", "xb", "ab"], mode + "b")) as stream:
            for piece in pieces:
                stream.write(piece)
            if fails:
                raise KeyError(path)
    except KeyError:
        assert fails


def _read(fs: Either, path: str) -> bytes:
    return fs.read_bytes(path) if isinstance(fs, PlainFilesystem) else fs.read_bytes(path).content


def _list(fs: Either, path: str) -> list[str]:
    return fs.names(path) if isinstance(fs, PlainFilesystem) else [entry.name for entry in fs.list(path)]


def _readlink(fs: Either, path: str) -> str:
    return fs.readlink(path)


def _kind(fs: Either, path: str) -> str:
    if isinstance(fs, PlainFilesystem):
        return fs.kind(path)
    if not fs.exists(path):
        return ""
    found = fs.stat(path)
    return "d" if found.is_directory else "l" if found.is_symlink else "f"


DONE: dict[str, Callable[..., object]] = {
    "write": _write,
    "write_bytes": _write_bytes,
    "append": _append,
    "write_lines": _write_lines,
    "splice": _splice,
    "mkdir": _mkdir,
    "delete": _delete,
    "move": _move,
    "copy": _copy,
    "chmod": _chmod,
    "symlink": _symlink,
    "stream": _stream,
    "read": _read,
    "list": _list,
    "readlink": _readlink,
    "kind": _kind,
}

NAMES = ("a", "b", "c", "long")
# Paths that are valid but not canonical, and paths that are invalid.
ODD_PATHS = ("", "/", ".", "a/", "//a//b", "./a/../b", "\\a\\b", "..", "/a/../../b", "a\0", "a\ud800b")
TEXTS = ("", "x", "\n", "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "a\nb", "\u00e9\u2028\n", "long enough for a limit\n")
CONTENTS = (b"", b"\0", b"\xff\xfe", b"a\nb\n", b"0123456789012345678901234567890")

# Some entries to begin with, so that most operations are possible.
FIRST = (
    Operation("write", ("/a", "a\nb\nc\n", "create", True)),
    Operation("write", ("/b/a", "x", "create", True)),
    Operation("write", ("/b/c/b", "a\nb\n", "create", True)),
    Operation("symlink", ("a", "/c")),
    Operation("symlink", ("/b", "/b/c/c")),
)


def paths(kind: str = "") -> st.SearchStrategy[str | Place]:
    """Generate paths of existing entries, if possible of one kind, and other paths."""
    plain = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
    there = st.integers(0, 30).map(lambda number: Place(number, kind))
    inside = st.builds(Place, st.integers(0, 30), st.just("d"), st.sampled_from(NAMES))
    others = st.one_of(inside, plain, st.sampled_from(ODD_PATHS))
    return st.booleans().flatmap(lambda likely: there if likely else others)


def operations() -> st.SearchStrategy[Operation]:
    """Generate operations, about half of which are possible once there are some files."""
    path, file, directory, text, content = (
        paths(),
        paths("f"),
        paths("d"),
        st.sampled_from(TEXTS),
        st.sampled_from(CONTENTS),
    )
    yes = st.sampled_from((True, True, True, False))
    mode = st.sampled_from(("overwrite", "overwrite", "overwrite", "append", "append", "create", "other"))
    bits = st.sampled_from((0o644, 0o755, 0o700, 0, 0o7777, -1, 0o10000))
    target = st.sampled_from(("a", "/b", "../c", "b/c", ".", "/", "c", "../../a", "", "x\0"))
    texts, contents = st.lists(text, max_size=3).map(tuple), st.lists(content, max_size=2).map(tuple)
    return st.one_of(
        called("write", path, text, mode, yes),
        called("write", directory, text, mode, yes),
        called("write", file, text, st.just("overwrite"), st.just(True)),
        called("write_bytes", file, content, mode, yes),
        called("append", file, text),
        called("write_lines", path, texts),
        called("splice", file, pieces(content)),
        called("mkdir", path, yes, yes),
        called("delete", path, yes),
        called("move", path, paths("none")),
        called("copy", path, paths("none")),
        called("chmod", path, bits),
        called("symlink", target, path),
        called("stream", file, st.sampled_from("wxa"), contents, st.booleans()),
        called("read", file),
        called("list", directory),
        called("readlink", paths("l")),
        called("kind", path),
    )


def called(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Operation]:
    """Generate calls with one name."""
    return st.tuples(*arguments).map(lambda made: Operation(name, made))


def pieces(content: st.SearchStrategy[bytes]) -> st.SearchStrategy[tuple[tuple[int, int, bytes], ...]]:
    """Make arguments for `splice`: pieces that are in order, or now and then not."""

    def ordered(at: list[int], one: bytes, other: bytes) -> tuple[tuple[int, int, bytes], ...]:
        return (at[0], at[1], one), (at[2], at[3], other)

    in_order = st.lists(st.integers(0, 6), min_size=4, max_size=4).map(sorted)
    odd = st.sampled_from(((), ((-1, 0, b"x"),), ((2, 1, b"x"),), ((0, 99, b""),), ((0, 1, b"x"), (0, 0, b""))))
    return st.one_of(st.builds(ordered, in_order, content, content), odd)


def programs() -> st.SearchStrategy[tuple[Step, ...]]:
    """Generate the operations of a transaction."""
    flat = st.lists(operations(), max_size=4).map(tuple)
    return st.recursive(
        flat,
        lambda inner: st.lists(operations() | st.tuples(inner, st.booleans()), max_size=4).map(tuple),
        max_leaves=4,
    )

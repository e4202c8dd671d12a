"""The one canonical form of paths."""

from __future__ import annotations

import os
from enum import Enum
from errno import EACCES
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.plainfs import DENIED, INVALID, Refused, canonical
from tests.sampling import share
from weakfs.filesystem import normalize
from weakfs.filesystem.paths import is_within, join, parent, parse
from weakfs.reducers.tree.name_escaping import from_bytes, to_bytes

TABLE = {
    "src/a.txt": "/src/a.txt",
    "": "/",
    ".": "/",
    "/": "/",
    "//": "/",
    "./": "/",
    "/.": "/",
    "\\": "/",
    "\\src\\a.txt": "/src/a.txt",
    "C:\\src": "/C:/src",
    "a\\..\\b": "/b",
    "/src//a/": "/src/a",
    "///a": "/a",
    "/src/./x/../a": "/src/a",
    "a/..": "/",
    "a/b/../..": "/",
    "a/../b/../c": "/c",
    "[...slug]": "/[...slug]",
    "a..b": "/a..b",
    "..a": "/..a",
    "a..": "/a..",
    "...": "/...",
    "/.../x": "/.../x",
    ".hidden": "/.hidden",
    " ": "/ ",
    " a /b ": "/ a /b ",
    "a\nb": "/a\nb",
    "\t/\r": "/\t/\r",
    "~": "/~",
    "$HOME/%2e%2e": "/$HOME/%2e%2e",
    "\u00e9/e\u0301": "/\u00e9/e\u0301",
    "\uff0e\uff0e/a": "/\uff0e\uff0e/a",
    "a\u2215b": "/a\u2215b",
    "\U0001f600": "/\U0001f600",
    "\uf75c": "/\uf75c",
    "-rf": "/-rf",
}


@pytest.mark.parametrize(("path", "wanted"), TABLE.items(), ids=repr)
def test_a_path_has_the_canonical_form_of_the_table(path: str, wanted: str) -> None:
    assert normalize(path) == wanted
    assert normalize(wanted) == wanted
    assert parse(path) == (wanted, tuple(wanted[1:].split("/")) if wanted != "/" else ())


@pytest.mark.parametrize(
    "path", ["..", "../a", "/..", "a/../..", "/a/../../b", "\\..", "..\\a", "./..", "a/b/../../../c"]
)
def test_climbing_above_the_root_is_a_permission_error(path: str) -> None:
    with pytest.raises(PermissionError, match="climbs above the root; use a path inside it") as caught:
        normalize(path)
    assert caught.value.errno == EACCES
    assert repr(path) in str(caught.value)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("a\0b", "a NUL character at 1"),
        ("\0", "a NUL character at 0"),
        ("\ud800", "a lone surrogate at 0"),
        ("ab/\udfff", "a lone surrogate at 3"),
        ("../\0", "a NUL character at 3"),
        (os.fsdecode(b"\xff"), "a lone surrogate at 0"),
    ],
)
def test_nul_and_lone_surrogates_are_value_errors_that_name_the_place(path: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        normalize(path)


@pytest.mark.parametrize("path", [b"a", 5, None, ["a"], object()])
def test_a_value_that_is_not_a_path_is_a_type_error(path: object) -> None:
    with pytest.raises(TypeError, match="a path is text"):
        normalize(path)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the point of the test


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"a"


def test_path_objects_are_accepted_unless_they_hold_bytes() -> None:
    assert normalize(PurePosixPath("a/../b")) == "/b"
    assert normalize(Path("/x//y")) == "/x/y"
    with pytest.raises(TypeError, match="a path is text"):
        normalize(BytesPath())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the point of the test


class Place(str, Enum):  # noqa: UP042  # the older way, whose members show themselves as `Place.NOTES`
    """Paths by name, as many programs keep them."""

    NOTES = "docs//notes.md"


def test_a_subclass_of_str_is_read_by_its_characters_and_returned_as_plain_str() -> None:
    found = normalize(Place.NOTES)
    assert found == "/docs/notes.md"
    assert type(found) is str


PARTS = st.sampled_from(
    ["a", "b.c", ".", "..", "", "/", "\\", "//", "...", " ", "\n", "\u00e9", "\0", "\ud800", "\uf741"]
)
PATHS = st.lists(PARTS, max_size=9).map("".join) | st.lists(PARTS, max_size=7).map("/".join) | st.text(max_size=9)


@settings(deadline=None, derandomize=True, max_examples=share(800))
@given(PATHS)
def test_normalize_agrees_with_a_slow_reference_and_is_idempotent(path: str) -> None:
    try:
        wanted = canonical(path)
    except Refused as refused:
        expected = {DENIED: PermissionError, INVALID: ValueError}[refused.problems[0]]
        with pytest.raises(expected):
            normalize(path)
        return
    found = normalize(path)
    assert normalize(found) == found
    assert found == "/".join(from_bytes(to_bytes(segment)) for segment in wanted.split("/"))


@settings(deadline=None, derandomize=True, max_examples=share(300))
@given(
    st.text(st.sampled_from("a\uf700\uf72e\uf72f\uf741\uf75c\uf7c3\uf7a9\uf7ef\uf79d\uf781"), min_size=1, max_size=6)
)
def test_a_name_has_one_canonical_form_however_it_is_escaped(name: str) -> None:
    found = normalize(name)
    assert normalize(found) == found
    assert to_bytes(found[1:]) == to_bytes(name)


@settings(deadline=None, derandomize=True, max_examples=share(300))
@given(
    st.binary(min_size=1, max_size=8).filter(
        lambda raw: b"/" not in raw and b"\0" not in raw and raw not in (b".", b"..")
    )
)
def test_every_host_name_is_reachable_by_its_canonical_form(raw: bytes) -> None:
    assert normalize(from_bytes(raw)) == "/" + from_bytes(raw)


def test_joining_parents_and_containment_of_canonical_paths() -> None:
    assert (join("/", "a"), join("/a", "b")) == ("/a", "/a/b")
    assert (parent("/a/b"), parent("/a"), parent("/")) == ("/a", "/", "/")
    assert is_within("/a/b", "/a")
    assert is_within("/a", "/a")
    assert is_within("/a", "/")
    assert not is_within("/ab", "/a")
    assert not is_within("/", "/a")

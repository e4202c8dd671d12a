"""The pool of trees in a session file: each directory once, as a difference from an earlier one if that is smaller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, cast

from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.lazy_directory import recounted
from weakfs.reducers.tree.leaf import FILE_MODE, SPECIALS, Leaf
from weakfs.reducers.tree.node import EMPTY_TREE, MAX_NODES, FileTree, Node, find, is_beginning, tree_of
from weakfs.reducers.validation import is_mode
from weakfs.session.blobs.rope import Content
from weakfs.session.codec.blob_table import Blobs, Json, blob_at
from weakfs.session.codec.expansion_limit import Expansion
from weakfs.session.errors import SessionFileError

if TYPE_CHECKING:
    from weakfs.reducers.codec.tree_writer import TreeWriter

# Names that no entry can have.
NO_NAMES = ("", ".", "..")
# The number of fields in the row of a directory that holds only files: `mode`, `times` and `files`.
FIELDS_OF_FILES = 3
# The memory of a name in the dict of a directory, and in the tuples above the dicts of a large directory.
NAME, POINTER = 28, 8


class TreePool:
    """How a session file stores trees: in the section `trees`, referred to as `{"tree": number}`."""

    cls: type = FileTree
    section = "trees"
    key = "tree"

    def writer(self, blobs: Blobs) -> TreeWriter:
        """Return a writer for a file's section."""
        from weakfs.reducers.codec.tree_writer import TreeWriter

        return TreeWriter(blobs)

    def read(self, rows: Json, blobs: Sequence[Content], expansion: Expansion) -> list[FileTree]:
        """Read a file's section. Subtrees that rows share are shared in memory."""
        trees: list[FileTree] = []
        for row in rows:
            trees.append(_read_row(row, trees, blobs, f"$.trees[{len(trees)}]", expansion))
        return trees

    def difference(self, before: FileTree, after: FileTree, blobs: Blobs) -> Json:
        """Return `after` as a difference from `before`."""
        from weakfs.reducers.codec.tree_difference import write_difference

        return write_difference(before, after, blobs)

    def changed(self, before: FileTree, row: Json, blobs: Sequence[Content], expansion: Expansion) -> FileTree:
        """Return the tree that `difference` wrote. Raises `SessionFileError` for data that is not a difference."""
        if type(row) is not dict or row.keys() != {"from", "rows"} or type(row["rows"]) is not list or not row["rows"]:
            raise SessionFileError("expected the directories and the rows of a difference", where="$.changed")
        trees: list[FileTree] = []
        for path in row["from"]:
            tree = find(before, segments_of(path)) if type(path) is str else None
            if type(tree) is not FileTree:
                raise SessionFileError(f"there is no directory {path!r:.60} to start from", where="$.changed.from")
            trees.append(tree)
        for number, change in enumerate(row["rows"]):
            trees.append(_read_row(change, trees, blobs, f"$.changed.rows[{number}]", expansion))
        return trees[-1]

    def contents(self, value: FileTree, seen: dict[int, object]) -> Iterator[Content]:
        """Yield the blobs of a tree's files, except in directories that were `seen` before. O(what is new)."""
        stack = [value]
        while stack:
            tree = stack.pop()
            if id(tree) in seen:
                continue
            seen[id(tree)] = tree
            for _, node in maps.items(tree._children):
                if type(node) is FileTree:
                    stack.append(node)
                elif leaves.is_file(node):
                    yield cast(Content, node[0])


def _read_row(row: Json, trees: list[FileTree], blobs: Sequence[Content], where: str, expansion: Expansion) -> FileTree:
    try:
        known = {"mode", "times", "base", "gone", "files", "links", "special", "directories"}
        if type(row) is not dict or not known.issuperset(row) or not {"mode", "times"}.issubset(row):
            raise ValueError("expected a directory with mode, times and entries")
        modified_at, created_at = row["times"]
        mode = row["mode"]
        if type(modified_at) is not int or type(created_at) is not int or not is_mode(mode):
            raise ValueError("its mode or times are not numbers in range")
        files = row.get("files", ())
        new: dict[str, Node] = {}
        plain = _plain_files(files, blobs) if files else None
        if plain is not None:
            found, nodes, size = plain
            if len(row) == FIELDS_OF_FILES and len(nodes) <= maps.WIDTH:
                # True of most directories. The general path takes twice as long.
                places = dict(zip(found, range(len(found)), strict=True))
                return FileTree(places, nodes, mode, modified_at, created_at, len(nodes), 0, size)
            new.update(zip(found, nodes, strict=True))
        else:
            for entry in files:
                new[_name(entry[0], new)] = _read_file(entry, blobs, where)
        for entry in row.get("links", ()):
            name, target, at, born = entry
            if type(target) is not str or not target or "\0" in target or type(at) is not int or type(born) is not int:
                raise ValueError(f"the link {name!r:.60} has no target and times")
            new[_name(name, new)] = leaves.link(target, at=at, created_at=born)
        for entry in row.get("special", ()):
            name, kind, at, born, bits = entry
            if kind not in SPECIALS or type(at) is not int or type(born) is not int or not is_mode(bits):
                raise ValueError(f"the special entry {name!r:.60} has no kind, times and mode")
            new[_name(name, new)] = leaves.special(SPECIALS[kind], mode=bits, at=at, created_at=born)
        for entry in row.get("directories", ()):
            name, number = entry
            if type(number) is not int or not 0 <= number < len(trees):
                raise ValueError(f"the directory {name!r:.60} is not one of the rows before it")
            new[_name(name, new)] = trees[number]
        if "base" not in row:
            if "gone" in row:
                raise ValueError("it removes names, but has no base to remove them from")
            tree = tree_of(new, mode=mode, modified_at=modified_at, created_at=created_at)
            if is_beginning(tree):
                # Must be the very tree that a session starts with, since it is compared with that one by identity.
                return EMPTY_TREE
        else:
            expansion.take(_copied(row, trees, new), "a directory stored as its difference from another", where)
            tree = _changed(row, trees, new, mode, modified_at, created_at)
    except SessionFileError:
        raise
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise SessionFileError(f"the directory cannot be read: {error}", where=where) from None
    if tree.node_count > MAX_NODES:
        raise SessionFileError(f"the directory would hold {tree.node_count} entries", where=where)
    return tree


def _copied(row: dict[str, Any], trees: list[FileTree], new: dict[str, Node]) -> int:
    """Return roughly how many bytes of its base a difference copies: all of a small directory, parts of a large one."""
    number = row["base"]
    if type(number) is not int or not 0 <= number < len(trees):
        return 0
    base = trees[number]
    if len(base._children) == maps.PAIR:
        return NAME * maps.count(base._children)
    changed = len(new) + len(row.get("gone", ()))
    return min(maps.WIDTH * (NAME + 2 * POINTER) * changed, (NAME + POINTER) * base.node_count)


def _changed(
    row: dict[str, Any],
    trees: list[FileTree],
    new: dict[str, Node],
    mode: int,
    modified_at: int,
    created_at: int,
) -> FileTree:
    number = row["base"]
    if type(number) is not int or not 0 <= number < len(trees):
        raise ValueError(f"its base {number!r:.60} is not one of the rows before it")
    base = trees[number]
    changes: dict[str, Node | None] = {**new}
    for name in row.get("gone", ()):
        if name in changes or maps.get(base._children, name) is None:
            raise ValueError(f"the name {name!r:.60} cannot be removed")
        changes[name] = None
    counts = recounted(base, changes, (maps.get(base._children, name) for name in changes))
    children = maps.updated(base._children, changes) if changes else base._children
    return FileTree(*maps.parts(children), mode, modified_at, created_at, *counts)


def _plain_files(rows: Sequence[Json], blobs: Sequence[Content]) -> tuple[Sequence[str], tuple[Leaf, ...], int] | None:
    """Return the names and leaves of a directory's files, and their total size.

    Return `None` if one of them has a mode or creation time of its own, or is malformed.
    """
    if {*map(type, rows)} != {list} or {*map(len, rows)} != {3}:
        return None
    found, numbers, times = zip(*rows, strict=True)
    if {*map(type, numbers), *map(type, times)} != {int} or {*map(type, found)} != {str}:
        return None
    if min(numbers) < 0 or max(numbers) >= len(blobs) or not _are_names(found):
        return None
    contents = [blobs[number] for number in numbers]
    cells = [bytearray() for _ in found]
    return found, tuple(zip(contents, repeat(FILE_MODE), times, times, cells)), sum(map(len, contents))


def _are_names(found: Sequence[str]) -> bool:
    """Return whether these are different names in canonical form. May return false if one of them is unusual."""
    text = "/".join(found)
    unique = {*found}
    return (
        len(unique) == len(found)
        and text.count("/") == len(found) - 1
        and "\0" not in text
        and "\\" not in text
        and names.canonical(text) == text
        and unique.isdisjoint(NO_NAMES)
    )


def _read_file(entry: Json, blobs: Sequence[Content], where: str) -> Leaf:
    length = len(entry)
    if not 3 <= length <= 5:
        raise ValueError("a file must have a name, contents, times and a mode")
    number, modified_at = entry[1], entry[2]
    created_at = entry[3] if length > 3 else modified_at
    mode = entry[4] if length > 4 else FILE_MODE
    if type(modified_at) is not int or type(created_at) is not int or not is_mode(mode):
        raise ValueError(f"the file {entry[0]!r:.60} has a mode or times that are not numbers in range")
    return (blob_at(blobs, number, where), mode, modified_at, created_at, bytearray())


def _name(name: Json, taken: dict[str, Node]) -> str:
    if type(name) is not str or name in NO_NAMES or any(char in name for char in "/\\\0"):
        raise ValueError(f"{name!r:.60} is not a name")
    if names.canonical(name) != name:
        raise ValueError(f"{name!r:.60} is not the canonical form of that name")
    if name in taken:
        raise ValueError(f"the name {name!r:.60} occurs twice")
    return name

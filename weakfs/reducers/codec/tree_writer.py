"""The writer of trees in a session file: each directory once, however many versions and copies of it there are."""

from __future__ import annotations

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.leaf import FILE_MODE, NO_FILE, Special
from weakfs.reducers.tree.node import EMPTY_TREE, MAX_NODES, FileTree, Node, is_beginning
from weakfs.reducers.tree.packed import packed_of
from weakfs.reducers.validation import is_mode
from weakfs.session.codec.blob_table import Blobs, Json

# A name with its node before and after.
Change = tuple[str, "Node | None", "Node | None"]


class TreeWriter:
    """Numbers directories, children before parents."""

    def __init__(self, blobs: Blobs) -> None:
        self.rows: list[Json] = []
        # The tree behind each row. Keeping it alive also keeps its id from being reused.
        self.values: list[FileTree] = []
        self._blobs = blobs
        # The number of each tree, by its identity and by the identity of its packed form, which versions share. Then
        # the trees themselves, to keep their ids from being reused.
        self._numbers: dict[int, int] = {}
        self._packed: dict[int, int] = {}
        self._kept: list[FileTree] = []
        self._last: FileTree | None = None
        # For each row, its base row and the changes from it. Rows that may be equal are grouped by attributes that cost
        # nothing to compare, then by a sum over their entries, which is computed only if two rows agree in these.
        self._changes: list[tuple[int, list[Change]] | None] = []
        self._sums: dict[int, int] = {}
        self._alike: dict[tuple[int, ...], int] = {}
        self._by_sum: dict[tuple[tuple[int, ...], int], int] = {}

    def number(self, tree: FileTree) -> int:
        """Return the number of a tree; new directories are written, compared with the previous tree's."""
        rows = len(self.rows)
        stack: list[tuple[FileTree, FileTree | None]] = [(tree, self._last)]
        while stack:
            directory, before = stack[-1]
            if self._known(directory) is not None:
                stack.pop()
                continue
            missing = (
                [
                    (child, _directory(before, name))
                    for name, child in sorted(maps.items(directory._children))
                    if type(child) is FileTree and self._known(child) is None
                ]
                if directory._directory_count
                else []
            )
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            self._add(directory, before)
        if len(self.rows) > rows:
            # Only for a new tree: whether an existing one is numbered again depends on which objects are identical.
            self._last = tree
        return self._number(tree)

    def _known(self, tree: FileTree) -> int | None:
        """Return the number of a tree, if it or another tree with the same packed form has one."""
        number = self._numbers.get(_key(tree))
        if number is None:
            packed = packed_of(tree)
            number = self._packed.get(id(packed)) if packed is not None else None
            if number is not None:
                self._keep(tree, number)
        return number

    def _number(self, tree: FileTree) -> int:
        return self._numbers[_key(tree)]

    def _keep(self, tree: FileTree, number: int) -> None:
        """Note the number of a tree that has a row or equals a tree that has one."""
        self._kept.append(tree)
        self._numbers[_key(tree)] = number
        packed = packed_of(tree)
        if packed is not None:
            self._packed[id(packed)] = number

    def keep_row(self, row: Json, tree: FileTree) -> None:
        """Add a row that was made elsewhere; no other row is compared with it."""
        self._keep(tree, len(self.rows))
        self.rows.append(row)
        self.values.append(tree)
        self._changes.append(None)

    def _add(self, tree: FileTree, before: FileTree | None) -> None:
        """Write a directory whose subdirectories are written, unless an equal one exists."""
        number = len(self.rows)
        row, changes = self._row(tree, before)
        # The row counts as existing while it is compared: its sum is looked up by its number.
        self._changes.append(changes)
        self.values.append(tree)
        equal = self._equal(tree, number)
        if equal is None:
            self.rows.append(row)
            self._keep(tree, number)
            return
        self._changes.pop()
        self.values.pop()
        self._keep(tree, equal)

    def _row(self, tree: FileTree, before: FileTree | None) -> tuple[Json, tuple[int, list[Change]] | None]:
        """Return a directory's row, and if it is a difference, the number of its base and the changes."""
        if not is_mode(tree.mode):
            raise ValueError(f"a directory has the mode {tree.mode!r}; use permission bits from 0 to 0o7777")
        if tree.node_count > MAX_NODES:
            raise ValueError(f"a directory holds {tree.node_count} entries, but only {MAX_NODES} can be read back")
        row: dict[str, Json] = {"mode": tree.mode, "times": [tree.modified_at, tree.created_at]}
        known = self._known(before) if before is not None else None
        if known is None or before is None:
            return self._whole(row, tree, {}), None
        changes = [
            change
            for change in maps.differences(before._children, tree._children)
            if not self._is_same(change[1], change[2])
        ]
        old = {name: node for name, node, _ in changes if node is not None}
        if len(changes) * 2 > maps.count(tree._children):
            return self._whole(row, tree, old), None
        row["base"] = known
        gone = sorted(name for name, _, new in changes if new is None)
        if gone:
            row["gone"] = gone
        entries = [(name, new) for name, _, new in changes if new is not None]
        return self.entries(row, sorted(entries), old), (known, changes)

    def _equal(self, tree: FileTree, number: int) -> int | None:
        """Return the row of an equal directory; if there is none, remember this one and return `None`."""
        kind = (
            tree.mode,
            tree.modified_at,
            tree.created_at,
            tree.file_count,
            tree.directory_count,
            tree.total_size,
        )
        first = self._alike.setdefault(kind, number)
        if first == number:
            return None
        self._by_sum.setdefault((kind, self._sum(first)), first)
        equal = self._by_sum.setdefault((kind, self._sum(number)), number)
        if equal == number:
            return None
        del self._sums[number]
        differences = maps.differences(self.values[equal]._children, tree._children)
        return equal if all(self._is_same(one, other) for _, one, other in differences) else None

    def _sum(self, number: int) -> int:
        """Return a key that equal directories share: the sum of the hashes of their entries. O(what is new)."""
        waiting = [number]
        while True:
            changes = self._changes[waiting[-1]]
            if changes is None or changes[0] in self._sums or waiting[-1] in self._sums:
                break
            waiting.append(changes[0])
        for row in reversed(waiting):
            if row in self._sums:
                continue
            changes = self._changes[row]
            if changes is None:
                self._sums[row] = sum(self._hash(*entry) for entry in maps.items(self.values[row]._children))
                continue
            base, differing = changes
            more = sum(self._hash(name, new) - self._hash(name, old) for name, old, new in differing)
            self._sums[row] = self._sums[base] + more
        return self._sums[number]

    def _hash(self, name: str, node: Node | None) -> int:
        if node is None:
            return 0
        if type(node) is FileTree:
            return hash((name, self._number(node)))
        content = node[0]
        shown = content if isinstance(content, NO_FILE) else self._blobs.number(content)
        return hash((name, shown, *node[1:4]))

    def _is_same(self, one: Node | None, other: Node | None) -> bool:
        """Return whether two entries have the same row; rows of directories must exist."""
        if type(one) is FileTree and type(other) is FileTree:
            return self._number(one) == self._number(other)
        if type(one) is not tuple or type(other) is not tuple or one[1:4] != other[1:4]:
            return False
        mine, theirs = one[0], other[0]
        if isinstance(mine, NO_FILE) or isinstance(theirs, NO_FILE):
            return type(mine) is type(theirs) and mine == theirs
        return self._blobs.are_equal(mine, theirs)

    def entries(self, row: dict[str, Json], entries: list[tuple[str, Node]], old: dict[str, Node]) -> Json:
        """Complete the row of a directory with entries whose subdirectories are written."""
        files: list[Json] = []
        links: list[Json] = []
        specials: list[Json] = []
        directories: list[Json] = []
        number = self._blobs.number
        for name, node in entries:
            if type(node) is FileTree:
                directories.append([name, self._number(node)])
                continue
            content, mode, modified_at, created_at, _ = node
            if isinstance(content, str):
                links.append([name, content, modified_at, created_at])
                continue
            if not is_mode(mode):
                raise ValueError(f"the file {name!r:.60} has the mode {mode!r}; use permission bits from 0 to 0o7777")
            if type(content) is Special:
                specials.append([name, content.kind, modified_at, created_at, mode])
                continue
            was = old.get(name) if old else None
            before = was[0] if type(was) is tuple else None
            blob = number(content, None if isinstance(before, NO_FILE) else before)
            if mode == FILE_MODE:
                files.append(
                    [name, blob, modified_at] if created_at == modified_at else [name, blob, modified_at, created_at]
                )
            else:
                files.append([name, blob, modified_at, created_at, mode])
        if files:
            row["files"] = files
        if links:
            row["links"] = links
        if specials:
            row["special"] = specials
        if directories:
            row["directories"] = directories
        return row

    def _whole(self, row: dict[str, Json], tree: FileTree, old: dict[str, Node]) -> Json:
        """Complete the row of a directory with all entries, in one pass if they are new files with the default mode."""
        names, nodes = maps.sorted_entries(tree._children)
        if nodes and not old and not tree._directory_count:
            contents, modes, modified, created, _ = zip(*nodes, strict=True)
            is_plain = modified == created and modes.count(FILE_MODE) == len(modes)
            if is_plain and {*map(type, contents)}.isdisjoint(NO_FILE):
                row["files"] = list(zip(names, self._blobs.number_all(contents), modified, strict=True))
                return row
        return self.entries(row, list(zip(names, nodes, strict=True)), old)


def _key(tree: FileTree) -> int:
    """Return the identity of a tree; it is the same for all trees equal to the one that a session starts with."""
    return id(tree) if tree._file_count or tree._directory_count or not is_beginning(tree) else id(EMPTY_TREE)


def _directory(tree: FileTree | None, name: str) -> FileTree | None:
    node = tree._entry(name) if tree is not None else None
    return node if type(node) is FileTree else None

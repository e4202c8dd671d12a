"""Moves in a three-way merge: bring every moved entry to its merged path in all three trees, which then merge by path.

A file that one side moved then also gets the edits of the other, and entries that one side added to a directory end up
where the other side moved the directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weakfs.reducers.apply import segments_of
from weakfs.reducers.merging.entry_ids import ROOT, Id, Names, Place, Tracker, Untraceable, first_place
from weakfs.reducers.merging.tree_merge import Ask, TreeConflict
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.diff import equal
from weakfs.reducers.tree.node import FileTree, Node, find, find_or_blocking_leaf, is_whiteout, put, remove
from weakfs.session.conflicts.conflict_types import ConflictKind, Side

SIDES: tuple[Side, Side] = ("ours", "theirs")
BASE, OURS, THEIRS = range(3)
Trees = tuple[FileTree, FileTree, FileTree]


class _Version:
    """One of the three trees, with the place of each entry that was created, moved or deleted since the start."""

    def __init__(self, tree: FileTree, names: Names, tracker: Tracker) -> None:
        self.tree = tree
        self.places: dict[Id, Place | None] = {}
        for entry, place in names.places.items():
            known = tracker.id_of(entry)
            if place is not None or known not in self.places:
                self.places[known] = tracker.placed(place)
        self.paths: dict[Id, str | None] = {}

    def place(self, entry: Id) -> Place | None:
        return self.places[entry] if entry in self.places else first_place(entry)

    def path(self, entry: Id) -> str | None:
        """Return the path of an entry, or `None` if this tree does not have it."""
        if entry not in self.paths:
            path = self._path(entry)
            node = None if path is None else find(self.tree, segments_of(path or "/"))
            self.paths[entry] = None if node is None or is_whiteout(node) else path
        return self.paths[entry]

    def _path(self, entry: Id) -> str | None:
        names: list[str] = []
        while entry != ROOT:
            place = self.place(entry)
            if place is None:
                return None
            entry = place[0]
            names.append(place[1])
        return "".join(f"/{name}" for name in reversed(names))

    def node(self, entry: Id) -> Node | None:
        path = self.path(entry)
        return None if path is None else find(self.tree, segments_of(path or "/"))

    def moved(self, entry: Id, base: _Version) -> bool:
        """Return whether an entry of the base has a different place in this tree."""
        return self.path(entry) is not None and self.place(entry) != base.place(entry)


class _Trees:
    """The trees to which moved entries are being added."""

    def __init__(self, cut: list[FileTree]) -> None:
        self.now, self.cut = cut, tuple(cut)
        # The entries of the base that moved entries replaced, by path.
        self.replaced: dict[str, Node] = {}


class Relocation:
    """The merged places of moved entries. `trees` are base, ours and theirs with each such entry at its merged path."""

    def __init__(self, trees: Trees, names: tuple[Names, Names, Names], tracker: Tracker, ask: Ask) -> None:
        self._ask = ask
        self._versions = tuple(_Version(*each, tracker) for each in zip(trees, names, strict=True))
        numbers = (entry for version in self._versions for entry in version.places if isinstance(entry, int))
        self._next = min(numbers, default=0)
        for version in self._versions[1:]:
            self._keep_names(version)
        self._unite_new_directories()
        base, ours, theirs = self._versions
        known = {*base.places, *ours.places, *theirs.places}
        known = {entry for entry in known if base.path(entry)}
        # Entries that were moved, and the side whose place for them is used.
        self._sides: dict[Id, Side] = {}
        # Entries to remove from all trees, because one side deleted them; entries to keep only in the tree of one side.
        self._dropped: set[Id] = set()
        self._kept_by: dict[Id, Side] = {}
        for entry in sorted(known, key=lambda entry: (isinstance(entry, str), entry)):
            if ours.moved(entry, base) or theirs.moved(entry, base):
                self._choose(entry)
        self._check_cycles()
        self._back: list[dict[str, str]] = [{}, {}, {}]
        # Each round undoes a move. Their number is limited, because contradictory answers could repeat them forever.
        rounds = (self._relocated() for _ in range(2 * len(self._sides) + 2))
        trees_or_none = next((trees for trees in rounds if trees is not None), None)
        if trees_or_none is None:
            raise Untraceable
        self.trees = trees_or_none

    # Choosing the place of each entry

    def _keep_names(self, version: _Version) -> None:
        """Treat a new entry as the one that had its name in the base.

        A file that was deleted and written again counts as edited. One that was moved away and written again counts as
        copied and edited: after `mv a a.bak` and writing a new `a`, the other side's changes go to `a`, as in git.
        """
        base = self._versions[BASE]
        made = {place: entry for entry, place in version.places.items() if place and isinstance(entry, int)}
        for entry in list(version.places):
            place = base.place(entry)
            again = None if place is None else made.get(place)
            if place is None or again is None or again == entry or not base.path(entry) or base.path(again) is not None:
                continue
            old, new = base.node(entry), version.node(again)
            if new is None or (type(old) is FileTree) != (type(new) is FileTree):
                continue
            moved_to = version.places[entry]
            # The entry that moved away gets a new id, and the new entry takes over the old id.
            self._next -= 1
            ids = {entry: self._next, again: entry}
            for other, where in list(version.places.items()):
                if where is not None and where[0] in ids:
                    version.places[other] = (ids[where[0]], where[1])
            if moved_to is not None and type(old) is FileTree and type(new) is FileTree:
                for name in maps.as_dict(old._children):
                    child = f"{entry}/{name}"
                    if new._entry(name) is None and child not in version.places and isinstance(entry, str):
                        version.places[child] = (self._next, name)
            version.places[self._next], version.places[entry], version.places[again] = moved_to, place, None
            version.paths.clear()

    def _unite_new_directories(self) -> None:
        """Give the same id to directories that both sides made under the same name."""
        base, ours, theirs = self._versions
        made = {place: entry for entry, place in ours.places.items() if place and base.path(entry) is None}
        new = [entry for entry in theirs.places if theirs.path(entry) and base.path(entry) is None]
        for entry in sorted(new, key=lambda entry: len(theirs.path(entry) or "")):
            place = theirs.places[entry]
            same = None if place is None else made.get(place)
            if same is None or same == entry or type(ours.node(same)) is not FileTree:
                continue
            if type(theirs.node(entry)) is FileTree:
                theirs.places[same] = theirs.places.pop(entry)
                for other, where in list(theirs.places.items()):
                    if where is not None and where[0] == entry:
                        theirs.places[other] = (same, where[1])
        theirs.paths.clear()

    def _choose(self, entry: Id) -> None:
        base, ours, theirs = self._versions
        movers: list[Side] = [
            side for side, version in zip(SIDES, (ours, theirs), strict=True) if version.moved(entry, base)
        ]
        self._sides[entry] = movers[0]
        if len(movers) == 2 and ours.place(entry) != theirs.place(entry):
            self._sides[entry] = self._asked("moved_twice", entry)
        elif ours.path(entry) is None or theirs.path(entry) is None:
            side = self._asked("moved_deleted", entry)
            if side == movers[0]:
                self._kept_by[entry] = side
            else:
                self._dropped.add(entry)

    def _asked(self, kind: ConflictKind, entry: Id) -> Side:
        """Ask which side's place to use for an entry in conflict; if it stays unresolved, return ours."""
        versions = self._versions
        paths = tuple(version.path(entry) for version in versions)
        nodes = tuple(version.node(entry) for version in versions)
        shown = paths[OURS] or paths[THEIRS] or paths[BASE] or "/"
        conflict = TreeConflict(shown, kind, nodes, paths=paths)  # type: ignore[arg-type]  # three of each
        return "theirs" if self._ask(conflict) == "theirs" else "ours"

    def _check_cycles(self) -> None:
        """Ask about directories that would contain each other."""
        for entry in list(self._sides):
            around: dict[Id, None] = {}
            here: Id | None = entry
            while here is not None and here != ROOT and here not in around:
                around[here] = None
                place = self._place(here)
                here = None if place is None else place[0]
            if here == entry:
                side = self._asked("cycle", entry)
                self._sides.update(dict.fromkeys((each for each in around if each in self._sides), side))

    def _place(self, entry: Id) -> Place | None:
        """Return the merged place of an entry."""
        base, ours, theirs = self._versions
        side = self._sides.get(entry)
        if side is not None:
            return (ours if side == "ours" else theirs).place(entry) or base.place(entry)
        return next((version.place(entry) for version in (ours, theirs, base) if version.path(entry) is not None), None)

    def _merged_path(self, entry: Id) -> str:
        names: list[str] = []
        while entry != ROOT:
            place = self._place(entry) or first_place(entry)
            if place is None or len(names) > len(self._sides) + 4096:
                break
            entry = place[0]
            names.append(place[1])
        return "".join(f"/{name}" for name in reversed(names))

    # Removing entries from the trees, and putting them back

    def _relocated(self) -> Trees | None:
        """Return the trees with moved entries at their merged paths, or `None` if a collision undid a move."""
        merged = {entry: self._merged_path(entry) for entry in self._sides if entry not in self._dropped}
        cut = [self._cut(number, version, merged) for number, version in enumerate(self._versions)]
        taken = [parts for _, parts in cut]
        trees = _Trees([tree for tree, _ in cut])
        self._back = [{to: source for source, to, _, _ in parts} for parts in taken]
        for number in (BASE, OURS, THEIRS):
            roots: dict[str, Id] = {}
            for _, path, entry, node in sorted(taken[number], key=lambda part: (part[1].count("/"), part[1])):
                grafted = self._grafted(number, trees, path, entry, node, roots)
                if grafted is None:
                    return None
                trees.now[number] = grafted
                roots[path] = entry
        return trees.now[BASE], trees.now[OURS], trees.now[THEIRS]

    def _cut(
        self, number: int, version: _Version, merged: Mapping[Id, str]
    ) -> tuple[FileTree, list[tuple[str, str, Id, Node]]]:
        """Remove entries that are not at their merged paths.

        Return the tree and the `(path, merged path, id, node)` of each.
        """
        side = None if number == BASE else SIDES[number - 1]
        tree = version.tree
        at = {path: entry for entry in self._sides if (path := version.path(entry))}
        taken: list[tuple[str, str, Id, Node]] = []
        for path in sorted(at, key=lambda path: (path.count("/"), path), reverse=True):
            entry = at[path]
            gone = entry in self._dropped or (entry in self._kept_by and self._kept_by[entry] != side)
            wanted = None if gone else merged[entry]
            if wanted is not None and wanted == self._carried(path, at, merged):
                continue
            segments = segments_of(path)
            node = find(tree, segments)
            if node is not None:
                tree = remove(tree, segments, _modified(tree, segments))
                if wanted is not None:
                    taken.append((path, wanted, entry, node))
        return tree, taken

    def _carried(self, path: str, at: Mapping[str, Id], merged: Mapping[Id, str]) -> str:
        """Return the path of an entry after the moves of the directories above it."""
        for above in _above(path):
            if above in at and at[above] in merged:
                return merged[at[above]] + path[len(above) :]
        return path

    def _grafted(
        self, number: int, trees: _Trees, path: str, entry: Id, node: Node, roots: Mapping[str, Id]
    ) -> FileTree | None:
        """Put an entry at its merged path. Directories with the same name unite; other collisions are conflicts."""
        tree = trees.now[number]
        side = self._sides[entry]
        stack = [(path, node)]
        while stack:
            here, part = stack.pop()
            segments = segments_of(here)
            there = find_or_blocking_leaf(tree, segments)
            if there is None or is_whiteout(there):
                tree = put(tree, segments, part, _modified(tree, segments))
            elif equal(there, part):
                continue
            elif type(there) is FileTree and type(part) is FileTree:
                stack += [(f"{here}/{name}", child) for name, child in maps.items(part._children)]
            else:
                if number == BASE and here == path and here not in roots:
                    trees.replaced[here] = there
                choice = self._collided(number, trees, here, entry, there, part)
                if choice == side:
                    other = roots.get(here)
                    if number != BASE and other is not None and self._sides[other] != side:
                        self._sides[other] = side
                        return None
                    tree = put(_opened(tree, segments), segments, part, _modified(tree, segments))
                elif here == path:
                    self._sides[entry] = choice
                    return None
        return tree

    def _collided(self, number: int, trees: _Trees, path: str, entry: Id, there: Node, part: Node) -> Side:
        """Return the side whose entry gets a name that entries of both sides claim."""
        side = self._sides[entry]
        segments = segments_of(path)
        if number == BASE:
            return side
        base = trees.replaced.get(path)
        if base is not None and equal(base, there) and SIDES[number - 1] != side:
            return side
        if equal(there, find(trees.cut[1 + SIDES.index(side)], segments)):
            return side
        nodes = [base, find(trees.now[OURS], segments), find(trees.now[THEIRS], segments)]
        mover = 1 + SIDES.index(side)
        nodes[mover] = nodes[mover] if nodes[mover] is not None and mover != number else part
        nodes[3 - mover] = there if mover != number else nodes[3 - mover]
        # By now the trees contain the moves of the other side, which may have made directories there.
        for version in (OURS, THEIRS):
            own = find(self._versions[version].tree, segments)
            nodes[version] = own if own is not None else nodes[version]
        kind: ConflictKind = "name_taken"
        choice = self._ask(TreeConflict(path, kind, (nodes[0], nodes[1], nodes[2])))
        return "theirs" if choice == "theirs" else "ours"

    def paths_of(self, path: str) -> tuple[str | None, str | None, str | None]:
        """Return the paths that an entry of the merged tree has in the base, ours and theirs."""
        found: list[str | None] = []
        for version, back in zip(self._versions, self._back, strict=True):
            source = next((back[above] + path[len(above) :] for above in (path, *_above(path)) if above in back), path)
            found.append(source if find(version.tree, segments_of(source)) is not None else None)
        return found[0], found[1], found[2]


def _above(path: str) -> Iterator[str]:
    """Yield the directories above a path, the nearest first, without the root."""
    while path := path.rpartition("/")[0]:
        yield path


def _opened(tree: FileTree, segments: tuple[str, ...]) -> FileTree:
    """Return the tree without a leaf that blocks a path."""
    for length in range(1, len(segments)):
        if type(find(tree, segments[:length])) is tuple:
            return remove(tree, segments[:length], tree.modified_at)
    return tree


def _modified(tree: FileTree, segments: tuple[str, ...]) -> int:
    """Return when the nearest existing directory above a path was modified."""
    for length in range(len(segments) - 1, -1, -1):
        node = find(tree, segments[:length])
        if type(node) is FileTree:
            return node.modified_at
    return 0

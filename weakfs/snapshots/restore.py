"""Restoring a host directory to a tree by changing only what differs.

New entries are first created in a staging directory on the same disk, so that nothing has changed if space runs out.
Each one is then renamed into place, with the old entry kept in the journal. A file with several hard links, all of
which should become the same file, is written in place instead, so that they stay linked.
"""

from __future__ import annotations

import stat
from errno import EBUSY, EINVAL

from attrs import evolve, field

from weakfs.class_decorators import define
from weakfs.platforms import Opened
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.leaf import CONTENT, DEVICE, MODE, MODIFIED_AT, Leaf, is_file, is_link, kind_of, same_content
from weakfs.reducers.tree.node import FileTree, Node, Segments, path_of, with_mode
from weakfs.reducers.tree.repeated_subtrees import Comparisons
from weakfs.session.interruption import check_interrupted
from weakfs.snapshots.directory.directory import MODIFICATION_TIME, HostDirectory
from weakfs.snapshots.directory.entries import check_name, temporary_name
from weakfs.snapshots.directory.hard_links import COPIED_UP, DIFFERENT, HardLinks, Inode, SharedFile
from weakfs.snapshots.undo_journal.cross_device_rename import rename_or_create
from weakfs.snapshots.undo_journal.journal import Journal


def restore_tree(disk: HostDirectory, journal: Journal, now: FileTree, wanted: FileTree) -> None:
    """Change `disk`, which matches `now`, to match `wanted`. Unchanged entries keep their inodes and times.

    Raises the system's errors; the journal can then undo the changes.
    """
    plan = Plan.of(now, wanted)
    if not plan:
        return
    for segments, old, _ in plan.directories:
        journal.status(segments)
        if old.mode & 0o300 != 0o300 and plan.steps:
            disk.set_status(segments, mode=old.mode | 0o300)
    _change_all(disk, journal, plan)
    for segments, _, new in reversed(plan.directories):
        if new.mode & 0o300 != 0o300:
            # The status is logged, because an undo has to make the directory writable before it can put anything back
            # into it.
            journal.status(segments)
        _finish(disk, journal, segments, new.mode, new.modified_at)


def _finish(disk: HostDirectory, journal: Journal, segments: Segments, mode: int, modified_at: int) -> None:
    """Set the permission bits and time of a directory whose entries are restored."""
    disk.set_status(segments, mode=mode)
    if not disk.stamp(segments, modified_at):
        journal.note_lost(segments, MODIFICATION_TIME)


def restore_entries(disk: HostDirectory, journal: Journal, now: FileTree, wanted: FileTree) -> None:
    """Change what differs between two trees that cover only part of the disk.

    Their directories only provide the paths to their entries: directories on disk keep their times, and their
    permission bits where the two trees agree.
    """
    plan = Plan.of(now, wanted)
    held: list[tuple[Segments, int, int]] = []
    for segments, old, new in plan.directories:
        status = disk.status(segments)
        if status is not None and stat.S_ISDIR(status.st_mode):
            journal.status(segments)
            mode = stat.S_IMODE(status.st_mode)
            held.append((segments, mode if old.mode == new.mode else new.mode, status.st_mtime_ns))
            if mode & 0o300 != 0o300:
                disk.set_status(segments, mode=mode | 0o300)
    _change_all(disk, journal, plan)
    for segments, mode, at in reversed(held):
        _finish(disk, journal, segments, mode, at)


@define
class Plan:
    """The differences to apply: entries to put or remove, entries that only change status, directories to finish."""

    # The path, and the wanted node or None.
    steps: list[tuple[Segments, Node | None]] = field(factory=list)
    statuses: list[tuple[Segments, Leaf]] = field(factory=list)
    # Directories that differ or contain a difference, parents first: the current one and the wanted one.
    directories: list[tuple[Segments, FileTree, FileTree]] = field(factory=list)

    def __bool__(self) -> bool:
        return bool(self.directories)

    @classmethod
    def of(cls, now: FileTree, wanted: FileTree) -> Plan:
        """Compare two trees. O(differences)."""
        plan = cls()
        # Every compared directory, parents first, with the index of its parent and whether it differs.
        compared: list[tuple[Segments, FileTree, FileTree]] = [((), now, wanted)]
        parents, differs = [0], [False]
        comparisons = Comparisons(now, wanted)
        place = 0
        while place < len(compared):
            segments, old_tree, new_tree = compared[place]
            comparisons.count(old_tree, new_tree)
            check_interrupted()
            differs[place] = (old_tree.mode, old_tree.modified_at) != (new_tree.mode, new_tree.modified_at)
            for name, old, new in maps.differences(old_tree._children, new_tree._children):
                check_name(name)
                below = (*segments, name)
                if type(old) is FileTree and type(new) is FileTree:
                    compared.append((below, old, new))
                    parents.append(place)
                    differs.append(False)
                elif plan._note(below, old, new):
                    differs[place] = True
            place += 1
        for place in range(len(compared) - 1, 0, -1):
            differs[parents[place]] |= differs[place]
        plan.directories = [one for one, does in zip(compared, differs, strict=True) if does]
        return plan

    def _note(self, segments: Segments, old: Node | None, new: Node | None) -> bool:
        if type(old) is tuple and type(new) is tuple and _hold_the_same(old, new):
            if _status(old) == _status(new):
                return False
            self.statuses.append((segments, new))
        else:
            self.steps.append((segments, new))
        return True


def _hold_the_same(old: Leaf, new: Leaf) -> bool:
    return kind_of(old) == kind_of(new) and same_content(old, new)


def _status(leaf: Leaf) -> tuple[int, int]:
    return (0 if is_link(leaf) else leaf[MODE], leaf[MODIFIED_AT])


@define
class InPlace:
    """Files of a plan that have several names, and the names that change along with another name."""

    files: dict[Segments, SharedFile] = field(factory=dict[Segments, SharedFile])
    along: set[Segments] = field(factory=set[Segments])

    def is_done_by_another(self, segments: Segments) -> bool:
        """Return whether a path is a name of a file that is changed in place through another name."""
        return segments in self.along


def in_place(
    links: HardLinks,
    journal: Journal,
    steps: list[tuple[Segments, Node | None]],
    statuses: list[tuple[Segments, Leaf]],
) -> InPlace:
    """Find the files of a plan to change in place: those whose remaining names should all become the same file."""
    wanted: dict[Segments, Node | None] = {**dict(steps), **dict(statuses)}
    files = [segments for segments, node in wanted.items() if type(node) is tuple and is_file(node)]
    found = InPlace(links.shared_all(files, journal))
    seen: set[Inode] = set()
    for segments, shared in list(found.files.items()):
        if not shared.names:
            continue
        staying = [name for name in shared.names if not _goes(name, wanted)]
        if not _become_the_same([wanted.get(name) for name in staying]):
            for name in staying:
                if name in wanted:
                    found.files[name] = evolve(shared, names=(), reason=DIFFERENT)
        elif shared.inode in seen:
            found.along.add(segments)
        seen.add(shared.inode)
    return found


def _goes(name: Segments, wanted: dict[Segments, Node | None]) -> bool:
    """Return whether a plan removes a name, or puts something other than a file in its place or above it."""
    if name in wanted:
        node = wanted[name]
        return type(node) is not tuple or not is_file(node)
    return any(name[:depth] in wanted for depth in range(1, len(name)))


def _become_the_same(nodes: list[Node | None]) -> bool:
    first = nodes[0]
    return all(
        type(node) is tuple and type(first) is tuple and _status(node) == _status(first) and same_content(node, first)
        for node in nodes
    )


def _change_all(disk: HostDirectory, journal: Journal, plan: Plan) -> None:
    linked = in_place(HardLinks(disk), journal, plan.steps, plan.statuses)
    if plan.steps:
        _put_all(disk, journal, plan.steps, linked)
    for segments, leaf in plan.statuses:
        check_interrupted()
        if linked.is_done_by_another(segments):
            continue
        _set_status(disk, journal, segments, leaf, linked.files.get(segments))


def _put_all(disk: HostDirectory, journal: Journal, steps: list[tuple[Segments, Node | None]], linked: InPlace) -> None:
    for segments, node in steps:
        if type(node) is tuple and node[CONTENT] is DEVICE:
            shown = path_of(segments)
            raise OSError(
                EINVAL, f"the device {shown!r} is gone, and weakfs does not create devices; create it by hand"
            )
    staging = (temporary_name().decode(),)
    journal.absent(staging)
    disk.make_directory(staging, mode=0o700)
    for number, (segments, node) in enumerate(steps):
        if node is not None and not linked.is_done_by_another(segments):
            # A directory that is not writable cannot be moved, so its permission bits are set last.
            disk.put((*staging, str(number)), with_mode(node, 0o700) if type(node) is FileTree else node)
    for number, (segments, node) in enumerate(steps):
        check_interrupted()
        if linked.is_done_by_another(segments):
            continue
        staged, shared = (*staging, str(number)), linked.files.get(segments)
        if shared is not None and shared.names and type(node) is tuple:
            overwrite(disk, journal, staged, node, segments, shared)
            continue
        if shared is not None and shared.reason is not None and type(node) is tuple:
            journal.note(segments, shared.reason)
        mark = journal.mark
        journal.keep(segments)
        if type(node) is not tuple:
            disk.remove(segments)
        if node is not None:
            try:
                rename_or_create(disk, journal, staged, segments, node)
            except OSError as error:
                status = disk.status(segments)
                if error.errno != EBUSY or type(node) is not tuple or not is_file(node) or status is None:
                    raise
                # A mounted file cannot be replaced.
                journal.undo(mark)
                mounted = SharedFile((status.st_dev, status.st_ino), (segments,))
                overwrite(disk, journal, staged, node, segments, mounted)
        if type(node) is FileTree:
            disk.set_status(segments, mode=node.mode, modified_at=node.modified_at)
    disk.remove(staging)


def overwrite(
    disk: HostDirectory, journal: Journal, staged: Segments, leaf: Leaf, segments: Segments, shared: SharedFile
) -> None:
    """Copy the file at `staged` into a file that keeps its inode and its names."""
    journal.contents(segments, shared.names)
    if not leaf[MODE] & stat.S_IRUSR:
        # Otherwise only root could read the file.
        disk.set_status(staged, mode=leaf[MODE] | stat.S_IRUSR)
    with Opened(disk.open_file(staged)) as source:
        disk.overwrite(segments, source, mode=leaf[MODE], modified_at=leaf[MODIFIED_AT])


def _set_status(
    disk: HostDirectory, journal: Journal, segments: Segments, leaf: Leaf, shared: SharedFile | None
) -> None:
    """Set the bits and time of a file; replace it if it has another name that must not change with it."""
    status = disk.status(segments) if is_link(leaf) else None
    is_linked_link = status is not None and status.st_nlink > 1
    if is_linked_link or (shared is not None and not shared.names and shared.reason != COPIED_UP):
        if shared is not None and shared.reason is not None:
            journal.note(segments, shared.reason)
        journal.keep(segments)
        journal.note_lost(segments, disk.put_leaf(segments, leaf))
        return
    journal.status(segments)
    disk.set_status(segments, mode=None if is_link(leaf) else leaf[MODE], modified_at=leaf[MODIFIED_AT])

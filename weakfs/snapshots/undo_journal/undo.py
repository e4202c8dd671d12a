"""Undoing one step of a journal: restores the state before the step, whether or not its change had happened."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EACCES, EDQUOT, EMLINK, ENOSPC, ENOTSUP, EOPNOTSUPP, EPERM, EXDEV

from weakfs.class_decorators import frozen
from weakfs.filesystem.results import Note
from weakfs.reducers.tree.node import Segments, path_of
from weakfs.snapshots.directory.directory import MODIFICATION_TIME, HostDirectory
from weakfs.snapshots.directory.entries import remove as remove_entry
from weakfs.snapshots.directory.entries import rename, temporary_name
from weakfs.snapshots.directory.hard_links import find_names
from weakfs.snapshots.directory.held_directory import Parent
from weakfs.snapshots.directory.permissions import open_file
from weakfs.snapshots.undo_journal.copied_inodes import CopiedInodes
from weakfs.snapshots.undo_journal.log import Frame
from weakfs.snapshots.undo_journal.tree_copy import Lost, TreeCopy

logger = logging.getLogger("weakfs.snapshots")

# Errors meaning that a file or directory cannot be linked or moved between disk and journal and must be copied.
COPIED = (EXDEV, EPERM, EACCES, EMLINK, ENOTSUP, EOPNOTSUPP)

# Makes a directory match the manifest with a digest, and returns notes on what files lost in the process.
RestoreManifest = Callable[[str], Iterable[Note] | None]


@frozen(eq=False)
class UndoStep:
    """Undoes one step on `disk`; `directory` and `path` are the journal's open descriptor and its path.

    `inodes` are the copied files; `restore_manifest(ref)` restores a whole tree; `lost` maps the names of the journal's
    copies to the attributes that they lack. Attributes that cannot be restored exactly are added to `notes`.
    """

    disk: HostDirectory
    directory: int
    path: str
    inodes: CopiedInodes
    restore_manifest: RestoreManifest
    lost: Mapping[str, list[Lost]]
    notes: list[Note]

    def undo(self, frame: Frame) -> None:
        """Undo the step. This may be called again after a failure."""
        segments: Segments = tuple(frame["path"])
        match frame["op"]:
            case "absent":
                self.disk.remove(segments)
                self._set_times(frame, segments)
            case "kept":
                if frame["aside"]:
                    self.disk.remove(tuple(frame["aside"]))
                self._put_back(segments, frame)
                self._set_times(frame, segments)
            case "contents":
                self._put_contents_back(segments, frame)
                self._set_times(frame, segments, *map(tuple, frame["names"]))
            case "moved":
                destination = tuple(frame["to"])
                if self.disk.status(segments) is None:
                    self._move_back(destination, segments, frame["was"], frame.get("looks"))
                self._set_times(frame, segments, destination)
            case "status":
                self._set_back(segments, frame["mode"], frame["at"])
            case "prepared":
                # The commit was not stored, so the steps before it are undone.
                pass
            case "tree":
                self.notes.extend(self.restore_manifest(frame["ref"]) or ())

    def _move_back(self, there: Segments, segments: Segments, was: int | None, looks: list[int] | None) -> None:
        status = self.disk.status(there)
        is_it = status is not None and was is not None and self._has_inode(status, was)
        if not is_it and (status is None or looks != [status.st_mtime_ns, status.st_size]):
            # The entry was never moved, or another program removed it: there is nothing to put back.
            logger.warning("%s cannot be moved back from %s: it is not there", segments, there)
            return
        self._make_way(segments)
        self.disk.rename(there, segments)

    def _make_way(self, segments: Segments) -> None:
        """Recreate parent directories that another program removed."""
        for depth in range(1, len(segments)):
            if self.disk.status(segments[:depth]) is None:
                self.disk.make_directory(segments[:depth], mode=0o755)

    def _put_back(self, segments: Segments, frame: Frame) -> None:
        name, was = b"%d" % frame["as"], frame["was"]
        try:
            kept = os.stat(name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            # The entry was never kept: the change that was logged did not happen.
            return
        self._make_way(segments)
        there = self.disk.status(segments)
        if there is not None and (os.path.samestat(there, kept) or identity(there) == was):
            # The entry was kept, possibly as a copy, and then not replaced.
            remove_entry(self.directory, name)
            return
        if there is not None and (stat.S_ISDIR(there.st_mode) or stat.S_ISDIR(kept.st_mode)):
            self.disk.remove(segments)
            there = None
        try:
            with Parent(self.disk, segments) as (directory, own):
                rename(self.directory, name, directory, own)
            return
        except OSError as error:
            if error.errno not in COPIED:
                raise
        if frame.get("links", 1) > 1 and stat.S_ISREG(kept.st_mode) and self._link_back(segments, was):
            return
        self._copy_back(segments, (name.decode(),), kept, there)

    def _link_back(self, segments: Segments, was: list[int]) -> bool:
        """Make a path a hard link to its original file again, if that file has another name and has not changed."""
        device = os.fstat(self.disk.descriptor).st_dev
        inodes = {(device, number) for number in self.inodes.current(was[0])}
        with self._temporary(segments) as temporary:
            for other in (name for names in find_names(self.disk, inodes).values() for name in names):
                status = self.disk.status(other)
                if status is not None and [status.st_mtime_ns, status.st_size] == was[2:]:
                    self.disk.link(other, temporary)
                    self.disk.rename(temporary, segments)
                    return True
        return False

    def _replace_by_link(self, source: Segments, segments: Segments) -> None:
        """Make a path a hard link to a file."""
        with self._temporary(segments) as temporary:
            self.disk.link(source, temporary)
            self.disk.rename(temporary, segments)

    @contextmanager
    def _temporary(self, segments: Segments) -> Iterator[Segments]:
        """Yield the path of a temporary file, which is removed if the block fails.

        The path is the same if the undo is repeated, so that the file of a process that was killed is removed as well.
        """
        path = (*segments[:-1], temporary_name(f"{self.path}{path_of(segments)}").decode())
        self.disk.remove(path)
        try:
            yield path
        except BaseException:
            with suppress(OSError):
                self.disk.remove(path)
            raise

    def _copy_back(
        self, segments: Segments, kept: Segments, status: os.stat_result, there: os.stat_result | None
    ) -> None:
        """Copy an entry from the journal to a path: a directory to an unused path, a file over the current entry."""
        copy = TreeCopy(HostDirectory(self.path), self.disk)
        if stat.S_ISDIR(status.st_mode):
            copy.copy(kept, segments)
        else:
            with self._temporary(segments) as temporary:
                try:
                    copy.copy(kept, temporary)
                except OSError as error:
                    self.disk.remove(temporary)
                    if error.errno not in (ENOSPC, EDQUOT) or there is None:
                        raise
                    # The current entry takes up the space, and the journal has its replacement.
                    self.disk.remove(segments)
                    copy.copy(kept, temporary)
                if there is not None:
                    # The current file was given the owner and attributes of the original, so copy them back.
                    lost = self.disk.take_over(segments, temporary)
                    copy.lost = [] if lost is None else [(kept, lost)]
                self.disk.rename(temporary, segments)
        self.inodes.remember("journal", "disk", copy.inodes)
        if there is None:
            copy.lost += self.lost.get(kept[0], ())
        for path, lost in sorted({("/".join(("", *segments, *below[1:])), lost) for below, lost in copy.lost}):
            self.notes.append(Note(path, f"its {lost} could not be put back"))

    def _put_contents_back(self, segments: Segments, frame: Frame) -> None:
        name = b"%d" % frame["as"]
        try:
            status = os.stat(name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            # There is no copy yet: the file was not changed.
            return
        kept = open_file(name.decode(), self.directory, status.st_mode)
        try:
            found = self._current_names((segments, *map(tuple, frame["names"])), frame["was"])
            if found:
                first, *others = found
                self.disk.overwrite(first, kept, mode=frame["mode"], modified_at=frame["at"])
                # Names that a restore of the whole tree made separate files, and the path itself if it was removed.
                separate = {one: None for one in (segments, *others) if found.get(one) != found[first]}
                for one in separate:
                    self._make_way(one)
                    self._replace_by_link(first, one)
            if frame["was"] not in found.values():
                self._put_contents_back_in_journal(kept, frame)
            if found:
                return
        finally:
            os.close(kept)
        # Another program replaced the file.
        self._make_way(segments)
        there = self.disk.status(segments)
        if there is not None and stat.S_ISDIR(there.st_mode):
            self.disk.remove(segments)
            there = None
        self._copy_back(segments, (name.decode(),), status, there)

    def _current_names(self, names: Iterable[Segments], was: int) -> dict[Segments, int]:
        """Return the paths among `names` that still lead to the file `was` or a copy of it, with its inode number."""
        statuses = ((name, self.disk.status(name)) for name in names)
        return {name: one.st_ino for name, one in statuses if one is not None and self._has_inode(one, was)}

    def _put_contents_back_in_journal(self, kept: int, frame: Frame) -> None:
        """Restore the file in the journal, if earlier steps kept names of it there: an undo of these puts them back."""
        for name in frame["held"]:
            with suppress(FileNotFoundError):
                if os.stat(name, dir_fd=self.directory, follow_symlinks=False).st_ino == frame["was"]:
                    journal = HostDirectory(self.path)
                    journal.overwrite((name,), kept, mode=frame["mode"], modified_at=frame["at"])
                    return

    def _has_inode(self, status: os.stat_result, was: int) -> bool:
        return status.st_ino == was or status.st_ino in self.inodes.current(was)

    def _set_back(self, segments: Segments, mode: int, at: int) -> None:
        status = self.disk.status(segments)
        # If the status was never changed, we may lack the permission to set it.
        if status is None or (stat.S_IMODE(status.st_mode), status.st_mtime_ns) == (mode, at):
            return
        if stat.S_ISDIR(status.st_mode):
            self.disk.set_status(segments, mode=mode)
            self._stamp(segments, at)
        else:
            self.disk.set_status(segments, mode=mode, modified_at=at)

    def _set_times(self, frame: Frame, *paths: Segments) -> None:
        for segments, at in zip(paths, frame["parents"], strict=False):
            with suppress(FileNotFoundError, NotADirectoryError):
                self._stamp(segments[:-1], at)

    def _stamp(self, segments: Segments, at: int) -> None:
        """Set a directory's modification time, or note that the user may not."""
        note = Note(path_of(segments), f"its {MODIFICATION_TIME} could not be put back")
        if not self.disk.stamp(segments, at) and note not in self.notes:
            self.notes.append(note)


def identity(status: os.stat_result) -> list[int]:
    """Return numbers that distinguish a file from any file that replaced it."""
    return [status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size]

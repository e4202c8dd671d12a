"""The undo journal of one unit of work on a disk: each change is logged before it happens, so it can be undone exactly.

The previous entry at a path is kept: the original file or directory, linked or moved into the journal's directory
(copied if that is on another device), or a copy of a file that is changed in place. The log has one line of JSON per
step; an undo reverts the last step and truncates its line. A process that is killed leaves its journal behind, and the
next process that opens the disk undoes it, unless the journal is a copy or the disk is another one. Truncating the log
commits the work.

If the session is in storage, the work is committed there: the journal then names the commit that the work
belongs to, and a process that finds the journal left behind checks whether that commit was stored.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from errno import ENOENT, EXDEV
from itertools import takewhile

from attrs import asdict

from weakfs.filesystem.results import Note
from weakfs.platforms import fcntl
from weakfs.reducers.tree.node import Segments, path_of
from weakfs.session.external_filesystems import CommitPlace
from weakfs.session.interruption import uninterrupted
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.entries import DIRECTORY, temporary_name
from weakfs.snapshots.directory.hard_links import HoldsLinks, Inode
from weakfs.snapshots.directory.held_directory import Parent
from weakfs.snapshots.undo_journal.copied_inodes import CopiedInodes
from weakfs.snapshots.undo_journal.journal_directory import Journals, is_new, remove_journal, set_aside
from weakfs.snapshots.undo_journal.log import (
    BEGUN,
    LOG,
    PLACE,
    PREPARED,
    Frame,
    begun,
    encoded,
    is_elsewhere,
    open_log,
    read_frames,
)
from weakfs.snapshots.undo_journal.tree_copy import Lost, TreeCopy
from weakfs.snapshots.undo_journal.undo import COPIED, RestoreManifest, UndoStep, identity

logger = logging.getLogger("weakfs.snapshots")


class Journal:
    """The steps of one unit of work on a disk. Costs nothing before the first step.

    `journals` are those of the disk; `restore_manifest(ref)` restores the whole tree that a step refers to. `held`
    counts the names of files in all journals of the disk, for a journal that is used while another one is undone.
    """

    def __init__(
        self,
        disk: HostDirectory,
        journals: Journals,
        restore_manifest: RestoreManifest,
        *,
        held: HoldsLinks | None = None,
    ) -> None:
        self.disk = disk
        self._journals = journals
        self._restore_manifest = restore_manifest
        self._path: str | None = None
        self._directory = self._log = -1
        self._inodes = CopiedInodes(-1, "")
        # Each step with the offset of its line in the log.
        self._frames: list[tuple[int, Frame]] = []
        self._end = 0
        # The first line, which is written together with that of the first step.
        self._begun = b""
        self._kept = 0
        self._held = held
        # Whether the journal has never held anything but the names below.
        self._has_only_links = True
        # Names in the journal of files that may have other names outside it.
        self._linked: dict[Inode, list[bytes]] = {}
        # The attributes that copies in the journal lack, by name. Paths start with the name of the copy.
        self._lost: dict[str, list[Lost]] = {}
        # The attributes that could not be preserved.
        self.notes: list[Note] = []

    @property
    def mark(self) -> int:
        """The number of steps so far. Pass it to `undo` to undo only later steps."""
        return len(self._frames)

    # Steps, each logged before its change

    def absent(self, segments: Segments) -> None:
        """Log that there is no entry at a path, before one is created there."""
        self._write({"op": "absent", "path": segments, "parents": self._times(segments)})

    def keep(self, segments: Segments, temporary: Segments | None = None) -> None:
        """Keep the entry at a path before it is replaced. A directory is moved away.

        `temporary` is a path at which the change creates an entry.
        """
        status = self.disk.status(segments)
        is_directory = status is not None and stat.S_ISDIR(status.st_mode)
        if temporary is not None and (status is None or is_directory):
            self.absent(temporary)
        if status is None:
            self.absent(segments)
            return
        if is_directory and not status.st_mode & stat.S_IWUSR and status.st_uid == os.geteuid():
            # A directory that its owner may not write to cannot be moved to another parent.
            self.status(segments)
            self.disk.set_status(segments, mode=stat.S_IMODE(status.st_mode) | stat.S_IRWXU)
            status = self.disk.status(segments) or status
        self._kept += 1
        name = b"%d" % self._kept
        frame = {"op": "kept", "path": segments, "as": self._kept, "parents": self._times(segments)}
        aside = (*segments[:-1], temporary_name().decode()) if is_directory else temporary
        self._write({**frame, "was": identity(status), "links": status.st_nlink, "aside": aside})
        with Parent(self.disk, segments) as (directory, own):
            try:
                if is_directory:
                    self._has_only_links = False
                    os.rename(own, name, src_dir_fd=directory, dst_dir_fd=self._directory)
                else:
                    os.link(own, name, src_dir_fd=directory, dst_dir_fd=self._directory, follow_symlinks=False)
                    self._linked.setdefault((status.st_dev, status.st_ino), []).append(name)
                return
            except OSError as error:
                if error.errno not in COPIED:
                    raise
        if is_directory:
            self.disk.check_removable(segments)
        if self._copy_here(segments, name) and is_directory and aside is not None:
            self._remove_copied(segments, aside)

    def contents(self, segments: Segments, names: Iterable[Segments]) -> None:
        """Keep a copy of a file before it is changed in place, through any of its names."""
        status = self.disk.status(segments)
        if status is None:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        self._kept += 1
        mode, at = stat.S_IMODE(status.st_mode), status.st_mtime_ns
        held = [name.decode() for name in self._linked.get((status.st_dev, status.st_ino), ())]
        others = [*names]
        parents = [time for name in (segments, *others) for time in self._times(name)]
        frame = {"op": "contents", "path": segments, "as": self._kept, "names": others, "was": status.st_ino}
        self._write({**frame, "held": held, "mode": mode, "at": at, "parents": parents})
        self._copy_here(segments, b"%d" % self._kept)

    def links_to(self, inode: Inode) -> int:
        """Return how many names of a file are in this journal, or in all; an undo puts them back."""
        if self._held is not None:
            return self._held.links_to(inode)
        count = 0
        for name in self._linked.get(inode, ()):
            with suppress(FileNotFoundError):
                status = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
                count += (status.st_dev, status.st_ino) == inode
        return count

    def note(self, segments: Segments, cause: str) -> None:
        """Record that something about a path could not be preserved."""
        self.notes.append(Note(path_of(segments), cause))

    def note_lost(self, segments: Segments, lost: str | None) -> None:
        """Record the attributes that a new copy of an entry lacks; `None` if it lacks nothing."""
        if lost is not None:
            self.note(segments, f"its {lost} could not be kept")

    def moved(self, source: Segments, destination: Segments) -> None:
        """Log that an entry is about to be moved to an unused path."""
        times = [*self._times(source), *self._times(destination)]
        status = self.disk.status(source)
        was = None if status is None else status.st_ino
        frame = {"op": "moved", "path": source, "to": destination, "was": was, "parents": times}
        if status is not None and status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            # An overlay mount may change the inode number of an entry that is moved.
            frame["looks"] = [status.st_mtime_ns, status.st_size]
        self._write(frame)

    def status(self, segments: Segments) -> None:
        """Keep the permission bits and time of an entry before they are changed."""
        status = self.disk.status(segments)
        if status is not None:
            mode, at = stat.S_IMODE(status.st_mode), status.st_mtime_ns
            self._write({"op": "status", "path": segments, "mode": mode, "at": at})

    def tree(self, ref: str) -> None:
        """Log that any entry may change; `ref` identifies the whole tree as it is now."""
        self._write({"op": "tree", "path": (), "ref": ref})

    # Ending the work

    def prepare(self, place: CommitPlace) -> None:
        """Log that the work is committed if a commit is stored at `place`; do nothing if there are no steps."""
        if self._frames:
            self._write({"op": PREPARED, "path": (), **asdict(place)})

    @property
    def commits(self) -> tuple[CommitPlace, ...]:
        """The commits that the work belongs to, one of which must be stored.

        They are empty if the work was never prepared, or is being undone.
        """
        kept = takewhile(lambda frame: frame["op"] == PREPARED, (frame for _, frame in reversed(self._frames)))
        return tuple(CommitPlace(**{name: frame[name] for name in PLACE}) for frame in kept)

    def undo(self, mark: int = 0) -> tuple[Note, ...]:
        """Undo all steps after `mark`, the last one first. Return notes on what could not be restored exactly.

        This may be called again after a failure.
        """
        notes: list[Note] = []
        self._has_only_links = False
        undo = UndoStep(
            self.disk, self._directory, str(self._path), self._inodes, self._restore_manifest, self._lost, notes
        )
        while len(self._frames) > mark:
            offset, frame = self._frames[-1]
            with uninterrupted():
                undo.undo(frame)
                if frame["op"] == "tree":
                    self._inodes.remember_restored(self.disk, (earlier for _, earlier in self._frames))
            os.ftruncate(self._log, offset)
            self._end = offset
            self._frames.pop()
        if not self._frames:
            self.close()
        return tuple(notes)

    def close(self) -> None:
        """Commit the work, and discard the previous entries."""
        if self._path is None:
            return
        try:
            try:
                os.ftruncate(self._log, 0)
            except BaseException:
                # An interrupt must not leave steps, or the next process would undo committed work.
                os.ftruncate(self._log, 0)
                raise
            self._discard()
        finally:
            self.release()

    def _discard(self) -> None:
        """Keep the directory for other work if nothing is left in it, or else remove it."""
        path = str(self._path)
        try:
            for names in self._linked.values():
                for name in names:
                    os.unlink(name, dir_fd=self._directory)
        except OSError:
            self._has_only_links = False
        if not self._has_only_links or not self._journals.keep(path):
            with suppress(FileNotFoundError):
                os.unlink(LOG, dir_fd=self._directory)
            remove_journal(path)

    def release(self) -> None:
        """Leave the journal as it is, to be recovered by the process that finds it."""
        if self._path is not None:
            self._journals.released(self._path)
        self._path, self._frames, self._end = None, [], 0
        self._let_go()

    def _let_go(self) -> None:
        for descriptor in (self._log, self._directory):
            if descriptor >= 0:
                os.close(descriptor)
        self._directory = self._log = -1

    def begin(self) -> Nested:
        """Begin a nested part of the work, which can be undone on its own."""
        return Nested(self)

    def _write(self, frame: Frame) -> None:
        if self._path is None:
            self._open()
        first = b"" if self._end else self._begun
        place = self._end + len(first)
        lines = first + encoded(frame, place)
        written = os.pwrite(self._log, lines, self._end)
        if written < len(lines):
            # Only part was written, so the disk is probably full: writing the rest raises the actual error.
            os.pwrite(self._log, lines[written:], self._end + written)
        self._frames.append((place, frame))
        self._end += len(lines)

    def _open(self) -> None:
        files = self._journals.open()
        self._path, self._directory, self._log = files.path, files.directory, files.log
        self._inodes = CopiedInodes(self._directory, files.path)
        self._begun = encoded(begun(files.inode, self.disk.lasting_inode), 0)

    def _times(self, segments: Segments) -> list[int]:
        """Return the modification time of the directory that contains a path; an undo restores it."""
        status = self.disk.status(segments[:-1])
        return [] if status is None else [status.st_mtime_ns]

    def _copy_here(self, segments: Segments, name: bytes) -> bool:
        """Copy an entry into the journal; the copy gets its final name once it is complete."""
        self._has_only_links = False
        here = HostDirectory(str(self._path))
        whole = (name.decode() + ".copy",)
        copy = TreeCopy(self.disk, here)
        if not copy.copy(segments, whole):
            return False
        here.rename(whole, (name.decode(),))
        self._inodes.remember("disk", "journal", copy.inodes)
        if copy.lost:
            own = len(segments)
            self._lost[name.decode()] = [((name.decode(), *below[own:]), lost) for below, lost in copy.lost]
        return True

    def _remove_copied(self, segments: Segments, aside: Segments) -> None:
        """Remove a directory that has been copied: it is renamed first, so that it disappears at once or not at all."""
        try:
            self.disk.rename(segments, aside)
        except OSError as error:
            if error.errno != EXDEV:
                raise
            # An overlay mount does not rename directories of a lower layer. A different time keeps an undo from
            # mistaking the directory for an unchanged one if its removal is interrupted.
            status = self.disk.status(segments)
            if status is not None:
                self.disk.set_status(segments, modified_at=status.st_mtime_ns ^ 1)
            self.disk.remove(segments)
            return
        self.disk.remove(aside)

    @classmethod
    def taken_over(cls, disk: HostDirectory, path: str, restore_manifest: RestoreManifest) -> Journal | None:
        """Take over the journal of a process that has ended; return `None` if it has no log or was committed.

        A journal that belongs elsewhere is set aside, and `None` returned. Raises `BlockingIOError` if its process is
        alive, `FileNotFoundError` if the journal is gone, and `OSError` (EBADMSG) if it is damaged.
        """
        journal = cls(disk, Journals(path), restore_manifest)
        directory = os.open(path, DIRECTORY)
        log = -1
        try:
            log = open_log(path, os.O_RDWR, directory=directory)
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(directory)
            if log >= 0:
                os.close(log)
            if error.errno != ENOENT:
                raise
            # A journal that is being created has no log yet; it is recognized by its age.
            if not is_new(path):
                remove_journal(path)
            return None
        journal._path, journal._directory, journal._log = path, directory, log
        journal._has_only_links = False
        journal._inodes = CopiedInodes(directory, path)
        try:
            if journal._read():
                return journal
            set_aside(path, disk.root)
        except OSError:
            journal.release()
            raise
        journal.release()
        return None

    def _read(self) -> bool:
        """Read the steps in the log. Return false if they belong to another journal or another directory."""
        with open(os.dup(self._log), "rb") as stream:
            for frame, length in read_frames(stream, str(self._path)):
                if frame["op"] != BEGUN:
                    self._frames.append((self._end, frame))
                elif is_elsewhere(frame, os.fstat(self._log), os.fstat(self.disk.descriptor)):
                    return False
                self._end += length
        self._inodes.read()
        return True


class Nested:
    """Part of a journal: undone on its own, or left to the enclosing journal."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._mark = journal.mark

    def undo(self) -> tuple[Note, ...]:
        """Undo the changes since this part began. Return notes on what could not be restored exactly."""
        return self.journal.undo(self._mark)

    def close(self) -> None:
        """Leave the changes to the enclosing journal."""

    def begin(self) -> Nested:
        """Begin a part nested in this one."""
        return Nested(self.journal)

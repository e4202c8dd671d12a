"""Mount points: the two forms of a path, in the files themselves and below the path at which they are mounted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from weakfs.class_decorators import frozen
from weakfs.filesystem import BaseFilesystem, Note
from weakfs.filesystem.errors import Absence, absence_in
from weakfs.filesystem.paths import is_within, normalize
from weakfs.processes import check_mount_point
from weakfs.reducers.apply import segments_of
from weakfs.reducers.mount_points import FilesystemMounted
from weakfs.reducers.tree.node import Segments
from weakfs.session import ConflictEntry, Session

# An absolute path in a message.
_QUOTED = re.compile(r"'(/[^'\n]*)'")


@frozen
class MountPoint:
    """Where files are mounted: the file `/a.py` has the mounted path `/workspace/a.py`."""

    path: str
    segments: Segments

    @classmethod
    def at(cls, path: str) -> MountPoint:
        """Return the mount point at a path; raise `ValueError` for one that cannot be used."""
        if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"mounted_at is {path!r}; pass a path such as '/workspace'")
        try:
            canonical = normalize(path)
        except OSError as error:
            raise ValueError(f"cannot mount files at {path!r}: {error}") from error
        if canonical != path or path == "/" or not path.isprintable():
            raise ValueError(
                f"cannot mount files at {path!r}: it is '/', or not an absolute path in canonical form; use "
                f"a path such as {canonical if canonical != '/' and canonical.isprintable() else '/workspace'!r}"
            )
        check_mount_point(path)
        return cls(path, segments_of(path))

    def holds(self, segments: Segments) -> bool:
        """Return whether a mounted path is the mount point or below it."""
        return segments[: len(self.segments)] == self.segments

    def is_above(self, segments: Segments) -> bool:
        """Return whether a path is a directory on the way to the mount point."""
        return len(segments) < len(self.segments) and self.segments[: len(segments)] == segments

    def mounted(self, own: str) -> str:
        """Return the mounted path of a path in the files."""
        return self.path if own == "/" else self.path + own

    def own(self, mounted: str) -> str | None:
        """Return the path in the files of a mounted path; `None` if it is outside the mount point."""
        if not is_within(mounted, self.path):
            return None
        return mounted[len(self.path) :] or "/"

    def mounted_note(self, note: Note) -> Note:
        """Return a note about a path in the files as one about the mounted path."""
        return attrs.evolve(note, path=self.mounted(note.path))

    def mounted_conflict(self, entry: ConflictEntry) -> ConflictEntry:
        """Return a conflict with mounted paths; that of a slice without paths keeps the slice's tag."""
        return attrs.evolve(
            entry,
            path=self.mounted(entry.path) if entry.path.startswith("/") else entry.path,
            base_path=None if entry.base_path is None else self.mounted(entry.base_path),
            our_path=None if entry.our_path is None else self.mounted(entry.our_path),
            their_path=None if entry.their_path is None else self.mounted(entry.their_path),
        )

    @contextmanager
    def named(self, is_elsewhere: Callable[[str], bool]) -> Iterator[None]:
        """Replace the paths in error messages with mounted paths.

        `is_elsewhere` says whether an absolute path in a message is a host path instead.
        """
        try:
            yield
        except (OSError, ValueError) as error:
            if len(error.args) == 1 and isinstance(error.args[0], str):
                error.args = (self._renamed(error.args[0], is_elsewhere),)
            absence = absence_in(error)
            if absence is not None:
                texts = (self._renamed(text, is_elsewhere) for text in (absence.cause, absence.remedy))
                vars(error)["absence"] = Absence(self.mounted(absence.path), *texts)
            raise

    def _renamed(self, message: str, is_elsewhere: Callable[[str], bool]) -> str:
        def rename(found: re.Match[str]) -> str:
            path = found[1]
            return found[0] if is_elsewhere(path) else repr(self.mounted(path))

        return _QUOTED.sub(rename, message)


def recorded_mount(session: Session | None, filesystem_id: str) -> str | None:
    """Return where a session last had the files of a filesystem mounted."""
    mounts = () if session is None else session[FilesystemMounted].all()
    return next((one.mounted_at for one in reversed(mounts) if one.filesystem == filesystem_id), None)


def refuse_overlap(point: MountPoint, files: BaseFilesystem) -> None:
    """Raise `ValueError` for a mount point with which a path could mean two files, one of them on the host."""
    place = getattr(files, "container", None)
    if place is not None:
        if files.root != point.path:
            raise ValueError(
                f"cannot mount the files of a container at {point.path!r}: its programs see them at {files.root!r}; "
                f"open it with root={point.path!r}, or use it without a mount point if its root is '/'"
            )
        return
    root = files.root
    own = files._below_host_root(point.path)
    if own not in (None, "/") or (root not in ("/", point.path) and is_within(root, point.path)):
        raise ValueError(
            f"cannot mount {root!r} at {point.path!r}: one is inside the other, so a path could mean two files; "
            f"use another mount point, such as '/workspace', or {root!r} itself"
        )

"""The files of a filesystem at an earlier moment of its session, for integrations that show earlier versions."""

from __future__ import annotations

from weakfs.backends import InMemoryFilesystem, MountedFilesystem, OverlayFilesystem
from weakfs.filesystem import Filesystem, Limits
from weakfs.history.trees import Trees
from weakfs.messages import a_type
from weakfs.reducers import ExternalTrees, FileTree
from weakfs.session import Session
from weakfs.tools.permissions.guard import guard_of

# Reading an earlier version needs no limits.
_UNLIMITED = Limits(max_file_size=None, max_path_depth=None, max_segment_length=None, max_grep_matches=None)


def past_files(files: Filesystem, at: int | str) -> Filesystem:
    """Return files as they were after a record or at a snapshot, by its tag or id: read-only, with the same paths.

    What is hidden in `files` is hidden in these too. Raises `ValueError` if the files have no session, and
    `SessionError` for an unknown moment.
    """
    guard = guard_of(files)
    if guard is not None:
        return type(guard)(past_files(guard._inner, at), guard._access)
    if isinstance(files, MountedFilesystem):
        return MountedFilesystem(past_files(files.files, at), files.mounted_at)
    session = getattr(files, "session", None)
    if not isinstance(session, Session):
        raise ValueError(f"{a_type(files)} has no session, so it has no earlier versions; leave `at` out")
    view = session.at(at)
    if isinstance(files, OverlayFilesystem):
        # What the session has not changed is read from the lower files, as it is now.
        return OverlayFilesystem(
            files.lower, view, limits=_UNLIMITED, read_only=True, follow_symlinks=files.follow_symlinks
        )
    name, external = getattr(files, "filesystem_id", None), session[ExternalTrees].latest()
    known = name if external is not None and name in external.trees else None
    held = Session(session_id="past")
    past = InMemoryFilesystem(held, limits=_UNLIMITED, read_only=True)
    held[FileTree].seed(Trees(session).at(view, known))
    return past

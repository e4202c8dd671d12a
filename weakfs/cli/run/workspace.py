"""The workspace of `weakfs run`: memory, a host directory, or a layer over one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import field

from weakfs.backends import HostFilesystem, HostMount, InMemoryFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.backends.host_mount import mount
from weakfs.class_decorators import define, frozen
from weakfs.cli.commands.host.snapshots import take
from weakfs.cli.directories import open_directory, scanning, short_ids
from weakfs.cli.errors import as_failure
from weakfs.cli.formatting import typed
from weakfs.cli.output import progress
from weakfs.cli.run.report import Reporter
from weakfs.filesystem import Filesystem
from weakfs.processes import SandboxMode
from weakfs.reducers import ExternalFsSnapshot, FileTree, TreeDiff, diff
from weakfs.session import Session
from weakfs.snapshots import StoredSnapshot

if TYPE_CHECKING:
    from weakfs.backends.overlay.filesystem import OverlayFilesystem

# The tags of the snapshots that a run takes: before its first call with --root, and before a commit.
START = "start"
BEFORE_COMMIT = "before commit"


@frozen
class Job:
    """The options of a run: the transcripts, where to run them, and what to do with the result."""

    transcripts: tuple[str, ...]
    mount: str | None = None
    exclude: tuple[str, ...] = ()
    root: str | None = None
    overlay: str | None = None
    commit: bool = False
    snapshots: SnapshotKind = "tree"
    store: str | None = None
    sandbox: SandboxMode | None = None
    save: str | None = None
    embed: bool = False
    session_id: str | None = None
    strict: bool = False


class Workspace(Protocol):
    """The files to work on, and what to do before and after the calls."""

    @property
    def files(self) -> Filesystem: ...
    def begin(self, listener: Reporter) -> int:
        """Prepare the files and report them; return the number of files that could not be included."""
        ...

    def take_baseline(self) -> None:
        """Make the current files the baseline, before the first call, unless they are outside the session."""
        ...

    def end(self, listener: Reporter, withheld: str | None) -> TreeDiff:
        """Finish after the last call, unless `withheld` gives a reason not to; return what changed."""
        ...

    def undo(self) -> str | None:
        """Return the command that restores the directory, if one was changed."""
        ...


def open_workspace(job: Job, session: Session) -> Workspace:
    """Open the files that a job works on; raise `Failure` with the cause if that is impossible."""
    if job.root is not None:
        files = open_directory(job.root, store=job.store, kind=job.snapshots, session=session)
        return InPlace(job, session, files)
    if job.overlay is not None:
        from weakfs.backends.overlay.filesystem import OverlayFilesystem

        lower = open_directory(job.overlay, store=job.store, kind=job.snapshots, read_only=not job.commit)
        return OnOverlay(job, OverlayFilesystem(lower, session), lower)
    return InMemory(job, session, InMemoryFilesystem(session))


@define
class InMemory:
    """Files of the session, with a copy of a directory if requested."""

    job: Job
    session: Session
    files: InMemoryFilesystem
    before: FileTree = field(init=False, factory=FileTree)

    def begin(self, listener: Reporter) -> int:
        directory, skipped = self.job.mount, 0
        if directory is not None:
            wanted = HostMount(directory, exclude=self.job.exclude)
            with as_failure(f"mount {directory!r}"), progress(f"mounting {directory}") as advance:
                report = mount(self.session, wanted, self.files.limits, on_file=lambda _path, _size: advance())
            # A new session has no mounts, so this one was just made.
            assert report is not None
            listener.mounted(report)
            skipped = len(report.skipped)
        self.take_baseline()
        return skipped

    def take_baseline(self) -> None:
        self.before = self.files.tree()

    def end(self, listener: Reporter, withheld: str | None) -> TreeDiff:
        return diff(self.before, self.files.tree())

    def undo(self) -> str | None:
        return None


@define
class InPlace:
    """A host directory that is changed in place, after a snapshot."""

    job: Job
    session: Session
    files: HostFilesystem
    before: FileTree = field(init=False, factory=FileTree)
    start: StoredSnapshot | None = field(init=False, default=None)

    def begin(self, listener: Reporter) -> int:
        directory = str(self.job.root)
        with as_failure(f"take a snapshot of {directory!r}"), scanning(self.files, f"reading {directory}"):
            self.session.snapshot(START)
            self.before = self.files._root.last_tree
        taken = self.session[ExternalFsSnapshot].latest()
        assert taken is not None
        self.start = self.files.store.get(taken.snapshot_id)
        listener.working("root", directory)
        listener.kept(self.files, self.start)
        return 0

    def take_baseline(self) -> None:
        pass

    def end(self, listener: Reporter, withheld: str | None) -> TreeDiff:
        directory = str(self.job.root)
        with as_failure(f"scan {directory!r}"), scanning(self.files, f"reading {directory}"):
            return diff(self.before, self.files.tree())

    def undo(self) -> str | None:
        return restore_command(self.files, self.job, self.start)


@define
class OnOverlay:
    """A layer over a host directory, which changes only when the layer is committed."""

    job: Job
    files: OverlayFilesystem
    lower: HostFilesystem
    before: StoredSnapshot | None = field(init=False, default=None)

    def begin(self, listener: Reporter) -> int:
        listener.working("overlay", str(self.job.overlay))
        return 0

    def take_baseline(self) -> None:
        pass

    def end(self, listener: Reporter, withheld: str | None) -> TreeDiff:
        directory = str(self.job.overlay)
        with as_failure(f"compare with {directory!r}"), scanning(self.lower, f"reading {directory}"):
            found = self.files.diff()
        listener.changes(found)
        if not self.job.commit or not found:
            return found
        if withheld is not None:
            listener.not_committed(withheld)
            return found
        before = take(self.lower, directory, BEFORE_COMMIT)
        try:
            with as_failure(f"commit to {directory!r}"), scanning(self.lower, f"writing {directory}"):
                self.files.commit()
        except BaseException:
            # Nothing was written, so there is nothing to restore.
            self.lower.store.drop(before.snapshot_id)
            raise
        self.before = before
        listener.kept(self.lower, before)
        listener.committed(directory, found)
        return found

    def undo(self) -> str | None:
        return restore_command(self.lower, self.job, self.before)


def restore_command(files: HostFilesystem, job: Job, snapshot: StoredSnapshot | None) -> str | None:
    """Return the command that restores a snapshot, if one was taken."""
    if snapshot is None:
        return None
    name = short_ids(files.store)[snapshot.snapshot_id]
    directory = str(job.overlay if job.root is None else job.root)
    return typed("weakfs", "restore", directory, name, *([] if job.store is None else ["--store", job.store]))

"""A filesystem on the files of a container: changed where its processes see them, and undone exactly."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import attrs
from attrs import field

from weakfs.backends.checkout import CheckoutDirectory, changed_paths
from weakfs.backends.container.commands.command import run_command
from weakfs.backends.container.files import ContainerFiles, host_text, variables
from weakfs.backends.container.lifecycle.container import Container
from weakfs.backends.container.lifecycle.find_or_create import attach, open_container
from weakfs.backends.container.lifecycle.options import IDLE_AFTER, MAX_LAYER_SIZE, ContainerOptions, check_text
from weakfs.backends.container.lifecycle.podman import Podman
from weakfs.backends.container.restore import ContainerRoot
from weakfs.backends.container.snapshot_kinds import ContainerSnapshotKind
from weakfs.backends.host.external_filesystem import HostExternal, Rewind
from weakfs.backends.host.host_paths import default_store
from weakfs.backends.host_mount import HostMount
from weakfs.backends.memory import InMemoryFilesystem
from weakfs.class_decorators import define, frozen
from weakfs.filesystem import Limits, SymlinkPolicy, paths
from weakfs.filesystem.checkout import ReadBack
from weakfs.filesystem.operations.restore import as_snapshot
from weakfs.filesystem.primitives import check_symlink_policy
from weakfs.filesystem.registry import session_of_files
from weakfs.platforms import require_linux
from weakfs.processes import ENVIRONMENT, CommandLimits, CompletedCommand, StopEvent, check_bounds, check_command
from weakfs.processes.runner import MAX_OUTPUT, TIMEOUT
from weakfs.reducers import ExternalFsSnapshot, FileTree
from weakfs.reducers.apply import segments_of
from weakfs.reducers.external_trees import ExternalTree, external_trees
from weakfs.reducers.merging.tree_merge import TreeConflict, merge_by_path
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import path_of
from weakfs.session import ConflictEntry, MergeConflict, Session
from weakfs.session.conflicts.conflict_types import Choice
from weakfs.snapshots.snapshot_store import Store

logger = logging.getLogger("weakfs.backends")


@frozen(kw_only=True)
class CommandResult(CompletedCommand):
    """How a command in a container ended, what it printed, and the canonical paths that it changed, sorted."""

    changed: tuple[str, ...] = ()


@define
class ContainerCheckout(CheckoutDirectory):
    """A checkout in which commands run in the container. Programs on the host find the files in `directory`."""

    files: ContainerFilesystem = field(kw_only=True)

    def run_command(
        self,
        command: str,
        *,
        workdir: str,
        timeout: float = TIMEOUT,
        max_output: int = MAX_OUTPUT,
        environment_allow: Iterable[str] = ENVIRONMENT,
        environment: Mapping[str, str] | None = None,
        limits: CommandLimits = CommandLimits(),  # noqa: B008  # frozen
        stop: StopEvent | None = None,
    ) -> CompletedCommand:
        """Run a line of shell; see `weakfs.processes.RunsCommands`."""
        return self.files._run(
            command,
            workdir=workdir,
            timeout=timeout,
            max_output=max_output,
            environment=variables(environment_allow, environment or {}),
            limits=limits,
            stop=stop,
        )


class ContainerFilesystem(ContainerFiles):
    """The files of a Podman container, its own or one that it is attached to; see `docs/howto/containers.md`.

    With `image`, it creates a container for the session and `name`, or finds the one that an earlier process created,
    and puts it into the state that the session knows. With `container`, it is attached to one that is already running.
    `root` is the directory of the container that is `/` here; changes that commands make outside it are neither
    recorded nor undone. Relative paths, and commands, start in `workdir`, which is created if it is missing. Mount
    points, such as /proc, are hidden. Links never lead out of `root`, whatever `follow_symlinks` is.

    Raises `ValueError` unless exactly one of `image` and `container` is given, `PodmanUnavailable` if Podman is missing
    or does not work, `ImageNotFound` or `ContainerNotFound` if none has that name, and `OSError` (EBUSY) while another
    process uses the session's container.
    """

    __slots__ = ("_base", "_name", "_options")

    def __init__(
        self,
        session: Session | None = None,
        *,
        image: str | None = None,
        container: str | Container | None = None,
        name: str = "container",
        root: str = "/",
        workdir: str | None = None,
        mounts: Sequence[HostMount] = (),
        network: str = "none",
        user: str | None = None,
        capabilities: Iterable[str] = (),
        variables: Mapping[str, str] | None = None,
        limits: Limits = Limits(),  # noqa: B008  # frozen
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
        snapshots: ContainerSnapshotKind = "tree",
        store: Store | str | os.PathLike[str] | None = None,
        runtime: Podman | None = None,
        max_layer_size: int | None = MAX_LAYER_SIZE,
        idle_after: float | None = IDLE_AFTER,
    ) -> None:
        require_linux("run containers", "use an InMemoryFilesystem, or a virtual machine with Linux")
        if (image is None) == (container is None):
            raise ValueError(
                "cannot open a container: pass either image= to create one, or container= to attach to one"
            )
        check_symlink_policy(follow_symlinks)
        check_text("name", name)
        if isinstance(container, str):
            check_text("container", container)
        session = session_of_files(session)
        self._name = name
        self._at = paths.parse(root)[1]
        filesystem_id = f"container:{name}" + ("" if root == "/" else path_of(self._at))
        known = next((one for one in session.attached if one.filesystem_id == filesystem_id), None)
        self._base: FileTree | None = None
        self._options = ContainerOptions(
            image=image or "",
            network=network,
            user=user,
            capabilities=tuple(capabilities),
            variables=variables or {},
            read_only=read_only,
            max_layer_size=max_layer_size,
            idle_after=idle_after,
        )
        in_use = known.root if isinstance(known, HostExternal) else None
        if isinstance(in_use, ContainerRoot) and not in_use.container.is_closed:
            opened, is_new = in_use, False
        else:
            kept = store if store is not None else default_store(f"/{session.session_id}/{filesystem_id}")
            opened, is_new = self._new_root(session, container, kept, runtime or Podman())
        try:
            self._open(
                opened,
                session,
                limits,
                read_only,
                follow_symlinks,
                snapshots,
                filesystem_id,
                filesystem_id,
                has_store=store is not None,
            )
            start = path_of(self._at) if self._at else "/workspace"
            self._workdir = self._inside(start if workdir is None else workdir)
            with self.lock():
                self._root.recover()
            if is_new:
                self._fill(mounts)
                self.container.mark_filled()
        except BaseException:
            if opened is not in_use and opened.container is not container:
                _give_up(opened.container, is_new=is_new)
            raise

    def _new_root(
        self, session: Session, container: str | Container | None, store: Store | str | os.PathLike[str], podman: Podman
    ) -> tuple[ContainerRoot, bool]:
        """Return the root in a container that the session does not use yet, and whether the container is a new one."""
        used, is_new = self._used(session, container, store, podman)
        used.max_layer_size, used.idle_after = self._options.max_layer_size, self._options.idle_after
        try:
            return ContainerRoot(used, f"container:{used.name}", self._at, store), is_new
        except BaseException:
            if used is not container:
                _give_up(used, is_new=is_new)
            raise

    def _used(
        self, session: Session, container: str | Container | None, store: Store | str | os.PathLike[str], podman: Podman
    ) -> tuple[Container, bool]:
        """Return the container to use, and whether it is a new one."""
        if isinstance(container, Container):
            return container, False
        # Made absolute: another process, which finds it by a label, may have another working directory.
        state = os.path.join(os.path.abspath(store.path if isinstance(store, Store) else store), "containers")
        if container is not None:
            return attach(podman, container, state=state), False
        return open_container(podman, self._options, session_id=session.session_id, name=self._name, state=state)

    def bind(self, session: Session) -> ContainerFilesystem:
        """Return the same files bound to another session, such as a fork that runs a call in parallel with others."""
        bound = super().bind(session)
        bound._name, bound._at, bound._workdir = self._name, self._at, self._workdir
        bound._options, bound._base = self._options, None
        return bound

    def fork(self, session: Session, *, name: str | None = None) -> ContainerFilesystem:
        """Create another container, for another session, that starts from the current files; see `merge`.

        The cost depends on how much the files differ from the image.
        """
        container = self._root.container
        with self.lock():
            tree = self.tree()
            layer = self._root.last_layer
        forked = ContainerFilesystem(
            session,
            image=container.image_id,
            name=name or f"{self._name}-{session.session_id.rpartition('/')[2]}",
            root=self.root,
            workdir=self._root.path_in_container(self._workdir),
            network=self._options.network,
            user=self._options.user,
            capabilities=self._options.capabilities,
            variables=self._options.variables,
            limits=self.limits,
            follow_symlinks=self.follow_symlinks,
            snapshots=cast(ContainerSnapshotKind, self._kinds.kind),
            store=self.store,
            runtime=container.podman,
            max_layer_size=self._options.max_layer_size,
            idle_after=self._options.idle_after,
        )
        try:
            with forked.lock(), forked._work("fork", "/", ()) as work:
                wanted = forked._root.files_of(layer)
                forked._record_changes(forked._root.restore_to(work.journal, wanted), wanted)
        except BaseException:
            forked.container.remove()
            raise
        forked._base = tree
        return forked

    def merge(self, forked: ContainerFilesystem) -> tuple[str, ...]:
        """Merge the changes that a fork made since it was forked or last merged. Return the changed paths, sorted.

        The merge is three-way, by path, and within a text by lines. Owners and extended attributes stay in the fork.
        Raises `MergeConflict`, with nothing changed, if both changed the same thing differently, and `ValueError` for a
        filesystem that `fork` did not make in this process.
        """
        if forked._base is None:
            raise ValueError(f"cannot merge {forked!r}: it was not made by fork() in this process; copy its files")
        conflicts: list[ConflictEntry] = []

        def ask(conflict: TreeConflict) -> Choice:
            conflicts.append(ConflictEntry(conflict.path, conflict.kind, self.filesystem_id))
            return "raise"

        with self.lock():
            theirs, ours = forked.tree(), self.tree()
            wanted, _ = merge_by_path(forked._base, ours, theirs, ask)
            if conflicts:
                raise MergeConflict(tuple(conflicts))
            self._refuse_if_read_only("merge into", "/")
            with self._work("merge into", "/", ()) as work:
                self._root.restore_to(work.journal, wanted, now=ours)
                self._record_changes(ours, wanted)
        forked._base = theirs
        self._session._notify()
        return changed_paths(ours, wanted, "/")

    def __repr__(self) -> str:
        return f"<ContainerFilesystem {self._name!r} in {self._root.container.name!r}>"

    def _fill(self, mounts: Sequence[HostMount]) -> None:
        """Fill a new container with the files that its session knows, or else with the mounts."""
        place = segments_of(self._workdir)
        for depth in range(1, len(place) + 1):
            if self._root.directory.status(place[:depth]) is None:
                self._root.directory.make_directory(place[:depth], mode=leaves.DIRECTORY_MODE)
        if self._is_known():
            self._check_image(self._name)
            self._rebuild()
            return
        self._record_image()
        if mounts:
            tree = InMemoryFilesystem(mounts=mounts, limits=self.limits).tree()
            with self.checkout():
                for entry, node in tree.children.items():
                    self._root.directory.put((*place, entry), node)

    def _is_known(self) -> bool:
        known = external_trees(self._session).known(self.filesystem_id)
        return bool(known.tree.node_count or known.found.node_count or self._newest() is not None)

    def _newest(self) -> ExternalFsSnapshot | None:
        own = [one for one in self._session[ExternalFsSnapshot].all() if one.filesystem_id == self.filesystem_id]
        return own[-1] if own else None

    def _rebuild(self) -> None:
        """Put a new container into the state that the session knows: its newest snapshot, and the changes since.

        If the record of the snapshot was compacted away, nothing says what changed since, so that all changes that the
        session knows are made to the files of the image.
        """
        now, then = external_trees(self._session).known(self.filesystem_id), ExternalTree()
        newest = self._newest()
        if newest is not None:
            own = newest.snapshot_id
            found = ((record.seq, record.event) for record in reversed(self._session.records))
            taken = (seq for seq, one in found if type(one) is ExternalFsSnapshot and one.snapshot_id == own)
            seq = next(taken, None)
            if seq is not None:
                self._restore_to(as_snapshot(newest))
                then = external_trees(self._session.at(seq)).known(self.filesystem_id)
        self._restore_to(Rewind(then.completed(now), now.completed(then)))

    def close(self) -> None:
        """Stop the container and release it; its files stay for the next process that opens the session."""
        with self.lock():
            if not self.container.is_closed:
                try:
                    self.background.end_all("its container was stopped")
                    self.container.stop()
                finally:
                    # Anything that is left of it ends by itself.
                    self.container.close()

    # Commands

    def exec(
        self,
        command: str | Sequence[str],
        *,
        workdir: str | None = None,
        timeout: float = TIMEOUT,
        max_output: int = MAX_OUTPUT,
        environment: Mapping[str, str] | None = None,
        limits: CommandLimits = CommandLimits(),  # noqa: B008  # frozen
        read_back: ReadBack = ReadBack(),  # noqa: B008  # frozen
        stop: StopEvent | None = None,
    ) -> CommandResult:
        """Run a command in the container, a shell command or a list of words, and record its changes.

        It is one transaction: if this raises an exception, nothing has changed. Any exit code is a result, not an
        error. Raises `TimeoutError` after `timeout` seconds or when `stop` is set. Nothing that the command started is
        left running. At most `max_output` bytes of each stream are kept.
        """
        text = command if isinstance(command, str) else shlex.join(command)
        check_command(text)
        place = self._directory(self._workdir if workdir is None else workdir, "run a command in")[0]
        with self._session.transaction(), self.checkout(read_back=read_back) as work:
            done = self._run(
                text,
                workdir=place,
                timeout=timeout,
                max_output=max_output,
                environment=environment or {},
                limits=limits,
                stop=stop,
            )
            if done.timed_out:
                raise TimeoutError(
                    f"cannot complete {text!r:.200}: it was stopped after {timeout:g} s and its changes were "
                    f"undone; allow more time"
                )
        return CommandResult(**attrs.asdict(done, recurse=False), changed=work.changed)

    def _run(
        self,
        command: str,
        *,
        workdir: str,
        timeout: float,
        max_output: int,
        environment: Mapping[str, str],
        limits: CommandLimits,
        stop: StopEvent | None,
    ) -> CompletedCommand:
        """Run a shell command, whose changes a checkout records or undoes."""
        check_bounds(timeout, max_output)
        return run_command(
            self._root.container._supervisor,
            command,
            workdir=host_text(self._root.path_in_container(workdir)),
            environment=environment,
            timeout=timeout,
            max_output=max_output,
            limits=limits,
            stop=stop,
        )

    def _checkout_directory(self, path: str) -> CheckoutDirectory:
        return ContainerCheckout(path, files=self)


def _give_up(container: Container, *, is_new: bool) -> None:
    """After a failure to open a container, remove it if it is new, else release it."""
    try:
        if is_new:
            container.remove()
        else:
            container.close()
    except OSError:
        # The original failure is more useful, and the next process that opens the session tries again.
        logger.warning("cannot release or remove the container %s", container.name, exc_info=True)

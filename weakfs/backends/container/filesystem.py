"""A filesystem on the files of a container: changed where its processes see them, and undone exactly."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from errno import EACCES
from typing import cast, get_args

import attrs
from attrs import define, field, frozen

from weakfs.backends.checkout import CheckoutDirectory, changed_paths
from weakfs.backends.container.container import Container, ContainerOptions
from weakfs.backends.container.layer import ATTRIBUTES, Layer
from weakfs.backends.container.podman import Podman, find_image
from weakfs.backends.container.root import ContainerRoot
from weakfs.backends.container.snapshot_kinds import ContainerKinds, ContainerSnapshotKind
from weakfs.backends.host.external import HostExternal
from weakfs.backends.host.filesystem import MOST_IN_EVENTS, HostFilesystem
from weakfs.backends.host.foreign_changes import SMALL, looks_like
from weakfs.backends.host.root import default_store
from weakfs.backends.host.snapshot_kinds import Kinds
from weakfs.backends.host_mount import HostMount
from weakfs.backends.memory import InMemoryFilesystem
from weakfs.backends.trampoline import Steps, run
from weakfs.filesystem import FileEntry, FilesystemSnapshot, Limits, Note, SymlinkPolicy, paths
from weakfs.filesystem.checkout import ReadBack
from weakfs.filesystem.errors import fault
from weakfs.filesystem.operations.restore import as_snapshot
from weakfs.filesystem.registry import session_of_files
from weakfs.platforms import require_linux
from weakfs.processes import ENVIRONMENT, CommandLimits, CompletedCommand, StopEvent, check_command
from weakfs.processes.environment import select
from weakfs.processes.runner import MAX_OUTPUT, TIMEOUT
from weakfs.reducers import ExternalFsSnapshot, FileTree
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import EntryCopied, EntryDeleted, EntryFound, EntryMoved, Event, TreeSeen
from weakfs.reducers.external_trees import NO_TREES, ExternalTrees
from weakfs.reducers.merging.tree_merge import TreeConflict, merge_by_path
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.diff import differences
from weakfs.reducers.tree.node import EMPTY_TREE, Node, Segments, find, height, path_of, tree_of
from weakfs.session import ConflictEntry, MergeConflict, MissingBlob, Session, UnknownSnapshot
from weakfs.session.merging.conflicts import Choice
from weakfs.snapshots.directory.nodes import OnDisk
from weakfs.snapshots.scan.read_back import events_between
from weakfs.snapshots.scan.sinks import Sink
from weakfs.snapshots.store.store import Store


@frozen(kw_only=True)
class CommandResult(CompletedCommand):
    """How a command in a container ended, what it printed, and the canonical paths that it changed, sorted."""

    changed: tuple[str, ...] = ()


@define
class ContainerCheckout(CheckoutDirectory):
    """A checkout in which commands run in the container. Programs of the host find the files in `directory`."""

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
        allowed = select(os.environ, set(environment_allow) - set(ENVIRONMENT))
        del allowed["PATH"]
        return self.files._run(
            command,
            workdir=workdir,
            timeout=timeout,
            max_output=max_output,
            environment={**allowed, **(environment or {})},
            limits=limits,
            stop=stop,
        )


class ContainerFilesystem(HostFilesystem):
    """The files of a Podman container, its own one or one that it is attached to; see `docs/howto/containers.md`.

    With `image` it makes a container for the session and `name`, or finds the one that an earlier process made, and
    puts it into the state that the session knows. With `container` it is attached to one that runs already. `root` is
    the directory of the container whose files these are; what commands change outside it is neither recorded nor
    undone. Relative paths, and commands, start in `workdir`, which is made if it is missing. Entries on which something
    is mounted, such as /proc, are hidden. Links never lead out of `root`, whatever `follow_symlinks` is.

    Raises `PodmanUnavailable`, `ImageNotFound`, `ContainerNotFound`, and `OSError` (EBUSY) while another process uses
    the session's container.
    """

    __slots__ = ("_at", "_base", "_name", "_options", "_workdir")

    _root: ContainerRoot

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
    ) -> None:
        require_linux("run containers", "use an InMemoryFilesystem, or a virtual machine with Linux")
        if (image is None) == (container is None):
            raise ValueError(
                "cannot open a container: give either image=, to make one, or container=, to attach to one"
            )
        if follow_symlinks not in get_args(SymlinkPolicy):
            raise ValueError(f"follow_symlinks is {follow_symlinks!r}; use 'deny', 'within_root_only' or 'allow'")
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
        )
        is_new = False
        if isinstance(known, HostExternal) and isinstance(known.root, ContainerRoot):
            opened = known.root
        else:
            kept = store if store is not None else default_store(f"/{session.session_id}/{filesystem_id}")
            used, is_new = self._used(session, container, kept, runtime or Podman())
            opened = ContainerRoot(used, f"container:{used.name}", self._at, kept)
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
        self._workdir = self._inside("/workspace" if workdir is None and not self._at else workdir or path_of(self._at))
        with self.lock():
            self._root.recover()
        if is_new:
            self._fill(mounts)

    def _used(
        self, session: Session, container: str | Container | None, store: Store | str | os.PathLike[str], podman: Podman
    ) -> tuple[Container, bool]:
        """Return the container to use, and whether it is a new one."""
        if isinstance(container, Container):
            return container, False
        state = os.path.join(store.path if isinstance(store, Store) else os.fspath(store), "containers")
        if container is not None:
            return Container.attach(podman, container, state=state), False
        found = Container.find(podman, session_id=session.session_id, name=self._name)
        if found is not None:
            return found, False
        made = Container.create(podman, self._options, session_id=session.session_id, name=self._name, state=state)
        return made, True

    def _snapshot_kinds(self, kind: str) -> Kinds:
        return ContainerKinds(self._root, kind)

    def bind(self, session: Session) -> ContainerFilesystem:
        """Return the same files bound to another session, such as a fork that runs a call beside others."""
        bound = super().bind(session)
        bound._name, bound._at, bound._workdir = self._name, self._at, self._workdir
        bound._options, bound._base = self._options, None
        return bound

    def fork(self, session: Session, *, name: str | None = None) -> ContainerFilesystem:
        """Make another container, for another session, that starts from the current files; see `merge`.

        Costs what differs from the image.
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
        """Bring back what a fork has changed since it was forked or last merged; return the changed paths, sorted.

        Three-way, by path and inside a text by lines. Owners and extended attributes stay in the fork. Raises
        `MergeConflict` with everything that both have changed differently, and then nothing has changed.
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

    def _inside(self, path: str) -> str:
        """Return the canonical path, in this filesystem, of a path in the container."""
        segments = paths.parse(path)[1]
        if segments[: len(self._at)] != self._at:
            raise ValueError(
                f"cannot work in {path!r}: it is outside {path_of(self._at)!r}, the root of these files; name a "
                f"directory below it"
            )
        return path_of(segments[len(self._at) :])

    def _fill(self, mounts: Sequence[HostMount]) -> None:
        """Prepare a new container: with what its session knows of it, or else with the mounts."""
        place = segments_of(self._workdir)
        for depth in range(1, len(place) + 1):
            if self._root.directory.status(place[:depth]) is None:
                self._root.directory.make_directory(place[:depth], mode=leaves.DIRECTORY_MODE)
        if self._is_known():
            self._rebuild()
        elif mounts:
            tree = InMemoryFilesystem(mounts=mounts, limits=self.limits).tree()
            with self.checkout():
                for entry, node in tree.children.items():
                    self._root.directory.put((*place, entry), node)

    def _is_known(self) -> bool:
        known = (self._session[ExternalTrees].latest() or NO_TREES).known(self.filesystem_id)
        return bool(known.tree.node_count or known.found.node_count or self._newest() is not None)

    def _newest(self) -> ExternalFsSnapshot | None:
        own = [one for one in self._session[ExternalFsSnapshot].all() if one.filesystem_id == self.filesystem_id]
        return own[-1] if own else None

    def _rebuild(self) -> None:
        """Put a new container into the state that the session knows: its newest snapshot, and the changes since."""
        newest = self._newest()
        now = self._session.at(self._session.seq)
        then = self._session.at(0)
        if newest is not None:
            taken = next(
                record.seq
                for record in reversed(self._session.records)
                if type(record.event) is ExternalFsSnapshot and record.event.snapshot_id == newest.snapshot_id
            )
            self._restore_to(as_snapshot(newest))
            then = self._session.at(taken)
        rewind = self._external.known_at(now, then)
        self._restore_to(rewind)

    # Paths

    @property
    def container(self) -> Container:
        """The container, to stop or to remove it."""
        return self._root.container

    @property
    def root(self) -> str:
        """The directory of the container that is `/` here."""
        return path_of(self._at)

    def close(self) -> None:
        """Stop the container and let go of it; its files stay for the next process that opens the session."""
        with self.lock():
            if not self.container.is_closed:
                self.container.stop()
                self.container.close()

    @property
    def workdir(self) -> str:
        """The directory in which relative paths and commands start."""
        return self._workdir

    @property
    def trees_recorded_as(self) -> str:
        """The id under which the session records the layers of snapshots."""
        return f"{self._filesystem_id}/layer"

    def _parse(self, path: str | os.PathLike[str]) -> paths.Parsed:
        text = os.fspath(path)
        if not isinstance(text, str) or self._workdir == "/":
            return paths.parse(text)
        return paths.parse(text if text.startswith(("/", "\\")) else f"{self._workdir}/{text}")

    def _climb(self, done: list[str], path: str) -> None:
        # Whatever the policy, nothing leads out of the container.
        if not done:
            raise self._outside(path)
        done.pop()

    def _from_the_top(self, target: str, path: str) -> tuple[list[str], str]:
        # A link's target means the same here as inside the container.
        top = path_of(self._at).rstrip("/")
        if target == top or target.startswith(f"{top}/"):
            return [], target[len(top) :]
        raise self._outside(path)

    def _is_hidden(self, segments: Segments) -> bool:
        hidden = self._root.hidden
        return any(segments[:depth] in hidden for depth in range(1, len(segments) + 1))

    def lookup(self, segments: Segments) -> Node | None:
        return None if self._is_hidden(segments) else super().lookup(segments)

    def entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        hidden = self._root.hidden
        return [(name, node) for name, node in super().entries(segments) if (*segments, name) not in hidden]

    def list_entries(self, segments: Segments, prefix: str) -> tuple[FileEntry, ...]:
        hidden = self._root.hidden
        return tuple(one for one in super().list_entries(segments, prefix) if (*segments, one.name) not in hidden)

    def totals(self, segments: Segments) -> tuple[int, int, int]:
        tree = self._tree_at(segments)
        return tree.total_size, tree.file_count, tree.directory_count

    def height(self, segments: Segments) -> int:
        return height(self._tree_at(segments))

    def _tree_at(self, segments: Segments) -> FileTree:
        found = find(self.tree(), segments)
        return found if type(found) is FileTree else EMPTY_TREE

    def apply(self, event: Event) -> tuple[Note, ...] | None:
        for place in self._places(event):
            for hidden in self._root.hidden:
                if place[: len(hidden)] == hidden or (hidden[: len(place)] == place and type(event) in WHOLE):
                    raise fault(
                        PermissionError,
                        EACCES,
                        f"cannot change {path_of(place)!r}: {path_of(hidden)!r} is a mount of the container; change "
                        f"something else",
                    )
        return super().apply(event)

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
        """Run a command in the container, a line of shell or a list of words, and record what it changed.

        It is one transaction: if it raises, nothing has changed. A command that ends by itself has answered, whatever
        its exit code. Raises `TimeoutError` after `timeout` seconds or when `stop` is set. Nothing that the command
        started is left running. At most `max_output` bytes of each stream are kept.
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
                    f"cannot run {text!r:.200} to its end: it was stopped after {timeout:g} s and what it changed was "
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
        """Run a line of shell, whose changes a checkout records or undoes."""
        return self._root.container._supervisor.run(
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

    # Records

    def _without_set_id(self, before: FileTree, found: FileTree) -> tuple[FileTree, tuple[str, ...]]:
        # They have no effect: nothing in the container gains privileges, and its files are out of others' reach.
        return found, ()

    def _record_changes(self, before: FileTree, after: FileTree) -> None:
        """Dispatch events for what a program changed, each with what was there before unless the session knows it."""
        known = (self._session[ExternalTrees].latest() or NO_TREES).tree(self.filesystem_id)
        changes = sorted(differences(before, after), key=lambda change: change[0])
        if changes:
            with self.store.sink() as sink:
                for path, old, _ in changes:
                    there = find(known, segments_of(path))
                    if path == "/" or (old is None and there is None) or (old is not None and _is_known(old, there)):
                        continue
                    found = EMPTY_TREE if old is None else tree_of({path.rpartition("/")[2]: run(_kept(old, sink))})
                    self._session.dispatch(EntryFound(path, found, self.now(), self.filesystem_id))
                sink.finish()
        for event in events_between(before, after, at=self.now(), most=MOST_IN_EVENTS):
            self._session.dispatch(attrs.evolve(event, filesystem=self.filesystem_id))

    def _restored(self, before: FileTree, after: FileTree, source: str) -> None:
        self._record_changes(before, after)

    def _record_snapshot(self, snapshot: FilesystemSnapshot) -> None:
        if snapshot.kind == "image":
            return
        layer = self._root.last_layer
        self._session.dispatch(
            TreeSeen(layer.packed(layer.encoded), snapshot.snapshot_id, self.now(), self.trees_recorded_as)
        )

    def _wanted(self, snapshot: FilesystemSnapshot) -> FileTree:
        is_own = snapshot.filesystem_id == self.filesystem_id
        layer = self._layer_in(snapshot, is_own=is_own)
        if isinstance(layer, FileTree):
            self.limits.check_tree(layer)
            return layer
        if layer.base != self._root.image_base:
            raise ValueError(
                f"cannot restore {snapshot.snapshot_id!r}: it was taken in a container of the image "
                f"{layer.base or 'without layers'}, and this one is of {self._root.image_base or 'one without layers'};"
                f" open the session with that image"
            )
        wanted = self._root.files_of(layer)
        if not is_own:
            self.limits.check_tree(wanted)
        return wanted

    def _layer_in(self, snapshot: FilesystemSnapshot, *, is_own: bool) -> Layer | FileTree:
        """Return the layer of a snapshot, or the files of one that was not taken in a container."""
        if snapshot.kind == "image":
            return self._root.layer_of_image(find_image(self._root.container.podman, snapshot.ref))
        tree = snapshot.tree
        if tree is None or self._session.missing_blobs:
            try:
                tree = self._kinds.tree_of(attrs.evolve(snapshot, tree=None), self.limits, is_own=is_own)
            except (UnknownSnapshot, MissingBlob):
                # A resumed session has recorded the layer itself, wherever the store is.
                tree = self._seen_at(snapshot.snapshot_id)
                if tree is None:
                    raise
        return self._root.cleaned(Layer.unpacked(tree)) if ATTRIBUTES in tree.children else tree


def _is_known(node: Node, there: Node | None) -> bool:
    if there is None:
        return False
    if type(node) is FileTree and type(there) is FileTree:
        return all(_is_known(child, there.children.get(name)) for name, child in node.children.items())
    return looks_like(node, there)


def _kept(node: Node, sink: Sink) -> Steps[Node]:
    """Return a node whose contents no longer depend on the image."""
    if type(node) is FileTree:
        held: dict[str, Node] = {}
        for name, child in node.children.items():
            held[name] = yield _kept(child, sink)
        return tree_of(held, mode=node.mode, modified_at=node.modified_at, created_at=node.created_at)
    content = node[leaves.CONTENT]
    if not isinstance(content, OnDisk):
        return node
    kept = content.join() if len(content) <= SMALL else sink.add_pieces(len(content), content.pieces())
    return leaves.file(kept, mode=node[leaves.MODE], at=node[leaves.MODIFIED_AT])


def host_text(name: str) -> str:
    """Return a path as the container's programs take it."""
    return names.to_bytes(name).decode("utf-8", "surrogateescape")


# Events that concern everything below a path.
WHOLE = (EntryCopied, EntryDeleted, EntryMoved)

"""Paths and changes in a container: where paths lead, which are mounts, and how changes are recorded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from errno import EACCES
from typing import cast

import attrs

from weakfs.backends.checkout import changed_paths
from weakfs.backends.container.commands.command_files import is_variable
from weakfs.backends.container.commands.program import ContainerLauncher
from weakfs.backends.container.layers.layer import ATTRIBUTES, Attributes, Layer
from weakfs.backends.container.lifecycle.container import Container
from weakfs.backends.container.lifecycle.podman import find_image
from weakfs.backends.container.restore import ContainerRoot
from weakfs.backends.container.snapshot_kinds import ContainerKinds
from weakfs.backends.deep_recursion import Steps, run
from weakfs.backends.host.filesystem import HostFilesystem
from weakfs.backends.host.foreign_changes import SMALL, looks_like
from weakfs.backends.host.snapshot_kinds import Kinds
from weakfs.backends.host.workplace import MOST_IN_EVENTS, HostWorkplace, without_unfinished
from weakfs.errors import fault
from weakfs.filesystem import FilesystemSnapshot, Note, paths
from weakfs.filesystem.operations.read import PathArg
from weakfs.processes import ENVIRONMENT, CommandOptions
from weakfs.processes.background import Launcher
from weakfs.processes.command_options import select
from weakfs.reducers import FileTree
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import EntryCopied, EntryDeleted, EntryFound, EntryMoved, Event, TreeSeen
from weakfs.reducers.external_trees import external_trees
from weakfs.reducers.partial_trees import with_changes
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.diff import differences
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import EMPTY_TREE, Node, Segments, find, height, path_of, tree_of
from weakfs.session import MissingBlob, UnknownSnapshot
from weakfs.snapshots.directory.nodes import Kind, OnDisk
from weakfs.snapshots.scan.read_back import events_between
from weakfs.snapshots.scan.sinks import Sink

# Events that concern everything below a path.
WHOLE = (EntryCopied, EntryDeleted, EntryMoved)


class ContainerWorkplace(HostWorkplace):
    """A container as the workplace of background processes."""

    root: ContainerRoot

    def launcher(self, options: CommandOptions) -> Launcher:
        """Return the launcher of programs in the container."""
        root = self.root
        root.check_in_place()
        return ContainerLauncher(
            root.container._supervisor,
            lambda directory: host_text(root.path_in_container(directory)),
            variables(options.environment_allow, options.environment),
            options.limits,
        )

    def scan_changes(self, cause: str | None) -> tuple[str, ...]:
        """Scan the layer, and record its differences from the expected files."""
        unfinished = self.root.unfinished(self.files._running())
        if () in unfinished:
            return ()
        found = self.root.scan()
        return self.record(without_unfinished(unfinished, found, self._expected(found), self.session.now()), cause)

    def record(self, found: FileTree, cause: str | None) -> tuple[str, ...]:
        """Record the files that a scan found; see `Workplace.scan_changes`."""
        root, expected = self.root, self._expected(found)
        if cause is None:
            root.scanned = found, self._known()
            return ()
        with self.session._one_commit():
            cast("ContainerFiles", self.files)._record_changes(expected, found, cause=cause)
        scanned = found, self._known()
        # If the recorded changes are rolled back, the next scan finds them again.
        self.at_end(lambda: setattr(root, "scanned", scanned), lambda: None)
        return changed_paths(expected, found, "/")

    def _expected(self, found: FileTree) -> FileTree:
        """Return the files of the last scan with what the session has changed since; `found` if there was none."""
        if self.root.scanned is None:
            return found
        there, then = self.root.scanned
        now = self._known()
        # The session knows only the files that it changed, so what it knew at each of the two moments is completed with
        # what it knew at the other.
        return with_changes(then.completed(now), there, now.completed(then))


def variables(allow: Iterable[str], more: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a command besides those of its image: allowed ones of this process, and `more`.

    Allowed variables that no shell can set, such as exported functions, are left out.
    """
    allowed = select(os.environ, set(allow) - set(ENVIRONMENT))
    del allowed["PATH"]
    return {**{name: value for name, value in allowed.items() if is_variable(name)}, **more}


def host_text(name: str) -> str:
    """Return a path in the form that programs in the container use."""
    return names.to_bytes(name).decode("utf-8", "surrogateescape")


class ContainerFiles(HostFilesystem):
    """The parts of a container filesystem that differ from a host directory: finding paths, and recording changes."""

    __slots__ = ("_at", "_workdir")

    _root: ContainerRoot
    # The directory of the container that is the root here, and the canonical path of the working directory.
    _at: Segments
    _workdir: str

    @property
    def container(self) -> Container:
        """The container, to stop or to remove it."""
        return self._root.container

    @property
    def root(self) -> str:
        """The directory of the container that is `/` here."""
        return path_of(self._at)

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

    def _below_host_root(self, path: str) -> str | None:
        return None

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

    def _file(self, path: PathArg, verb: str) -> tuple[str, Leaf]:
        return self._file_there(path, verb)

    def entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        hidden = self._root.hidden
        return [(name, node) for name, node in super().entries(segments) if (*segments, name) not in hidden]

    def _names(self, segments: Segments) -> list[tuple[str, Kind]]:
        hidden = self._root.hidden
        return [(name, kind) for name, kind in super()._names(segments) if (*segments, name) not in hidden]

    def totals(self, segments: Segments) -> tuple[int, int, int]:
        tree = self._tree_at(segments)
        return tree.total_size, tree.file_count, tree.directory_count

    def height(self, segments: Segments) -> int:
        return height(self._tree_at(segments))

    def _tree_at(self, segments: Segments) -> FileTree:
        found = find(self.tree(), segments)
        return found if type(found) is FileTree else EMPTY_TREE

    def apply(self, event: Event) -> tuple[Note, ...] | None:
        for place, _ in self._places(event):
            for hidden in self._root.hidden:
                if place[: len(hidden)] == hidden or (hidden[: len(place)] == place and type(event) in WHOLE):
                    raise fault(
                        PermissionError,
                        EACCES,
                        f"cannot change {path_of(place)!r}: {path_of(hidden)!r} is a mount of the container; change "
                        f"something else",
                    )
        return super().apply(event)

    def _inside(self, path: str) -> str:
        """Return the canonical path, in this filesystem, of a path in the container."""
        segments = paths.parse(path)[1]
        if segments[: len(self._at)] != self._at:
            raise ValueError(
                f"cannot work in {path!r}: it is outside {path_of(self._at)!r}, the root of these files; name a "
                f"directory below it"
            )
        return path_of(segments[len(self._at) :])

    @property
    def _workplace(self) -> ContainerWorkplace:
        return ContainerWorkplace(self, self._root)

    def _snapshot_kinds(self, kind: str) -> Kinds:
        return ContainerKinds(self._root, kind)

    def _without_set_id(self, before: FileTree, found: FileTree) -> tuple[FileTree, tuple[str, ...]]:
        # Set-id bits have no effect: nothing in the container can gain privileges, and nobody else can reach its files.
        return found, ()

    def _record_changes(self, before: FileTree, after: FileTree, *, cause: str | None = None) -> None:
        """Dispatch events for a program's changes, each with the previous entry unless the session knows it."""
        known = external_trees(self._session).tree(self.filesystem_id)
        changes = sorted(differences(before, after), key=lambda change: change[0])
        if changes:
            cause = cause or self._session._cause_of_one_change()
            with self.store.sink() as sink:
                for path, old, _ in changes:
                    there = find(known, segments_of(path))
                    if path == "/" or (old is not None and _is_known(old, there)):
                        continue
                    entries = [] if there is not None else _directories_above(before, known, path, is_new=old is None)
                    if old is not None or there is not None:
                        entries.append((path, old))
                    for place, node in entries:
                        found = EMPTY_TREE
                        if node is not None:
                            found = tree_of({place.rpartition("/")[2]: run(_kept(node, sink))})
                        self._session.dispatch(EntryFound(place, found, self.now(), self.filesystem_id), cause=cause)
                sink.finish()
        for event in events_between(before, after, at=self.now(), most=MOST_IN_EVENTS):
            self._session.dispatch(attrs.evolve(event, filesystem=self.filesystem_id), cause=cause)

    def _restored(self, before: FileTree, after: FileTree, source: str) -> None:
        self._record_changes(before, after)

    def _record_snapshot(self, snapshot: FilesystemSnapshot) -> None:
        if snapshot.kind == "image":
            return
        layer = self._root.last_layer
        self._session.dispatch(
            TreeSeen(layer.packed(layer.encoded), snapshot.snapshot_id, self.now(), self.trees_recorded_as)
        )

    def _record_image(self) -> None:
        """Record the image of a new container; see `_check_image`."""
        layer = Layer(EMPTY_TREE, Attributes(), self.container.image.base)
        self._session.dispatch(TreeSeen(layer.packed(layer.encoded), "its image", self.now(), self.trees_recorded_as))

    def _check_image(self, name: str) -> None:
        """Raise `ValueError` if the session's changes were made over another image, so that they do not apply."""
        known = external_trees(self._session).tree(self.trees_recorded_as)
        if ATTRIBUTES not in known.children:
            # The session was rolled back to a moment before the container was made.
            seen = (record.event for record in reversed(self._session.records))
            known = next(
                (one.tree for one in seen if type(one) is TreeSeen and one.filesystem == self.trees_recorded_as), known
            )
        before = Layer.unpacked(known).base if ATTRIBUTES in known.children else ""
        image = self.container.image
        if before and before != image.base:
            raise ValueError(
                f"cannot recreate the container {name!r} of the session: its image had the layers {before}, "
                f"but now it has {image.base}; tag the earlier image, or name it by its id"
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
                f"{layer.base or 'without layers'}, but this one is of {self._root.image_base or 'one without layers'};"
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


def _directories_above(files: FileTree, known: FileTree, path: str, *, is_new: bool) -> list[tuple[str, Node | None]]:
    """Return the directories above an entry that the session does not know, without entries, the topmost one first.

    Without an event, the session would assume that a directory has the permission bits of a new one, so only those with
    other bits are returned. The nearest directory above a new entry is always returned: otherwise it would seem to have
    been created along with the entry, and would be removed with it.
    """
    above = segments_of(path)[:-1]
    unknown: list[tuple[str, Node | None]] = []
    while above and find(known, above) is None:
        found = find(files, above)
        if type(found) is FileTree:
            if is_new or found.mode != leaves.DIRECTORY_MODE:
                unknown.append((path_of(above), tree_of({}, mode=found.mode, modified_at=found.modified_at)))
            is_new = False
        above = above[:-1]
    return unknown[::-1]


def _is_known(node: Node, there: Node | None) -> bool:
    if there is None:
        return False
    if type(node) is FileTree and type(there) is FileTree:
        return node.mode == there.mode and all(
            _is_known(child, there.children.get(name)) for name, child in node.children.items()
        )
    return looks_like(node, there)


def _kept(node: Node, sink: Sink) -> Steps[Node]:
    """Return a node whose contents no longer depend on the image."""
    if type(node) is FileTree:
        held: dict[str, Node] = {}
        for name, child in node.children.items():
            held[name] = yield _kept(child, sink)
        return tree_of(held, mode=node.mode, modified_at=node.modified_at, created_at=node.created_at)
    content = cast(object, node[leaves.CONTENT])
    if not isinstance(content, OnDisk):
        return node
    kept = content.join() if len(content) <= SMALL else sink.add_pieces(len(content), content.pieces())
    return leaves.file(kept, mode=node[leaves.MODE], at=node[leaves.MODIFIED_AT])

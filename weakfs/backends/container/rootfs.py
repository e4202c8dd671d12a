"""The files of a container, read and changed through a mount, and scanned as its layer.

Scans read the directory where the storage driver stores the layer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from attrs import evolve

from weakfs.backends.container.layers.layer import ATTRIBUTES, FILES, AttributeReader, Attributes, Layer, without
from weakfs.backends.container.lifecycle.container import Container
from weakfs.backends.container.lifecycle.podman import Image
from weakfs.backends.host.root import HostRoot
from weakfs.filesystem import paths
from weakfs.reducers.apply import segments_of
from weakfs.reducers.external_trees import ExternalTree
from weakfs.reducers.tree.leaf import DIRECTORY_MODE, FILE_MODE, blob_digest, size_of
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Segments, find, path_of, tree_of
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.entries import set_status
from weakfs.snapshots.directory.held_directory import HeldDirectory
from weakfs.snapshots.scan import manifests
from weakfs.snapshots.scan.manifests import NO_STATUS
from weakfs.snapshots.scan.scan import scan
from weakfs.snapshots.scan.scan_limits import ScanLimits
from weakfs.snapshots.scan.sinks import Sink
from weakfs.snapshots.scan.stat_cache import Directory, Scan
from weakfs.snapshots.snapshot_store import Store
from weakfs.snapshots.store.snapshot_writer import StoreWriter
from weakfs.snapshots.store.store_sink import StoreSink

# How many trees are remembered together with their layers: the current one, and those being restored.
REMEMBERED = 8

# The label of an image that is a snapshot: the mode, time, user and group of the root.
TOP = "weakfs.top"


class ContainerDirectory(HostDirectory):
    """A directory of a container. New entries belong to the user of its commands."""

    __slots__ = ("owner",)

    def __init__(self, name: str, descriptor: int, owner: tuple[int, int]) -> None:
        super().__init__(name, descriptor)
        self.owner = owner

    def on_created(self, directory: int, name: bytes) -> None:
        """Give a new entry its owner; a change of owner clears the set-id bits, which are set again."""
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if (status.st_uid, status.st_gid) == self.owner:
            return
        os.chown(name, *self.owner, dir_fd=directory, follow_symlinks=False)
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID) and stat.S_ISREG(status.st_mode):
            set_status(directory, name, mode=stat.S_IMODE(status.st_mode))


class LayerRoot(HostRoot):
    """The directory `at` of a container. With the storage driver overlay, a scan is O(entries of the layer)."""

    def __init__(self, container: Container, name: str, at: Segments, store: Store | str | os.PathLike[str]) -> None:
        self.container = container
        self._at = at
        self._name = name
        self._opened = -1
        self._hidden = -1, frozenset[Segments]()
        super().__init__(ContainerDirectory(name, self._open_files(), container.owner), store)
        self._layer_directory = HeldDirectory(name, self._open_layer())
        container.users.add(self)
        self._reader = AttributeReader(self._layer_directory)
        self._opened = container.starts
        # The last scan of the layer's directory, the files and the layer that it found, and its manifest's digest.
        self._raw: Scan | None = None
        self._last = (EMPTY_TREE, Layer(EMPTY_TREE, Attributes(), ""))
        self._ref: bytes | None = None
        # Whether all contents that they refer to have been synced.
        self._is_synced = False
        # All files at the last scan for changes made by processes, and what their session knew then.
        self.scanned: tuple[FileTree, ExternalTree] | None = None
        self._remembered: list[tuple[FileTree, Layer]] = []

    # The container

    def _open_files(self) -> int:
        return HeldDirectory(self._name, self.container.open_files()).open_directory(self._at)

    def _open_layer(self) -> int:
        layer = HeldDirectory(self._name, self.container.open_layer())
        try:
            return layer.open_directory(self._at)
        except FileNotFoundError:
            # The kernel copies a directory into the layer when it is changed.
            status = os.fstat(self.directory.descriptor)
            os.utime(self.directory.descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))
            return layer.open_directory(self._at)

    @property
    def is_in_place(self) -> bool:
        """Whether the container is usable. It is started again if it has stopped since its files were opened.

        `False` once this process has released the container.
        """
        if self.container.is_closed:
            return False
        if not self._is_open():
            # Others may read at the same time, without a lock.
            with self.container.lock:
                if not self._is_open():
                    self._reopen()
        self.container.touch()
        return True

    def _is_open(self) -> bool:
        return self.container.is_running and self._opened == self.container.starts

    def _reopen(self) -> None:
        # All open objects refer to these two. A mount persists as long as it is open, and must not exist twice. Nothing
        # else must get their descriptor numbers in the meantime.
        for held in (self.directory, self._layer_directory):
            nothing, other = os.pipe()
            os.close(other)
            _put(nothing, held)
        self.container._inspect()
        _put(self._open_files(), self.directory)
        _put(self._open_layer(), self._layer_directory)
        self._opened = self.container.starts

    def check_in_place(self) -> None:
        """Raise `ValueError` if this process has released the container."""
        self.container.check_open()
        super().check_in_place()

    def run_unless_used(self, step: Callable[[], object]) -> None:
        """Run a step under the lock of the files unless it is held, work is unfinished or a process is running."""
        with self.lock.attempt() as is_held:
            if is_held and not self.claims.of_others(None) and not self.processes.running():
                step()

    @property
    def hidden(self) -> frozenset[Segments]:
        """The mount points below this root."""
        if self._hidden[0] != self.container.starts:
            points = [paths.parse(one)[1] for one in self.container.mount_points()]
            depth = len(self._at)
            below = frozenset(one[depth:] for one in points if one[:depth] == self._at and len(one) > depth)
            self._hidden = self.container.starts, below
        return self._hidden[1]

    @property
    def path_for_programs(self) -> str:
        """The path under which programs on the host reach the directory."""
        return "/".join((self.container.path_of_files().rstrip("/"), *self._at))

    @property
    def image_base(self) -> str:
        """The identity of the image below; empty if the layer holds all files."""
        return self.container.image.base if self.container.has_layer else ""

    @property
    def lower(self) -> FileTree:
        """The image's files below this root."""
        whole = find(self.container._image_files.tree, self._at) if self.container.has_layer else None
        return without(whole, map(path_of, self.hidden)) if type(whole) is FileTree else EMPTY_TREE

    # Scans

    def _scan_into(self, writer: Sink, bounds: ScanLimits | None) -> Scan:
        self.check_in_place()
        raw = scan(self._layer_directory.descriptor, writer, self._raw, on_file=self.on_file, bounds=bounds)
        layer = self._layer_in(raw)
        known = self._raw
        is_same = known is not None and raw.tree is known.tree and layer.attributes == self._last[1].attributes
        if not is_same:
            self._last = layer.over(self.lower), layer
        self._is_synced &= is_same and known is not None and raw.root is known.root
        self._raw = raw
        encoded = writer.add(self._last[1].encoded)
        packed = layer.packed(encoded)
        ref = writer.add_manifest(self._manifest(raw, packed)) if raw.ref is not None else None
        self._ref = ref
        return Scan(Directory(packed, {}, {}, NO_STATUS, writer.token, ref), raw.started_at, raw.files_read)

    def _finish(self, writer: StoreWriter | StoreSink) -> None:
        # A scan that found no changes has put nothing into the store.
        if not self._is_synced:
            writer.finish()
            self._is_synced = True

    @property
    def last_tree(self) -> FileTree:
        """The files as the last scan found them."""
        return self._last[0]

    def _layer_in(self, raw: Scan) -> Layer:
        return self.cleaned(Layer(raw.tree, self._reader.read(raw.root), self.image_base))

    def cleaned(self, layer: Layer) -> Layer:
        """Return a layer without the mount points."""
        return layer.without(map(path_of, self.hidden))

    @staticmethod
    def _manifest(raw: Scan, packed: FileTree) -> bytes:
        leaf = find(packed, (ATTRIBUTES,))
        assert raw.ref is not None
        assert type(leaf) is tuple
        return manifests.encode(
            DIRECTORY_MODE,
            0,
            [
                (FILES, (stat.S_IFDIR | raw.tree.mode, 0, raw.tree.modified_at, 0, 0), raw.ref, None),
                (ATTRIBUTES, (stat.S_IFREG | FILE_MODE, size_of(leaf), 0, 0, 0), blob_digest(leaf), None),
            ],
        )

    def files_of(self, layer: Layer) -> FileTree:
        """Return all files with a layer over the image, and remember the layer for a restore of that tree."""
        tree = layer.over(self.lower)
        self._remembered = [(tree, layer), *self._remembered[: REMEMBERED - 1]]
        return tree

    def layer_of(self, tree: FileTree) -> Layer | None:
        """Return the layer that a tree was made from; `None` for files from elsewhere."""
        return next((layer for known, layer in (self._last, *self._remembered) if known is tree), None)

    @property
    def last_layer(self) -> Layer:
        """The layer as the last scan found it."""
        return self._last[1]

    def path_in_container(self, path: str) -> str:
        """Return the path that programs in the container use for a canonical path."""
        return path_of((*self._at, *segments_of(path)))

    def layer_of_image(self, image: Image) -> Layer:
        """Return the layer of an image that was made from this container, over the container's own image."""
        below = self.container.image.layers
        if not below or self._at or image.layers[1:] != below or TOP not in image.labels:
            raise ValueError(
                "cannot read the layer of the image: it is not one layer above the image of this container, or these "
                "are not all files of the container; open the session with its own image, and with root='/'"
            )
        directory = HeldDirectory(image.layers[0])
        with self.store.sink() as sink:
            raw = scan(directory.descriptor, sink)
            attributes = AttributeReader(directory).read(raw.root)
            sink.finish()
        mode, at, *owner = (int(word) for word in image.labels[TOP].split(":"))
        top = tree_of(dict(raw.tree.children), mode=mode, modified_at=at, created_at=at)
        owners = {**attributes.owners, "/": (owner[0], owner[1])}
        return self.cleaned(Layer(top, evolve(attributes, owners=owners), self.image_base))


def _put(descriptor: int, held: HeldDirectory) -> None:
    """Make the descriptor of a directory refer to another open file."""
    os.dup2(descriptor, held.descriptor, inheritable=False)
    os.close(descriptor)

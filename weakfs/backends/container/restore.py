"""Restores of a container's files, attributes included: to a snapshot, or to undo a command that failed."""

from __future__ import annotations

from weakfs.backends.container.layers.attributes import AttributeRestore
from weakfs.backends.container.layers.layer import Attributes, Layer
from weakfs.backends.container.layers.unlogged_journal import UnloggedJournal
from weakfs.backends.container.rootfs import LayerRoot
from weakfs.filesystem import Note
from weakfs.reducers.tree.node import FileTree
from weakfs.snapshots.restore import Plan, restore_tree
from weakfs.snapshots.scan.scan import scan
from weakfs.snapshots.scan.scan_limits import UnwantedContents
from weakfs.snapshots.scan.sinks import HashOnlySink
from weakfs.snapshots.undo_journal.journal import Journal


class ContainerRoot(LayerRoot):
    """The directory `at` of a container as a root for the host backend."""

    def matches(self, now: FileTree, wanted: FileTree) -> bool:
        """Return whether there is nothing to restore, attributes included."""
        ours, theirs = self.layer_of(now), self.layer_of(wanted)
        same = ours is None or theirs is None or _shown(ours.attributes) == _shown(theirs.attributes)
        return same and super().matches(now, wanted)

    def restore_to(self, journal: Journal, wanted: FileTree, *, now: FileTree | None = None) -> FileTree:
        """Make the files match a tree, with the attributes of its layer; return the previous tree."""
        now = self.scan() if now is None else now
        if not self.matches(now, wanted):
            assert self._ref is not None
            # Undoing this step restores attributes as well, from contents that the scan has put into the store.
            journal.tree(self._ref.hex())
            steps = UnloggedJournal(self.directory, self.journals, self.restore_manifest, whole=journal)
            self._restore(steps, now, self.layer_of(now), wanted, self.layer_of(wanted))
            journal.notes += steps.notes
        return now

    def _restore_manifest(self, wanted: FileTree) -> tuple[Note, ...]:
        self.check_in_place()
        return super()._restore_manifest(wanted)

    def _restore_whole(self, journal: Journal, wanted: FileTree) -> None:
        layer = self.cleaned(Layer.unpacked(wanted))
        files = layer.over(self.lower)
        sink = HashOnlySink()
        raw = scan(self._layer_directory.descriptor, sink, self._raw, unwanted=UnwantedContents(files, sink))
        found = self._layer_in(raw)
        self._restore(journal, found.over(self.lower), found, files, layer)

    def _restore(
        self, journal: Journal, now: FileTree, ours: Layer | None, wanted: FileTree, theirs: Layer | None
    ) -> None:
        steps = Plan.of(now, wanted)
        restore_tree(self.directory, journal, now, wanted)
        if theirs is not None:
            image = None if not self.container.has_layer else self.container._image_files
            AttributeRestore(self.directory, image, self._at, ours, theirs, wanted).run(steps)


def _shown(attributes: Attributes) -> tuple[object, ...]:
    """Return the attributes of a layer that a program in the container sees."""
    return attributes.owners, attributes.xattrs, attributes.links

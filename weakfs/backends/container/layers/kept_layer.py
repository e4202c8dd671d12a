"""A layer that was set aside because its container does not start with it: a command may have removed /bin/sh.

The container is started over its image alone, and then gets the files of its layer. Until the container has all of
them, the layer is kept next to its directory, and the next start of the container puts it back first.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable

from weakfs.backends.container.layers.attributes import AttributeRestore
from weakfs.backends.container.layers.image_files import ImageFiles
from weakfs.backends.container.layers.layer import AttributeReader, Layer, without
from weakfs.backends.container.layers.unlogged_journal import UnloggedJournal
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.held_directory import HeldDirectory
from weakfs.snapshots.directory.nodes import ReadableDirectory
from weakfs.snapshots.restore import Plan, restore_tree
from weakfs.snapshots.scan.scan import scan
from weakfs.snapshots.scan.scan_limits import NoContents
from weakfs.snapshots.scan.sinks import HashOnlySink
from weakfs.snapshots.undo_journal.journal_directory import Journals

# The suffix of the directory of a layer that was set aside.
KEPT = ".kept"

# The suffix of that directory once the container has all of its files.
DONE = ".done"


def is_kept(upper: str) -> bool:
    """Return whether the layer of a directory was set aside."""
    return os.path.isdir(upper + KEPT)


def set_aside(upper: str) -> None:
    """Set a layer aside and leave an empty one in its place; the container must not be running."""
    status = os.stat(upper)
    os.rename(upper, upper + KEPT)
    os.mkdir(upper, 0o700)
    os.chown(upper, status.st_uid, status.st_gid)
    os.chmod(upper, stat.S_IMODE(status.st_mode))


def put_back(upper: str) -> None:
    """Put back a layer that was set aside; the container must not be running."""
    if os.path.isdir(upper):
        shutil.rmtree(upper)
    os.rename(upper + KEPT, upper)


def give_back(upper: str, files: HostDirectory, image: ImageFiles, hidden: Iterable[str]) -> None:
    """Give a running container the files of the layer that was set aside, without the mounts `hidden`."""
    hidden = tuple(hidden)
    lower = without(image.tree, hidden)
    now, layer = (_layer_of(place).without(hidden) for place in (upper, upper + KEPT))
    there, wanted = now.over(lower), layer.over(lower)
    steps = Plan.of(there, wanted)
    # If this fails, it is repeated from the start.
    restore_tree(files, UnloggedJournal(files, Journals(""), _no_manifest), there, wanted)
    AttributeRestore(files, image, (), now, layer, wanted).run(steps)
    # Renamed first: a layer that is partly removed must not be put back.
    shutil.rmtree(upper + DONE, ignore_errors=True)
    os.rename(upper + KEPT, upper + DONE)
    shutil.rmtree(upper + DONE)


def _no_manifest(ref: str) -> tuple[()]:
    raise AssertionError(f"nothing refers to the manifest {ref}")


def _layer_of(path: str) -> Layer:
    """Return the layer in a directory; its contents stay there until they are read."""
    held = HeldDirectory(path)
    sink = HashOnlySink()
    attributes = AttributeReader(held).read(scan(held.descriptor, sink, unwanted=NoContents(sink)).root)
    return Layer(ReadableDirectory(path).whole_directory(()), attributes, "")

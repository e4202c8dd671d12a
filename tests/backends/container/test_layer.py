"""Layers of a container over an image, without a container."""

from __future__ import annotations

from weakfs import InMemoryFilesystem
from weakfs.backends.container.layers.layer import Attributes, Layer
from weakfs.reducers import FileTree
from weakfs.reducers.tree.node import walk


def files(*paths: str) -> FileTree:
    made = InMemoryFilesystem()
    for path in paths:
        made.write(path, path)
    return made.tree()


def shown(layer: Layer, image: FileTree) -> list[str]:
    return sorted(path for path, node in walk(layer.over(image)) if type(node) is tuple)


IMAGE = files("/etc/motd", "/usr/lib/pkg/a", "/usr/lib/pkg/b")


def test_a_layer_adds_to_the_image() -> None:
    layer = Layer(files("/usr/lib/pkg/c"), Attributes(), "")
    assert shown(layer, IMAGE) == ["/etc/motd", "/usr/lib/pkg/a", "/usr/lib/pkg/b", "/usr/lib/pkg/c"]


def test_a_whiteout_hides_an_entry_of_the_image() -> None:
    layer = Layer(files("/usr/lib/pkg/c"), Attributes(whiteouts=frozenset({"/etc", "/usr/lib/pkg/a"})), "")
    assert shown(layer, IMAGE) == ["/usr/lib/pkg/b", "/usr/lib/pkg/c"]


def test_an_opaque_directory_hides_everything_below_it_at_any_depth() -> None:
    layer = Layer(files("/usr/lib/pkg/c"), Attributes(opaque=frozenset({"/usr"})), "")
    assert shown(layer, IMAGE) == ["/etc/motd", "/usr/lib/pkg/c"]


def test_an_opaque_root_hides_the_whole_image() -> None:
    assert shown(Layer(files("/new"), Attributes(opaque=frozenset({"/"})), ""), IMAGE) == ["/new"]


def test_a_layer_survives_packing_unchanged() -> None:
    attributes = Attributes(
        {"/a": (1, 2)}, {"/a": {"user.x": b"\0"}}, frozenset({"/w"}), frozenset({"/o"}), (("/a", "/b"),)
    )
    layer = Layer(files("/a", "/b", "/o/x"), attributes, "sha256:1")
    again = Layer.unpacked(layer.packed(layer.encoded))
    assert (again.attributes, again.base) == (attributes, "sha256:1")
    assert again.files.fingerprint == layer.files.fingerprint

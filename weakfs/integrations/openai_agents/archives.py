"""What is checked and changed of the files of an archive before they are put into a workspace."""

from __future__ import annotations

from posixpath import dirname, join

from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import FileTree, find, put, walk

SET_ID = 0o6000


def check_archive(tree: FileTree, root: str, max_entries: int | None) -> None:
    """Raise `ValueError` if a link leads out of `root`, where the tree is put, or if there are too many entries."""
    count = 0
    for path, node in walk(tree):
        count += 1
        if max_entries is not None and count > max_entries:
            raise ValueError(f"the archive has more than {max_entries} entries; raise ShellOptions.max_new_entries")
        if type(node) is FileTree:
            continue
        content = node[0]
        if isinstance(content, str):
            if _leads_out(path, content, root):
                raise ValueError(f"the link {path[1:]!r} leads out of the workspace, to {content!r}; leave it out")
        elif leaves.is_special(node):
            raise ValueError(f"{path[1:]!r} is neither a file nor a directory nor a link; leave it out")


def overlaid(tree: FileTree, above: FileTree) -> FileTree:
    """Return a tree with the entries of another one in place of its own; directories unite."""
    for path, node in walk(above):
        segments = segments_of(path)
        if type(node) is FileTree and type(find(tree, segments)) is FileTree:
            continue
        tree = put(tree, segments, node, node.modified_at if type(node) is FileTree else tree.modified_at)
    return tree


def without_set_id(tree: FileTree) -> FileTree:
    """Return a tree whose files have no set-uid and set-gid bits, as after a command."""
    for path, node in list(walk(tree)):
        if type(node) is not FileTree and node[1] & SET_ID:
            tree = put(tree, segments_of(path), leaves.with_mode(node, node[1] & ~SET_ID), tree.modified_at)
    return tree


def _leads_out(path: str, target: str, root: str) -> bool:
    """Return whether the target of a link is above the root on the way to it, whatever links are on that way."""
    base = root.rstrip("/") + "/"
    if target.startswith("/"):
        if not f"{target}/".startswith(base):
            return True
        way = target[len(base) :]
    else:
        way = join(dirname(path)[1:], target)
    depth = 0
    for part in way.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False

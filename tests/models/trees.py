"""Trees as plain dictionaries, and generators of random ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import cast

from weakfs.reducers import FileTree
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import Node, entries, tree_of

# What is at a path: ("d", mode), ("f", content, mode) or ("l", target).
Entry = tuple[str, int] | tuple[str, bytes, int] | tuple[str, str]
# Every path below the root with its entry, and "/" with the root's own mode.
Plain = dict[str, Entry]

# Names that are difficult to sort, quote, glob, decode or parse as options; all are valid.
ODD_NAMES: tuple[str, ...] = (
    "a",
    "A",
    "a-b",
    "a.b",
    "a0",
    "a b",
    " a",
    "a ",
    "a\nb",
    "\n",
    "\t",
    "\r",
    '"q"',
    "'",
    "-",
    "--",
    "-rf",
    "--help",
    "*",
    "?",
    "[x]",
    "{a,b}",
    "#c",
    "!n",
    "~",
    "$HOME",
    "%s",
    "...",
    "..a",
    ".a",
    ":(top)",
    "\u00e9",
    "e\u0301",
    "\u00df",
    "\u3042",
    "\U0001f600",
    "\u200b",
    "\ufeff",
    "\x7f",
    "\x01",
    names.from_bytes(b"\xff"),
    names.from_bytes(b"a\\b"),
    names.from_bytes(b"\xc3"),
    names.from_bytes("\uf741".encode()),
    names.from_bytes(b"caf\xe9.txt"),
    "n" * 255,
    "\u00e9" * 127,
)

PLAIN_NAMES: tuple[str, ...] = ("a", "b", "c", "d.py", "e.txt")

CONTENTS: tuple[bytes, ...] = (
    b"",
    b"\n",
    b"a",
    b"a\n",
    b"a\nb\n",
    b"a\r\nb\r\n",
    b"a\rb",
    b"$Id$\n",
    b"\0\1\2",
    b"\xff\xfe",
    "\u00e9\u2028\n".encode(),
    b"x" * 70_000,
)

# Files that their owner may read, so that tests do not have to run as root.
FILE_MODES = (0o644, 0o644, 0o755, 0o600, 0o400, 0o777, 0o500, 0o4755, 0o444)
DIRECTORY_MODES = (0o755, 0o755, 0o700, 0o1777, 0o2750)


def random_tree(
    random: Random,
    *,
    names: Sequence[str] = PLAIN_NAMES,
    contents: Sequence[bytes] = CONTENTS,
    depth: int = 3,
    width: int = 5,
    full_modes: bool = True,
) -> FileTree:
    """Make a tree with at most `width` entries per directory, `depth` directories deep."""
    nodes: dict[str, Node] = {}
    for name in random.sample(names, random.randint(0, min(width, len(names)))):
        kind = random.random()
        at = random.randrange(10**18)
        if kind < 0.3 and depth:
            nodes[name] = random_tree(
                random, names=names, contents=contents, depth=depth - 1, width=width, full_modes=full_modes
            )
        elif kind < 0.4:
            nodes[name] = leaf.link(random.choice((*names, "../a", "/etc/passwd", "gone/x")), at=at)
        else:
            mode = random.choice(FILE_MODES if full_modes else (0o644, 0o755))
            nodes[name] = leaf.file(random.choice(contents), mode=mode, at=at)
    mode = random.choice(DIRECTORY_MODES) if full_modes else 0o755
    return tree_of(nodes, mode=mode, modified_at=random.randrange(10**18))


def flatten(tree: FileTree) -> Plain:
    """Return everything in a tree as a plain dictionary, by a walk of its own."""
    flat: Plain = {"/": ("d", tree.mode)}
    todo: list[tuple[str, FileTree]] = [("", tree)]
    while todo:
        prefix, here = todo.pop()
        for name, node in entries(here):
            path = f"{prefix}/{name}"
            if isinstance(node, FileTree):
                flat[path] = ("d", node.mode)
                todo.append((path, node))
            else:
                flat[path] = plain_leaf(node)
    return flat


def plain_leaf(node: Leaf) -> Entry:
    """Return a file or a link as a plain entry."""
    if leaf.is_link(node):
        return ("l", cast(str, node[leaf.CONTENT]))
    return ("f", leaf.content_of(node), node[leaf.MODE])


def grow(flat: Mapping[str, Entry]) -> FileTree:
    """Return the tree that `flatten` converts to `flat`, with nothing shared and no known digests; times are 0."""
    inside: dict[str, dict[str, Node]] = {path: {} for path, entry in flat.items() if entry[0] == "d"}
    for path in sorted(flat, key=lambda path: (-path.count("/"), path)):
        entry = flat[path]
        if path == "/":
            continue
        directory, _, name = path.rpartition("/")
        node: Node
        if len(entry) == 3:
            node = leaf.file(entry[1], mode=entry[2], at=0)
        elif isinstance(entry[1], str):
            node = leaf.link(entry[1], at=0)
        else:
            node = tree_of(inside[path], mode=entry[1])
        inside[directory or "/"][name] = node
    return tree_of(inside["/"], mode=cast(int, flat["/"][1]))


def recount(tree: FileTree) -> tuple[int, int, int]:
    """Count files (including links), directories, and bytes below a directory, one by one."""
    flat = flatten(tree)
    del flat["/"]
    kinds = [entry[0] for entry in flat.values()]
    size = sum(len(entry[1]) for entry in flat.values() if len(entry) == 3)
    return len(kinds) - kinds.count("d"), kinds.count("d"), size


def totals(tree: FileTree) -> tuple[int, int, int]:
    """Return the totals that a directory carries, in the order of `recount`."""
    return tree.file_count, tree.directory_count, tree.total_size


def write_out(tree: FileTree, root: Path) -> None:
    """Write a tree to a host directory: names by their bytes, permission bits and times as they are."""
    base = os.fsencode(root)
    flat = flatten(tree)
    for path, entry in flat.items():
        raw = _host_path(base, path)
        if len(entry) == 3:
            with open(raw, "wb") as stream:
                stream.write(entry[1])
            os.chmod(raw, entry[2])
        elif isinstance(entry[1], str):
            os.symlink(names.to_bytes(entry[1]), raw)
        elif path != "/":
            os.mkdir(raw)
    for path in sorted(flat, key=lambda path: -path.count("/")):
        entry = flat[path]
        if len(entry) == 2 and isinstance(entry[1], int):
            os.chmod(_host_path(base, path), entry[1])


def lay(root: Path, flat: Plain) -> Path:
    """Write files into a host directory, which is created if necessary; return it."""
    root.mkdir(exist_ok=True)
    write_out(grow({"/": ("d", 0o755), **flat}), root)
    return root


def _host_path(base: bytes, path: str) -> bytes:
    return base + names.to_bytes(path) if path != "/" else base

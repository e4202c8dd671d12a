"""The lower bound for saving and loading: plain Python structures and orjson, without any generality.

It holds the same data as our session (every file with its mode and times, every record with its content), stores equal
contents once, and writes the file as carefully as ours: a temporary file, fsync, rename, fsync of the folder. It has no
types, no registry, no checks and no error messages: the ratio is the price of those.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

from benchmarks.workload import Tree

File = tuple[bytes, int, int, int]
"""Content, mode, created, modified."""

Record = tuple[int, int, str, str, bytes]
"""Sequence number, time, kind of event, path, content."""


Call = tuple[str | int | None, ...]
"""The fields of a tool call."""


class Handwritten:
    """A tree of nested dicts, a list of records, and a list of tool calls."""

    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self.records: list[Record] = []
        self.calls: list[Call] = []

    @classmethod
    def holding(cls, tree: Tree) -> Handwritten:
        made = cls()
        for number, (path, text) in enumerate(tree.files(), 1):
            content = text.encode()
            *parents, name = path[1:].split("/")
            directory = made.root
            for parent in parents:
                directory = directory.setdefault(parent, {})
            directory[name] = (content, 0o644, number, number)
            made.records.append((number, number, "written", path, content))
        return made

    def save(self, path: Path) -> None:
        contents: dict[bytes, int] = {}
        document = {
            "tree": plain(self.root, contents),
            "records": [
                [seq, at, kind, where, contents.setdefault(content, len(contents))]
                for seq, at, kind, where, content in self.records
            ],
            "calls": self.calls,
            "contents": [content.decode() for content in contents],
        }
        write_durably(path, orjson.dumps(document))

    @classmethod
    def load(cls, path: Path) -> Handwritten:
        document = orjson.loads(path.read_bytes())
        contents = [text.encode() for text in document["contents"]]
        loaded = cls()
        loaded.root = rich(document["tree"], contents)
        loaded.records = [
            (seq, at, kind, where, contents[content]) for seq, at, kind, where, content in document["records"]
        ]
        loaded.calls = [tuple(call) for call in document["calls"]]
        return loaded


def plain(directory: dict[str, Any], contents: dict[bytes, int]) -> dict[str, Any]:
    """Return a directory in JSON form: contents by their number in the table."""
    return {
        name: plain(child, contents)
        if isinstance(child, dict)
        else [contents.setdefault(child[0], len(contents)), *child[1:]]
        for name, child in directory.items()
    }


def rich(directory: dict[str, Any], contents: list[bytes]) -> dict[str, Any]:
    """Return the directory that `plain` was called with, from its result."""
    return {
        name: rich(child, contents) if isinstance(child, dict) else (contents[child[0]], *child[1:])
        for name, child in directory.items()
    }


def write_durably(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

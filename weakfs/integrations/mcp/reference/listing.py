"""Handlers of the reference server's tools that list directories and search them by name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from attrs import frozen

from weakfs.filesystem import FileEntry
from weakfs.integrations.mcp.reference import texts
from weakfs.integrations.mcp.reference.directories import Directories, HostPath, host_name
from weakfs.integrations.mcp.reference.handlers import PathParams, Result, SizesParams, text_result
from weakfs.reducers.tree.name_escaping import to_bytes
from weakfs.search import compile_glob
from weakfs.session.interruption import check_interrupted
from weakfs.tools import ToolContext


@frozen
class TreeParams:
    """The parameters of `directory_tree`."""

    path: str
    exclude_patterns: tuple[str, ...] = ()


@frozen
class SearchParams:
    """The parameters of `search_files`."""

    path: str
    pattern: str
    exclude_patterns: tuple[str, ...] = ()


def entries_of(place: HostPath, context: ToolContext) -> list[FileEntry]:
    """Return the entries of a directory in byte order, as `readdir` of Node.js does."""
    check_interrupted()
    context.check_deadline()
    return sorted(place.bound(context).list(place.path), key=lambda entry: to_bytes(entry.name))


def list_handler(directories: Directories, params: PathParams, *, context: ToolContext) -> Result:
    """List a directory."""
    found = entries_of(directories.find(params.path), context)
    lines = (f"{_label(entry)} {host_name(entry.name)}" for entry in found)
    return text_result("\n".join(lines), f"{len(found)} entries in {params.path}")


def sizes_handler(directories: Directories, params: SizesParams, *, context: ToolContext) -> Result:
    """List a directory with the sizes of its files."""
    place = directories.find(params.path)
    found = entries_of(place, context)
    rows = [(entry, host_name(entry.name), _size(directories, place, entry, context)) for entry in found]
    if params.sort_by == "size":
        rows.sort(key=lambda row: -row[2])
    else:
        rows.sort(key=lambda row: texts.collation_key(row[1]))
    lines = [
        f"{_label(entry)} {name:<30} {'' if entry.is_directory else texts.size_text(size).rjust(10)}"
        for entry, name, size in rows
    ]
    sizes = [size for entry, _, size in rows if not entry.is_directory]
    total = f"Total: {len(sizes)} files, {len(rows) - len(sizes)} directories"
    return text_result("\n".join((*lines, "", total, f"Combined size: {texts.size_text(sum(sizes))}")), total)


def tree_handler(directories: Directories, params: TreeParams, *, context: ToolContext) -> Result:
    """Show everything below a directory as JSON."""
    names = [pattern for pattern in params.exclude_patterns if "*" not in pattern]
    excluded = Patterns([*params.exclude_patterns, *(f"**/{one}" for one in names), *(f"**/{one}/**" for one in names)])

    def below(place: HostPath, prefix: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        for entry in entries_of(place, context):
            name = host_name(entry.name)
            if excluded.match(prefix + name):
                continue
            node: dict[str, object] = {"name": name, "type": "directory" if entry.is_directory else "file"}
            if entry.is_directory:
                node["children"] = below(_child(place, entry), f"{prefix}{name}/")
            found.append(node)
        return found

    text = json.dumps(below(directories.find(params.path), ""), indent=2, ensure_ascii=False)
    return text_result(text, f"the tree of {params.path}")


def search_handler(directories: Directories, params: SearchParams, *, context: ToolContext) -> Result:
    """Find entries by their path below a directory."""
    wanted, excluded = Patterns([params.pattern]), Patterns(params.exclude_patterns)

    def below(place: HostPath, prefix: str) -> Iterator[str]:
        for entry in entries_of(place, context):
            name = host_name(entry.name)
            if entry.is_symlink and directories.entry_in(place, name) is None:
                continue
            if excluded.match(prefix + name):
                continue
            if wanted.match(prefix + name):
                yield os.path.join(place.real, name)
            if entry.is_directory:
                yield from below(_child(place, entry), f"{prefix}{name}/")

    found = [*below(directories.find(params.path), "")]
    return text_result("\n".join(found) or "No matches found", f"{len(found)} matches in {params.path}")


class Patterns:
    """Patterns of paths below a directory, in the syntax of `minimatch` with `dot`, as far as our globs support it."""

    def __init__(self, patterns: list[str] | tuple[str, ...]) -> None:
        self._globs = [compile_glob(f"/{pattern}", hidden=True) for pattern in patterns if pattern]

    def match(self, path: str) -> bool:
        """Return whether one of the patterns matches a path."""
        return any(glob.matches_path(f"/{path}") for glob in self._globs)


def _label(entry: FileEntry) -> str:
    return "[DIR]" if entry.is_directory else "[FILE]"


def _child(place: HostPath, entry: FileEntry) -> HostPath:
    return HostPath(place.files, entry.path, os.path.join(place.real, os.fsdecode(to_bytes(entry.name))))


def _size(directories: Directories, place: HostPath, entry: FileEntry, context: ToolContext) -> int:
    """Return the size of an entry; a link has the size of its target, or none if it leads outside."""
    if entry.is_directory:
        return os.lstat(os.path.join(os.fsencode(place.real), to_bytes(entry.name))).st_size
    target = directories.entry_in(place, host_name(entry.name)) if entry.is_symlink else None
    if target is not None:
        return target.bound(context).stat(target.path).size_bytes
    return place.bound(context).stat(entry.path).size_bytes

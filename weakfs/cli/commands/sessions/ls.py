"""`weakfs ls` and `weakfs cat`: the files of a saved session or of a directory, at any moment."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, as_failure
from weakfs.cli.formatting import mode_text, moment, shown
from weakfs.cli.options import (
    at_option,
    expansion_option,
    file_argument,
    filesystem_option,
    json_option,
    registry_option,
    store_option,
)
from weakfs.cli.output import Output, Piece

if TYPE_CHECKING:
    from weakfs.filesystem import FileStat, Filesystem

COLORS = {"directory": "bold blue", "link": "cyan", "executable": "bold green"}


@click.command("ls")
@file_argument
@click.argument("path", default="/")
@at_option
@click.option("-R", "--recursive", is_flag=True, help="List everything below PATH.")
@filesystem_option
@store_option
@registry_option
@expansion_option
@json_option
def ls_command(
    file: str,
    path: str,
    at: str | None,
    recursive: bool,
    filesystem: str | None,
    store: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """List the files of a session, or of a directory.

    PATH is a directory or a file in FILE, by default the root. Each line shows the permission bits, the size in bytes,
    the modification time in UTC and the name.
    """
    files = _opened(file, at, filesystem, store, registry, max_expansion)
    show_listing(Output(), files, path, recursive=recursive, as_json=as_json)
    return DONE


@click.command("cat")
@file_argument
@click.argument("path")
@at_option
@filesystem_option
@store_option
@registry_option
@expansion_option
@json_option
def cat_command(
    file: str,
    path: str,
    at: str | None,
    filesystem: str | None,
    store: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Print a file of a session or of a directory.

    The bytes are printed unchanged. For a directory, --at names a snapshot, so that you can recover one file without a
    restore.
    """
    files = _opened(file, at, filesystem, store, registry, max_expansion)
    show_content(Output(), files, path, as_json=as_json)
    return DONE


def _opened(
    file: str,
    at: str | None,
    filesystem: str | None,
    store: str | None,
    registry: str | None,
    max_expansion: float | None,
) -> Filesystem:
    """Return the files of a session or of a directory at a moment."""
    from weakfs.cli.directories import files_at, is_directory
    from weakfs.cli.sessions import chosen, files_of, load, moment_of

    if is_directory(file, store=store, filesystem=filesystem, registry=registry):
        return files_at(file, at, store)
    session = load(file, registry, max_expansion)
    return files_of(session, moment_of(session, at), chosen(session, filesystem))


def show_listing(out: Output, files: Filesystem, path: str, *, recursive: bool, as_json: bool) -> None:
    """Print the entries of a directory, everything below it if `recursive`, or the one file that `path` names."""
    with as_failure(f"list {path!r}"):
        here = files.stat(path)
        stats = list(_below(files, here, recursive=recursive))
    if as_json:
        for stat in stats:
            out.record(**_as_fields(stat))
        return
    width = max((len(f"{stat.size_bytes:,}") for stat in stats), default=1)
    for stat in stats:
        name = stat.path[len(_prefix(here)) :] if here.is_directory else stat.path
        out.line(
            f"{mode_text(stat.mode, _letter(stat))}  {stat.size_bytes:>{width},}  {moment(stat.modified_ns)}  ",
            *_named(stat, name),
        )


def show_content(out: Output, files: Filesystem, path: str, *, as_json: bool) -> None:
    """Print a file: raw bytes in a pipe, escaped control characters on a terminal, text or base64 as JSON."""
    with as_failure(f"show {path!r}"):
        found = files.read_bytes(path)
    if not as_json:
        out.data(found.content)
        return
    try:
        out.record(path=found.path, size=found.size_bytes, text=found.content.decode())
    except UnicodeDecodeError:
        out.record(path=found.path, size=found.size_bytes, base64=b64encode(found.content).decode())


def _below(files: Filesystem, here: FileStat, *, recursive: bool) -> Iterable[FileStat]:
    if not here.is_directory:
        return [here]
    entries = files.walk(here.path) if recursive else files.list(here.path)
    return (files.stat(entry.path) for entry in entries)


def _prefix(here: FileStat) -> str:
    return "/" if here.path == "/" else here.path + "/"


def _letter(stat: FileStat) -> str:
    return "d" if stat.is_directory else "l" if stat.is_symlink else "-"


def _named(stat: FileStat, name: str) -> tuple[Piece, ...]:
    if stat.is_directory:
        return ((shown(name), COLORS["directory"]), "/")
    if stat.target is not None:
        return ((shown(name), COLORS["link"]), " -> ", shown(stat.target))
    return ((shown(name), COLORS["executable"] if stat.mode & 0o111 else ""),)


def _as_fields(stat: FileStat) -> dict[str, object]:
    fields: dict[str, object] = {
        "path": stat.path,
        "kind": "directory" if stat.is_directory else "link" if stat.is_symlink else "file",
        "size": stat.size_bytes,
        "mode": f"{stat.mode:04o}",
        "modified_at": moment(stat.modified_ns, fraction=True),
        "created_at": moment(stat.created_ns, fraction=True),
    }
    if stat.target is not None:
        fields["target"] = stat.target
    return fields

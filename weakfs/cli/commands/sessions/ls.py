"""`weakfs ls` and `weakfs cat`: the files of a saved session or of a directory, at any moment."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable

from weakfs.cli.errors import as_failure
from weakfs.cli.formatting import mode_text, moment, shown
from weakfs.cli.output import Output, Piece
from weakfs.filesystem import FileStat, Filesystem

COLORS = {"directory": "bold blue", "link": "cyan", "executable": "bold green"}


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

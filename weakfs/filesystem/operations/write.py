"""Write operations, derived from the primitives: every change is fully checked before it becomes an event."""

from __future__ import annotations

from collections.abc import Iterable
from errno import EACCES, EEXIST, EISDIR, ENOTDIR, ENOTEMPTY
from typing import get_args

from weakfs.errors import fault
from weakfs.filesystem import paths
from weakfs.filesystem.errors import no_directory, not_found
from weakfs.filesystem.operations.read import PathArg, Reading
from weakfs.filesystem.results import Note, WriteMode, WriteResult
from weakfs.messages import a_type, plural
from weakfs.reducers.events import (
    DirectoryMade,
    EntryCopied,
    EntryDeleted,
    EntryMoved,
    Event,
    FileAppended,
    FileSpliced,
    FileWritten,
    LinkMade,
    ModeChanged,
)
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import CONTENT, FIFO, Leaf, size_of
from weakfs.reducers.tree.node import FileTree, Segments, path_of

WRITE_MODES = get_args(WriteMode)


class Writing(Reading):
    """The methods of a filesystem that change it."""

    __slots__ = ()

    def write(
        self, path: PathArg, content: str, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        """Write text as UTF-8.

        `mode` is "overwrite", "create" (`FileExistsError` if there is an entry) or "append". Missing parents are
        created, unless `create_parents` is false (`FileNotFoundError`). Raises `ValueError` for text with a lone
        surrogate.
        """
        if not isinstance(content, str):
            remedy = "convert it first"
            if isinstance(content, bytes | bytearray | memoryview):
                remedy = "use write_bytes(path, content, mode='append')" if mode == "append" else "use write_bytes"
            raise TypeError(f"cannot write {path!r}: expected text, not {a_type(content)}; {remedy}")
        try:
            data = content.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"cannot write {path!r}: the text has a lone surrogate at {error.start}, which UTF-8 cannot encode; "
                f"remove it, or use write_bytes"
            ) from None
        return self._store(path, data, mode, create_parents)

    def write_bytes(
        self, path: PathArg, content: bytes, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        """Write bytes; see `write`."""
        if not isinstance(content, bytes | bytearray | memoryview):
            remedy = "use write" if isinstance(content, str) else "convert it first"
            raise TypeError(f"cannot write {path!r}: expected bytes, not {a_type(content)}; {remedy}")
        return self._store(path, bytes(content), mode, create_parents)

    def append(self, path: PathArg, content: str) -> WriteResult:
        """Append text to a file, which is created if it is missing."""
        return self.write(path, content, mode="append")

    def write_lines(self, path: PathArg, lines: Iterable[str]) -> WriteResult:
        """Write lines, as `read_lines` returns them; a `\\n` is added to lines without one, except the last."""
        if isinstance(lines, str):
            raise TypeError(f"cannot write {path!r}: expected lines, not a str; use write, or pass a list of lines")
        given = list(lines)
        for line in given:
            if not isinstance(line, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"cannot write {path!r}: a line is text, not {a_type(line)}; convert it first")
        ended = [line if line.endswith("\n") else line + "\n" for line in given[:-1]]
        return self.write(path, "".join((*ended, *given[-1:])))

    def _store(self, path: PathArg, data: bytes, mode: WriteMode, create_parents: bool) -> WriteResult:
        if mode not in WRITE_MODES:
            raise ValueError(f"cannot write {path!r} with mode {mode!r}; use 'overwrite', 'create' or 'append'")
        with self.lock():
            canonical, node, nodes = self._writable_place(path, mode, create_parents)
            old_size = 0 if node is None else size_of(node)
            new_size = len(data) + old_size if mode == "append" else len(data)
            self.limits.check_size(canonical, new_size)
            self._check_quota(canonical, new_size - old_size, nodes)
            at = self.now()
            if mode == "append" and node is not None:
                notes = self.apply(FileAppended(canonical, data, at))
            else:
                notes = self.apply(FileWritten(canonical, data, at))
        self.notify_subscribers()
        return WriteResult(canonical, len(data), mode, notes or ())

    def splice(self, path: PathArg, pieces: Iterable[tuple[int, int, bytes]]) -> WriteResult:
        """Replace pieces of a file: `(start, stop, content)` in order, with offsets in bytes of its current content.

        This is meant for editors: the record of the change is as small as the change. Raises `ValueError` for pieces
        that overlap, are out of order or are outside the file.
        """
        self._refuse_if_read_only("edit", path)
        chosen = _checked_pieces(path, pieces)
        with self.lock():
            canonical, leaf = self._file(path, "edit")
            size = end = size_of(leaf)
            last = written = 0
            for start, stop, content in chosen:
                if not last <= start <= stop <= end:
                    raise ValueError(
                        f"cannot edit {canonical!r}: the piece {start} to {stop} is out of order or outside its "
                        f"{end} bytes; pass pieces in order, without overlap"
                    )
                last = stop
                written += len(content)
                size += len(content) - (stop - start)
            self.limits.check_size(canonical, size)
            self._check_quota(canonical, size - end, 0)
            notes = self.apply(FileSpliced(canonical, chosen, self.now())) if chosen else ()
        self.notify_subscribers()
        return WriteResult(canonical, written, "overwrite", notes or ())

    def _change(self, event: Event) -> None:
        """Make a change that has no result of its own: what files lost in the process is logged."""
        self._warn_of(self.apply(event) or ())

    def _warn_of(self, notes: Iterable[Note]) -> None:
        for note in notes:
            # Not imported above: few changes have notes.
            import logging

            logging.getLogger("weakfs.filesystem").warning("%s: %s", self.root, note)

    def mkdir(self, path: PathArg, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Create a directory, and missing parents unless `parents` is false.

        Raises `FileExistsError` if there is something else or, unless `exist_ok`, already a directory.
        """
        self._refuse_if_read_only("make", path)
        with self.lock():
            canonical, segments, node = self._locate(path)
            if type(node) is FileTree and exist_ok:
                return
            if node is not None:
                raise _exists(canonical, "make the directory")
            nodes = self._check_new(canonical, segments, "make", parents)
            self._check_quota(canonical, 0, nodes)
            self._change(DirectoryMade(canonical, self.now()))
        self.notify_subscribers()

    def delete(self, path: PathArg, *, recursive: bool = False) -> int:
        """Delete an entry and return how many were deleted: a directory counts with everything in it.

        Raises `OSError` (ENOTEMPTY) for a directory that has entries, unless `recursive`. For a link, the link itself
        is deleted, not its target.
        """
        self._refuse_if_read_only("delete", path)
        with self.lock():
            canonical, segments, node = self._existing(path, "delete", follow=False)
            if not segments:
                raise fault(PermissionError, EACCES, "cannot delete '/': it is the root; delete its entries instead")
            count = 1
            if type(node) is FileTree:
                below = self._entries_below(segments)
                if below and not recursive:
                    raise fault(
                        OSError,
                        ENOTEMPTY,
                        f"cannot delete {canonical!r}: the directory is not empty; delete its "
                        f"{plural(below, 'entry')} first, or use recursive=True",
                    )
                count += below
            self._change(EntryDeleted(canonical, self.now()))
        self.notify_subscribers()
        return count

    def _entries_below(self, segments: Segments) -> int:
        _, files, directories = self.totals(segments)
        return files + directories

    def move(self, src: PathArg, dst: PathArg) -> None:
        """Move an entry to another path. A file there is replaced; a directory is not (`IsADirectoryError`)."""
        self._refuse_if_read_only("move", src)
        with self.lock():
            source, destination, size, nodes = self._transfer(src, dst, "move")
            if source is None:
                return
            # The moved entries are already counted: only the replaced file and new parents matter.
            self._check_quota(destination, size, nodes)
            self._change(EntryMoved(source, destination, self.now()))
        self.notify_subscribers()

    def copy(self, src: PathArg, dst: PathArg) -> None:
        """Copy a file, a link, a FIFO or a whole directory.

        A file at `dst` is replaced; a directory is not (`IsADirectoryError`).
        """
        self._refuse_if_read_only("copy", dst)
        with self.lock():
            source, destination, size, nodes = self._transfer(src, dst, "copy")
            if source is None:
                return
            # On a host, the entry may have disappeared or changed kind since it was looked up.
            _, segments, node = self._existing(source, "copy", follow=False)
            if type(node) is FileTree:
                more, files, directories = self.totals(segments)
                size, nodes = size + more, nodes + files + directories + 1
            else:
                if node[CONTENT] is not FIFO:
                    self._refuse_special(source, node, "copy")
                size, nodes = size + size_of(node), nodes + 1
            self._check_quota(destination, size, nodes)
            self._change(EntryCopied(source, destination, self.now()))
        self.notify_subscribers()

    def _transfer(self, src: PathArg, dst: PathArg, verb: str) -> tuple[str | None, str, int, int]:
        """Check a move or copy; return the source (`None`: nothing to do), the destination, and the change in totals.

        The totals exclude the transferred entries: they subtract a replaced file, and add parents to be created.
        """
        source, from_segments, node = self._existing(src, verb, follow=False)
        destination, to_segments, there = self._locate(dst, follow=False)
        is_tree = type(node) is FileTree
        if is_tree and to_segments[: len(from_segments)] == from_segments:
            raise ValueError(
                f"cannot {verb} {source!r} to {destination!r}: a directory cannot go into itself; "
                f"name a path outside it"
            )
        if source == destination:
            return None, destination, 0, 0
        if type(there) is FileTree:
            raise fault(
                IsADirectoryError,
                EISDIR,
                f"cannot {verb} {source!r} to {destination!r}: the destination is a directory; name the path that the "
                f"entry should have, such as {paths.join(destination, from_segments[-1])!r}",
            )
        if there is not None:
            if is_tree:
                raise fault(
                    NotADirectoryError,
                    ENOTDIR,
                    f"cannot {verb} the directory {source!r} to {destination!r}: that is a file; delete it first",
                )
            size, nodes = -size_of(there), -1
        else:
            size, nodes = 0, self._check_new(destination, to_segments, f"{verb} to", True) - 1
        if is_tree and len(to_segments) > len(from_segments):
            deepest = (*to_segments, *("",) * self.height(from_segments))
            self.limits.check_path(destination, deepest)
        return source, destination, size, nodes

    def chmod(self, path: PathArg, mode: int) -> None:
        """Set permission bits, such as 0o755. In memory, they are stored but not enforced.

        A host's file that has another name (a hard link) outside the directory becomes a separate file first, because
        the file under that name must not change; a warning is logged.
        """
        if type(mode) is not int or not 0 <= mode <= 0o7777:
            raise ValueError(
                f"cannot set the mode of {path!r} to {mode!r}; use permission bits from 0 to 0o7777, such as 0o755"
            )
        self._refuse_if_read_only("chmod", path)
        with self.lock():
            canonical, _, _ = self._existing(path, "chmod")
            self._change(ModeChanged(canonical, mode, self.now()))
        self.notify_subscribers()

    def symlink(self, target: str, path: PathArg) -> None:
        """Create a symbolic link at `path`. The target need not exist, and is not made canonical.

        A backslash in it is not a slash: it is stored as U+F75C, as in host names.
        """
        if not isinstance(target, str) or not target or "\0" in target:
            raise ValueError(f"cannot link {path!r} to {target!r}; use a path that is not empty and has no NUL")
        target.encode()
        target = names.from_bytes(names.to_bytes(target))
        self._refuse_if_read_only("link", path)
        with self.lock():
            canonical, segments, node = self._locate(path, follow=False)
            if node is not None:
                raise _exists(canonical, "link")
            nodes = self._check_new(canonical, segments, "link", True)
            self._check_quota(canonical, 0, nodes)
            self._change(LinkMade(canonical, target, self.now()))
        self.notify_subscribers()

    def _writable_place(
        self, path: PathArg, mode: WriteMode, create_parents: bool = True
    ) -> tuple[str, Leaf | None, int]:
        """Find where a file is to be written; return its path, its current leaf, and how many entries are added.

        Raises what writing raises, except errors that depend on the content.
        """
        self._refuse_if_read_only("write", path)
        canonical, segments, node = self._locate(path)
        if type(node) is FileTree:
            raise fault(
                IsADirectoryError,
                EISDIR,
                f"cannot write {canonical!r}: it is a directory; name a file inside it",
            )
        if node is None:
            return canonical, None, self._check_new(canonical, segments, "write", create_parents)
        if mode == "create":
            raise _exists(canonical, "create")
        self._refuse_special(canonical, node, "write")
        return canonical, node, 0

    def _check_new(self, path: str, segments: Segments, verb: str, create_parents: bool) -> int:
        """Raise if nothing can be created at a path; return how many entries creating it adds."""
        self.limits.check_path(path, segments)
        depth, above = self._deepest_above(segments)
        missing = len(segments) - 1 - depth
        if type(above) is not FileTree:
            raise self._missing(path, segments, verb)
        if missing and not create_parents:
            directory = paths.parent(path)
            # Do not reveal where a link outside the root leads.
            gone = directory if segments[0] == ".." else path_of(segments[: depth + 1])
            raise not_found(
                path,
                f"cannot {verb} {path!r}: {no_directory(gone)}",
                f"create {directory!r} first, or let missing parents be created",
            )
        return missing + 1

    def _check_quota(self, path: str, more_size: int, more_nodes: int) -> None:
        if self.limits.may_refuse(more_nodes) and (more_size > 0 or more_nodes > 0):
            size, files, directories = self.totals(())
            self.limits.check_quota(
                path, size=size, more_size=more_size, nodes=files + directories, more_nodes=more_nodes
            )


def _checked_pieces(path: PathArg, pieces: Iterable[tuple[int, int, bytes]]) -> tuple[tuple[int, int, bytes], ...]:
    """Copy the pieces once, before anything is decided, with bytes that the caller cannot change."""
    try:
        chosen = [(start, stop, content) for start, stop, content in pieces]
    except (TypeError, ValueError) as error:
        raise TypeError(f"cannot edit {path!r}: {error}; pass pieces of (start, stop, content)") from None
    made: list[tuple[int, int, bytes]] = []
    for start, stop, content in chosen:
        if type(start) is not int or type(stop) is not int or not isinstance(content, bytes | bytearray | memoryview):
            raise TypeError(
                f"cannot edit {path!r}: {(start, stop, content)!r:.60} is not a piece; use two whole numbers and bytes"
            )
        made.append((start, stop, bytes(content)))
    return tuple(made)


def _exists(path: str, verb: str) -> FileExistsError:
    return fault(
        FileExistsError,
        EEXIST,
        f"cannot {verb} {path!r}: an entry with that name exists; use another path, or delete it first",
    )

"""Session files: one JSON document, written so that a crash leaves the old file or the new one."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from os import PathLike
from typing import IO, Any

import orjson

from weakfs.platforms import garbage_collection_paused
from weakfs.session.blobs.blob import ContentSource, Stored
from weakfs.session.codec.expansion_limit import FACTOR, Expansion, check_factor
from weakfs.session.errors import MissingBlob, SessionError, SessionFileError
from weakfs.session.external_filesystems import HoldsContents, KeepsSnapshots
from weakfs.session.files.atomic_write import write_atomically
from weakfs.session.files.document_reader import LoadedDocument
from weakfs.session.files.document_sections import LARGE, sections_of
from weakfs.session.files.document_writer import Document
from weakfs.session.files.fields import Fields
from weakfs.session.files.file_head import checked, is_intact, is_rewritten, with_head
from weakfs.session.files.sidecar import BlobFolder
from weakfs.session.files.spool import JsonObject
from weakfs.session.history.views import Missing, SaveReport
from weakfs.session.state import Parts, SessionState

# Enough bytes to tell one document from another, since they include the checksum.
HEAD = 128
# How many times to read a file that others keep replacing.
ATTEMPTS = 5
# A pipe may be endless. It is read in pieces of this size, up to this many bytes.
PIECE = 1 << 20
MOST_PIPED = 1 << 30

logger = logging.getLogger("weakfs.session")


def save_session(session: SessionState, path: str | PathLike[str], *, embed: bool = False) -> SaveReport:
    """Write a session to a file; see `Session.save`."""
    parts = session._parts()
    with garbage_collection_paused():
        # The document is gone when this returns, so the collector never visits it.
        return _save(session, parts, path, embed=embed)


def _save(session: SessionState, parts: Parts, path: str | PathLike[str], *, embed: bool) -> SaveReport:
    rules, line, header = parts
    others = [one.contents for one in session.attached if isinstance(one, HoldsContents)]
    target = os.path.realpath(_name_of(path, "save to"))
    made = Document(rules, embed=embed, others=others, folder=os.path.dirname(target))
    with _explained(session, made):
        document = JsonObject({**header, **made.of(line)})
        size, head, pieces = with_head(document)
        lost = _put(target, head, pieces, made.stored, others, embed=embed)
        missing = (
            *(Missing("content", digest.hex()) for digest in (made.lost if embed else lost)),
            *(
                Missing("snapshot", snapshot_id)
                for one in session.attached
                if isinstance(one, KeepsSnapshots)
                for snapshot_id in one.lost_snapshots()
            ),
        )
        return SaveReport(target, size, len(line.rows), len(line.snapshots), len(document.fields["blobs"]), missing)


def session_bytes(session: SessionState) -> bytes:
    """Return a session as the bytes of a self-contained session file; see `Session.to_bytes`."""
    parts = session._parts()
    with garbage_collection_paused():
        return _bytes_of(session, parts)


def _bytes_of(session: SessionState, parts: Parts) -> bytes:
    rules, line, header = parts
    others = [one.contents for one in session.attached if isinstance(one, HoldsContents)]
    made = Document(rules, embed=True, others=others)
    with _explained(session, made):
        document = JsonObject({**header, **made.of(line)})
        _, head, pieces = with_head(document)
        return b"".join((head, *pieces))


@contextmanager
def _explained(session: SessionState, made: Document) -> Iterator[None]:
    """Close a document at the end. Add the session's id to the error for a value that has no form in JSON."""
    try:
        yield
    except orjson.JSONEncodeError as error:
        raise SessionError(
            f"cannot save session {session.session_id!r}: {error}; keep values of the types that the fields declare, "
            f"and nest them less deeply"
        ) from None
    finally:
        made.close()


def _put(
    path: str,
    head: bytes,
    pieces: Iterable[bytes],
    stored: Mapping[bytes, Collection[Stored]],
    others: Sequence[ContentSource],
    *,
    embed: bool,
) -> list[bytes]:
    """Write external blobs to the sidecar directory, then the document to `path`, and remove blobs it does not need.

    Return the digests of blobs that no source has any more.
    """
    folder = BlobFolder(path)
    external = {} if embed else stored
    # Blobs that the session still reads from this directory are kept, even if its file now embeds them.
    read_here = {digest for digest, found in stored.items() if any(folder.is_source_of(content) for content in found)}
    with folder.locked(make=bool(external)) as is_there:
        # If there was no folder to lock, another process may have created one since.
        added, lost = folder.add(external, others) if is_there else ([], [])
        try:
            write_atomically(path, chain((head,), pieces))
        except BaseException:
            if added and not _begins(path, head[:HEAD]):
                folder.remove(added)
            raise
        if is_there:
            folder.keep_only(external.keys() | read_here)
    return lost


def _begins(path: str, head: bytes) -> bool:
    """Return whether a document was saved after all, judging by the checksum at its beginning."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return stream.read(len(head)) == head


def _name_of(path: str | PathLike[str], verb: str) -> str:
    """Return a path as text. Raises `ValueError` if no file can have it."""
    name = os.fsdecode(path)
    if "\0" in name:
        raise ValueError(f"cannot {verb} {name!r}: the name of a file cannot contain NUL; use another name")
    return name


def load_session(session: SessionState, path: str | PathLike[str], *, max_expansion: float | None = FACTOR) -> None:
    """Fill a new session from a file; see `Session.load`."""
    check_factor(max_expansion)
    name = _name_of(path, "load")
    folder = BlobFolder(name)
    with garbage_collection_paused():
        for attempt in range(1, ATTEMPTS + 1):
            data, status = _read_file(name)
            document = _Read(session, data, folder, Expansion(len(data), max_expansion))
            # A save over the file removes the blobs that the new one does not need.
            if attempt == ATTEMPTS or not document.external or not _is_replaced(name, status):
                document.give_to(session)
                return


def _read_file(name: str) -> tuple[bytes, os.stat_result]:
    """Return the contents of a file or a pipe, and its status. Raises `SessionFileError` for one that has no end."""
    try:
        with open(name, "rb") as stream:
            status = os.fstat(stream.fileno())
            if stat.S_ISREG(status.st_mode):
                return _read_regular(stream, status.st_size), status
            if not (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)):
                raise SessionFileError(f"{name!r} is a device and not a session file; check the path")
            return _read_pipe(stream), status
    except FileNotFoundError as error:
        problem = "there is no such file; check the path, or begin a new session with Session()"
        raise FileNotFoundError(error.errno, f"cannot load {name!r}: {problem}") from None
    except IsADirectoryError as error:
        problem = "it is a directory; open a session that is stored in a folder with Session.open"
        raise IsADirectoryError(error.errno, f"cannot load {name!r}: {problem}") from None
    except OSError as error:
        raise OSError(
            error.errno, f"cannot load {name!r}: {error.strerror}; check the path and its permissions"
        ) from error


def _read_regular(stream: IO[bytes], size: int) -> bytes:
    if size > LARGE:
        beginning = stream.read(HEAD)
        if not beginning.lstrip().startswith(b"{"):
            raise SessionFileError("this is not a session file; its format must be a JSON object", where="$")
        stream.seek(0)
    try:
        return stream.read()
    except MemoryError:
        raise SessionFileError(f"the file has {size} bytes, which do not fit into the memory of this process") from None


def _read_pipe(stream: IO[bytes]) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := stream.read(PIECE):
        size += len(piece)
        if (not pieces and not piece.lstrip().startswith(b"{")) or size > MOST_PIPED:
            raise SessionFileError(
                f"the input from the pipe is not a session file, or has more than {MOST_PIPED} bytes; write it to a "
                f"file, and load the file"
            )
        pieces.append(piece)
    return b"".join(pieces)


def _is_replaced(name: str, status: os.stat_result) -> bool:
    """Return whether a regular file was replaced since it was read."""
    try:
        now = os.stat(name)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and not os.path.samestat(now, status)


class _Nowhere:
    """The source of contents that the bytes of a session refer to but do not hold."""

    def read(self, digest: bytes) -> bytes:
        raise MissingBlob(f"the content {digest.hex()} was missing when the session was written", digest=digest)


def load_session_bytes(session: SessionState, data: bytes, *, max_expansion: float | None = FACTOR) -> None:
    """Fill a new session from the bytes of a session file; see `Session.from_bytes`."""
    check_factor(max_expansion)
    with garbage_collection_paused():
        _Read(session, data, None, Expansion(len(data), max_expansion)).give_to(session)


class _Read:
    """The session in a file that was read and checked."""

    def __init__(self, session: SessionState, data: bytes, folder: BlobFolder | None, expansion: Expansion) -> None:
        is_unchanged = is_intact(data)
        pools = [pool.section for pool in session.registry.pools]
        document = sections_of(data, pools) if is_unchanged and len(data) >= LARGE else None
        document = checked(_parsed(data) if document is None else document)
        fields = Fields(document, "$")
        fields.take("format", str)
        fields.take("version", int)
        checksum = fields.take("sha256", str)
        self._header = fields.header()
        try:
            loaded = LoadedDocument(session._rules, fields, folder or _Nowhere(), expansion)
            loaded.close()
            fields.done()
        except (RecursionError, MemoryError, OverflowError) as error:
            raise SessionFileError(f"the file was not written by a session: {error}") from None
        if not (is_unchanged or is_rewritten(document, checksum)):
            raise SessionFileError(
                "the contents do not match the checksum: the file was damaged or changed after it was saved; "
                "restore it from a copy",
                where="$.sha256",
            )
        self._rules, self._line, self._folder = loaded.rules, loaded.line, folder
        # The blobs in the sidecar directory.
        self.external = [
            content for content in loaded.blobs if type(content) is Stored and content.source is folder is not None
        ]

    def give_to(self, session: SessionState) -> None:
        """Make a new session the one in the file, and log which blobs are missing."""
        folder, still_missing = self._folder, None
        if folder is not None and self.external and (missing := folder.missing(self.external)):
            for content in missing:
                logger.warning(
                    "the content %s of %d bytes is missing from the session's sidecar directory: put %r back from a "
                    "copy; whatever needs it cannot be read until then",
                    content.digest.hex(),
                    content.size,
                    folder.place(content.digest),
                )
            still_missing = partial(folder.missing, missing)
        session._set_parts(self._rules, self._line, self._header, still_missing)


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if "memory" not in str(error):
            raise SessionFileError(
                f"this is not JSON: {error}; the file was cut off or is not a session file"
            ) from None
        return _parsed_slowly(data)


def _parsed_slowly(data: bytes) -> Any:
    """Parse JSON for which orjson runs out of memory and whose layout is not the writer's; see `document_sections`."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a JSON value")

    try:
        return json.loads(data.decode(), parse_constant=refuse)
    except ValueError as error:
        raise SessionFileError(f"this is not JSON: {error}; the file was cut off or is not a session file") from None

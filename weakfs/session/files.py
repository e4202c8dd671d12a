"""Session files: one JSON document, written so that a crash leaves the old one or the new one.

The first fields are the format, its version and a SHA-256 of all that follows, so that damage anywhere is found.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from os import PathLike
from typing import TYPE_CHECKING, Any

import orjson

from weakfs.session.atoms import AS_IT_IS
from weakfs.session.errors import SessionError, SessionFileError, UnsupportedVersion
from weakfs.session.reading import Fields, LoadedDocument
from weakfs.session.stored import Held
from weakfs.session.views import SaveReport
from weakfs.session.writing import Document

if TYPE_CHECKING:
    from weakfs.session.session import Session

FORMAT = "weakfs-session"
VERSION = 1

_HEAD = re.compile(rb'\{"format":"weakfs-session","version":1,"sha256":"([0-9a-f]{64})",')


def save_session(session: Session, path: str | PathLike[str], *, embed: bool = False) -> SaveReport:
    """Write a session; see `Session.save`."""
    with session.lock:
        rules, line, own = session.parts()
        line = line.branch()
    with _collector_at_rest():
        document = {**own, **Document(rules).of(line)}
    try:
        body = orjson.dumps(document, option=AS_IT_IS)
    except TypeError as error:
        raise SessionError(
            f"cannot save session {session.session_id!r}: {error}; keep values of the types that the fields name, "
            f"nested less deeply"
        ) from None
    head = b'{"format":"%s","version":%d,"sha256":"%s",' % (
        FORMAT.encode(),
        VERSION,
        sha256(body[1:]).hexdigest().encode(),
    )
    data = head + body[1:]
    target = os.path.realpath(path)
    write_atomically(target, data)
    return SaveReport(target, len(data), len(line.rows), len(line.snapshots), len(document["blobs"]))


def write_atomically(path: str, data: bytes) -> None:
    """Put `data` at `path`: a temporary file beside it, fsync, rename, fsync of the folder.

    Whatever happens, `path` holds what it held or all of `data`. Two writers take turns. The temporary file's
    name is fixed, so that what a killed process leaves is taken over by the next. Raises `OSError` that says of
    which file and why.
    """
    try:
        _write(path, data)
    except OSError as error:
        raise _unsaved(path, error) from error
    try:
        _sync_folder(os.path.dirname(path))
    except OSError as error:
        raise OSError(
            error.errno,
            f"saved to {path!r}, but its folder could not be synced: {error.strerror}; after a power cut the old "
            f"file may be there again, so save once more when the cause is removed",
        ) from error


def _write(path: str, data: bytes) -> None:
    folder, name = os.path.split(path)
    # The name of a file may be as long as the filesystem allows; the temporary one is longer.
    short = name if len(os.fsencode(name)) < 200 else sha256(os.fsencode(name)).hexdigest()
    temporary = os.path.join(folder, f".{short}.tmp")
    descriptor = _locked(temporary)
    try:
        os.ftruncate(descriptor, 0)
        with suppress(FileNotFoundError):
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                kind = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
                raise OSError(kind, "it is not a regular file")
            os.fchmod(descriptor, status.st_mode & 0o777)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    finally:
        os.close(descriptor)


def _unsaved(path: str, error: OSError) -> OSError:
    """Say of an error which file it concerns; `OSError` makes the right class of the errno."""
    return OSError(
        error.errno,
        f"cannot save to {path!r}: {error.strerror}; what was saved before is as it was, remove the cause and save "
        f"again",
    )


def _locked(temporary: str) -> int:
    """Open and lock the temporary file; another writer may rename it away while we wait."""
    while True:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(
                    errno.EINVAL, "cannot save: the place of the temporary file is taken; remove it", temporary
                )
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(descriptor), os.stat(temporary, follow_symlinks=False)):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network filesystems cannot sync a folder; the rename is all that they offer.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def load_session(session: Session, path: str | PathLike[str]) -> None:
    """Fill a new session from a file; see `Session.load`."""
    with open(path, "rb") as stream:
        data = stream.read()
    with _collector_at_rest():
        _take_over(session, data)


@contextmanager
def _collector_at_rest() -> Generator[None]:
    """Hold the garbage collector off while a document is made or read: all of it is in use, and much to look at."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _take_over(session: Session, data: bytes) -> None:
    document = _parsed(data)
    fields = Fields(document, "$")
    fields.take("format", str)
    fields.take("version", int)
    told = fields.take("sha256", str)
    own = {
        "session_id": fields.take("session_id", str),
        "origin_id": fields.take("origin_id", str),
        "counter": fields.take("counter", int),
    }
    try:
        loaded = LoadedDocument(session.parts()[0], fields, Held())
        fields.done()
    except (RecursionError, MemoryError, OverflowError) as error:
        raise SessionFileError(f"the file is not one that a session writes: {error}") from None
    if not _is_whole(data, document, told):
        raise SessionFileError(
            "the contents do not match the checksum: the file was damaged or changed after it was saved; "
            "take it from a copy",
            where="$.sha256",
        )
    session.take_over(loaded.rules, loaded.line, own)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise SessionFileError(f"this is not JSON: {error}; the file was cut off or is none of a session") from None
    if type(document) is not dict or document.get("format") != FORMAT:
        raise SessionFileError(f"this is not a session file; one begins with the format {FORMAT!r}", where="$.format")
    version = document.get("version")
    if version != VERSION:
        raise UnsupportedVersion(
            f"the file has format version {version!r:.60} and this library reads {VERSION}; use the release of weakfs "
            f"that wrote it, or a newer one",
            where="$.version",
        )
    return document


def _is_whole(data: bytes, document: dict[str, Any], told: str) -> bool:
    head = _HEAD.match(data)
    if head is not None and sha256(memoryview(data)[head.end() :]).hexdigest() == told:
        return True
    # The same document in another layout, as from a JSON formatter.
    rest = {key: value for key, value in document.items() if key not in ("format", "version", "sha256")}
    try:
        return sha256(orjson.dumps(rest)[1:]).hexdigest() == told
    except TypeError:
        return False

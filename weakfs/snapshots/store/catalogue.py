"""The catalogue of a store: one small JSON file per snapshot, written after everything it needs is on disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import quote, unquote

import orjson
from attrs import asdict, field, fields

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.reducers.timestamps import as_datetime
from weakfs.session import UnknownSnapshot
from weakfs.session.files.atomic_write import sync_folder
from weakfs.snapshots.errors import StoreDamaged, unwritable
from weakfs.snapshots.store.atomic_files import TEMPORARY, names_in, new_file, read_small

FORMAT = "weakfs-snapshot"
VERSION = 1
SUFFIX = ".json"

SnapshotKind = Literal["tree", "git", "tar"]
KINDS = ("tree", "git", "tar")

# The names of fields in the file, where they differ from those here.
IN_FILE = {"created_ns": "created_at", "scanned_ns": "scanned_at", "recorded_ns": "recorded_at"}


@frozen
class StoredSnapshot:
    """A snapshot's entry in the catalogue.

    `ref` is the manifest of the root, 64 hex digits. `created_ns` is a time of the caller's clock; `scanned_ns` (when
    the scan began) and `recorded_ns` (which orders the catalogue) are times of the machine's clock. All are integer
    nanoseconds. For kinds other than `tree`, the store does not hold the contents of files; `contents` lists what else
    the snapshot needs from the store, such as an archive. `extra` is specific to the kind, for example a commit or a
    digest; its `root` is the directory that the snapshot was taken of, see `root_name`.
    """

    snapshot_id: str
    tag: str | None
    kind: SnapshotKind
    created_ns: int
    ref: str
    scanned_ns: int
    recorded_ns: int
    file_count: int
    directory_count: int
    total_size: int
    contents: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(factory=dict)

    @property
    def created_at(self) -> datetime:
        """When the snapshot was taken, in UTC."""
        return as_datetime(self.created_ns)


def root_name(path: str) -> str:
    """Return a directory's path as stored in an entry: bytes that are not UTF-8 become `\\xff` escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class Catalogue:
    """The snapshots of a store, in the order in which they were recorded."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @contextmanager
    def adding(self, snapshot: StoredSnapshot) -> Generator[Callable[[], None]]:
        """Write the entry of a snapshot; yield a function that publishes it durably.

        Once published, the entry survives a crash. Raises `FileExistsError` if the id is taken.
        """
        path = self.path_of(snapshot.snapshot_id)
        if os.path.lexists(path):
            raise self.taken(snapshot.snapshot_id)
        with new_file(path, encode(snapshot)) as publish:
            yield publish

    def taken(self, snapshot_id: str) -> FileExistsError:
        """Return the error for an id that is already taken."""
        return fault(
            FileExistsError,
            errno.EEXIST,
            f"cannot record snapshot {snapshot_id!r}: {self.path_of(snapshot_id)!r} already exists; choose another id",
        )

    def get(self, snapshot_id: str) -> StoredSnapshot:
        """Return a snapshot; raise `UnknownSnapshot` if there is none with that id, `StoreDamaged` if it is damaged."""
        path = self.path_of(snapshot_id)
        try:
            return read(path)
        except FileNotFoundError:
            raise UnknownSnapshot(
                f"no snapshot {snapshot_id!r} in {self.folder!r}: it was dropped or never taken; list the snapshots of "
                f"the store to see which exist"
            ) from None

    def entries(self) -> tuple[StoredSnapshot, ...]:
        """Return all snapshots, oldest first. Raises `StoreDamaged` for a damaged file, saying how to give it up."""
        found = []
        for path in self._paths():
            with suppress(FileNotFoundError):
                found.append(read(path))
        return _ordered(found)

    def readable(self) -> tuple[tuple[StoredSnapshot, ...], dict[str, str]]:
        """Return the snapshots whose files can be read, oldest first, and what is wrong with the others, by id."""
        found: list[StoredSnapshot] = []
        damaged: dict[str, str] = {}
        for path in self._paths():
            try:
                found.append(read(path))
            except FileNotFoundError:
                continue
            except StoreDamaged as error:
                damaged[unquote(os.path.basename(path)[: -len(SUFFIX)])] = str(error)
        return _ordered(found), damaged

    def drop(self, snapshot_id: str) -> None:
        """Remove a snapshot, whether or not its file is damaged; raise `UnknownSnapshot` if there is none."""
        path = self.path_of(snapshot_id)
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                # The directory was put there by something else.
                os.rmdir(path)
            else:
                os.unlink(path)
        except FileNotFoundError:
            raise UnknownSnapshot(
                f"cannot drop snapshot {snapshot_id!r}: it is not in {self.folder!r}; it may already have been dropped"
            ) from None
        except OSError as error:
            raise unwritable(
                error.errno or errno.EIO,
                f"cannot drop snapshot {snapshot_id!r}: cannot remove {path!r}: {error.strerror}; remove the cause and "
                f"try again",
            ) from error
        sync_folder(self.folder)

    def path_of(self, snapshot_id: str) -> str:
        """Return the file of a snapshot; raise `ValueError` for an id that cannot become a file name."""
        name = quote(snapshot_id, safe="")
        name = name.replace(".", "%2E", 1) if name.startswith(".") else name
        if not snapshot_id or len(name) > 200:
            raise ValueError(f"cannot use {snapshot_id!r:.80} as a snapshot's id: use 1 to 200 plain characters")
        return os.path.join(self.folder, name + SUFFIX)

    def _paths(self) -> list[str]:
        return [
            os.path.join(self.folder, name)
            for name in names_in(self.folder)
            if name.endswith(SUFFIX) and not name.startswith(TEMPORARY)
        ]


def _ordered(snapshots: Iterable[StoredSnapshot]) -> tuple[StoredSnapshot, ...]:
    return tuple(sorted(snapshots, key=lambda snapshot: (snapshot.recorded_ns, snapshot.snapshot_id)))


def all_but_last(
    snapshots: Sequence[StoredSnapshot], number: int, *, drop_tagged: bool = False
) -> tuple[StoredSnapshot, ...]:
    """Return the snapshots before the last `number`, without tagged ones unless `drop_tagged`."""
    if number < 0:
        raise ValueError(f"cannot keep {number} snapshots: use 0 or more")
    older = snapshots[: -number or None]
    return tuple(snapshot for snapshot in older if drop_tagged or snapshot.tag is None)


def encode(snapshot: StoredSnapshot) -> bytes:
    """Return the contents of a snapshot's file: its fields and their checksum."""
    body = {IN_FILE.get(name, name): value for name, value in asdict(snapshot).items()}
    checksum = sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return orjson.dumps({"format": FORMAT, "version": VERSION, "sha256": checksum, "snapshot": body}) + b"\n"


def read(path: str) -> StoredSnapshot:
    """Read the file of a snapshot."""
    try:
        data = read_small(path)
    except ValueError as error:
        raise _damaged(path, str(error)) from None
    try:
        document = orjson.loads(data)
        if document["format"] != FORMAT:
            raise _damaged(path, "it is not a snapshot file")
        if document["version"] != VERSION:
            raise StoreDamaged(
                f"cannot read the snapshot in {path!r}: it has format version {document['version']!r:.60} and this "
                f"library reads {VERSION}; use the release of weakfs that wrote it, or a newer one"
            )
        body = document["snapshot"]
        if sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest() != document["sha256"]:
            raise _damaged(path, "its contents do not match the checksum")
        return _snapshot(body)
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise _damaged(path, f"its format is invalid ({error})") from None


def _snapshot(body: dict[str, Any]) -> StoredSnapshot:
    wanted = {IN_FILE.get(attribute.name, attribute.name): attribute.name for attribute in fields(StoredSnapshot)}
    if body.keys() != wanted.keys() or body["kind"] not in KINDS:
        raise TypeError("its fields are wrong")
    values = {wanted[name]: value for name, value in body.items()}
    return StoredSnapshot(**{**values, "contents": tuple(body["contents"])})


def _damaged(path: str, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"cannot read the snapshot in {path!r}: {what}; restore the file from a copy, or drop the snapshot to give it "
        f"up"
    )

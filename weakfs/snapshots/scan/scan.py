"""Scans: a host directory as a tree whose contents are in a store, reading only what the stat cache does not have.

Every directory is opened relative to its parent and never through a link; anything other than a regular file, a
directory or a link is not opened at all. A whole directory is compared with the cache in one step: per entry, that
takes a tenth of the time of the call that reads its status.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from itertools import islice
from typing import cast

from weakfs.errors import fault
from weakfs.reducers.timestamps import clamped
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import tree_of
from weakfs.session.interruption import check_interrupted, is_interruptible
from weakfs.snapshots.directory.entries import TEMPORARY, canonical_name, host_name
from weakfs.snapshots.directory.nodes import SPECIALS
from weakfs.snapshots.directory.permissions import close_directory, open_directory
from weakfs.snapshots.errors import StoreUnwritable
from weakfs.snapshots.scan import manifests
from weakfs.snapshots.scan.directory_stack import Frame, refusal, release, reopened
from weakfs.snapshots.scan.manifests import NO_DIGEST, NO_STATUS, Status
from weakfs.snapshots.scan.scan_limits import STRIDE, Interruptible, ScanLimits, UnwantedContents
from weakfs.snapshots.scan.sinks import Sink
from weakfs.snapshots.scan.stable_read import Swapped, read_file, status_of
from weakfs.snapshots.scan.stat_cache import Directory, Scan, can_replace, has_exactly, trusted, unchanged_leaf

# Errors of opening what is no longer a directory.
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
# How many times entries of one directory may change kind during a scan.
MAX_SWAPS = 100

OnFile = Callable[[str, int], object]


def scan(
    descriptor: int,
    sink: Sink,
    known: Scan | None = None,
    *,
    on_file: OnFile | None = None,
    bounds: ScanLimits | None = None,
    unwanted: UnwantedContents | None = None,
) -> Scan:
    """Read the directory that is open as `descriptor`, with everything below it.

    `known` is an earlier scan of the same directory: entries that have not changed since are not read again, and
    unchanged directories are reused in the tree. `on_file(path, size)` is called for every file that is read. Raises
    `PermissionError` naming an entry that may not be read; other `OSError`s name their entry too. Entries that
    disappear during the scan are left out. O(entries) system calls, and O(changes) for everything else.

    `bounds` refuses entries by their status. `unwanted` says which contents need not be read: the tree then has
    stand-ins for them.

    Stops if the surrounding call is interrupted: between entries, and between the pieces of large files.
    """
    if bounds is not None:
        sink = Interruptible(sink, bounds.check)
    work = _Scanner(sink, on_file, bounds, unwanted)
    top = Frame(os.dup(descriptor), "", "", status_of(os.fstat(descriptor)), known.root if known is not None else None)
    return work.run(top, lambda: _listed(descriptor, bounds))


def scan_entry(
    descriptor: int,
    name: str,
    sink: Sink,
    known: Scan | None = None,
    *,
    directory: str = "/",
    on_file: OnFile | None = None,
) -> Scan:
    """Read one entry of the directory that is open as `descriptor`, of any kind, as a tree with only that entry.

    The tree is empty if there is no such entry. `name` is canonical, `directory` is the path for messages, and `known`
    is the result of `Scan.entry`, or an earlier scan of this entry.
    """
    host = host_name(name)

    def listed() -> dict[str, Status]:
        try:
            return {host: status_of(os.stat(host, dir_fd=descriptor, follow_symlinks=False))}
        except (FileNotFoundError, NotADirectoryError):
            return {}

    work = _Scanner(sink, on_file, None, None)
    return work.run(
        Frame(os.dup(descriptor), "", directory.rstrip("/"), NO_STATUS, known.root if known is not None else None),
        listed,
    )


def _listed(descriptor: int, bounds: ScanLimits | None) -> dict[str, Status]:
    """Return the status of the entries of a directory, by host name, for as many as the bounds leave room for."""
    room = None if bounds is None else bounds.room
    try:
        with os.scandir(descriptor) as found:
            if room is None and not is_interruptible():
                return {entry.name: status_of(entry.stat(follow_symlinks=False)) for entry in found}
            entries = islice(found, room)
            fresh: dict[str, Status] = {}
            while some := {
                entry.name: status_of(entry.stat(follow_symlinks=False)) for entry in islice(entries, STRIDE)
            }:
                check_interrupted()
                fresh |= some
            return fresh
    except FileNotFoundError:
        # An entry disappeared between the listing and its stat.
        statuses: dict[str, Status] = {}
        for name in os.listdir(descriptor)[:room]:
            try:
                statuses[name] = status_of(os.stat(name, dir_fd=descriptor, follow_symlinks=False))
            except FileNotFoundError:
                continue
        return statuses


class _Scanner:
    def __init__(
        self, sink: Sink, on_file: OnFile | None, bounds: ScanLimits | None, unwanted: UnwantedContents | None
    ) -> None:
        self.sink = Interruptible(sink, check_interrupted) if is_interruptible() else sink
        self.on_file = on_file
        self.bounds = bounds
        self.unwanted = unwanted
        self.started_at = time.time_ns()
        self.files_read = 0

    def run(self, top: Frame, listed: Callable[[], dict[str, Status]]) -> Scan:
        stack = [top]
        try:
            try:
                top.allow_reading()
                fresh = listed()
            except TimeoutError:
                raise
            except OSError as error:
                raise refusal(error, top.path or "/") from error
            self._look_through(top, fresh)
            root = self._walk(stack)
        finally:
            for frame in stack:
                frame.close()
        return Scan(root, self.started_at, self.files_read)

    def _walk(self, stack: list[Frame]) -> Directory:
        while True:
            frame = stack[-1]
            if frame.pending:
                if frame.descriptor < 0 and not reopened(stack):
                    # The pending entries were moved away along with the directory that contains them.
                    while frame.pending:
                        frame.forget(frame.pending.pop())
                    continue
                host = frame.pending.pop()
                below = self._below(frame, host)
                if isinstance(below, Frame):
                    stack.append(below)
                    release(stack)
                elif below is not None:
                    frame.take(host, below)
                continue
            frame.close()
            done = self._finished(frame)
            stack.pop()
            if not stack:
                return done
            stack[-1].take(frame.host, done)

    def _below(self, frame: Frame, host: str) -> Frame | Directory | None:
        """Open and list a directory; return the cached one if it matches, `None` if it is no longer a directory."""
        status, path = frame.fresh[host], f"{frame.path}/{canonical_name(host)}"
        if self.unwanted is not None and not self.unwanted.has_directory(path):
            tree = tree_of({}, mode=stat.S_IMODE(status[0]), modified_at=clamped(status[2]))
            return Directory(tree, {}, {}, status, None, None)
        known = frame.known.below.get(host) if frame.known is not None else None
        descriptor, bits = -1, None
        try:
            descriptor, bits = open_directory(host, frame.descriptor, status[0])
            fresh = _listed(descriptor, self.bounds)
        except BaseException as error:
            close_directory(descriptor, bits)
            if descriptor < 0 and isinstance(error, OSError) and error.errno in GONE:
                self._look_again(frame, host)
                return None
            if isinstance(error, OSError) and not isinstance(error, TimeoutError):
                raise refusal(error, path) from error
            raise
        if (
            known is not None
            and fresh == known.statuses
            and status == known.status
            and not known.below
            and self.sink.trusts(known.token)
        ):
            close_directory(descriptor, bits)
            return known
        below = Frame(descriptor, host, path, status, known, bits)
        try:
            self._look_through(below, fresh)
        except BaseException:
            below.close()
            raise
        return below

    def _look_through(self, frame: Frame, fresh: dict[str, Status]) -> None:
        """Compare a directory's entries with the cache, and read those that differ."""
        for host in [name for name in fresh if name[:1] == "." and TEMPORARY.fullmatch(name)]:
            # The temporary file of a write or restore in progress, not one of the user's files.
            del fresh[host]
        frame.fresh = fresh
        check_interrupted()
        if self.bounds is not None:
            self.bounds.judge(frame.path, fresh)
        known = frame.known
        if known is not None and fresh == known.statuses and self.sink.trusts(known.token):
            frame.is_same = True
            frame.pending = list(known.below)
            if frame.status != known.status:
                frame.loosen()
            return
        for number, (host, status) in enumerate(list(fresh.items()), 1):
            if not number % STRIDE:
                check_interrupted()
            self._look_at(frame, host, status)

    def _look_at(self, frame: Frame, host: str, status: Status) -> None:
        """Add an entry's node to its directory; a subdirectory is entered later."""
        if stat.S_ISDIR(status[0]):
            frame.pending.append(host)
            return
        name = canonical_name(host)
        known = frame.known
        if known is not None and known.statuses.get(host) == status:
            leaf = unchanged_leaf(known.tree._entry(name), known, self.sink)
            if leaf is not None:
                frame.nodes[name] = leaf
                return
        stand_in = None if self.unwanted is None else self.unwanted.stand_in(f"{frame.path}/{name}", status)
        try:
            leaf = self._leaf(frame, host, name, status) if stand_in is None else stand_in
        except Swapped:
            self._look_again(frame, host)
            return
        except (StoreUnwritable, TimeoutError):
            raise
        except OSError as error:
            raise refusal(error, f"{frame.path}/{name}") from error
        if known is not None:
            old = known.tree._entry(name)
            if type(old) is tuple and can_replace(old, leaf, is_kept=self.sink.trusts(known.token)):
                leaf = old
        frame.nodes[name] = leaf

    def _leaf(self, frame: Frame, host: str, name: str, status: Status) -> Leaf:
        kind = stat.S_IFMT(status[0])
        if kind == stat.S_IFREG:
            content, status = read_file(host, frame.descriptor, status, self.sink)
            frame.fresh[host] = status
            self.files_read += 1
            if self.on_file is not None:
                self.on_file(f"{frame.path}/{name}", len(content))
            return leaves.file(content, mode=stat.S_IMODE(status[0]), at=clamped(status[2]))
        if kind == stat.S_IFLNK:
            try:
                target = os.readlink(host, dir_fd=frame.descriptor)
            except OSError as error:
                if error.errno in (errno.EINVAL, errno.ENOENT):
                    raise Swapped from None
                raise
            return leaves.link(names.from_bytes(os.fsencode(target)), at=clamped(status[2]))
        return leaves.special(SPECIALS[kind], mode=stat.S_IMODE(status[0]), at=clamped(status[2]))

    def _look_again(self, frame: Frame, host: str) -> None:
        """Examine an entry again after it changed kind."""
        name = canonical_name(host)
        frame.swaps += 1
        if frame.swaps > MAX_SWAPS:
            raise fault(
                OSError,
                errno.EBUSY,
                f"cannot scan {frame.path + '/' + name!r}: its kind keeps changing; stop the program that changes it",
            )
        frame.forget(host)
        try:
            status = status_of(os.stat(host, dir_fd=frame.descriptor, follow_symlinks=False))
        except FileNotFoundError:
            return
        except OSError as error:
            raise refusal(error, f"{frame.path}/{name}") from error
        frame.fresh[host] = status
        self._look_at(frame, host, status)

    def _finished(self, frame: Frame) -> Directory:
        known = frame.known
        if frame.is_same:
            return cast(Directory, known)
        mode, modified_at = stat.S_IMODE(frame.status[0]), clamped(frame.status[2])
        if known is not None and has_exactly(known.tree, frame.nodes, mode, modified_at):
            tree = known.tree
        else:
            tree = tree_of(frame.nodes, mode=mode, modified_at=modified_at, created_at=modified_at)
        statuses: dict[str, Status | None] = {**frame.fresh}
        for host, status in frame.fresh.items():
            if not trusted(status, self.started_at) and not stat.S_ISDIR(status[0]):
                statuses[host] = None
        ref = self.sink.add_manifest(self._manifest(frame, mode, modified_at)) if self.sink.token else None
        return Directory(tree, statuses, frame.below, frame.status, self.sink.token, ref)

    def _manifest(self, frame: Frame, mode: int, modified_at: int) -> bytes:
        rows: list[tuple[str, Status, bytes, str | None]] = []
        for host, status in frame.fresh.items():
            name = canonical_name(host)
            kind = stat.S_IFMT(status[0])
            digest, target = NO_DIGEST, None
            if kind == stat.S_IFDIR:
                digest = cast(bytes, frame.below[host].ref)
            elif kind == stat.S_IFREG:
                digest = leaves.blob_digest(cast(Leaf, frame.nodes[name]))
            elif kind == stat.S_IFLNK:
                target = cast(str, cast(Leaf, frame.nodes[name])[leaves.CONTENT])
            rows.append((name, status, digest, target))
        return manifests.encode(mode, modified_at, rows)

"""Entries of an open host directory: created, renamed and removed by name, without following links."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from errno import EACCES, EINVAL, EISDIR, ELOOP, ENODATA, ENOENT, ENOTDIR, ENOTEMPTY, EOPNOTSUPP, EPERM, EROFS
from functools import lru_cache
from hashlib import sha256
from typing import Any

from weakfs.platforms import O_CLOEXEC, O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import Leaf
from weakfs.session.blobs.sparse import PIECE, write_pieces
from weakfs.session.interruption import checked_between

DIRECTORY = os.O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC
# Opens a file to check that it may be written; if it was replaced by a FIFO, opening does not block.
WRITABLE = os.O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
HANDLE = O_PATH | O_NOFOLLOW | O_CLOEXEC

READ = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC

# The extended attributes that belong to users. The kernel itself drops others, such as capabilities, on a write.
ATTRIBUTES = ("user.", "system.posix_acl_")
ACCESS_LIST = "system.posix_acl_access"

# Maximum recursion depth of a removal; deeper directories are moved up first, so that any depth can be removed.
DEPTH = 100

# How many times to empty a directory to which other processes keep adding entries.
ATTEMPTS = 100

TEMPORARY = re.compile(r"\.weakfs-[0-9a-f]{16}\.tmp")


def temporary_name(purpose: str | None = None) -> bytes:
    """Return a name of the form by which scans recognize temporary files: an unused one, or the one for a purpose."""
    own = os.urandom(8).hex() if purpose is None else sha256(os.fsencode(purpose)).hexdigest()[:16]
    return f".weakfs-{own}.tmp".encode()


def is_temporary(name: str) -> bool:
    """Return whether a name is one that `temporary_name` returns."""
    return TEMPORARY.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def host_bytes(name: str) -> bytes:
    """Return the host's bytes for a path segment. Raises `ValueError` for an empty name, ".", a slash or a NUL.

    For names that do not come from a checked path, call `check_name` as well.
    """
    raw = names.to_bytes(name)
    if b"/" in raw or b"\0" in raw or raw in (b"", b"."):
        raise ValueError(f"cannot use {name!r} as a name: no entry can have it; the tree that contains it was forged")
    return raw


def host_name(name: str) -> str:
    """Return the host name, as system calls take it, of a canonical name."""
    return os.fsdecode(names.to_bytes(name))


def canonical_name(host: str) -> str:
    """Return the canonical name of a host name."""
    return host if host.isascii() and "\\" not in host else names.from_bytes(os.fsencode(host))


def host_path(segments: Sequence[str]) -> list[bytes]:
    """Return the host's bytes for the segments of a path. Raises `ValueError` as `host_bytes` does."""
    # All segments at once: doing this one by one would take half as long as opening a directory a thousand levels deep.
    path = "/".join(segments)
    if not names.has_escapes(path) and "\0" not in path:
        parts = path.encode("utf-8", "surrogatepass").split(b"/")
        if len(parts) == len(segments) and b"" not in parts and b"." not in parts:
            return parts
    return [host_bytes(name) for name in segments]


def check_name(name: str) -> None:
    """Raise `ValueError` for a name that no directory entry can have, above all one that leads out of the directory."""
    if host_bytes(name) == b"..":
        raise ValueError("cannot use '..' as a name: no entry can have it; the tree that contains it was forged")


def check_writable(directory: int, name: bytes) -> None:
    """Raise the system's error for a file that may not be written, even if it could be replaced."""
    try:
        os.close(os.open(name, WRITABLE, dir_fd=directory))
    except OSError as error:
        # A running program (ETXTBSY) can be replaced. A path that is no longer a file fails later.
        if error.errno in (EACCES, EPERM, EROFS):
            raise


def make_leaf(directory: int, name: bytes, leaf: Leaf) -> None:
    """Create a file, a link or a special file under a new name, exactly as it is."""
    content, mode, modified_at = leaf[leaves.CONTENT], leaf[leaves.MODE], leaf[leaves.MODIFIED_AT]
    if isinstance(content, str):
        os.symlink(names.to_bytes(content), name, dir_fd=directory)
        os.utime(name, ns=(modified_at, modified_at), dir_fd=directory, follow_symlinks=False)
        return
    if isinstance(content, leaves.Special):
        if content not in (leaves.FIFO, leaves.SOCKET):
            raise OSError(EINVAL, "weakfs does not create devices; create it by hand")
        kind = stat.S_IFSOCK if content is leaves.SOCKET else stat.S_IFIFO
        os.mknod(name, kind | 0o600, dir_fd=directory)
        set_status(directory, name, mode=mode, modified_at=modified_at)
        return
    descriptor = os.open(name, CREATE, 0o600, dir_fd=directory)
    try:
        write_pieces(descriptor, checked_between(pieces_of(content)))
        os.fchmod(descriptor, mode)
        os.utime(descriptor, ns=(modified_at, modified_at))
    finally:
        os.close(descriptor)


def pieces_of(content: Any) -> Iterable[bytes]:
    """Return a file's content in pieces, without joining it if it can be read piece by piece."""
    if type(content) is bytes:
        if len(content) <= PIECE:
            return (content,)
        return (content[start : start + PIECE] for start in range(0, len(content), PIECE))
    pieces = getattr(content, "pieces", None)
    found: Iterable[bytes] = (content.join(),) if pieces is None else pieces()
    return found


def take_over_attributes(directory: int, old: bytes, target_directory: int, new: bytes) -> str | None:
    """Copy to a file the owner, group and extended attributes of the file that it is about to replace.

    Return the attributes that could not be copied, if any: permission to write a file does not include changing its
    owner.
    """
    try:
        source = os.open(old, READ, dir_fd=directory)
    except OSError:
        return None
    try:
        before = os.fstat(source)
        if stat.S_ISREG(before.st_mode):
            target = os.open(new, READ, dir_fd=target_directory)
            try:
                return copy_attributes(source, before, target)
            finally:
                os.close(target)
    except OSError as error:
        if error.errno not in (EACCES, EPERM, ENOENT, ELOOP):
            raise
    finally:
        os.close(source)
    return None


def copy_attributes(source: int, before: os.stat_result, target: int) -> str | None:
    """Give an open file or directory the owner, group and extended attributes of another one, and no others.

    Return the attributes that could not be copied, such as "owner" or "owner, extended attributes"; `None` if nothing
    is lost, or if the two are of different kinds.
    """
    made = os.fstat(target)
    if stat.S_IFMT(made.st_mode) != stat.S_IFMT(before.st_mode):
        return None
    is_changed = (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid)
    lost = _copy_owner(made, before, lambda uid, gid: os.fchown(target, uid, gid))
    try:
        kept = [name for name in os.listxattr(source) if name.startswith(ATTRIBUTES)]
        for name in os.listxattr(target):
            # A new entry inherits the default access control list of its directory.
            if name.startswith(ATTRIBUTES) and name not in kept:
                os.removexattr(target, name)
        for name in kept:
            is_changed = True
            os.setxattr(target, name, os.getxattr(source, name))
    except OSError as error:
        # On a filesystem without extended attributes there are none to lose.
        if error.errno not in (EOPNOTSUPP, ENODATA) or _has_attributes(source):
            lost.append("extended attributes")
    # Changing the owner clears special bits, and setting an access control list changes others.
    if is_changed and os.fstat(target).st_mode != made.st_mode:
        os.fchmod(target, stat.S_IMODE(made.st_mode))
    return ", ".join(lost) or None


def copy_link_owner(directory: int, name: bytes, before: os.stat_result) -> str | None:
    """Copy the owner and group of an entry to a link or a special file. Return the attributes that are lost."""
    made = os.stat(name, dir_fd=directory, follow_symlinks=False)
    lost = _copy_owner(made, before, lambda uid, gid: os.chown(name, uid, gid, dir_fd=directory, follow_symlinks=False))
    if not stat.S_ISLNK(made.st_mode):
        with suppress(OSError):
            # A special file inherits an access control list too.
            os.removexattr(f"/proc/self/fd/{directory}/{os.fsdecode(name)}", ACCESS_LIST, follow_symlinks=False)
    return ", ".join(lost) or None


def _copy_owner(made: os.stat_result, before: os.stat_result, chown: Callable[[int, int], object]) -> list[str]:
    if (made.st_uid, made.st_gid) == (before.st_uid, before.st_gid):
        return []
    for uid, lost in ((before.st_uid, []), (-1, ["owner"] if made.st_uid != before.st_uid else [])):
        try:
            chown(uid, before.st_gid)
        except OSError as error:
            # EINVAL: an id without a mapping in the user namespace.
            if error.errno not in (EPERM, EACCES, EINVAL):
                raise
        else:
            return lost
    return [kind for kind, is_lost in (("owner", made.st_uid != before.st_uid), ("group", True)) if is_lost]


def _has_attributes(descriptor: int) -> bool:
    try:
        return any(name.startswith(ATTRIBUTES) for name in os.listxattr(descriptor))
    except OSError:
        return False


def set_status(directory: int, name: bytes, *, mode: int | None = None, modified_at: int | None = None) -> None:
    """Set the permission bits and time of an entry itself, through a handle that follows no link."""
    if mode is not None:
        handle = os.open(name, HANDLE, dir_fd=directory)
        try:
            found = os.fstat(handle).st_mode
            # A link has no permission bits of its own. An O_PATH handle can be changed only through /proc.
            if not stat.S_ISLNK(found) and stat.S_IMODE(found) != mode:
                os.chmod(f"/proc/self/fd/{handle}", mode)
        finally:
            os.close(handle)
    if modified_at is not None:
        os.utime(name, ns=(modified_at, modified_at), dir_fd=directory, follow_symlinks=False)


def move_exclusively(directory: int, source: bytes, destination: bytes) -> None:
    """Rename an entry to an unused name; raise `FileExistsError` if the name is taken."""
    try:
        os.link(source, destination, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # A filesystem without hard links: check first. A file created between the check and the rename is replaced.
        with suppress(FileNotFoundError):
            os.stat(destination, dir_fd=directory, follow_symlinks=False)
            raise FileExistsError(f"{os.fsdecode(destination)} was created in the meantime") from None
        os.rename(source, destination, src_dir_fd=directory, dst_dir_fd=directory)
        return
    os.unlink(source, dir_fd=directory)


def rename(old: int, source: bytes, new: int, destination: bytes) -> None:
    """Rename an entry. If both names are the same file, which rename(2) leaves alone, remove the source name."""
    before = os.stat(source, dir_fd=old, follow_symlinks=False)
    os.rename(source, destination, src_dir_fd=old, dst_dir_fd=new)
    if before.st_nlink > 1 and not stat.S_ISDIR(before.st_mode):
        with suppress(FileNotFoundError):
            left = os.stat(source, dir_fd=old, follow_symlinks=False)
            there = os.stat(destination, dir_fd=new, follow_symlinks=False)
            same_name = source == destination and os.path.sameopenfile(old, new)
            if not same_name and os.path.samestat(left, before) and os.path.samestat(there, before):
                os.unlink(source, dir_fd=old)


def remove(directory: int, name: bytes, check: Callable[[], object] | None = None) -> None:
    """Remove an entry with everything below it; raise `FileNotFoundError` if there is none.

    `check` is called before each step and may raise to stop; what remains can be removed later.
    """
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=directory)
        return
    deep = [name]
    while deep:
        _remove_directory(directory, deep.pop(), directory, deep, 0, check)


def _remove_directory(
    parent: int, name: bytes, top: int, deep: list[bytes], depth: int, check: Callable[[], object] | None
) -> None:
    here = _opened_for_removal(parent, name)
    try:
        for left in reversed(range(ATTEMPTS)):
            _empty(here, top, deep, depth, check)
            try:
                os.rmdir(name, dir_fd=parent)
                return
            except OSError as error:
                # Another process added an entry in the meantime.
                if error.errno != ENOTEMPTY or not left:
                    raise
    finally:
        os.close(here)


def _empty(here: int, top: int, deep: list[bytes], depth: int, check: Callable[[], object] | None) -> None:
    """Remove the entries of a directory, ignoring those that others remove or replace in the meantime."""
    with os.scandir(here) as listing:
        entries = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in listing]
    for below, is_directory in entries:
        if check is not None:
            check()
        try:
            if not is_directory:
                os.unlink(below, dir_fd=here)
            elif depth < DEPTH:
                _remove_directory(here, below, top, deep, depth + 1, check)
            else:
                moved = temporary_name()
                os.rename(below, moved, src_dir_fd=here, dst_dir_fd=top)
                deep.append(moved)
        except OSError as error:
            if error.errno not in (ENOENT, ENOTDIR, EISDIR, ELOOP):
                raise


def _opened_for_removal(parent: int, name: bytes) -> int:
    """Open a directory to remove its entries, first granting the owner's permissions if they are missing."""
    try:
        descriptor = os.open(name, DIRECTORY, dir_fd=parent)
    except PermissionError:
        set_status(parent, name, mode=0o700)
        return os.open(name, DIRECTORY, dir_fd=parent)
    if os.fstat(descriptor).st_mode & 0o700 != 0o700:
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o700)
    return descriptor

"""Single entries of an open host directory: made, renamed and removed by name, no link ever followed."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from errno import EACCES, EINVAL, EISDIR, ELOOP, ENODATA, ENOENT, ENOTDIR, ENOTEMPTY, EOPNOTSUPP, EPERM, EROFS
from functools import lru_cache
from typing import Any

from weakfs.platforms import O_CLOEXEC, O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import Leaf
from weakfs.session.blobs.sparse import PIECE, write_pieces
from weakfs.session.interruption import checked_between

DIRECTORY = os.O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC
# Opens a file to see whether it may be written; a FIFO that was put in its place lets nobody wait.
WRITABLE = os.O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
HANDLE = O_PATH | O_NOFOLLOW | O_CLOEXEC

READ = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC

# The extended attributes that are a user's own. Others, such as capabilities, the kernel itself drops at a write.
ATTRIBUTES = ("user.", "system.posix_acl_")

# Directories are entered to this depth; what lies deeper is first moved up, so that no tree is too deep to remove.
DEPTH = 100

# How often a directory is emptied into which others put things meanwhile.
ATTEMPTS = 100

TEMPORARY = re.compile(r"\.weakfs-[0-9a-f]{16}\.tmp")


def temporary_name() -> bytes:
    """Give a name that no entry has, of the form by which scans know that it is none of the user's."""
    return f".weakfs-{secrets.token_hex(8)}.tmp".encode()


@lru_cache(maxsize=4096)
def host_bytes(name: str) -> bytes:
    """Give the host's bytes for a segment of a path. A slash or nothing would be a path of its own: `ValueError`.

    Whoever takes names from elsewhere than from paths asks `check_name` as well.
    """
    raw = names.to_bytes(name)
    if b"/" in raw or b"\0" in raw or raw in (b"", b"."):
        raise ValueError(f"cannot use {name!r} as a name: no entry can have it; the tree that has it was forged")
    return raw


def check_name(name: str) -> None:
    """Refuse with `ValueError` what no entry of a directory can be called, above all what leads out of it."""
    if host_bytes(name) == b"..":
        raise ValueError("cannot use '..' as a name: no entry can have it; the tree that has it was forged")


def check_writable(directory: int, name: bytes) -> None:
    """Refuse, as the system would, to change a file that may not be written, although it could be replaced."""
    try:
        os.close(os.open(name, WRITABLE, dir_fd=directory))
    except OSError as error:
        # A program that is running can be replaced. What is no file by now is met later.
        if error.errno in (EACCES, EPERM, EROFS):
            raise


def make_leaf(directory: int, name: bytes, leaf: Leaf) -> None:
    """Make a file, a link or a special file under a new name, exactly as it is."""
    content, mode, modified_at = leaf[leaves.CONTENT], leaf[leaves.MODE], leaf[leaves.MODIFIED_AT]
    if isinstance(content, str):
        os.symlink(names.to_bytes(content), name, dir_fd=directory)
        os.utime(name, ns=(modified_at, modified_at), dir_fd=directory, follow_symlinks=False)
        return
    if isinstance(content, leaves.Special):
        if content not in (leaves.FIFO, leaves.SOCKET):
            raise OSError(EINVAL, "a device cannot be made again; put it there by hand")
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
    """Give a file's content in pieces, without joining one that can be read piece by piece."""
    if type(content) is bytes:
        if len(content) <= PIECE:
            return (content,)
        return (content[start : start + PIECE] for start in range(0, len(content), PIECE))
    pieces = getattr(content, "pieces", None)
    found: Iterable[bytes] = (content.join(),) if pieces is None else pieces()
    return found


def take_over_attributes(directory: int, old: bytes, target_directory: int, new: bytes) -> str | None:
    """Give a file the owner, group and extended attributes of another that it is about to replace.

    Returns what the system did not allow, if anything: who may write a file may not always give it away.
    """
    try:
        source = os.open(old, READ, dir_fd=directory)
    except OSError:
        return None
    try:
        before = os.fstat(source)
        target = os.open(new, READ, dir_fd=target_directory) if stat.S_ISREG(before.st_mode) else -1
        try:
            if target >= 0 and stat.S_ISREG(os.fstat(target).st_mode):
                return copy_attributes(source, before, target)
        finally:
            if target >= 0:
                os.close(target)
    except OSError as error:
        if error.errno not in (EACCES, EPERM, ENOENT, ELOOP):
            raise
    finally:
        os.close(source)
    return None


def copy_attributes(source: int, before: os.stat_result, target: int) -> str | None:
    """Give an open file or directory the owner, group and extended attributes of another.

    Returns what the system did not allow, such as "owner" or "owner, extended attributes"; `None` if nothing is lost.
    """
    made = os.fstat(target)
    lost = _copy_owner(made, before, lambda uid, gid: os.fchown(target, uid, gid))
    try:
        for name in os.listxattr(source):
            if name.startswith(ATTRIBUTES):
                os.setxattr(target, name, os.getxattr(source, name))
    except OSError as error:
        # A filesystem without any has none to lose.
        if error.errno not in (EOPNOTSUPP, ENODATA) or _has_attributes(source):
            lost.append("extended attributes")
    # A change of owner takes special bits away, and an access control list sets others.
    if os.fstat(target).st_mode != made.st_mode:
        os.fchmod(target, stat.S_IMODE(made.st_mode))
    return ", ".join(lost) or None


def copy_link_owner(directory: int, name: bytes, before: os.stat_result) -> str | None:
    """Give a link or a special file the owner and group of another; returns what the system did not allow."""
    made = os.stat(name, dir_fd=directory, follow_symlinks=False)
    lost = _copy_owner(made, before, lambda uid, gid: os.chown(name, uid, gid, dir_fd=directory, follow_symlinks=False))
    return ", ".join(lost) or None


def _copy_owner(made: os.stat_result, before: os.stat_result, chown: Callable[[int, int], object]) -> list[str]:
    if (made.st_uid, made.st_gid) == (before.st_uid, before.st_gid):
        return []
    for uid, lost in ((before.st_uid, []), (-1, ["owner"] if made.st_uid != before.st_uid else [])):
        try:
            chown(uid, before.st_gid)
        except OSError as error:
            # EINVAL: an id that the user namespace does not have.
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
    """Set permission bits and time of an entry itself, by a handle that follows no link."""
    if mode is not None:
        handle = os.open(name, HANDLE, dir_fd=directory)
        try:
            found = os.fstat(handle).st_mode
            # A link has no permission bits of its own. What a handle names can only be changed below /proc.
            if not stat.S_ISLNK(found) and stat.S_IMODE(found) != mode:
                os.chmod(f"/proc/self/fd/{handle}", mode)
        finally:
            os.close(handle)
    if modified_at is not None:
        os.utime(name, ns=(modified_at, modified_at), dir_fd=directory, follow_symlinks=False)


def move_exclusively(directory: int, source: bytes, destination: bytes) -> None:
    """Give an entry a name that nothing has: `FileExistsError` otherwise."""
    try:
        os.link(source, destination, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # A filesystem without hard links: look first, and hope that nobody comes between.
        with suppress(FileNotFoundError):
            os.stat(destination, dir_fd=directory, follow_symlinks=False)
            raise FileExistsError(f"{os.fsdecode(destination)} was made meanwhile") from None
        os.rename(source, destination, src_dir_fd=directory, dst_dir_fd=directory)
        return
    os.unlink(source, dir_fd=directory)


def rename(old: int, source: bytes, new: int, destination: bytes) -> None:
    """Rename; two names of one file, which the system would leave as they are, become one as well."""
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
    """Remove an entry with all that is below it; `FileNotFoundError` if there is none.

    `check` is called before each step and may raise to stop: what is left then can be removed later.
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
                # Somebody put something in meanwhile.
                if error.errno != ENOTEMPTY or not left:
                    raise
    finally:
        os.close(here)


def _empty(here: int, top: int, deep: list[bytes], depth: int, check: Callable[[], object] | None) -> None:
    """Remove the entries of a directory; what others take away or swap meanwhile is passed over."""
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
    """Open a directory whose entries are to go; one without its owner's permissions is given them first."""
    try:
        descriptor = os.open(name, DIRECTORY, dir_fd=parent)
    except PermissionError:
        set_status(parent, name, mode=0o700)
        return os.open(name, DIRECTORY, dir_fd=parent)
    if os.fstat(descriptor).st_mode & 0o700 != 0o700:
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o700)
    return descriptor

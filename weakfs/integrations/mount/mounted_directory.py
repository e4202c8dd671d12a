"""Mounting: starting and stopping the FUSE loop in a thread, and checkouts that are the mount itself."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from errno import EBUSY, ENOTCONN
from threading import Event, Thread, current_thread, main_thread
from time import sleep

from attrs import define, field

from weakfs.backends import InMemoryFilesystem
from weakfs.backends.checkout import CheckoutDirectory, changed_paths
from weakfs.errors import WeakfsError, fault
from weakfs.filesystem import Filesystem
from weakfs.filesystem.checkout import Checkout, ReadBack
from weakfs.filesystem.paths import normalize
from weakfs.integrations.mount.fuse import Fuse
from weakfs.integrations.mount.operations import Operations
from weakfs.snapshots.scan.read_back import without_set_id
from weakfs.tools.permissions.guard import guard_of

# How long mounting may take, and unmounting while a program still has files open, in seconds.
PATIENCE = 60.0
# The polling interval, in seconds.
WAIT = 0.02
# The flag of the `unshare` system call for the working directory and the umask (linux/sched.h).
CLONE_FS = 0x200


class MountError(WeakfsError, OSError):
    """Files cannot be mounted or unmounted."""


@define(eq=False)
class Mount:
    """Files that `mount` has mounted at `directory`.

    `files` is the filesystem to give to a toolset: its commands and external calls work in the mount, and their changes
    there belong to their call.
    """

    directory: str
    # The device of the directory below the mount.
    _device: int
    files: Filesystem = field(init=False)
    _operations: Operations = field(init=False)
    # Used instead of joining the thread: after an interrupted join the thread looks as if it had ended.
    _has_begun: Event = field(factory=Event, init=False)
    _has_ended: Event = field(factory=Event, init=False)
    _problem: BaseException | None = field(default=None, init=False)

    @property
    def is_mounted(self) -> bool:
        """Whether the files are still mounted; another program may unmount them."""
        return not self._has_ended.is_set()

    def store(self) -> None:
        """Store what programs wrote to files that they still have open."""
        operations = self._operations
        with operations.one_at_a_time:
            store_all = operations.open_files.store_all
            store_all() if operations.context is None else operations.context.run(store_all)

    def wait(self) -> None:
        """Wait until the files are unmounted."""
        # With a timeout, so that signals are handled meanwhile.
        while not self._has_ended.wait(0.5):
            pass

    def _start(self, files: Filesystem, *, read_only: bool, cache_seconds: float) -> None:
        self._operations = Operations(files, self._has_begun.set)
        self.files = FilesystemOnMount(files, self) if type(files) is InMemoryFilesystem else files

        def answer() -> None:
            try:
                _unshare_working_directory()
                Fuse(
                    self._operations,
                    self.directory,
                    foreground=True,
                    nothreads=True,
                    fsname="weakfs",
                    subtype="weakfs",
                    default_permissions=True,
                    # The kernel unmounts when this process dies.
                    auto_unmount=True,
                    attr_timeout=cache_seconds,
                    entry_timeout=cache_seconds,
                    negative_timeout=0,
                    ro=read_only or files.read_only,
                )
            except BaseException as error:
                self._problem = error
            finally:
                self._has_ended.set()

        Thread(target=answer, name=f"weakfs mount {self.directory}", daemon=True).start()
        for _ in range(int(PATIENCE / WAIT)):
            if self._has_begun.wait(WAIT) or self._has_ended.is_set():
                break
        _keep_signal_handlers()
        if not self._has_begun.is_set():
            raise MountError(
                f"cannot mount at {self.directory!r}: FUSE refused it ({self._problem}); see what it printed, and "
                f"check that this user may open /dev/fuse"
            )

    def _end(self) -> None:
        try:
            if self.is_mounted:
                self.store()
        finally:
            if self.is_mounted:
                # A lazy unmount: if a program still works there, the rest is freed when the program has ended.
                option = _unmount(self.directory, ["-u", "-uz"])
                self._has_ended.wait(PATIENCE if option == "-u" else 0.1)
            # The helper that unmounts if this process dies may end a little later than the thread.
            for _ in range(int(PATIENCE / WAIT)):
                if _device(self.directory) == self._device:
                    break
                sleep(WAIT)
            with self._operations.one_at_a_time:
                self._operations.is_closed = True

    @contextmanager
    def _lent(self, files: InMemoryFilesystem, path: str) -> Iterator[CheckoutDirectory]:
        """Perform the operations of programs as part of the caller's transaction; undo them if the block raises."""
        operations = self._operations
        canonical = normalize(path)
        session = files._changing("run a program in", canonical)
        files._directory(canonical, "run a program in")
        with session.transaction(cause=session._cause_of_one_change(), shared=True):
            before = files.tree()
            with operations.one_at_a_time:
                if operations.context is not None:
                    raise fault(
                        OSError,
                        EBUSY,
                        f"cannot work in {self.directory!r}: another call is using it; wait until that ends",
                    )
                operations.open_files.store_all()
                operations.context = copy_context()
            laid = CheckoutDirectory(self.directory + canonical.rstrip("/"))
            try:
                yield laid
                with operations.one_at_a_time:
                    operations.context.run(operations.open_files.store_all)
            finally:
                with operations.one_at_a_time:
                    operations.open_files.discard()
                    operations.context = None
            after, removed = without_set_id(before, files.tree())
            for one in removed:
                files.chmod(one, files.stat(one).mode & 0o1777)
        laid.set_id_removed = tuple(removed)
        laid.changed = changed_paths(before, after, "/")


class FilesystemOnMount(InMemoryFilesystem):
    """Files in memory whose checkouts are their mount."""

    __slots__ = ("_mount",)

    def __init__(self, files: InMemoryFilesystem, mount: Mount) -> None:
        super().__init__(
            files._session,
            limits=files.limits,
            read_only=files.read_only,
            follow_symlinks=files.follow_symlinks,
        )
        self._mount = mount

    def checkout(
        self,
        path: str = "/",
        *,
        read_back: ReadBack = ReadBack(),  # noqa: B008  # frozen
    ) -> AbstractContextManager[Checkout]:
        """Lend the mount to a program. The filesystem's limits apply while it writes, so `read_back` is not needed."""
        return self._mount._lent(self, path)


@contextmanager
def mount(
    files: Filesystem, directory: str | os.PathLike[str], *, read_only: bool = False, cache_seconds: float = 0.0
) -> Iterator[Mount]:
    """Mount files at an empty host directory while the block runs.

    `cache_seconds` is how long the kernel may cache the status of entries; leave it at 0 if the session also changes in
    ways other than through the mount. If the process of an earlier weakfs mount there was killed, that mount is removed
    first. Raises `MountError` if the files cannot be mounted, `PermissionError` if they are those of a call whose
    capability or policy does not let programs use all of them, and `NotADirectoryError` or `FileNotFoundError` if
    `directory` is not a directory.

    A thread of this process answers the kernel, so do not map files of the mount into this process: it would deadlock.
    """
    guard = guard_of(files)
    if guard is not None:
        guard.check_command()
    place = os.path.abspath(directory)
    if _is_dead(place):
        _unmount(place, ["-uz"])
    if os.listdir(place):
        raise MountError(
            f"cannot mount at {place!r}: the directory is not empty, and its files would be hidden; use an empty one"
        )
    made = Mount(place, os.stat(place).st_dev)
    made._start(files, read_only=read_only, cache_seconds=cache_seconds)
    try:
        yield made
    finally:
        made._end()


def _unmount(directory: str, options: Sequence[str]) -> str:
    """Unmount with the first of the options that works, and return it."""
    program = shutil.which("fusermount3") or shutil.which("fusermount") or "fusermount3"
    problem = ""
    for option in options:
        done = subprocess.run([program, option, directory], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return option
        problem = done.stderr.strip()
    raise MountError(f"cannot unmount {directory!r}: {problem}")


def _is_dead(directory: str) -> bool:
    """Return whether a weakfs mount whose process was killed is still mounted there."""
    try:
        os.stat(directory)
    except OSError as error:
        if error.errno != ENOTCONN:
            raise
    else:
        return False
    with open("/proc/self/mountinfo", errors="surrogateescape") as lines:
        mounts = [line.split(" ") for line in lines]
    # Only the last mount at a directory is visible. The kernel escapes these characters as octal numbers.
    shown = re.sub(r"[ \t\n\\]", lambda found: f"\\{ord(found[0]):03o}", directory)
    kinds = [fields[fields.index("-") + 1] for fields in mounts if fields[4] == shown]
    if kinds[-1:] != ["fuse.weakfs"]:
        raise MountError(
            f"cannot mount at {directory!r}: the process of another mount there has died; unmount it first, with "
            f"fusermount3 -uz"
        )
    return True


def _device(directory: str) -> int | None:
    """Return the device of a directory; `None` if a mount there has lost its process."""
    try:
        return os.stat(directory).st_dev
    except OSError:
        return None


def _unshare_working_directory() -> None:
    """Give this thread its own working directory: libfuse changes it to the root, even in the foreground."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_FS):
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")


def _keep_signal_handlers() -> None:
    """Restore the signal handlers: FUSE replaces those of termination signals, and would keep the process alive."""
    if current_thread() is main_thread():
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
            handler = signal.getsignal(number)
            if handler is not None:
                signal.signal(number, handler)

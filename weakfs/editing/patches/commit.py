"""Commit: making the changes of a patch, all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from errno import EROFS
from typing import cast

from attrs import field

from weakfs.class_decorators import define
from weakfs.editing.patches.change_order import Step
from weakfs.editing.patches.guards import ChecksPlannedChanges
from weakfs.errors import fault
from weakfs.filesystem.paths import parent
from weakfs.filesystem.protocol import Filesystem
from weakfs.session import Session


def transaction(fs: Filesystem) -> AbstractContextManager[object]:
    """Return a transaction of the session that contains a filesystem's files, or a null context if there is none."""
    session = _session_of(fs)
    # Shared, because a shared transaction is found faster. Nothing that could join it is started inside it.
    return nullcontext() if session is None else session.transaction(shared=True)


def _session_of(fs: Filesystem) -> Session | None:
    session: object = getattr(fs, "session", None)
    return session if isinstance(session, Session) else None


def check_planned(fs: Filesystem, steps: list[Step]) -> None:
    """Raise what the steps would raise, as far as that is known without making them: limits and quotas."""
    if steps and fs.read_only:
        path = steps[0].path
        raise fault(
            PermissionError,
            EROFS,
            f"cannot change {path!r}: the filesystem is read-only; open it for writing to make changes",
        )
    for step in steps:
        path = step.destination
        if step.verb == "write":
            fs.limits.check_size(path, len(step.content))
        if step.is_new or step.verb == "move":
            fs.limits.check_path(path, tuple(path[1:].split("/")))
    # Equivalent to the protocol's own isinstance check, at a twentieth of the time.
    if hasattr(fs, "check_planned"):
        written = [(path, step.written) for step in steps for path in dict.fromkeys((step.path, step.destination))]
        cast(ChecksPlannedChanges, fs).check_planned(written)
    if fs.limits.may_refuse(len(steps)):
        _foresee_quota(fs, steps)


def _foresee_quota(fs: Filesystem, steps: list[Step]) -> None:
    try:
        totals = fs.statistics()
    except PermissionError:
        # If part of the filesystem may not be examined, each change is checked when it is made.
        return
    size, nodes = totals.total_size, totals.node_count
    made: set[str] = set()
    for step in steps:
        path = step.destination
        if step.verb == "delete":
            size, nodes = size - fs.stat(path).size_bytes, nodes - 1
        elif step.verb == "clear":
            nodes -= 1 + sum(entry.is_directory for entry in fs.walk(path))
        elif step.verb != "chmod":
            more_nodes = _missing(fs, path, made) + step.is_new
            more_size = len(step.content) - (0 if step.is_new or not fs.is_file(path) else fs.stat(path).size_bytes)
            if step.verb == "move":
                more_nodes, more_size = more_nodes - fs.exists(path), more_size
            fs.limits.check_quota(path, size=size, more_size=more_size, nodes=nodes, more_nodes=more_nodes)
            size, nodes = size + more_size, nodes + more_nodes


def _missing(fs: Filesystem, path: str, made: set[str]) -> int:
    """Count the directories that a new path needs, each once."""
    count = 0
    above = parent(path)
    while above != "/" and above not in made and _is_missing(fs, above):
        made.add(above)
        count += 1
        above = parent(above)
    return count


def _is_missing(fs: Filesystem, directory: str) -> bool:
    """Return whether a directory must be created; one above the part that may be examined counts as existing."""
    try:
        return not fs.exists(directory)
    except PermissionError:
        return False


def commit(fs: Filesystem, steps: list[Step]) -> None:
    """Make the changes; if one fails, undo the previous ones and reraise its exception.

    If the files belong to a session, its transaction undoes them.
    """
    undoing = Undoing(fs) if _session_of(fs) is None else None
    try:
        for step in steps:
            if undoing is not None:
                undoing.remember(step)
            _MAKING[step.verb](fs, step)
    except BaseException as error:
        if undoing is not None:
            undoing.undo(error)
        raise


def _delete(fs: Filesystem, step: Step) -> None:
    fs.delete(step.path)


def _move(fs: Filesystem, step: Step) -> None:
    fs.move(step.path, step.to)


def _clear(fs: Filesystem, step: Step) -> None:
    fs.delete(step.path, recursive=True)


def _write(fs: Filesystem, step: Step) -> None:
    if step.pieces is not None:
        fs.splice(step.path, step.pieces)
    else:
        fs.write_bytes(step.path, step.content, mode="create" if step.is_new else "overwrite")


def _link(fs: Filesystem, step: Step) -> None:
    fs.symlink(step.to, step.path)


def _chmod(fs: Filesystem, step: Step) -> None:
    fs.chmod(step.path, step.mode)


_MAKING: dict[str, Callable[[Filesystem, Step], None]] = {
    "delete": _delete,
    "move": _move,
    "clear": _clear,
    "write": _write,
    "link": _link,
    "chmod": _chmod,
}


@define
class Undoing:
    """Undoes changes on a filesystem that has no transactions."""

    fs: Filesystem
    _done: list[Callable[[], object]] = field(factory=list)

    def remember(self, step: Step) -> None:
        """Record how to undo a step that is about to be made."""
        fs, path = self.fs, step.destination
        if step.verb == "clear":
            for entry in fs.walk(path):
                self._put_back_directory(entry.path)
            self._put_back_directory(path)
            return
        if step.verb == "chmod":
            mode = fs.stat(path).mode
            self._done.append(lambda: fs.chmod(path, mode))
            return
        self._keep(path)
        if step.verb == "move":
            self._done.append(lambda: _move_back(fs, step))

    def _put_back_directory(self, path: str) -> None:
        fs, mode = self.fs, self.fs.stat(path).mode

        def put_back() -> None:
            fs.mkdir(path)
            fs.chmod(path, mode)

        self._done.append(put_back)

    def _keep(self, path: str) -> None:
        """Record how to restore the entry at a path, or its absence, including directories that do not exist yet."""
        fs = self.fs
        if not fs.exists(path):
            above = parent(path)
            missing = []
            while above != "/" and _is_missing(fs, above):
                missing.append(above)
                above = parent(above)
            self._done += [_removal(fs, directory) for directory in reversed(missing)]
            self._done.append(_removal(fs, path))
            return
        there = fs.stat(path)
        if there.is_symlink:
            target = fs.readlink(path)
            self._done.append(lambda: _put_link(fs, path, target))
        elif there.is_file:
            content = fs.read_bytes(path).content
            self._done.append(lambda: _put_file(fs, path, content, there.mode))

    def undo(self, error: BaseException) -> None:
        """Undo the recorded steps, the last one first; failures are added to the error as notes."""
        for put_back in reversed(self._done):
            try:
                put_back()
            except Exception as failure:
                # Whatever the exception is, the rest must still be restored.
                error.add_note(f"and it could not be undone: {failure}")


def _move_back(fs: Filesystem, step: Step) -> None:
    # The step that failed may be this one, in which case nothing moved.
    if not fs.exists(step.path):
        fs.move(step.to, step.path)


def _removal(fs: Filesystem, path: str) -> Callable[[], object]:
    return lambda: fs.exists(path) and fs.delete(path)


def _put_link(fs: Filesystem, path: str, target: str) -> None:
    if fs.exists(path):
        fs.delete(path)
    fs.symlink(target, path)


def _put_file(fs: Filesystem, path: str, content: bytes, mode: int) -> None:
    if not fs.exists(path) or fs.read_bytes(path).content != content:
        fs.write_bytes(path, content)
    if fs.stat(path).mode != mode:
        fs.chmod(path, mode)

"""The directories that calls may use, and the host paths that they name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from attrs import frozen

from weakfs.backends import HostFilesystem
from weakfs.filesystem import Filesystem, Limits
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.filesystem.paths import is_within
from weakfs.reducers.tree.name_escaping import from_bytes, to_bytes
from weakfs.session import Session
from weakfs.tools import ToolContext

# The reference server has no limits.
LIMITS = Limits(max_file_size=None, max_path_depth=None, max_segment_length=None)

_WINDOWS = re.compile(r"[A-Za-z]:(?:[\\/]|$)")


@frozen
class HostPath:
    """An entry that a call may use: its filesystem, its canonical path there, and its path on the host."""

    files: HostFilesystem
    path: str
    real: str

    def bound(self, context: ToolContext) -> Filesystem:
        """Return the filesystem for a handler, bound to the session of the call."""
        own = context.filesystem
        is_own = own is not None and own.root == self.files.root
        return by_canonical_paths(own if own is not None and is_own else self.files.bind(context.session))


class Directories:
    """The allowed directories, each with its spellings, and a filesystem for each that is not inside another one."""

    def __init__(self, session: Session, *, read_only: bool = False, store: str | None = None) -> None:
        self._session = session
        self._read_only = read_only
        self._store = store
        self._files: dict[str, HostFilesystem] = {}
        self.allowed: tuple[str, ...] = ()

    def use(self, directories: Iterable[str | os.PathLike[str]]) -> None:
        """Allow these directories instead of the present ones.

        Raises `OSError` if one cannot be opened, and `ValueError` if one contains a directory that was allowed before,
        because the session already has work in that. In both cases the present directories stay.
        """
        spellings = [(os.path.abspath(expanded(os.fspath(one))), os.fspath(one)) for one in directories]
        reals = [os.path.realpath(absolute, strict=True) for absolute, _ in spellings]
        opened = dict(self._files)
        for real in sorted(set(reals), key=len):
            if not any(is_within(real, root) for root in opened):
                opened[real] = HostFilesystem(
                    real, session=self._session, limits=LIMITS, read_only=self._read_only, store=self._store
                )
        self._files = opened
        pairs = zip(spellings, reals, strict=True)
        self.allowed = tuple(dict.fromkeys(one for (absolute, _), real in pairs for one in (absolute, real)))

    @property
    def first(self) -> HostFilesystem | None:
        """The filesystem of the first allowed directory."""
        return self._filesystem_of(self.allowed[0]) if self.allowed else None

    def find(self, requested: str) -> HostPath:
        """Return the entry at a path, following links; it need not exist.

        Raises `PermissionError`, with the reference server's message, if it is outside the allowed directories.
        """
        absolute = self._absolute(requested)
        if "\0" in absolute or not self._is_allowed(absolute):
            raise PermissionError(f"Access denied - path outside allowed directories: {absolute} not in {self._names}")
        try:
            real = os.path.realpath(absolute, strict=True)
        except FileNotFoundError:
            if os.path.islink(absolute):
                raise FileNotFoundError(f"Parent directory does not exist: {os.path.dirname(absolute)}") from None
            self._check_real(os.path.realpath(_existing(absolute)))
            real = os.path.realpath(absolute)
        self._check_real(real)
        return self._host_path(real)

    def _check_real(self, real: str) -> None:
        if not self._is_allowed(real):
            raise PermissionError(
                f"Access denied - symlink target outside allowed directories: {real} not in {self._names}"
            )

    def entry_in(self, directory: HostPath, name: str) -> HostPath | None:
        """Return an entry of a directory by its host name, following links; `None` if it leads outside."""
        try:
            return self.find(os.path.join(directory.real, name))
        except OSError:
            return None

    @property
    def _names(self) -> str:
        return ", ".join(self.allowed)

    def _absolute(self, requested: str) -> str:
        path = expanded(requested)
        if _WINDOWS.match(path):
            raise PermissionError(f"Access denied - Windows-style path received on a POSIX host: {requested}")
        if os.path.isabs(path) or not self.allowed:
            return os.path.abspath(path)
        candidates = [os.path.normpath(os.path.join(directory, path)) for directory in self.allowed]
        return next(filter(self._is_allowed, candidates), candidates[0])

    def _is_allowed(self, path: str) -> bool:
        return any(is_within(path, directory) for directory in self.allowed)

    def _filesystem_of(self, path: str) -> HostFilesystem:
        real = os.path.realpath(path)
        return next(files for root, files in self._files.items() if is_within(real, root))

    def _host_path(self, real: str) -> HostPath:
        files = self._filesystem_of(real)
        below = real.removeprefix(files.root).strip("/")
        segments = [from_bytes(os.fsencode(name)) for name in below.split("/") if name]
        return HostPath(files, "/" + "/".join(segments), real)


def host_name(name: str) -> str:
    """Return an entry's name on the host; bytes that are not UTF-8 become U+FFFD."""
    return to_bytes(name).decode("utf-8", "replace")


def expanded(path: str) -> str:
    """Return a path with `~` replaced by the home directory, as the reference server does."""
    return os.path.expanduser("~") + path[1:] if path == "~" or path.startswith("~/") else path


def valid_roots(uris: Sequence[str]) -> list[str]:
    """Return the directories that a client's roots name; roots that are not directories are left out."""
    from urllib.parse import unquote, urlsplit

    paths = [unquote(urlsplit(uri).path) if uri.startswith("file://") else expanded(uri) for uri in uris]
    return [path for path in paths if os.path.isdir(path)]


def _existing(path: str) -> str:
    """Return the nearest directory above a path that exists."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path

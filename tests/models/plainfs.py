"""A filesystem in one plain dictionary: the effect of every operation, and all reasons to refuse it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from errno import EACCES, EDQUOT, EEXIST, EFBIG, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTEMPTY

from weakfs.filesystem import Limits

from .trees import Entry, Plain

# An error's class and its errno; 0 if it has none.
Problem = tuple[type[Exception], int]

MISSING: Problem = (FileNotFoundError, ENOENT)
EXISTS: Problem = (FileExistsError, EEXIST)
IS_DIRECTORY: Problem = (IsADirectoryError, EISDIR)
NOT_DIRECTORY: Problem = (NotADirectoryError, ENOTDIR)
DENIED: Problem = (PermissionError, EACCES)
NOT_EMPTY: Problem = (OSError, ENOTEMPTY)
TOO_LONG: Problem = (OSError, ENAMETOOLONG)
TOO_LARGE: Problem = (OSError, EFBIG)
OVER_QUOTA: Problem = (OSError, EDQUOT)
LOOP: Problem = (OSError, ELOOP)
NO_LINK: Problem = (OSError, EINVAL)
INVALID: Problem = (ValueError, 0)


class Refused(Exception):
    """An operation is impossible; `problems` lists all reasons, of which a filesystem names one."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__(*problems)


def canonical(path: str) -> str:
    """Return the canonical form of a path, the slow way; `Refused` if it has none."""
    if any(char == "\0" or 0xD800 <= ord(char) <= 0xDFFF for char in path):
        raise Refused(INVALID)
    done: list[str] = []
    for segment in path.replace("\\", "/").split("/"):
        if segment == "..":
            if not done:
                raise Refused(DENIED)
            done.pop()
        elif segment not in ("", "."):
            done.append(segment)
    return "/" + "/".join(done)


def above(path: str) -> list[str]:
    """Return the directories on the way to a path, the root first."""
    segments = path.split("/")[1:]
    return ["/" + "/".join(segments[:depth]) for depth in range(len(segments))] if path != "/" else []


def size_of(entry: Entry) -> int:
    return len(entry[1]) if len(entry) == 3 else 0


def _against(call: Callable[[], object]) -> tuple[Problem, ...]:
    """Return the reasons to refuse a call."""
    try:
        call()
    except Refused as refused:
        return refused.problems
    return ()


class PlainFilesystem:
    """The model: `files` is everything, and every method changes it or raises `Refused`."""

    def __init__(self, files: Plain | None = None, limits: Limits | None = None, *, follows: bool = False) -> None:
        self.files: Plain = {"/": ("d", 0o755)} if files is None else files
        self.limits = limits or Limits()
        self.follows = follows

    def copied(self) -> PlainFilesystem:
        return PlainFilesystem(dict(self.files), self.limits, follows=self.follows)

    def below(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return [other for other in self.files if other.startswith(prefix) and other != "/"]

    # Queries

    def locate(self, path: str, *, follow: bool) -> tuple[str, Entry | None]:
        """Return the canonical path and the entry there; a link that is not followed blocks the path."""
        found = canonical(path)
        if self.follows:
            found = self._resolve(found, follow)
            return found, self.files.get(found)
        on_the_way = [*above(found), found] if follow else above(found)
        if any(self.files.get(place, ("",))[0] == "l" for place in on_the_way):
            raise Refused(DENIED)
        return found, self.files.get(found)

    def _resolve(self, path: str, follow: bool) -> str:
        done: list[str] = []
        todo, links = [name for name in path.split("/") if name], 0
        while todo:
            name = todo.pop(0)
            if name == "..":
                if not done:
                    raise Refused(DENIED)
                done.pop()
                continue
            entry = self.files.get("/" + "/".join((*done, name)))
            if entry is None or len(entry) == 3 or isinstance(entry[1], int) or not (todo or follow):
                done.append(name)
                continue
            links += 1
            if links > 40:
                raise Refused(LOOP)
            done = [] if entry[1].startswith("/") else done
            todo = [part for part in entry[1].split("/") if part not in ("", ".")] + todo
        return "/" + "/".join(done)

    def existing(self, path: str, *, follow: bool = True) -> tuple[str, Entry]:
        found, entry = self.locate(path, follow=follow)
        if entry is None:
            raise Refused(self.missing(found))
        return found, entry

    def missing(self, path: str) -> Problem:
        in_the_way = any(self.files.get(place, ("d",))[0] != "d" for place in above(path))
        return NOT_DIRECTORY if in_the_way else MISSING

    def kind(self, path: str) -> str:
        """Return "f", "d", "l", or "" if there is no entry."""
        entry = self.locate(path, follow=False)[1]
        return entry[0] if entry is not None else ""

    def read_bytes(self, path: str) -> bytes:
        _, entry = self.existing(path)
        if len(entry) != 3:
            raise Refused(IS_DIRECTORY)
        return entry[1]

    def readlink(self, path: str) -> str:
        entry = self.existing(path, follow=False)[1]
        if len(entry) == 2 and isinstance(entry[1], str):
            return entry[1]
        raise Refused(NO_LINK)

    def names(self, path: str) -> list[str]:
        found, entry = self.existing(path)
        if entry[0] != "d":
            raise Refused(NOT_DIRECTORY)
        depth = len(above(found)) + 1
        return sorted(other.rpartition("/")[2] for other in self.below(found) if len(above(other)) == depth)

    # Changes

    def write(self, path: str, data: bytes, mode: str = "overwrite", create_parents: bool = True) -> None:
        found, entry, problems = self._writable(path, mode, create_parents)
        old = b"" if entry is None or len(entry) != 3 else entry[1]
        new = old + data if mode == "append" else data
        problems += self._too_large(new)
        problems += self._quota(len(new) - len(old), self._new_nodes(found))
        if problems:
            raise Refused(*problems)
        self._make_parents(found)
        self.files[found] = ("f", new, entry[2] if entry is not None and len(entry) == 3 else 0o644)

    def check_open(self, path: str, mode: str) -> None:
        """Refuse what opening a stream for writing already refuses."""
        problems = self._writable(path, mode, True)[2]
        if problems:
            raise Refused(*problems)

    def _writable(self, path: str, mode: str, create_parents: bool) -> tuple[str, Entry | None, list[Problem]]:
        if mode not in ("overwrite", "create", "append"):
            raise Refused(INVALID, *_against(lambda: canonical(path)))
        found, entry = self.locate(path, follow=True)
        if entry is not None and entry[0] == "d":
            raise Refused(IS_DIRECTORY)
        if entry is not None:
            return found, entry, [EXISTS] if mode == "create" else []
        return found, None, self._no_room(found, create_parents)

    def splice(self, path: str, pieces: Iterable[tuple[int, int, bytes]]) -> None:
        found, entry = self.existing(path)
        if len(entry) != 3:
            raise Refused(IS_DIRECTORY)
        old, new, last = entry[1], b"", 0
        for start, stop, piece in pieces:
            if not last <= start <= stop <= len(old):
                raise Refused(INVALID)
            new += old[last:start] + piece
            last = stop
        new += old[last:]
        problems = [*self._too_large(new), *self._quota(len(new) - len(old), 0)]
        if problems:
            raise Refused(*problems)
        self.files[found] = ("f", new, entry[2])

    def mkdir(self, path: str, parents: bool = True, exist_ok: bool = True) -> None:
        found, entry = self.locate(path, follow=True)
        if entry is not None:
            if entry[0] == "d" and exist_ok:
                return
            raise Refused(EXISTS)
        problems = [*self._no_room(found, parents), *self._quota(0, self._new_nodes(found))]
        if problems:
            raise Refused(*problems)
        self._make_parents(found)
        self.files[found] = ("d", 0o755)

    def delete(self, path: str, recursive: bool = False) -> int:
        found, entry = self.existing(path, follow=False)
        if found == "/":
            raise Refused(DENIED)
        below = self.below(found) if entry[0] == "d" else []
        if below and not recursive:
            raise Refused(NOT_EMPTY)
        for gone in (found, *below):
            del self.files[gone]
        return 1 + len(below)

    def move(self, src: str, dst: str) -> None:
        source, target, inside, size, nodes = self._transfer(src, dst)
        if source == target:
            return
        problems = self._quota(size, nodes)
        if problems:
            raise Refused(*problems)
        for path in inside:
            del self.files[path]
        self._put_all(target, inside)

    def copy(self, src: str, dst: str) -> None:
        source, target, inside, size, nodes = self._transfer(src, dst)
        if source == target:
            return
        problems = self._quota(size + sum(map(size_of, inside.values())), nodes + len(inside))
        if problems:
            raise Refused(*problems)
        self._put_all(target, inside)

    def _transfer(self, src: str, dst: str) -> tuple[str, str, Plain, int, int]:
        """Return the source, the destination, what moves, and the space that the destination itself takes up."""
        problems = [
            *_against(lambda: self.existing(src, follow=False)),
            *_against(lambda: self.locate(dst, follow=False)),
        ]
        if problems:
            raise Refused(*problems)
        source, entry = self.existing(src, follow=False)
        target, there = self.locate(dst, follow=False)
        is_directory = entry[0] == "d"
        if is_directory and (target == source or source == "/" or target.startswith(source + "/")):
            raise Refused(INVALID)
        inside = {source: entry, **({path: self.files[path] for path in self.below(source)} if is_directory else {})}
        if source == target:
            return source, target, inside, 0, 0
        if there is not None:
            if there[0] == "d":
                raise Refused(IS_DIRECTORY)
            if is_directory:
                raise Refused(NOT_DIRECTORY)
            return source, target, inside, -size_of(there), -1
        problems = self._no_room(target, True)
        for path in inside:
            problems += self._path_too_long(target + path[len(source) :])
        if problems:
            raise Refused(*problems)
        return source, target, inside, 0, self._new_nodes(target) - 1

    def _put_all(self, target: str, inside: Plain) -> None:
        self._make_parents(target)
        source = next(iter(inside))
        for path, entry in inside.items():
            self.files[target + path[len(source) :]] = entry

    def chmod(self, path: str, mode: int) -> None:
        if not 0 <= mode <= 0o7777:
            raise Refused(INVALID, *_against(lambda: canonical(path)))
        found, entry = self.existing(path)
        self.files[found] = ("f", entry[1], mode) if len(entry) == 3 else ("d", mode)

    def symlink(self, target: str, path: str) -> None:
        if not target or "\0" in target:
            raise Refused(INVALID, *_against(lambda: canonical(path)))
        found, entry = self.locate(path, follow=False)
        if entry is not None:
            raise Refused(EXISTS)
        problems = [*self._no_room(found, True), *self._quota(0, self._new_nodes(found))]
        if problems:
            raise Refused(*problems)
        self._make_parents(found)
        self.files[found] = ("l", target)

    # Reasons for a refusal

    def _no_room(self, path: str, create_parents: bool) -> list[Problem]:
        problems = self._path_too_long(path)
        missing = [place for place in above(path) if place not in self.files]
        if self.missing(path) == NOT_DIRECTORY:
            problems.append(NOT_DIRECTORY)
        elif missing and not create_parents:
            problems.append(MISSING)
        return problems

    def _path_too_long(self, path: str) -> list[Problem]:
        segments = path.split("/")[1:]
        depth, length = self.limits.max_path_depth, self.limits.max_segment_length
        too_deep = depth is not None and len(segments) > depth
        too_long = length is not None and any(len(segment.encode()) > length for segment in segments)
        return [TOO_LONG] if too_deep or too_long else []

    def _too_large(self, data: bytes) -> list[Problem]:
        most = self.limits.max_file_size
        return [TOO_LARGE] if most is not None and len(data) > most else []

    def _new_nodes(self, path: str) -> int:
        return sum(place not in self.files for place in (*above(path), path))

    def _quota(self, more_size: int, more_nodes: int) -> list[Problem]:
        size, nodes = sum(map(size_of, self.files.values())), len(self.files) - 1
        most_size, most_nodes = self.limits.max_total_size, self.limits.max_node_count
        over_size = most_size is not None and more_size > 0 and size + more_size > most_size
        over_nodes = most_nodes is not None and more_nodes > 0 and nodes + more_nodes > most_nodes
        return [OVER_QUOTA] if over_size or over_nodes else []

    def is_within_limits(self) -> bool:
        """Return whether operations alone could have produced the entries."""
        sizes = [size_of(entry) for entry in self.files.values()]
        limits = self.limits
        return not (
            any(self._path_too_long(path) for path in self.files if path != "/")
            or (limits.max_file_size is not None and max(sizes) > limits.max_file_size)
            or (limits.max_total_size is not None and sum(sizes) > limits.max_total_size)
            or (limits.max_node_count is not None and len(sizes) - 1 > limits.max_node_count)
        )

    def _make_parents(self, path: str) -> None:
        for place in above(path):
            self.files.setdefault(place, ("d", 0o755))

"""Path lookup: from a path to its node, following links as the policy allows; errors name what is missing."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import EACCES, EBUSY, EINVAL, EISDIR, ELOOP, ENOTDIR, EROFS
from typing import Self, TypeVar, cast

from weakfs.errors import fault
from weakfs.filesystem import paths
from weakfs.filesystem.errors import no_directory, not_found, quoted
from weakfs.filesystem.primitives import FilesystemPrimitives
from weakfs.reducers.tree.leaf import CONTENT, NO_FILE, Leaf, is_link, is_special, kind_of
from weakfs.reducers.tree.node import FileTree, Node, Segments, path_of
from weakfs.reducers.tree.repeated_subtrees import check_repeats

# The maximum number of links followed for one path, the same as on Linux.
MAX_LINKS = 40

F = TypeVar("F")

# A path after following links, its segments, and the node there.
Place = tuple[str, Segments, Node | None]


def canonical_path(fs: object, path: str | os.PathLike[str]) -> str:
    """Return the canonical form that a path has in a filesystem, whether or not there is an entry."""
    parse: Callable[[str | os.PathLike[str]], paths.Parsed] = getattr(fs, "_parse", paths.parse)
    return parse(path)[0]


def by_canonical_paths(fs: F) -> F:
    """Return the same files, for arguments that are paths from results and never paths on the host.

    Below a host root `/app`, the canonical path `/app/main.py` is the file `/app/app/main.py`, but as an argument it
    means the file `/app/main.py`.
    """
    # Looked up on the class, because a wrapper that passes unknown attributes on would return the unwrapped filesystem.
    make: Callable[[F], F] | None = getattr(type(fs), "_by_canonical_paths", None)
    return fs if make is None else make(fs)


class PathLookup(FilesystemPrimitives):
    """Lookup of paths, the first step of every operation."""

    __slots__ = ()

    def _view(self) -> PathLookup:
        """Return the filesystem for a call that reads many files: a view of the current files, or this one."""
        view = self.read_view()
        return view if isinstance(view, PathLookup) else self

    def _content_searched_alone(self, path: str, leaf: Leaf) -> bytes | None:
        """Return the bytes of the only file to search; `None` if the search may not read it."""
        return self.readable_content(path, leaf)

    def _check_repeats(self, segments: Segments) -> None:
        """Raise `TreeTooLarge` for a directory that is mostly copies of itself, before it is walked."""
        node = self.lookup(segments)
        if type(node) is FileTree:
            check_repeats(node)

    # A backend that also accepts other forms of a path overrides this.
    _parse = staticmethod(paths.parse)

    def _below_host_root(self, path: str) -> str | None:
        """Return the path, in this filesystem, of a file given by its path on the host; `None` for any other path."""
        return None

    def _by_canonical_paths(self) -> Self:
        """See `by_canonical_paths`; for backends that also accept other paths."""
        return self

    def _locate(self, path: str | os.PathLike[str], *, follow: bool = True) -> Place:
        """Look up a path. A link on the way, or at the end if `follow`, is followed if the policy allows it."""
        return self._locate_parsed(self._parse(path), follow)

    def _locate_parsed(self, path: paths.Parsed, follow: bool) -> Place:
        canonical, segments = path
        node = self.lookup(segments)
        if node is None or (type(node) is tuple and follow and is_link(node)):
            return self._follow(canonical, segments, follow, node)
        return canonical, segments, node

    def _deepest_above(self, segments: Segments) -> tuple[int, Node | None]:
        """Return the depth of the deepest entry above a path, and its node.

        This takes one lookup if the directory that would contain the path exists, otherwise about 2 log2 of the depth.
        """
        depth = len(segments) - 1
        node = self.lookup(segments[:depth])
        if node is None and depth:
            missing, depth = depth, 0
            # Nothing exists below a missing entry. Most missing paths are missing near the root, so start there.
            while missing - depth > 1:
                middle = min(2 * depth or 1, (depth + missing) // 2)
                found = self.lookup(segments[:middle])
                if found is None:
                    missing = middle
                else:
                    depth, node = middle, found
            if not depth:
                node = self.lookup(())
        return depth, node

    def _follow(self, path: str, segments: Segments, follow: bool, node: Node | None) -> Place:
        """Follow the links of a path; `node` is what `lookup` found there: `None` or a link."""
        depth = len(segments)
        if node is None and depth:
            depth, node = self._deepest_above(segments)
        if type(node) is not tuple or not is_link(node):
            return path, segments, None
        # Only directories are above the link.
        done = list(segments[: depth - 1])
        todo = list(reversed(segments[depth - 1 :]))
        links = 0
        while todo:
            name = todo.pop()
            if name == "..":
                self._climb(done, path)
                continue
            here = (*done, name)
            node = self.lookup(here)
            if node is None and ".." not in todo:
                # Nothing can be below a missing entry, so the rest of a long path that does not exist need not be
                # looked up.
                if not links:
                    return path, segments, None
                gone = (*here, *reversed(todo))
                return (path_of(gone) if gone[0] != ".." else path), gone, None
            if type(node) is not tuple or not is_link(node) or not (todo or follow):
                done.append(name)
                continue
            links += 1
            self._check_link(path, here)
            target = cast(str, node[CONTENT])
            if self.follow_symlinks == "deny":
                raise fault(
                    PermissionError,
                    EACCES,
                    f"cannot use {path!r}: {path_of(here)!r} is a symbolic link to {target!r}, and links are not "
                    "followed here; name the real path, or open the filesystem with follow_symlinks='within_root_only'",
                )
            if links > MAX_LINKS:
                raise fault(
                    OSError,
                    ELOOP,
                    f"cannot use {path!r}: it leads through more than {MAX_LINKS} symbolic links; name the real path",
                )
            if target.startswith("/"):
                done[:], target = self._from_the_top(target, path)
            todo.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
        found = tuple(done)
        node = self.lookup(found)
        if follow and type(node) is tuple and is_link(node):
            raise fault(
                OSError,
                EBUSY,
                f"cannot use {path!r}: {path_of(found)!r} became a symbolic link during the lookup; try again",
            )
        # An entry outside the root has no canonical path here.
        return (path_of(found) if found[:1] != ("..",) else path), found, node

    def _check_link(self, path: str, here: Segments) -> None:
        """Raise `PermissionError` if the symbolic link at `here`, on the way to `path`, may not be read."""

    def _climb(self, done: list[str], path: str) -> None:
        """Go up one directory for a ".." in the target of a link on `path`."""
        if not done:
            raise self._outside(path)
        done.pop()

    def _from_the_top(self, target: str, path: str) -> tuple[list[str], str]:
        """Return where the absolute target of a link on `path` starts, and the path to follow from there."""
        return [], target

    def _outside(self, path: str) -> PermissionError:
        return fault(
            PermissionError,
            EACCES,
            f"cannot use {path!r}: a symbolic link leads out of the root; name a path inside",
        )

    def _existing(self, path: str | os.PathLike[str], verb: str, *, follow: bool = True) -> tuple[str, Segments, Node]:
        place = self._locate(path, follow=follow)
        if place[2] is None:
            raise self._missing(place[0], place[1], verb)
        return cast("tuple[str, Segments, Node]", place)

    def _missing(self, path: str, segments: Segments, verb: str) -> OSError:
        """Return the error for a path with nothing at it: no entry, or a file in place of a directory."""
        depth, node = self._deepest_above(segments)
        if type(node) is tuple:
            blocker = path_of(segments[:depth])
            return fault(
                NotADirectoryError,
                ENOTDIR,
                f"cannot {verb} {quoted(path)}: {quoted(blocker)} is a file, not a directory; use another path",
            )
        # Do not reveal where a link outside the root leads.
        if depth < len(segments) - 1 and segments[0] != "..":
            missing = path_of(segments[: depth + 1])
            return not_found(
                path,
                f"cannot {verb} {quoted(path)}: {no_directory(missing)}",
                f"list {quoted(paths.parent(missing))} to see what is there",
            )
        return not_found(
            path,
            f"cannot {verb} {quoted(path)}: there is no such entry",
            f"list {quoted(paths.parent(path))} to see what is there",
        )

    def _file(self, path: str | os.PathLike[str], verb: str) -> tuple[str, Leaf]:
        canonical, segments = self._parse(path)
        node = self.lookup(segments)
        if type(node) is tuple and type(node[0]) not in NO_FILE:
            return canonical, node
        return self._file_there(path, verb)

    def _file_there(self, path: str | os.PathLike[str], verb: str) -> tuple[str, Leaf]:
        canonical, _, node = self._existing(path, verb)
        if type(node) is FileTree:
            raise fault(
                IsADirectoryError,
                EISDIR,
                f"cannot {verb} {canonical!r}: it is a directory; name a file inside it",
            )
        self._refuse_special(canonical, node, verb)
        return canonical, node

    def _record_read(self, path: str, leaf: Leaf, verb: str) -> Leaf:
        """Return a file that is about to be read; a backend that records reads overrides this."""
        return leaf

    def _refuse_special(self, path: str, leaf: Leaf, verb: str) -> None:
        if is_special(leaf):
            raise fault(
                OSError,
                EINVAL,
                f"cannot {verb} {path!r}: it is a {kind_of(leaf)}, which has no content here; name a file",
            )

    def _directory(self, path: str | os.PathLike[str], verb: str) -> tuple[str, Segments]:
        canonical, segments, node = self._existing(path, verb)
        if type(node) is not FileTree:
            raise fault(
                NotADirectoryError,
                ENOTDIR,
                f"cannot {verb} {canonical!r}: it is a file, not a directory; name a directory",
            )
        return canonical, segments

    def _refuse_if_read_only(self, verb: str, path: object) -> None:
        if self.read_only:
            raise fault(
                PermissionError,
                EROFS,
                f"cannot {verb} {path!r}: the filesystem is read-only; open it for writing to make changes",
            )

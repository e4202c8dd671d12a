"""Searches of names and contents, derived from the primitives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, cast

from weakfs.filesystem.operations.read import PathArg, Reading
from weakfs.filesystem.path_lookup import PathLookup
from weakfs.filesystem.primitives import Searched
from weakfs.filesystem.results import GlobMatch, GlobResult, GrepMatch, GrepResult
from weakfs.messages import a_type
from weakfs.reducers.tree.leaf import CONTENT, MODIFIED_AT, NO_FILE, is_file
from weakfs.reducers.tree.node import FileTree, Listing, Node, Segments
from weakfs.session.interruption import check_interrupted

if TYPE_CHECKING:
    from weakfs.search import GlobPattern, GlobState, Hit, LinePattern, MultilinePattern

# Small files are searched together, up to this many bytes at once: for 2 kB, calling the engine costs more than
# searching. Above 128 KiB, malloc gets new memory from the system for each join, which doubles the time for 21 MB in
# 10,000 files.
BATCH = 1 << 16
# A search checks for interruption once per this many directories, and once per batch.
CHECKED = 50
# A search that reaches this many directories, a multiple of `CHECKED`, checks whether they are mostly copies of one
# another.
MANY_DIRECTORIES = 10_000


class Searching(Reading):
    """`glob` and `grep`."""

    __slots__ = ()

    def glob(
        self,
        pattern: str,
        *,
        path: PathArg = "/",
        hidden: bool = False,
        sort: Literal["mtime", "path"] = "mtime",
        max_results: int = 1000,
    ) -> GlobResult:
        """Find entries by name below a directory: files, links and FIFOs, or directories if the pattern ends in `/`.

        The matches are sorted newest first, then by path, or with `sort="path"` by path only. All matches are sorted
        before the list is cut at `max_results` (-1: no limit). Raises `ValueError` for a malformed pattern.
        """
        if sort not in ("mtime", "path"):
            raise ValueError(f"cannot sort by {sort!r}; use 'mtime' or 'path'")
        if type(max_results) is not int or max_results < -1:
            raise ValueError(f"cannot return {max_results} results; use a number of 0 or more, or -1 for all")
        compiled = self._compile_glob(pattern, hidden=hidden)
        now = self._view()
        canonical, segments = now._directory(path, "search")
        found = list(_matching(now, compiled, canonical, segments))
        found.sort(key=itemgetter(0))
        if sort == "mtime":
            found.sort(key=itemgetter(1), reverse=True)
        shown = found if max_results == -1 else found[:max_results]
        matches = [GlobMatch(match, is_file) for match, _, is_file in shown]
        return GlobResult(matches, truncated=len(shown) < len(found))

    def grep(
        self,
        pattern: str,
        *,
        path: PathArg = "/",
        glob: str | None = None,
        hidden: bool = True,
        case_insensitive: bool = False,
        max_matches: int | None = None,
        max_per_file: int | None = None,
        multiline: bool = False,
    ) -> GrepResult:
        """Find the lines that match a regular expression (RE2 syntax), in files below a directory or in one file.

        Returns one match per line, by path, then line. `glob` selects files. Hidden files are searched too; if `hidden`
        is false, only those that `glob` or `path` names. Binary files, links, FIFOs and the like are not searched.
        `max_matches=None` means `limits.max_grep_matches`, and -1 means all matches. The search stops when the maximum
        is exceeded: `files_searched` and `binary_skipped` count up to that file. `max_per_file` bounds the matches of
        each file. With `multiline`, a match may span lines, and `.` matches a line break; a match then contains all of
        its lines, and a file has at most 1,000 matches. Raises `ValueError` for an expression that the engine does not
        support. The time is linear in the size of what is searched.
        """
        most = self.limits.max_grep_matches if max_matches is None else max_matches
        most = None if most == -1 else most
        if most is not None and (type(most) is not int or most < 0):
            raise ValueError(f"cannot return {max_matches!r} matches; use a number of 0 or more, or -1 for all")
        if max_per_file is not None and (type(max_per_file) is not int or max_per_file < 1):
            raise ValueError(
                f"cannot return {max_per_file!r} matches of each file; use a number of 1 or more, or None for all"
            )
        from weakfs.search import compile_multiline, compile_pattern

        compiled = (compile_multiline if multiline else compile_pattern)(pattern, case_insensitive=case_insensitive)
        chosen = None if glob is None and hidden else self._compile_glob(glob or "**/*", hidden=hidden)
        now = self._view()
        canonical, segments, node = now._existing(path, "search")
        if type(node) is FileTree:
            return _search(compiled, _batches(now, canonical, segments, chosen), most, max_per_file)
        parent = canonical.rpartition("/")[0]
        chosen_too = glob is None or chosen is None or chosen.matches_path(canonical, base=parent or "/")
        alone = _Batch()
        if chosen_too and is_file(node):
            data = now._content_searched_alone(canonical, node)
            if data is not None:
                alone.add(parent, segments[-1], data)
        return _search(compiled, [alone], most, max_per_file)

    def _compile_glob(self, pattern: str, *, hidden: bool) -> GlobPattern:
        """Compile a pattern. Like a path, it may start with the root's path on the host, if files here have one."""
        if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a glob pattern is text, not {a_type(pattern)}; write several as one, '*.{{py,md}}'")
        # Imported here because most new processes read and write without a search.
        from weakfs.search import compile_glob

        below = self._below_host_root(pattern) if isinstance(pattern, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        return compile_glob(pattern if below is None else below, hidden=hidden)


def _matching(now: PathLookup, pattern: GlobPattern, path: str, segments: Segments) -> Iterator[tuple[str, int, bool]]:
    # A search of only a few directories can be interrupted too.
    check_interrupted()
    stack = [("" if path == "/" else path, segments, pattern.start(path))]
    entered = 0
    while stack:
        prefix, here, state = stack.pop()
        entered += 1
        if not entered % CHECKED:
            _check(now, segments, entered)
        literals = state.literals()
        entries: Iterable[tuple[str, Node]]
        if literals is None:
            entries = now.readable_entries(here)
        else:
            entries = [(name, node) for name in literals if (node := now.lookup((*here, name))) is not None]
        matches_file = state.matches_file
        for name, node in entries:
            if type(node) is FileTree:
                if state.matches_directory(name):
                    yield f"{prefix}/{name}", node.modified_at, False
                below = state.enter(name)
                if below is not None:
                    stack.append((f"{prefix}/{name}", (*here, name), below))
            elif matches_file(name):
                yield f"{prefix}/{name}", node[MODIFIED_AT], type(node[CONTENT]) not in NO_FILE


def _check(now: PathLookup, top: Segments, entered: int) -> None:
    """Check a search that has entered this many directories below `top`, for an interruption and for copies."""
    check_interrupted()
    if entered == MANY_DIRECTORIES:
        now._check_repeats(top)


class _Batch:
    """Files that are searched together: the directory path, name and bytes of each."""

    __slots__ = ("names", "prefixes", "size", "texts")

    def __init__(self) -> None:
        self.prefixes: list[str] = []
        self.names: list[str] = []
        self.texts: list[bytes] = []
        self.size = 0

    def add(self, prefix: str, name: str, data: bytes) -> None:
        self.prefixes.append(prefix)
        self.names.append(name)
        self.texts.append(data)
        self.size += len(data) + 1

    def add_all(self, prefix: str, names: Sequence[str], texts: Sequence[bytes], size: int) -> None:
        """Add a directory's files, whose total size in bytes is `size`."""
        self.prefixes += [prefix] * len(names)
        self.names += names
        self.texts += texts
        self.size += size + len(names)

    def binary_before(self, count: int) -> int:
        """Count the binary files that come before text file number `count` (from 0)."""
        from weakfs.search import is_binary

        binary = 0
        for data in self.texts:
            if is_binary(data):
                binary += 1
            elif not count:
                break
            else:
                count -= 1
        return binary

    def without_binary(self) -> _Batch:
        from weakfs.search import is_binary

        kept = _Batch()
        for prefix, name, data in zip(self.prefixes, self.names, self.texts, strict=True):
            if not is_binary(data):
                kept.add(prefix, name, data)
        return kept


def _batches(now: PathLookup, path: str, segments: Segments, chosen: GlobPattern | None) -> Iterator[_Batch]:
    """Yield the files below a directory in path order, in batches of about `BATCH` bytes."""
    state = chosen.start(path) if chosen is not None else None
    prefix = "" if path == "/" else path
    stack = [(prefix, segments, state, _runs(now.search_listing(segments), state))]
    batch = _Batch()
    entered, top = 0, segments
    while stack:
        prefix, here, state, runs = stack[-1]
        for run in runs:
            if isinstance(run, str):
                name = run
                below = state.enter(name) if state is not None else None
                if state is not None and below is None:
                    continue
                entered += 1
                if not entered % CHECKED:
                    _check(now, top, entered)
                inside = (*here, name)
                listing = names, found, size = now.search_listing(inside)
                if size is None or size >= BATCH or below is not None:
                    stack.append((f"{prefix}/{name}", inside, below, _runs(listing, below)))
                    break
                batch.add_all(f"{prefix}/{name}", names, cast("tuple[bytes, ...]", found), size)
                if batch.size >= BATCH:
                    yield batch
                    batch = _Batch()
                continue
            contents = now.readable_contents(here, prefix, run)
            for (name, _), data in zip(run, contents, strict=True):
                if data is None:
                    continue
                if len(data) >= BATCH:
                    # A large file is searched alone, to avoid copying it.
                    yield batch
                    batch = _Batch()
                batch.add(prefix, name, data)
                if batch.size >= BATCH:
                    yield batch
                    batch = _Batch()
        else:
            stack.pop()
    yield batch


def _runs(listing: Listing, state: GlobState | None) -> Iterator[str | list[Searched]]:
    """Yield the directories of a listing by name and, as one list, the chosen files between two of them."""
    names, found, _ = listing
    files: list[Searched] = []
    for name, node in zip(names, found, strict=True):
        if type(node) is FileTree:
            if files:
                yield files
                files = []
            yield name
        elif state is None or state.matches_file(name):
            files.append((name, node))
    if files:
        yield files


def _search(
    pattern: LinePattern | MultilinePattern, batches: Iterable[_Batch], most: int | None, per_file: int | None
) -> GrepResult:
    searched = binary = 0
    matches: list[GrepMatch] = []
    for batch in batches:
        check_interrupted()
        texts = batch
        joined = b"\n".join(batch.texts)
        if b"\0" in joined:
            texts = batch.without_binary()
            joined = b"\n".join(texts.texts)
        room = None if most is None else most - len(matches)
        found = pattern.search_together(texts.texts, joined)
        hits = found if per_file is None else _first_of_each(found, per_file)
        for count, (index, hit) in enumerate(hits):
            if count == room:
                binary += batch.binary_before(index)
                return GrepResult(matches, truncated=True, files_searched=searched + index + 1, binary_skipped=binary)
            matches.append(GrepMatch(f"{texts.prefixes[index]}/{texts.names[index]}", *hit))
        searched += len(texts.texts)
        binary += len(batch.texts) - len(texts.texts)
    return GrepResult(matches, truncated=False, files_searched=searched, binary_skipped=binary)


def _first_of_each(hits: Iterable[tuple[int, Hit]], most: int) -> Iterator[tuple[int, Hit]]:
    """Yield at most this many hits of each file."""
    last, count = -1, 0
    for index, hit in hits:
        count = count + 1 if index == last else 1
        last = index
        if count <= most:
            yield index, hit

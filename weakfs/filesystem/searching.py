"""Searching names and contents, derived from the primitives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from weakfs.filesystem.primitives import Primitives
from weakfs.filesystem.reading import PathArg, Reading
from weakfs.filesystem.results import GlobMatch, GlobResult, GrepMatch, GrepResult
from weakfs.reducers.leaf import MODIFIED_AT, NO_FILE, Leaf, is_file
from weakfs.reducers.tree import FileTree, Node, Segments
from weakfs.search import GlobPattern, LinePattern, compile_glob, compile_pattern, is_binary

# Small files are searched together, up to this many bytes at once: one call of the engine on 2 kB costs more
# for being called than for searching.
BATCH = 1 << 20


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

        The newest first, then by path; or `sort="path"`. All matches are sorted before any are cut off at
        `max_results` (-1: never). Raises `ValueError` for a malformed pattern.
        """
        if sort not in ("mtime", "path"):
            raise ValueError(f"cannot sort by {sort!r}; use 'mtime' or 'path'")
        if type(max_results) is not int or max_results < -1:
            raise ValueError(f"cannot give {max_results} results; give a number from 0 on, or -1 for all")
        compiled = compile_glob(pattern, hidden=hidden)
        now = self._pinned()
        canonical, segments = now._directory(path, "search")
        found = list(_matching(now, compiled, canonical, segments))
        found.sort(key=lambda match: match[0])
        if sort == "mtime":
            found.sort(key=lambda match: match[1], reverse=True)
        shown = found if max_results == -1 else found[:max_results]
        matches = [GlobMatch(match, is_file) for match, _, is_file in shown]
        return GlobResult(matches, truncated=len(shown) < len(found))

    def grep(
        self,
        pattern: str,
        *,
        path: PathArg = "/",
        glob: str | None = None,
        case_insensitive: bool = False,
        max_matches: int | None = None,
    ) -> GrepResult:
        """Find the lines that match a regular expression (RE2 syntax), in files below a directory or in one file.

        One match a line, in order of path, then line. `glob` narrows the files; hidden ones are searched,
        binary ones, links, FIFOs and the like are not. `max_matches=None` gives what `limits.max_grep_matches`
        says, -1 all.
        Raises `ValueError` for an expression that the engine does not have. Linear in what is searched.
        """
        compiled = compile_pattern(pattern, case_insensitive=case_insensitive)
        chosen = compile_glob(glob, hidden=True) if glob is not None else None
        most = self.limits.max_grep_matches if max_matches is None else max_matches
        most = None if most == -1 else most
        if most is not None and most < 0:
            raise ValueError(f"cannot give {max_matches} matches; give a number from 0 on, or -1 for all")
        now = self._pinned()
        canonical, segments, node = now._existing(path, "search")
        if type(node) is FileTree:
            files = _files(now, canonical, segments, chosen)
        else:
            parent = canonical.rpartition("/")[0]
            name = segments[-1]
            named = is_file(node) and (chosen is None or chosen.matches_path(canonical, base=parent or "/"))
            files = iter([(parent, [(name, node)] if named else [])])
        return _search(now, compiled, files, most)


def _matching(now: Primitives, pattern: GlobPattern, path: str, segments: Segments) -> Iterator[tuple[str, int, bool]]:
    stack = [("" if path == "/" else path, segments, pattern.start(path))]
    while stack:
        prefix, here, state = stack.pop()
        literals = state.literals()
        entries: Iterable[tuple[str, Node]]
        if literals is None:
            entries = now._entries_if_readable(here)
        else:
            entries = [(name, node) for name in literals if (node := now._find((*here, name))) is not None]
        for name, node in entries:
            if type(node) is FileTree:
                if state.matches_directory(name):
                    yield f"{prefix}/{name}", node.modified_at, False
                below = state.enter(name)
                if below is not None:
                    stack.append((f"{prefix}/{name}", (*here, name), below))
            elif state.matches_file(name):
                yield f"{prefix}/{name}", node[MODIFIED_AT], is_file(node)


def _files(
    now: Primitives, path: str, segments: Segments, chosen: GlobPattern | None
) -> Iterator[tuple[str, list[tuple[str, Leaf]]]]:
    """Go through the directories: `(prefix, files)`, the files that are to be searched."""
    state = chosen.start(path) if chosen is not None else None
    stack = [("" if path == "/" else path, segments, state)]
    while stack:
        prefix, here, state = stack.pop()
        files: list[tuple[str, Leaf]] = []
        for name, node in now._entries_if_readable(here):
            if type(node) is FileTree:
                below = state.enter(name) if state is not None else None
                if state is None or below is not None:
                    stack.append((f"{prefix}/{name}", (*here, name), below))
            elif (state is None or state.matches_file(name)) and type(node[0]) not in NO_FILE:
                files.append((name, node))
        yield prefix, files


def _search(
    now: Primitives,
    pattern: LinePattern,
    directories: Iterator[tuple[str, list[tuple[str, Leaf]]]],
    most: int | None,
) -> GrepResult:
    searched = binary = 0
    hits: list[tuple[str, bytes]] = []
    for prefix, files in directories:
        for batch in _batches(now, prefix, files):
            contents = [data for _, data in batch]
            joined = contents[0] if len(contents) == 1 else b"\n".join(contents)
            if b"\0" in joined:
                text = [(name, data) for name, data in batch if not is_binary(data)]
                binary += len(batch) - len(text)
                batch, joined = text, b"\n".join([data for _, data in text])
            searched += len(batch)
            if batch and pattern.search(joined, limit=1):
                hits += [(f"{prefix}/{name}", data) for name, data in batch]
    hits.sort()
    matches: list[GrepMatch] = []
    for path, data in hits:
        room = None if most is None else most - len(matches) + 1
        matches += [GrepMatch(path, *hit) for hit in pattern.search(data, limit=room)]
        if most is not None and len(matches) > most:
            break
    truncated = most is not None and len(matches) > most
    return GrepResult(matches[:most], truncated=truncated, files_searched=searched, binary_skipped=binary)


def _batches(now: Primitives, prefix: str, files: list[tuple[str, Leaf]]) -> Iterator[list[tuple[str, bytes]]]:
    batch: list[tuple[str, bytes]] = []
    size = 0
    for name, leaf in files:
        content = leaf[0]
        data = content if type(content) is bytes else now._content_if_readable(f"{prefix}/{name}", leaf)
        if data is None:
            continue
        size += len(data)
        batch.append((name, data))
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch

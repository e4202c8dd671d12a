"""Searching names and contents, derived from the primitives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from weakfs.filesystem.primitives import Primitives
from weakfs.filesystem.reading import PathArg, Reading, in_path_order
from weakfs.filesystem.results import GlobMatch, GlobResult, GrepMatch, GrepResult
from weakfs.reducers.leaf import MODIFIED_AT, Leaf, is_file
from weakfs.reducers.tree import FileTree, Node, Segments
from weakfs.search import GlobPattern, LinePattern, compile_glob, compile_pattern, is_binary

# Small files are searched together, up to this many bytes at once: one call of the engine on 2 kB costs more
# for being called than for searching. Above 128 KiB malloc takes what they are joined in from the system each
# time anew: over 21 MB in 10,000 files, that doubles the time.
BATCH = 1 << 16


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
            return _search(compiled, _batches(now, canonical, segments, chosen), most)
        parent = canonical.rpartition("/")[0]
        chosen_too = chosen is None or chosen.matches_path(canonical, base=parent or "/")
        data = _read(now, parent, segments[-1], node) if chosen_too else None
        return _search(compiled, [[(parent, segments[-1], data)]] if data is not None else [], most)


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


# A file that is searched: the path of its directory, its name and its bytes.
_Text = tuple[str, str, bytes]


def _batches(now: Primitives, path: str, segments: Segments, chosen: GlobPattern | None) -> Iterator[list[_Text]]:
    """Go through the files below a directory in order of path, about `BATCH` bytes of them at a time."""
    state = chosen.start(path) if chosen is not None else None
    prefix = "" if path == "/" else path
    stack = [(prefix, segments, state, iter(in_path_order(now._entries_if_readable(segments))))]
    batch: list[_Text] = []
    size = 0
    while stack:
        prefix, here, state, entries = stack[-1]
        for name, node in entries:
            if type(node) is FileTree:
                below = state.enter(name) if state is not None else None
                if state is None or below is not None:
                    inside = (*here, name)
                    inner = iter(in_path_order(now._entries_if_readable(inside)))
                    stack.append((f"{prefix}/{name}", inside, below, inner))
                    break
            elif state is None or state.matches_file(name):
                content = node[0]
                data = content if type(content) is bytes else _read(now, prefix, name, node)
                if data is None:
                    continue
                size += len(data) + 1
                batch.append((prefix, name, data))
                if size >= BATCH:
                    # A large file is searched alone, and not copied for that.
                    yield from [batch] if len(data) < BATCH else [batch[:-1], batch[-1:]]
                    batch, size = [], 0
        else:
            stack.pop()
    yield batch


def _read(now: Primitives, prefix: str, name: str, leaf: Leaf) -> bytes | None:
    """Give the bytes of a file, nothing for what is none or cannot be read."""
    return now._content_if_readable(f"{prefix}/{name}", leaf) if is_file(leaf) else None


def _search(pattern: LinePattern, batches: Iterable[list[_Text]], most: int | None) -> GrepResult:
    searched = binary = 0
    matches: list[GrepMatch] = []
    truncated = False
    for batch in batches:
        texts = [data for _, _, data in batch]
        joined = b"\n".join(texts)
        if b"\0" in joined:
            batch = [text for text in batch if not is_binary(text[2])]
            binary += len(texts) - len(batch)
            texts = [data for _, _, data in batch]
            joined = b"\n".join(texts)
        searched += len(batch)
        if truncated:
            continue
        for index in pattern.candidates(texts, joined):
            prefix, name, data = batch[index]
            room = None if most is None else most - len(matches) + 1
            matches += [GrepMatch(f"{prefix}/{name}", *hit) for hit in pattern.search(data, limit=room)]
            if most is not None and len(matches) > most:
                truncated = True
                break
    return GrepResult(matches[:most], truncated=truncated, files_searched=searched, binary_skipped=binary)

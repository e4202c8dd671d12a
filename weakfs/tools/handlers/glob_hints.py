"""Hints for a glob pattern that matched no file: hidden files, literal brackets, a path given twice.

A second search finds the hint. It looks at a bounded number of names, through the same guard as the first search: what
a capability or a policy hides is neither counted nor named.
"""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.class_decorators import frozen
from weakfs.filesystem import FileEntry
from weakfs.filesystem.path_lookup import canonical_path
from weakfs.filesystem.paths import join
from weakfs.messages import one_line, plural
from weakfs.search import compile_glob
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.permissions import Visibility

# The maximum number of entries that one hint looks at.
MAX_ENTRIES = 10_000
# How to write a special character of patterns so that it is matched literally.
LITERALS = {"[": "[[]", "{": "[{]"}


def why_no_match(
    pattern: str, path: str, context: ToolContext, *, hidden: bool, only_files: bool = False
) -> str | None:
    """Explain why a glob pattern matched nothing below a directory, and what to do; `None` if the reason is unknown.

    `only_files` ignores links. Looks at up to `MAX_ENTRIES` entries for each possible reason.
    """
    search = NameSearch(context, canonical_path(context.filesystem, path), only_files)
    for candidate in _without_start(pattern, search.start):
        if search.matches(candidate, hidden=hidden):
            better = one_line(candidate)
            return f"the search already starts in {search.start!r}, which the pattern repeats; write {better!r}"
    for signs, candidate in _literally(pattern):
        if search.matches(candidate, hidden=hidden):
            better = one_line(candidate)
            return f"{signs} have a special meaning in a pattern; for names that contain them, write {better!r}"
    if hidden:
        return None
    count, is_all = search.count(pattern, hidden=True)
    if not count:
        return None
    noun = "hidden directory" if pattern.endswith(("/", "\\")) else "hidden file"
    amount = plural(count, noun) if is_all else f"at least {plural(count, noun)}"
    verb, them = ("matches", "it") if count == 1 and is_all else ("match", "them")
    return f"{amount} {verb}; set hidden to include {them}"


def _without_start(pattern: str, start: str) -> Iterator[str]:
    """Yield the pattern without its first names if the search path already ends with them."""
    text = pattern.replace("\\", "/").removeprefix("./")
    if text.startswith("/") or start == "/":
        # An absolute pattern starts at the root anyway.
        return
    above, names = start[1:].split("/"), text.split("/")
    for count in range(min(len(above), len(names) - 1), 0, -1):
        rest = "/".join(names[count:])
        if names[:count] == above[-count:] and rest:
            yield rest


def _literally(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield the pattern with brackets, braces, or both taken literally, each together with those characters."""
    found = [one for one in LITERALS if one in pattern]
    for chosen in dict.fromkeys([*((one,) for one in found), tuple(found)]):
        if chosen:
            signs = " and ".join({"[": "[]", "{": "{}"}[one] for one in chosen)
            yield signs, "".join(LITERALS[one] if one in chosen else one for one in pattern)


@frozen
class NameSearch:
    """A search by name below `start` that looks at a bounded number of entries."""

    context: ToolContext
    start: str
    only_files: bool

    def matches(self, pattern: str, *, hidden: bool) -> bool:
        """Return whether a pattern matches an entry that may be named."""
        try:
            return self.count(pattern, hidden=hidden, at_most=1)[0] > 0
        except (ValueError, PermissionError):
            # A changed pattern may be malformed.
            return False

    def count(self, pattern: str, *, hidden: bool, at_most: int = MAX_ENTRIES) -> tuple[int, bool]:
        """Return how many entries match a pattern and may be named, and whether the count is complete."""
        capability = self.context.capability
        left = MAX_ENTRIES
        if capability is not None and capability.max_scan_files is not None:
            left = min(left, capability.max_scan_files)
        count = 0
        stack = [(self.start, compile_glob(pattern, hidden=hidden).start(self.start))]
        while stack:
            directory, state = stack.pop()
            for entry in self._entries(directory):
                if not left or count == at_most:
                    return count, False
                left -= 1
                path = join(directory, entry.name)
                is_wanted = entry.is_file or entry.is_directory or not self.only_files
                if is_wanted and state.matches(entry.name, entry.is_directory) and self._may_name(path):
                    count += 1
                below = state.enter(entry.name) if entry.is_directory else None
                if below is not None:
                    stack.append((path, below))
        return count, True

    def _entries(self, directory: str) -> tuple[FileEntry, ...]:
        try:
            return require_filesystem(self.context).list(directory)
        except (OSError, ValueError):
            return ()

    def _may_name(self, path: str) -> bool:
        policy = self.context.policy
        return policy is None or policy.visibility("search", path) == Visibility.SHOWN

"""The contents of files in a page: each is included once, most as differences from another, up to a size limit."""

from __future__ import annotations

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.reducers.merging.line_merge import common_ends
from weakfs.reducers.tree.leaf import Leaf, blob_digest, content_of, is_special, kind_of, size_of
from weakfs.search import is_binary
from weakfs.session import MissingBlob


@frozen
class PageLimits:
    """Limits on the contents of a page; the page says what was left out.

    `file_bytes` is the maximum size of a file whose content is included. `changed_bytes` limits the total size of
    contents that rows changed, `unchanged_bytes` that of files that never changed. `entries` limits the number of names
    in complete trees, and `blame_lines` the number of lines, in all versions of files, whose origins are included.
    """

    rows: int = 50_000
    file_bytes: int = 512 * 1024
    changed_bytes: int = 32 * 1024 * 1024
    unchanged_bytes: int = 2 * 1024 * 1024
    entries: int = 100_000
    blame_lines: int = 4_000_000


# The maximum length of a chain of differences: longer ones take too long to assemble, shorter ones make the page
# larger.
MAX_CHAIN = 64


@define(eq=False)
class PageContents:
    """The contents of a page, numbered in the order in which they were first requested.

    An entry is one of three: the text; `[base, prefix, suffix, middle]`, with the number of a similar entry, how many
    UTF-16 units at its start and end are the same, and the text between them; or an object with `size` and the reason
    `why` there is no text: "binary", "missing" from storage, "large", "full" if the page is full ("unchanged" for a
    file that no row changed), or "omitted" on request. With `why: "encoding"` there is a `text` in which bytes that are
    not UTF-8 are U+FFFD.
    """

    limits: PageLimits
    is_omitted: bool = False
    entries: list[object] = field(factory=list[object])
    _numbers: dict[tuple[str, bytes], int] = field(factory=dict[tuple[str, bytes], int])
    _chains: dict[int, int] = field(factory=dict[int, int])
    _changed_bytes: int = 0
    _unchanged_bytes: int = 0

    def number(self, leaf: Leaf, *, is_changed: bool, base: Leaf | None = None) -> int:
        """Return the number of a file's content; add the content if it is new.

        `base` is the content that it replaced.
        """
        key = kind_of(leaf), blob_digest(leaf)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.entries)
            self.entries.append(None)
            self._fill(number, leaf, base, is_changed=is_changed)
        elif is_changed and self._why(number) == "unchanged":
            self._fill(number, leaf, base, is_changed=True)
        return number

    def count_left_out(self) -> dict[str, int]:
        """Count the contents without text, by reason."""
        counts: dict[str, int] = {}
        for number in range(len(self.entries)):
            why = self._why(number)
            if why is not None:
                counts[why] = counts.get(why, 0) + 1
        return counts

    def has_text(self, number: int) -> bool:
        """Return whether the text of an entry is included."""
        return self._why(number) in (None, "encoding")

    def _why(self, number: int) -> str | None:
        entry = self.entries[number]
        return str(entry["why"]) if isinstance(entry, dict) else None

    def _fill(self, number: int, leaf: Leaf, base: Leaf | None, *, is_changed: bool) -> None:
        size = 0 if is_special(leaf) else size_of(leaf)
        text = self._text(leaf, size)
        if isinstance(text, dict):
            self.entries[number] = text
            return
        entry, cost = self._against(number, text, base)
        used = self._changed_bytes if is_changed else self._unchanged_bytes
        if used + cost > (self.limits.changed_bytes if is_changed else self.limits.unchanged_bytes):
            self._chains.pop(number, None)
            self.entries[number] = {"size": size, "why": "full" if is_changed else "unchanged"}
            return
        self.entries[number] = entry
        if is_changed:
            self._changed_bytes += cost
        else:
            self._unchanged_bytes += cost

    def _text(self, leaf: Leaf, size: int) -> str | dict[str, object]:
        if self.is_omitted:
            return {"size": size, "why": "omitted"}
        if size > self.limits.file_bytes:
            return {"size": size, "why": "large"}
        try:
            data = content_of(leaf)
        except MissingBlob:
            return {"size": size, "why": "missing"}
        if is_special(leaf) or is_binary(data):
            return {"size": size, "why": "binary"}
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"size": size, "why": "encoding", "text": data.decode("utf-8", "replace")}

    def _against(self, number: int, text: str, base: Leaf | None) -> tuple[object, int]:
        """Return the entry for a text, and its approximate size in bytes."""
        other = None if base is None else self._numbers.get((kind_of(base), blob_digest(base)))
        chain = 0 if other is None else self._chains.get(other, 0) + 1
        if base is None or other is None or other == number or chain > MAX_CHAIN or self._why(other) is not None:
            return text, len(text)
        # Only contents that were included as text can be a base, so this one can be read and decoded.
        old = content_of(base).decode()
        prefix, suffix = common_ends(old, text)
        middle = text[prefix : len(text) - suffix]
        if len(middle) + 24 >= len(text):
            return text, len(text)
        self._chains[number] = chain
        start, end = utf16_length(text[:prefix]), utf16_length(text[len(text) - suffix :])
        return [other, start, end, middle], len(middle) + 24


def utf16_length(text: str) -> int:
    """Return the length of a text as JavaScript counts it."""
    return len(text) if text.isascii() else len(text) + sum(character > "\uffff" for character in text)

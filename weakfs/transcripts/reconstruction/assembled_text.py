"""Texts assembled from parts that were read one after another."""

from __future__ import annotations

from attrs import define, field, frozen


@frozen
class Part:
    """Lines of a file, starting at line `first`; text after the last line break counts as a line, even if empty.

    `total` is the number of lines in the file, None if it is not known yet.
    """

    first: int
    lines: tuple[str, ...] = field(repr=False)
    total: int | None = None


@define
class Parts:
    """The known parts of files that are not known in full; later parts override earlier ones."""

    _lines: dict[str, dict[int, str]] = field(factory=dict[str, dict[int, str]])
    _totals: dict[str, int] = field(factory=dict[str, int])

    def learn(self, path: str, part: Part) -> str | None:
        """Add a part, and return the text once all of it is known."""
        known = self._lines.setdefault(path, {})
        total = self._totals.get(path)
        is_changed = part.total is not None and total is not None and part.total != total
        if is_changed or any(known.get(number, line) != line for number, line in enumerate(part.lines, part.first)):
            # The file has changed in the meantime.
            self.forget(path)
            known = self._lines.setdefault(path, {})
        known.update(enumerate(part.lines, part.first))
        if part.total is not None:
            self._totals[path] = part.total
        total = self._totals.get(path)
        if total is None or len(known) != total or not all(number in known for number in range(1, total + 1)):
            return None
        text = "\n".join(known[number] for number in range(1, total + 1))
        self.forget(path)
        return text

    def forget(self, path: str) -> None:
        """Forget all parts of a file, because it was changed."""
        self._lines.pop(path, None)
        self._totals.pop(path, None)

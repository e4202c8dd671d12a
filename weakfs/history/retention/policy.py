"""The limits of retention, and the report on what was dropped and on the size of the rest."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from weakfs.class_decorators import frozen

HolderKind = Literal["files", "records", "calls", "snapshot"]


@frozen
class Retention:
    """What to keep. `None` means no limit; whatever exceeds any of the limits is dropped, oldest first.

    `max_bytes` limits the total size of contents, each counted once. `max_records` and `max_snapshots` are how many of
    the newest to keep. Tagged snapshots are kept unless `keep_tags` is false. Tool calls are dropped with their records
    unless `keep_calls` is true. Raises `ValueError` if no limit is given, or a negative one.
    """

    max_bytes: int | None = None
    max_age: timedelta | None = None
    max_records: int | None = None
    max_snapshots: int | None = None
    keep_tags: bool = True
    keep_calls: bool = False

    def __attrs_post_init__(self) -> None:
        if self.max_age is not None and not isinstance(self.max_age, timedelta):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"max_age is {self.max_age!r:.60}; pass a datetime.timedelta, such as timedelta(days=30)")
        limits = {"max_bytes": self.max_bytes, "max_records": self.max_records, "max_snapshots": self.max_snapshots}
        for name, limit in limits.items():
            if limit is not None and type(limit) is not int:
                raise TypeError(f"{name} is {limit!r:.60}; pass a whole number, or None for no limit")
        if self.max_age is None and all(limit is None for limit in limits.values()):
            raise ValueError(
                "cannot tell what to keep: no limit is given; pass max_bytes, max_age, max_records or max_snapshots"
            )
        for name, limit in limits.items():
            if limit is not None and limit < 0:
                raise ValueError(
                    f"cannot use {name}={limit}: a limit cannot be negative; pass 0 or more, or None for no limit"
                )
        if self.max_age is not None and self.max_age < timedelta(0):
            raise ValueError(f"cannot use max_age={self.max_age}: a limit cannot be negative; pass 0 or more, or None")

    def oldest(self, now: int) -> int | None:
        """Return the oldest time to keep, in nanoseconds; `None` if age is not limited."""
        return None if self.max_age is None else now - self.max_age // timedelta(microseconds=1) * 1_000


@frozen
class Holder:
    """A holder of contents: the current files, the records, the calls or one snapshot.

    `bytes` is the size of everything that it holds, `exclusive` the size of what nothing else holds, that is, of what
    dropping this holder alone would free. For a snapshot in a store, `bytes` is the size of its files, and `exclusive`
    the size of what is stored for it alone. `at` is the time of a snapshot, in nanoseconds; `name` is its id.
    """

    kind: HolderKind
    name: str
    tag: str | None
    at: int | None
    bytes: int
    exclusive: int

    @property
    def shared(self) -> int:
        """The size of what other holders hold too."""
        return max(self.bytes - self.exclusive, 0)


@frozen
class PruneReport:
    """What was dropped, or with `preview` would be dropped.

    `records` and `calls` are the numbers of dropped records and calls. `dropped` are the dropped snapshots, with sizes
    from before; `kept` are the remaining holders of contents. `excess` is the number of bytes by which the rest still
    exceeds `max_bytes` although nothing else can be dropped.
    """

    preview: bool
    records: int
    calls: int
    dropped: tuple[Holder, ...]
    kept: tuple[Holder, ...]
    bytes_before: int
    bytes_after: int
    excess: int = 0

    @property
    def freed(self) -> int:
        """The size of the contents that are freed."""
        return self.bytes_before - self.bytes_after

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to drop."""
        return not (self.records or self.calls or self.dropped or self.freed)

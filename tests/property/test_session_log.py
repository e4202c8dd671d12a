"""`Log` compared with a plain list, in any number of branching versions, and in threads."""

from __future__ import annotations

import sys
from itertools import count
from threading import Barrier, Thread

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine  # pyright: ignore[reportUnknownVariableType]  # untyped

from tests.sampling import share
from weakfs.session import Log
from weakfs.session.slices.log import SEGMENT

Version = tuple["Log[object]", list[object]]
SIZES = st.sampled_from([0, 1, 2, 5, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT])


class Copied:
    """A packed stretch that holds the same items."""

    def __init__(self, items: list[object]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def load(self) -> list[object]:
        """Return the items."""
        return [*self.items]


class LogVersions(RuleBasedStateMachine):
    """Many logs that grew from one another, each with the list that it must equal."""

    versions: Bundle[Version] = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.fresh = count()

    def new(self, number: int) -> list[object]:
        return [f"item {next(self.fresh)}" for _ in range(number)]

    def check(self, log: Log[object], items: list[object]) -> Version:
        assert len(log) == len(items)
        assert list(log) == items
        assert log.last() == (items[-1] if items else None)
        return log, items

    @rule(target=versions, size=SIZES)
    def start(self, size: int) -> Version:
        items = self.new(size)
        return self.check(Log(items), items)

    @rule(target=versions, version=versions)
    def append(self, version: Version) -> Version:
        log, items = version
        (item,) = self.new(1)
        return self.check(log.append(item), [*items, item])

    @rule(target=versions, version=versions, size=SIZES)
    def extend(self, version: Version, size: int) -> Version:
        log, items = version
        more = self.new(size)
        return self.check(log.extend(more), [*items, *more])

    @rule(target=versions, version=versions)
    def replace_last(self, version: Version) -> Version:
        log, items = version
        (item,) = self.new(1)
        return self.check(log.replace_last(item), [*items[:-1], item])

    @rule(target=versions, version=versions, data=st.data())
    def prefix(self, version: Version, data: st.DataObject) -> Version:
        log, items = version
        length = data.draw(st.integers(0, len(items)) | st.sampled_from([min(SEGMENT, len(items)), len(items)]))
        return self.check(log.prefix(length), items[:length])

    @rule(version=versions, data=st.data())
    def pack(self, version: Version, data: st.DataObject) -> None:
        log, items = version
        every = [stretch for stretch, _ in log._stretches() if len(stretch.items)]
        for stretch in data.draw(st.lists(st.sampled_from(every), unique_by=id)) if every else ():
            stretch.items = Copied(stretch.close())
        self.check(log, items)

    @rule(target=versions, version=versions, data=st.data())
    def without_first(self, version: Version, data: st.DataObject) -> Version:
        log, items = version
        count = data.draw(st.integers(0, len(items)))
        return self.check(log.without_first(count), items[count:])

    @rule(one=versions, other=versions)
    def extends(self, one: Version, other: Version) -> None:
        assert one[0].extends(other[0]) == (one[1][: len(other[1])] == other[1])

    @rule(version=versions, data=st.data())
    def since(self, version: Version, data: st.DataObject) -> None:
        log, items = version
        start = data.draw(st.integers(0, len(items) + 2))
        assert list(log.since(start)) == items[start:]

    @rule(version=versions, data=st.data())
    def item(self, version: Version, data: st.DataObject) -> None:
        log, items = version
        index = data.draw(st.integers(-len(items) - 2, len(items) + 1))
        if -len(items) <= index < len(items):
            assert log[index] is items[index]
        else:
            with pytest.raises(IndexError):
                log[index]

    @rule(version=versions, start=st.none() | st.integers(-600, 600), stop=st.none() | st.integers(-600, 600))
    def part(self, version: Version, start: int | None, stop: int | None) -> None:
        log, items = version
        assert list(log[start:stop]) == items[start:stop]
        assert list(log[start:stop:-2]) == items[start:stop:-2]

    @rule(version=consumes(versions))
    def forget(self, version: Version) -> None:
        self.check(*version)

    @rule(version=versions)
    def look_again(self, version: Version) -> None:
        self.check(*version)


def test_any_versions_equal_lists() -> None:
    run_machine(LogVersions, settings=settings(max_examples=share(60), stateful_step_count=40, deadline=None))


@pytest.mark.parametrize("size", [0, 10, SEGMENT, 3 * SEGMENT])
def test_threads_that_append_to_one_log_concurrently_get_separate_logs(size: int) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for attempt in range(60):
            base: Log[object] = Log(range(size))
            grown: dict[int, Log[object]] = {}
            barrier = Barrier(3)

            def grow(
                name: int, base: Log[object] = base, grown: dict[int, Log[object]] = grown, start: Barrier = barrier
            ) -> None:
                start.wait()
                log = base
                for number in range(40):
                    log = log.append((name, number))
                grown[name] = log

            threads = [Thread(target=grow, args=(name,)) for name in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

            assert list(base) == list(range(size)), attempt
            for name, log in grown.items():
                assert list(log) == [*range(size), *((name, number) for number in range(40))], attempt
    finally:
        sys.setswitchinterval(interval)

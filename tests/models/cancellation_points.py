"""Cancelling a task at each of its suspensions in turn, and at those of the tasks that it starts."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from attrs import define

T = TypeVar("T")


@define
class Point:
    """A suspension, counted from 0, at which a task is cancelled: at its beginning or, if `is_late`, at its end.

    The task is cancelled again at each of the next `again` suspensions.
    """

    number: int
    is_late: bool
    again: int
    # Whether tasks begin immediately, as with `asyncio.eager_task_factory`.
    is_eager: bool = False
    _count: int = 0
    _task: asyncio.Task[Any] | None = None
    # Whether the task was cancelled before it ended.
    was_reached: bool = False

    async def cancels(self, work: Coroutine[Any, Any, T]) -> T | asyncio.CancelledError | Exception:
        """Return what some work returned or raised that is cancelled here."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._new_task)
        try:
            self._task = task = loop.create_task(work)
            await asyncio.wait([task])
        finally:
            loop.set_task_factory(None)
            self._task = None
        if task.cancelled():
            return asyncio.CancelledError()
        error = task.exception()
        assert error is None or isinstance(error, Exception)
        return task.result() if error is None else error

    def _new_task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        async def run() -> Any:
            if self._task is None:
                # An eager task begins before it is returned.
                self._task = asyncio.current_task()
            return await _Watched(work, self._suspended)

        if self.is_eager:
            options["eager_start"] = True
        task = asyncio.Task(run(), loop=loop, **options)
        # It was not even begun if the task was cancelled first.
        task.add_done_callback(lambda _: work.close())
        return task

    def _suspended(self, waits_for: object) -> None:
        number, self._count = self._count, self._count + 1
        if not self.number <= number <= self.number + self.again:
            return
        if self.is_late and number == self.number and isinstance(waits_for, asyncio.Future):
            # Before the callback that resumes the task.
            waits_for.add_done_callback(lambda _: self._cancel())
        else:
            self._cancel()

    def _cancel(self) -> None:
        if self._task is not None:
            self.was_reached |= self._task.cancel()


class _Watched:
    """A coroutine whose suspensions are reported."""

    def __init__(self, work: Coroutine[Any, Any, Any], report: Callable[[object], None]) -> None:
        self._work, self._report = work, report

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = lambda: self._work.send(None)  # noqa: E731
        while True:
            try:
                waits_for = step()
            except StopIteration as end:
                return end.value
            self._report(waits_for)
            try:
                given = yield waits_for
            except BaseException as error:
                step = _thrown(self._work, error)
            else:
                step = _sent(self._work, given)


def _sent(work: Coroutine[Any, Any, Any], given: object) -> Callable[[], Any]:
    return lambda: work.send(given)


def _thrown(work: Coroutine[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: work.throw(error)


def at_each_point(
    scenario: Callable[[Point, Path], Coroutine[Any, Any, None]],
    place: Path,
    *,
    is_eager: bool = False,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> int:
    """Run a scenario once for each point at which it can be cancelled, each time in a new directory.

    Return the number of points. A scenario passes its work to `Point.cancels`, and must leave no task and no open file
    behind. `new_loop` makes the event loops, by default asyncio's own.
    """
    reached = 0
    for is_late in (False, True):
        for again in (0, 3):
            for number in count():
                point = Point(number, is_late, again, is_eager)
                folder = place / f"{number}-{again}-{is_late}"
                folder.mkdir()
                with asyncio.Runner(loop_factory=new_loop) as runner:
                    runner.run(_checked(scenario(point, folder)))
                assert open_files(folder) == [], point
                if not point.was_reached:
                    break
                reached += 1
    return reached


def open_files(folder: Path) -> list[str]:
    """Return the files below a directory that this process has open."""
    for thread in threading.enumerate():
        if thread.name == "weakfs-cancel":
            # It has reported its end, but still refers to the session.
            thread.join(60)
    # Sessions that were given up may be part of reference cycles.
    gc.collect()
    found: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(descriptor.readlink()))
    return [path for path in found if path.startswith(str(folder))]


async def _checked(scenario: Coroutine[Any, Any, None]) -> None:
    with no_reported_errors():
        await scenario
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left


@contextmanager
def no_reported_errors() -> Iterator[None]:
    """Check that nothing is reported to the event loop, such as an exception that was never retrieved."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    yield
    assert not reported

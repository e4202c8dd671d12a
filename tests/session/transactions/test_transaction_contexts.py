"""Tasks, callbacks and copied contexts: which of them belong to a transaction and which do not."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref

import pytest

from tests.session.ledger import Added, Noted, Put, elsewhere, make_session, notes_of, shelf_of, total_of


def test_a_task_created_inside_does_not_join() -> None:
    session = make_session()

    async def child() -> None:
        session.dispatch(Put("child", 1))

    async def parent() -> None:
        with pytest.raises(LookupError), session.transaction():
            session.dispatch(Added(1))
            await asyncio.create_task(child())
            assert shelf_of(session) == {}
            raise LookupError

    asyncio.run(parent())

    assert (total_of(session), shelf_of(session)) == (0, {"child": 1})


def test_a_task_created_inside_that_outlives_the_transaction_writes_to_the_session() -> None:
    session = make_session()

    async def child(started: asyncio.Event, go: asyncio.Event) -> None:
        started.set()
        await go.wait()
        session.dispatch(Put("late", 1))

    async def parent() -> None:
        started, go = asyncio.Event(), asyncio.Event()
        tasks: list[asyncio.Task[None]] = []
        with pytest.raises(LookupError), session.transaction():
            tasks.append(asyncio.create_task(child(started, go)))
            await started.wait()
            raise LookupError
        go.set()
        await asyncio.gather(*tasks)

    asyncio.run(parent())

    assert shelf_of(session) == {"late": 1}


def test_a_transaction_continues_across_awaits_in_its_own_task() -> None:
    session = make_session()

    async def deeper() -> None:
        await asyncio.sleep(0)
        session.dispatch(Added(10))

    async def main() -> None:
        with pytest.raises(LookupError), session.transaction():
            session.dispatch(Added(1))
            await deeper()
            assert total_of(session) == 11
            raise LookupError

    asyncio.run(main())

    assert total_of(session) == 0


def test_concurrent_tasks_have_separate_transactions() -> None:
    session = make_session()

    async def call(number: int) -> None:
        try:
            with session.transaction(cause=f"call-{number}"):
                for step in range(5):
                    session.dispatch(Put(f"{number}.{step}", step))
                    session.dispatch(Noted(f"{number}.{step}"))
                    await asyncio.sleep(0)
                if number % 2:
                    raise LookupError
        except LookupError:
            pass

    async def main() -> None:
        await asyncio.gather(*(call(number) for number in range(8)))

    asyncio.run(main())

    assert sorted(shelf_of(session)) == [f"{number}.{step}" for number in (0, 2, 4, 6) for step in range(5)]
    assert sorted(notes_of(session)) == [f"{number}.{step}" for number in range(8) for step in range(5)]


def test_work_sent_to_a_thread_from_inside_does_not_join() -> None:
    session = make_session()

    async def main() -> None:
        with pytest.raises(LookupError), session.transaction():
            session.dispatch(Added(1))
            await asyncio.to_thread(session.dispatch, Put("thread", 1))
            raise LookupError

    asyncio.run(main())

    assert (total_of(session), shelf_of(session)) == (0, {"thread": 1})


def test_a_loop_callback_scheduled_inside_does_not_join() -> None:
    session = make_session()

    async def main() -> None:
        called = asyncio.Event()

        def callback() -> None:
            session.dispatch(Put("callback", 1))
            called.set()

        with pytest.raises(LookupError), session.transaction():
            asyncio.get_running_loop().call_soon(callback)
            await called.wait()
            raise LookupError

    asyncio.run(main())

    assert shelf_of(session) == {"callback": 1}


def test_a_cancelled_task_is_rolled_back() -> None:
    session = make_session()

    async def call(started: asyncio.Event) -> None:
        with session.transaction():
            session.dispatch(Added(1))
            started.set()
            await asyncio.Event().wait()

    async def main() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(call(started))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert total_of(session) == 0
    session.dispatch(Added(5))
    assert total_of(session) == 5


def test_a_context_from_before_the_transaction_does_not_join() -> None:
    session = make_session()
    before = contextvars.copy_context()

    with pytest.raises(LookupError), session.transaction():
        before.run(session.dispatch, Put("outside", 1))
        raise LookupError

    assert shelf_of(session) == {"outside": 1}


def test_a_copy_of_the_context_run_inside_is_the_same_piece_of_work() -> None:
    session = make_session()

    with pytest.raises(LookupError), session.transaction():
        contextvars.copy_context().run(session.dispatch, Added(1))
        assert total_of(session) == 1
        raise LookupError

    assert total_of(session) == 0


def test_a_copy_of_the_context_run_after_the_end_writes_to_the_session() -> None:
    session = make_session()
    with session.transaction():
        copy = contextvars.copy_context()

    copy.run(session.dispatch, Added(1))

    assert total_of(session) == 1


def test_a_copy_of_the_context_run_in_another_thread_does_not_join() -> None:
    session = make_session()

    with pytest.raises(LookupError), session.transaction():
        copy = contextvars.copy_context()
        elsewhere(lambda: copy.run(session.dispatch, Put("thread", 1)))
        raise LookupError

    assert shelf_of(session) == {"thread": 1}


def test_a_transaction_opened_in_a_copied_context_is_nested() -> None:
    session = make_session()

    def work() -> None:
        with session.transaction():
            session.dispatch(Added(10))

    with pytest.raises(LookupError), session.transaction():
        contextvars.copy_context().run(work)
        assert total_of(session) == 10
        raise LookupError

    assert total_of(session) == 0


def test_a_thread_that_receives_work_may_have_its_own_transaction() -> None:
    session = make_session()

    def fail_there() -> None:
        with session.transaction(cause="there"):
            session.dispatch(Put("there", 1))
            raise KeyError

    async def main() -> None:
        with session.transaction(cause="here"):
            session.dispatch(Added(1))
            with pytest.raises(KeyError):
                await asyncio.to_thread(fail_there)
            session.dispatch(Added(1))

    asyncio.run(main())

    assert (total_of(session), shelf_of(session)) == (2, {})


def test_a_context_copied_inside_does_not_keep_the_session_alive_after_the_end() -> None:
    session = make_session()
    held = weakref.ref(session)
    with session.transaction():
        session.dispatch(Added(1))
        context = contextvars.copy_context()

    del session
    gc.collect()

    assert held() is None
    assert len(context) >= 0

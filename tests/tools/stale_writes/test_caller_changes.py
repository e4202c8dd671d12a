"""Calls without a caller do not overwrite a caller's changes."""

from __future__ import annotations

import threading
from contextlib import suppress

from tests.models.cost import lines_of
from tests.tools.stale_writes.conftest import write
from weakfs import Session, Toolset


def test_calls_with_and_without_a_caller_cost_the_same_in_a_long_history() -> None:
    # Every write by "ann" makes the versions that calls without a caller saw stale.
    tools = Toolset(Session())

    def write_as(caller: str | None, path: str) -> bool:
        return tools.call("write_file", {"path": path, "content": f"{caller}\n"}, caller=caller).success

    def pair(path: str) -> None:
        assert write_as("ann", path)
        assert not write_as(None, path)
        tools.call("read_file", {"path": path})
        assert write_as(None, path)
        tools.call("read_file", {"path": path}, caller="ann")

    for path in ("/now.txt", "/then.txt"):
        assert write_as(None, path)
        pair(path)
    early = lines_of(lambda: pair("/now.txt"))
    assert write_as("ann", "/then.txt")
    tools.filesystem.write("/by_the_runtime.txt", "1\n")
    assert write_as(None, "/by_the_runtime.txt")
    tools.filesystem.write("/by_the_runtime.txt", "2\n")
    for number in range(400):
        tools.filesystem.write("/other.txt", f"{number}\n")
        if number % 4 == 0:
            assert write_as("bob" if number % 8 else None, f"/{number}.txt")
    # This call reads the records since the last such call. That is not counted, because each record is read only once.
    assert write_as(None, "/last.txt")

    assert lines_of(lambda: pair("/now.txt")) < early * 1.3
    assert lines_of(lambda: write_as(None, "/then.txt")) < early
    assert lines_of(lambda: write_as(None, "/by_the_runtime.txt")) < early
    assert not write_as(None, "/then.txt")


def test_changes_inside_an_open_transaction_count() -> None:
    tools = Toolset(Session())
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    tools.call("write_file", arguments)
    with tools.session.transaction():
        assert write(tools, "ann", "2\n").success
        assert tools.call("write_file", arguments).status == "conflict"
    assert tools.call("write_file", arguments).status == "conflict"


def test_a_change_before_a_transaction_that_was_rolled_back_counts() -> None:
    tools = Toolset(Session())
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    tools.call("write_file", arguments)
    with suppress(KeyError), tools.session.transaction():
        write(tools, "ann", "2\n")
        tools.call("write_file", {"path": "/b.txt", "content": "1\n"})
        raise KeyError
    assert tools.call("write_file", arguments).success
    assert write(tools, "bob", "3\n").success
    assert tools.call("write_file", arguments).status == "conflict"


def test_a_change_by_another_thread_during_a_transaction_counts() -> None:
    tools = Toolset(Session())
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    tools.call("write_file", arguments)
    with tools.session.transaction():
        for number in range(10):
            tools.call("write_file", {"path": f"/{number}.txt", "content": "1\n"})
        other = threading.Thread(target=write, args=(tools, "ann", "2\n"))
        other.start()
        other.join()
        tools.call("write_file", {"path": "/b.txt", "content": "1\n"})
    assert tools.call("write_file", arguments).status == "conflict"


def test_a_change_counts_after_compaction() -> None:
    tools = Toolset(Session())
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    for _ in range(20):
        tools.call("write_file", arguments)
    tools.session.compact(keep=1, keep_calls=1)
    assert write(tools, "ann", "2\n").success
    assert tools.call("write_file", arguments).status == "conflict"

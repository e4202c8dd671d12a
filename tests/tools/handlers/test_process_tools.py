"""The tools for background processes: what they answer, what they refuse, and what a session stores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from weakfs import Capability, HostFilesystem, InMemoryFilesystem, Policy, PolicyRule, Session, ToolResult, Toolset
from weakfs.processes.background import ProcessLimits
from weakfs.reducers.process_events import ProcessEnded, ProcessStarted
from weakfs.session import Cancellation
from weakfs.tools import DEFAULT_TOOLS, PROCESS_TOOLS
from weakfs.tools.handlers import ProcessOptions, ShellOptions, process_tools, shell_tool

pytestmark = pytest.mark.usefixtures("never_hung")

OPTIONS = ProcessOptions(sandbox="off", process_limits=ProcessLimits(grace=0.2), max_output=1000)
TOOLS = (
    *(tool for tool in DEFAULT_TOOLS if tool.name != "shell"),
    shell_tool(ShellOptions(sandbox="off")),
    *process_tools(OPTIONS),
)

Open = Callable[..., Toolset]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open a toolset on the directory `root`; the session is closed after the test."""
    sessions: list[Session] = []

    def opened(session: Session | None = None, **options: Any) -> Toolset:
        (tmp_path / "root").mkdir(exist_ok=True)
        session = Session() if session is None else session
        sessions.append(session)
        files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
        return Toolset(session, files, **{"tools": TOOLS, **options})

    yield opened
    for session in sessions:
        session.close()


@pytest.fixture
def tools(opened: Open) -> Toolset:
    return opened()


def ok(result: ToolResult[object]) -> Any:
    assert result.success, result.message
    return result.value


def start(tools: Toolset, command: str) -> str:
    process_id: str = ok(tools.call("process_start", {"command": command})).process_id
    return process_id


def wait(tools: Toolset, process_id: str) -> Any:
    return ok(tools.call("process_wait", {"process_id": process_id}))


# Answers


def test_a_server_is_started_queried_and_ended(tools: Toolset) -> None:
    server = start(tools, "while read word; do echo got $word; done; echo bye >&2; exit 3")

    ok(tools.call("process_input", {"process_id": server, "text": "one\n"}))
    first = ok(tools.call("process_output", {"process_id": server, "since": 0, "timeout": 500}))
    assert (first.output, first.since, first.next, first.state) == ("got one\n", 0, 8, "running")
    ok(tools.call("process_input", {"process_id": server, "text": "two\n", "close": True}))
    end = wait(tools, server)

    assert (end.state, end.exit_code, end.timed_out, end.ended_because) == ("ended", 3, False, None)
    rest = tools.call("process_output", {"process_id": server, "since": first.next})
    assert rest.message == f"got two\nbye\n[{server} ended, exit code 3; output 8 to 20 of 20 bytes]"


def test_long_output_is_read_in_steps_or_from_its_end(tools: Toolset) -> None:
    process = start(tools, "seq 1000")
    wait(tools, process)

    newest = ok(tools.call("process_output", {"process_id": process}))
    assert (newest.since, newest.next, newest.total) == (2893, 3893, 3893)
    text, position = "", 0
    while position < newest.total:
        step = ok(tools.call("process_output", {"process_id": process, "since": position}))
        text, position = text + step.output, step.next
    assert text == "".join(f"{i}\n" for i in range(1, 1001))


def test_waiting_for_a_process_that_keeps_running_is_an_answer(tools: Toolset) -> None:
    process = start(tools, "sleep 1000")

    answer = tools.call("process_wait", {"process_id": process, "timeout": 0.01})

    assert answer.success
    assert (ok(answer).timed_out, ok(answer).state, answer.message) == (True, "running", f"{process} running")


def test_processes_are_listed_with_state_age_and_exit_code(opened: Open) -> None:
    times = iter(range(0, 10**15, 10**9))
    tools = opened(Session(clock=lambda: next(times)))
    one, two = start(tools, "exit 4"), start(tools, "sleep 1000")
    wait(tools, one)

    found = tools.call("process_list", {})

    first, second, count = found.message.splitlines()
    assert first.startswith(f"{one} ended, exit code 4, started ")
    assert second.startswith(f"{two} running, started ")
    assert second.endswith(" s ago: sleep 1000")
    assert count == "[2 processes, 1 running]"
    assert [(info.process_id, info.state) for info in ok(found).processes] == [(one, "ended"), (two, "running")]


def test_a_signal_is_sent_by_its_name(tools: Toolset) -> None:
    process = start(tools, "exec sleep 1000")

    assert tools.call("process_signal", {"process_id": process, "signal": "hup"}).message == f"Sent SIGHUP to {process}"

    assert wait(tools, process).exit_code == 129


def test_control_characters_are_escaped_in_the_message_and_not_in_the_receipt(tools: Toolset) -> None:
    process = start(tools, "printf 'a\\033[2Jb\\n' # \x1b")
    wait(tools, process)

    answer = tools.call("process_output", {"process_id": process})

    assert answer.message.startswith("a\\x1b[2Jb\n")
    assert ok(answer).output == "a\x1b[2Jb\n"
    assert "\x1b" not in tools.call("process_list", {}).message


def test_large_output_is_a_blob_if_the_capability_says_so(opened: Open) -> None:
    tools = opened(capability=Capability(max_inline_bytes=10))
    process = start(tools, "seq 100")
    wait(tools, process)

    found = ok(tools.call("process_output", {"process_id": process}))

    assert (found.output.size_bytes, found.total) == (292, 292)


# Refusals


def test_a_closed_input_accepts_no_more(tools: Toolset) -> None:
    process = start(tools, "sleep 600")
    ok(tools.call("process_input", {"process_id": process, "text": "", "close": True}))
    more = tools.call("process_input", {"process_id": process, "text": "more"})
    assert (more.status, more.error_code) == ("error", "input_closed")


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("process_start", {"command": " "}, "invalid_arguments"),
        ("process_start", {"command": "a\0b"}, "invalid_input"),
        ("process_start", {"command": "true", "workdir": "/no"}, "not_found"),
        ("process_output", {"process_id": "p0"}, "process_not_found"),
        ("process_output", {"process_id": "RUNNING", "since": 5}, "invalid_input"),
        ("process_output", {"process_id": "RUNNING", "since": -1}, "invalid_arguments"),
        ("process_input", {"process_id": "RUNNING"}, "invalid_arguments"),
        ("process_input", {"process_id": "ENDED", "text": "x"}, "process_not_running"),
        ("process_signal", {"process_id": "RUNNING", "signal": "LOUD"}, "invalid_arguments"),
        ("process_signal", {"process_id": "ENDED"}, "process_not_running"),
        ("process_wait", {"process_id": "p0"}, "process_not_found"),
    ],
)
def test_invalid_operations_are_refused_with_a_code(
    tools: Toolset, name: str, arguments: dict[str, object], code: str
) -> None:
    named = {"RUNNING": start(tools, "sleep 1000"), "ENDED": start(tools, "true")}
    wait(tools, named["ENDED"])
    arguments = {key: named.get(str(value), value) for key, value in arguments.items()}

    answer = tools.call(name, arguments)

    assert (answer.success, answer.error_code) == (False, code)


def test_too_many_processes_are_refused(opened: Open) -> None:
    options = ProcessOptions(sandbox="off", process_limits=ProcessLimits(max_running=1, grace=0.2))
    tools = opened(tools=process_tools(options))
    start(tools, "sleep 1000")

    answer = tools.call("process_start", {"command": "true"})

    assert answer.error_code == "too_many_processes"
    assert len(tools.session[ProcessStarted].all()) == 1


def test_a_process_that_needs_a_sandbox_does_not_start_without_one(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = opened(tools=process_tools())
    monkeypatch.setenv("PATH", "/nowhere")

    answer = tools.call("process_start", {"command": "true"})

    assert answer.error_code == "sandbox_unavailable"


def test_processes_cannot_run_on_files_in_memory() -> None:
    session = Session()
    tools = Toolset(session, InMemoryFilesystem(session), tools=PROCESS_TOOLS)

    for name in ("process_start", "process_list"):
        answer = tools.call(name, {"command": "true"} if name == "process_start" else {})
        assert "its files are not in a directory" in answer.message


ALL_CALLS = [
    ("process_start", {"command": "touch made"}),
    ("process_output", {}),
    ("process_input", {"text": "x\n"}),
    ("process_signal", {}),
    ("process_wait", {}),
    ("process_list", {}),
]

NO_PROCESS = ("process_start", "process_list")


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "arguments"), ALL_CALLS)
@pytest.mark.parametrize(
    "limits",
    [
        {"capability": Capability(allowed_fs_ops=("read", "write"))},
        {"capability": Capability(allowed_fs_ops=("read", "shell"))},
        {"capability": Capability(max_changed_files=3)},
        {"policy": Policy([PolicyRule(effect="deny", operations=["read"], paths="/hidden", reason="it is hidden")])},
        {"policy": Policy([PolicyRule(effect="deny", operations=["write"], paths="/kept", reason="it stays")])},
    ],
    ids=["no shell", "no write", "bounded", "hidden", "protected"],
)
def test_processes_need_permission_to_see_and_change_all_files(
    tools: Toolset, opened: Open, limits: dict[str, Any], name: str, arguments: dict[str, object]
) -> None:
    process = start(tools, "echo secret; read line; touch told")
    other = opened(tools.session, **limits)
    arguments = arguments if name in NO_PROCESS else {"process_id": process, **arguments}

    answer = other.call(name, arguments)

    assert answer.status == "forbidden"
    assert "secret" not in answer.message
    assert not tools.filesystem.exists("/made")
    assert ok(tools.call("process_list", {})).processes[0].state == "running"


@pytest.mark.parametrize(("name", "arguments"), ALL_CALLS)
def test_a_call_on_a_closed_session_is_answered(tools: Toolset, name: str, arguments: dict[str, object]) -> None:
    process = start(tools, "sleep 1000")
    tools.session.close("its conversation has ended")

    answer = tools.call(
        name, {"process_id": process, **arguments} if name not in ("process_start", "process_list") else arguments
    )

    assert answer.error_code == "session_closed"


def test_definitions_are_short() -> None:
    session = Session()
    tools = Toolset(session, InMemoryFilesystem(session), tools=PROCESS_TOOLS)

    assert len(orjson.dumps(tools.definitions("anthropic"))) < 2800
    assert not {tool.name for tool in PROCESS_TOOLS} & {tool.name for tool in DEFAULT_TOOLS}


# Calls that fail, time out, or are cancelled


def test_a_call_that_fails_has_started_nothing(tools: Toolset) -> None:
    before = tools.filesystem.tree().fingerprint
    with pytest.raises(RuntimeError), tools.session.transaction():
        held = tools.call("process_start", {"command": "touch made"})
        assert held.message.startswith(f"Started {ok(held).process_id}; it runs when the transaction around this call")
        assert ok(tools.call("process_list", {})).processes[0].state == "held"
        raise RuntimeError

    assert ok(tools.call("process_list", {})).processes == ()
    assert tools.filesystem.tree().fingerprint == before
    assert tools.session[ProcessStarted].all() == ()


def test_a_process_runs_once_the_surrounding_transaction_is_committed(tools: Toolset, tmp_path: Path) -> None:
    with tools.session.transaction():
        process = start(tools, "touch made")
        assert not (tmp_path / "root" / "made").exists()

    assert wait(tools, process).changed_paths == ("/made",)


def test_a_nested_transaction_that_fails_ends_only_its_own_processes(tools: Toolset, tmp_path: Path) -> None:
    with tools.session.transaction():
        kept = start(tools, "touch kept")
        with pytest.raises(RuntimeError), tools.session.transaction():
            start(tools, "touch dropped")
            raise RuntimeError

    assert wait(tools, kept).changed_paths == ("/kept",)
    assert [one.process_id for one in tools.session[ProcessStarted].all()] == [kept]


def test_a_wait_ends_at_the_deadline_or_on_cancellation(tools: Toolset) -> None:
    process = start(tools, "sleep 1000")

    late = tools.call("process_wait", {"process_id": process}, timeout=0.05)
    assert late.error_code == "deadline_exceeded"
    cancellation = Cancellation()
    timer = threading.Timer(0.05, cancellation.cancel)
    timer.start()
    with pytest.raises(Exception, match="it was cancelled"):
        tools.call("process_output", {"process_id": process, "timeout": 500}, cancellation=cancellation)
    timer.join()

    assert ok(tools.call("process_list", {})).processes[0].state == "running"


# Sessions


def test_processes_end_when_their_session_is_closed(tools: Toolset) -> None:
    process = start(tools, "trap '' TERM; while :; do sleep 1000; done")

    tools.session.close()

    assert tools.session[ProcessEnded].all()[-1].process_id == process
    assert tools.session[ProcessEnded].all()[-1].reason == "its session was closed"


def test_a_process_of_another_runtime_is_listed_as_lost(tools: Toolset, opened: Open, tmp_path: Path) -> None:
    running, ended = start(tools, "sleep 1000"), start(tools, "exit 5")
    wait(tools, ended)
    tools.session.save(tmp_path / "session.json")

    again = opened(Session.load(tmp_path / "session.json"))

    infos = ok(again.call("process_list", {})).processes
    assert [(info.process_id, info.state, info.exit_code) for info in infos] == [
        (running, "lost", None),
        (ended, "ended", 5),
    ]
    answer = again.call("process_output", {"process_id": running})
    assert (answer.error_code, "it ran in another runtime" in answer.message) == ("process_not_found", True)
    new = start(again, "true")
    assert new not in (running, ended)
    assert ok(tools.call("process_list", {})).processes[0].state == "running"


def test_two_toolsets_of_a_session_share_its_processes(tools: Toolset, opened: Open) -> None:
    other = opened(tools.session)
    process = start(tools, "read line; echo got $line")

    ok(other.call("process_input", {"process_id": process, "text": "it\n"}))

    assert wait(other, process).exit_code == 0
    assert ok(tools.call("process_output", {"process_id": process})).output == "got it\n"


def test_a_fork_sees_the_processes_of_its_parent_and_ends_only_its_own(tools: Toolset) -> None:
    process = start(tools, "sleep 1000")
    fork = tools.session.fork()
    assert isinstance(tools.filesystem, HostFilesystem)
    through = Toolset(fork, tools.filesystem.bind(fork), tools=TOOLS)
    kept = start(through, "sleep 1000")
    tools.session.merge(fork)
    dropped = start(through, "sleep 1000")
    assert [info.state for info in ok(through.call("process_list", {})).processes] == ["running"] * 3

    fork.close()

    states = {name: one.state for name, one in tools.filesystem._root.processes.processes.items()}
    assert states == {process: "running", kept: "running", dropped: "ended"}
    assert [info.process_id for info in ok(tools.call("process_list", {})).processes] == [process, kept]

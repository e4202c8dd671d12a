"""The `shell` tool: commands on a session's files, their changes, and when these are undone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from weakfs import DEFAULT_TOOLS, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.backends import HostFilesystem, HostMount, InMemoryFilesystem, MockFilesystem
from weakfs.filesystem import Filesystem, Limits, SupportsCheckout
from weakfs.processes import Bubblewrap
from weakfs.testing import make_stub_context
from weakfs.tools import ToolCalls, ToolValidationError
from weakfs.tools.handlers import ShellOptions, ShellParams, ShellReceipt, shell_handler, shell_tool

BUBBLEWRAP = Bubblewrap()
ANY = ShellOptions(sandbox="auto", bubblewrap=BUBBLEWRAP)
PLAIN = ShellOptions(sandbox="off")
NO_TIME = ShellOptions(sandbox="auto", bubblewrap=BUBBLEWRAP, timeout=1e-6)

OTHERS = [tool for tool in DEFAULT_TOOLS if tool.name != "shell"]


pytestmark = pytest.mark.usefixtures("never_hung")


Make = Callable[..., Toolset]


@pytest.fixture(params=["memory", "host"])
def toolset(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make a toolset over a few files, in memory or in a directory."""
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "src" / "app.py").write_text("port = 80\n")
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "run.sh").chmod(0o755)

    def make(options: ShellOptions = ANY, **more: Any) -> Toolset:
        session = Session(session_id="s")
        files: Filesystem
        if request.param == "memory":
            InMemoryFilesystem(session, mounts=[HostMount(str(root))])
            files = InMemoryFilesystem(session, **more)
        else:
            files = HostFilesystem(root, session=session, store=tmp_path / "store", **more)
        return Toolset(session, files, tools=[*OTHERS, shell_tool(options)])

    return make


def shell(tools: Toolset, command: str, **arguments: object) -> ToolResult[ShellReceipt]:
    result = tools.call("shell", {"command": command, **arguments}, call_id="c1")
    assert isinstance(result.value, ShellReceipt)
    return result  # type: ignore[return-value]


# What a command sees and does


def test_a_command_sees_the_files_and_its_changes_are_events_like_any_other(toolset: Make) -> None:
    tools = toolset()
    before = tools.session.seq

    result = shell(tools, "./run.sh && sed -i s/80/8080/ src/app.py && mkdir new && echo x > new/file && rmdir empty")

    assert (result.success, result.status, result.error_code) == (True, "ok", None)
    assert result.value.stdout == "ran\n"
    assert result.value.changed_paths == ("/empty", "/new", "/new/file", "/src/app.py")
    assert tools.filesystem.read("/src/app.py").content == "port = 8080\n"
    records = [record for record in tools.session.records if record.seq > before]
    assert {record.cause for record in records} == {"c1"}
    (call,) = tools.session[ToolCalls].all()
    assert (call.first_seq, call.last_seq) == (before + 1, records[-2].seq)


def test_a_large_file_that_a_command_leaves_can_be_read(toolset: Make) -> None:
    tools = toolset()

    shell(tools, "head -c 5000000 /dev/zero > large")
    result = shell(tools, "echo end >> large && wc -c < large")

    assert result.value.stdout == "5000004\n"
    assert tools.filesystem.read_bytes("/large", offset=4_999_999).content == b"\0end\n"


def test_a_rollback_to_a_snapshot_undoes_a_command(toolset: Make) -> None:
    tools = toolset()
    before = tools.filesystem.tree().fingerprint
    tools.session.snapshot("before")

    assert shell(tools, "rm -r src && mkdir new && echo x > new/file && chmod 600 run.sh").success
    tools.session.rollback("before")

    assert tools.filesystem.tree().fingerprint == before


def test_a_rollback_to_a_record_undoes_a_command(toolset: Make) -> None:
    tools = toolset()
    before, seq = tools.filesystem.tree().fingerprint, tools.session.seq

    assert shell(tools, "echo x > src/app.py && mkdir new && echo x > new/file").success
    tools.session.rollback(seq)

    assert tools.filesystem.tree().fingerprint == before


def test_a_command_that_changes_nothing_leaves_only_the_record_of_the_call(toolset: Make) -> None:
    tools = toolset()
    before = tools.filesystem.tree().fingerprint

    result = shell(tools, "cat src/app.py")

    assert result.value.changed_paths == ()
    assert tools.filesystem.tree().fingerprint == before
    (call,) = tools.session[ToolCalls].all()
    assert call.first_seq is None


def test_a_command_runs_in_the_directory_that_it_names(toolset: Make) -> None:
    tools = toolset()
    tools.filesystem.write("/a b/\n/-x/file", "deep\n")

    assert shell(tools, "cat app.py", workdir="src").value.stdout == "port = 80\n"
    assert shell(tools, "cat file", cwd="/a b/\n/-x").value.stdout == "deep\n"


def test_a_directory_whose_name_is_not_text_is_found_on_the_host(tmp_path: Path) -> None:
    name = b"caf\xe9"
    (tmp_path / name.decode("utf-8", "surrogateescape")).mkdir()
    session = Session()
    files = HostFilesystem(tmp_path, session=session, store=tmp_path.parent / f"{tmp_path.name}-store")
    tools = Toolset(session, files, tools=[shell_tool(PLAIN)])
    result = shell(tools, "echo x > file", workdir="/caf\uf7e9")

    assert result.success
    assert (tmp_path / name.decode("utf-8", "surrogateescape") / "file").exists()


# How it ends


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("no-such-program", 127), ("kill -9 $$", 137)])
def test_a_nonzero_exit_code_is_an_answer_and_changes_are_kept(toolset: Make, command: str, code: int) -> None:
    tools = toolset()

    result = shell(tools, f"echo report > report; echo failed >&2; {command}")

    assert (result.success, result.status, result.value.exit_code) == (True, "ok", code)
    assert tools.filesystem.read("/report").content == "report\n"
    assert result.summary_text.startswith(f"Exit code {code}, 1 path changed")


@pytest.mark.sampled(by_rule=True)
def test_a_command_that_times_out_fails_and_everything_is_undone(toolset: Make) -> None:
    tools = toolset(PLAIN)
    before = tools.filesystem.tree().fingerprint

    result = shell(tools, "echo partial; rm -rf src; sleep 1000", timeout=0.5)

    assert (result.success, result.status, result.error_code) == (False, "error", "timed_out")
    receipt = result.value
    assert (receipt.exit_code, receipt.timed_out, receipt.changed_paths) == (None, True, ())
    assert "it ran for 0.5 s; its changes were undone" in result.summary_text
    assert tools.filesystem.tree().fingerprint == before


HAVOC = [
    "rm -rf src && ln -s /etc src",
    "rm run.sh && mkdir run.sh && touch run.sh/x",
    "rmdir empty && mkfifo empty",
    "chmod 000 src && chmod 700 .",
    "touch -r run.sh stamp && printf '#!/bin/sh\\necho RAN\\n' > run.sh && touch -r stamp run.sh && rm stamp",
    "ln run.sh hard && echo more >> hard",
    "mv src elsewhere && mv empty src",
    "find . -mindepth 1 -delete",
    "mkdir -p deep/$(seq -s / 40) && chmod 000 deep",
    "printf x > \"$(printf 'odd\\377\\nname')\"",
    "git init -q . && git add -A && git -c user.name=a -c user.email=b commit -qm c && git rm -rq .",
]


def state(tools: Toolset) -> tuple[str, list[object]]:
    """Return everything that must be unchanged: the fingerprint, and the times of all entries."""
    files = tools.filesystem
    return files.tree().fingerprint, [(entry.path, files.stat(entry.path).modified_at) for entry in files.walk()]


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("command", HAVOC)
def test_all_changes_by_an_unfinished_command_are_undone(toolset: Make, command: str) -> None:
    tools = toolset(PLAIN)
    before = state(tools)

    # The command did what it says, and then killed the supervisor that watches it, and nothing else.
    result = shell(tools, f"{command} && echo havoc && kill -9 $PPID; sleep 1000")

    assert (result.success, result.error_code) == (False, "io_error")
    assert "killed from outside" in result.message
    assert state(tools) == before


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("command", HAVOC)
def test_all_changes_by_a_command_are_undone_if_its_call_fails_afterwards(toolset: Make, command: str) -> None:
    tools = toolset(PLAIN)
    before = state(tools)

    def fail_late(params: ShellParams, *, context: ToolContext) -> ToolResult[object]:
        result = shell_handler(params, context=context, options=PLAIN)
        assert (result.value.exit_code, result.value.stderr) == (0, "")
        raise OSError("too late")

    (tool,) = [tool for tool in tools.tools if tool.name == "shell"]
    late = Toolset(tools.session, tools.filesystem, tools=[evolve(tool, handler=fail_late)])
    result = late.call("shell", {"command": command})

    assert (result.success, result.message) == (False, "too late")
    assert state(tools) == before


def test_a_command_gets_no_more_time_than_is_allowed(toolset: Make) -> None:
    result = shell(
        toolset(ShellOptions(sandbox="auto", bubblewrap=BUBBLEWRAP, max_timeout=1e-6)), "sleep 1000", timeout=1e9
    )

    assert result.error_code == "timed_out"
    assert shell(toolset(NO_TIME), "sleep 1000").error_code == "timed_out"


def test_a_command_ends_with_the_deadline_of_its_call(toolset: Make) -> None:
    tools = toolset()
    before = tools.filesystem.tree().fingerprint

    deadline = tools.session.now() + 10**8
    result = tools.call("shell", {"command": "touch x; sleep 1000"}, deadline=deadline)

    assert (result.status, result.error_code) == ("error", "deadline_exceeded")
    assert tools.filesystem.tree().fingerprint == before


def test_a_call_past_its_deadline_runs_no_command(tmp_path: Path) -> None:
    context = make_stub_context(InMemoryFilesystem(), deadline=0)

    with pytest.raises(TimeoutError, match="deadline passed"):
        shell_handler(ShellParams(f"touch {tmp_path}/ran"), context=context, options=PLAIN)
    assert not (tmp_path / "ran").exists()


def test_changes_beyond_the_limits_fail_the_call_and_are_undone(toolset: Make) -> None:
    tools = toolset(limits=Limits(max_total_size=1000))
    before = tools.filesystem.tree().fingerprint

    result = shell(tools, "echo a > a; head -c 2000 /dev/zero > z")

    assert (result.success, result.error_code) == (False, "quota_exceeded")
    assert tools.filesystem.tree().fingerprint == before


def test_an_interrupted_command_leaves_the_session_as_it_was(toolset: Make) -> None:
    tools = toolset(PLAIN)
    before = tools.filesystem.tree().fingerprint

    with pytest.raises(KeyboardInterrupt):
        shell(tools, f"rm -rf *; kill -INT {os.getpid()}; sleep 1000")

    assert tools.filesystem.tree().fingerprint == before


# Answers


def test_the_message_holds_both_streams_and_a_last_line_in_brackets(toolset: Make) -> None:
    text = shell(toolset(PLAIN), "echo out; printf err >&2; exit 2").message

    assert text == ("out\n[stderr]\nerr\n[Exit code 2, 0 paths changed; not sandboxed: the sandbox is turned off]")


def test_receipt_and_summary_say_whether_there_was_a_sandbox(toolset: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    if not BUBBLEWRAP.problem():
        result = shell(toolset(), "true")
        assert result.value.sandboxed is True
        assert result.summary_text == "Exit code 0, 0 paths changed"
    monkeypatch.setenv("PATH", "/nonesuch")

    result = shell(toolset(), "echo hello")

    assert (result.success, result.value.stdout, result.value.sandboxed) == (True, "hello\n", False)
    assert result.value.unsandboxed_because == "bwrap is not on the PATH"
    assert result.summary_text.endswith("; not sandboxed: bwrap is not on the PATH")


def test_long_output_is_cut_in_the_middle_and_the_receipt_says_so(toolset: Make) -> None:
    tools = toolset(ShellOptions(sandbox="auto", bubblewrap=BUBBLEWRAP, max_output=100))

    result = shell(tools, "seq 1000")

    assert result.value.truncated is True
    assert result.message.startswith("1\n2\n")
    assert "1000\n[Exit code 0" in result.message
    assert "bytes are left out here]" in result.message
    assert len(result.message) < 300


def test_the_runtime_chooses_variables_and_shell(toolset: Make) -> None:
    options = ShellOptions(sandbox="off", environment={"PORT": "8080"}, environment_allow=("PATH",), shell="/bin/bash")

    assert shell(toolset(options), 'echo "$PORT $HOME ${BASH_VERSION:+bash}"').value.stdout == "8080  bash\n"


# Refusals


def test_a_command_that_needs_a_sandbox_does_not_run_without_one(
    toolset: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/nonesuch")

    result = shell(toolset(ShellOptions(sandbox="required")), f"touch {tmp_path}/ran")

    assert (result.success, result.status, result.error_code) == (False, "error", "sandbox_unavailable")
    assert "install bubblewrap" in result.summary_text
    assert not (tmp_path / "ran").exists()


def test_the_default_shell_tool_does_not_run_without_a_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nonesuch")

    result = shell(Toolset(Session()), f"touch {tmp_path}/ran")

    assert (result.success, result.error_code) == (False, "sandbox_unavailable")
    assert "bwrap is not on the PATH; install bubblewrap" in result.summary_text
    assert "shell_tool(ShellOptions(sandbox='auto')), or 'off'" in result.summary_text
    assert not (tmp_path / "ran").exists()


def test_the_error_for_a_filesystem_without_a_directory_names_those_with_one() -> None:
    files = MockFilesystem()
    files.answer("stat", InMemoryFilesystem().stat("/"))
    assert not isinstance(files, SupportsCheckout)

    result = Toolset(Session(), files).call("shell", {"command": "true"})

    assert (result.success, result.error_code) == (False, "invalid_arguments")
    assert "on a MockFilesystem" in result.message
    assert "use an InMemoryFilesystem, a HostFilesystem or an OverlayFilesystem" in result.message


def test_a_read_only_filesystem_runs_no_commands(toolset: Make, tmp_path: Path) -> None:
    result = shell(toolset(PLAIN, read_only=True), f"touch {tmp_path}/ran")

    assert (result.status, result.error_code) == ("forbidden", "read_only")
    assert not (tmp_path / "ran").exists()


def test_a_handler_without_a_filesystem_says_so() -> None:
    with pytest.raises(ToolValidationError, match="there is no filesystem"):
        shell_handler(ShellParams("true"), context=make_stub_context())


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_is_a_number_above_zero(toolset: Make, timeout: float) -> None:
    assert shell(toolset(), "true", timeout=timeout).error_code == "invalid_arguments"


def test_a_missing_shell_is_an_answer(toolset: Make) -> None:
    result = shell(toolset(ShellOptions(sandbox="off", shell="/no/shell")), "true")

    assert (result.success, result.error_code) == (False, "not_found")
    assert "cannot start /no/shell" in result.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sandbox": "always"}, "sandbox is 'always'; use 'auto', 'required' or 'off'"),
        ({"timeout": 0}, "timeout is 0; give"),
        ({"max_timeout": float("inf")}, "max_timeout is inf; give"),
        ({"max_output": -1}, "max_output is -1; give"),
    ],
)
def test_invalid_options_are_refused_when_they_are_created(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShellOptions(**options)


def test_the_shell_tool_is_a_default_tool_and_can_be_left_out() -> None:
    (tool,) = [tool for tool in DEFAULT_TOOLS if tool.name == "shell"]

    assert isinstance(tool, Tool)
    assert not tool.read_only
    assert Toolset(Session(), tools=OTHERS).call("shell", {"command": "true"}).error_code == "unknown_tool"


def test_a_command_that_locks_its_directory_is_undone_and_commands_run_again(toolset: Make) -> None:
    if BUBBLEWRAP.problem() is not None:
        pytest.skip("there is no sandbox here")
    tools = toolset(ShellOptions(sandbox="required", bubblewrap=BUBBLEWRAP))
    assert shell(tools, "chmod 000 .").success
    locked = shell(tools, "chmod 755 .")
    assert not locked.success
    assert "its mode denies access to commands: undo the call that changed it" in locked.message
    tools.session.undo()
    assert shell(tools, "echo again").value.stdout == "again\n"

"""No adapter shows files that a policy hides in an answer, listing, error, archive or notification."""

from __future__ import annotations

import asyncio
import io
import json
import re
import tarfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from weakfs import DEFAULT_TOOLS, Capability, HostFilesystem, InMemoryFilesystem, Policy, PolicyRule, Session, Toolset
from weakfs.filesystem import Filesystem
from weakfs.integrations.mcp import SESSION_TOOLS
from weakfs.tools import ToolCall
from weakfs.tools.permissions.operations import OPERATIONS, Operation

pytestmark = pytest.mark.usefixtures("never_hung")

# A part of the names and contents of the hidden files that occurs nowhere else.
SECRET = "wombat"
HIDDEN: tuple[Operation, ...] = tuple(one for one in OPERATIONS if one != "shell")

Probe = tuple[str, dict[str, Any]]
PROBES: list[Probe] = [
    ("ls", {"path": "/"}),
    ("ls", {"path": "/", "depth": 3, "sizes": True}),
    ("ls", {"path": "/vault"}),
    ("ls", {"path": "/vault/none"}),
    ("glob", {"pattern": "**"}),
    ("glob", {"pattern": "*.key", "hidden": True}),
    ("grep", {"pattern": "wom.at"}),
    ("grep", {"pattern": ".", "hidden": True, "output": "counts"}),
    ("read_file", {"path": "/vault/password"}),
    ("read_file", {"path": "/src/prod.key"}),
    ("stat", {"path": "/src"}),
    ("stat", {"path": "/vault"}),
    ("exists", {"path": "/src/prod.key"}),
    ("edit_file", {"path": "/src/prod.key", "old_string": "a", "new_string": "b"}),
    ("write_file", {"path": "/vault", "content": "a"}),
    ("write_file", {"path": "/vault/x", "content": "a"}),
    ("mkdir", {"path": "/vault/password"}),
    ("rm", {"path": "/src", "recursive": True}),
    ("rm", {"path": "/vault", "recursive": True}),
    ("mv", {"source": "/src", "destination": "/moved"}),
    ("cp", {"source": "/src", "destination": "/copied"}),
    ("cp", {"source": "/vault", "destination": "/copied"}),
    ("shell", {"command": "cat vault/*; ls -R"}),
    ("timeline", {}),
    ("snapshot", {"tag": "now"}),
    ("restore", {"moment": "2", "preview": True}),
    ("restore", {"moment": "2"}),
    ("undo", {}),
    ("undo", {"count": 3}),
    ("redo", {}),
    ("revert", {"call_id": "none"}),
]
TOOLS = (*DEFAULT_TOOLS, *SESSION_TOOLS)


def policy(at: str = "") -> Policy:
    return Policy([PolicyRule(effect="deny", operations=HIDDEN, paths=(f"{at}/vault", "*.key"), reason="not here")])


def filled(session: Session, at: Path | None = None) -> Filesystem:
    files: Filesystem = InMemoryFilesystem(session)
    if at is not None:
        (at / "root").mkdir()
        files = HostFilesystem(at / "root", session=session, store=at / "store")
    files.write("/src/app.py", "port = 80\n")
    files.write("/src/prod-wombat.key", "wombat\n")
    files.write("/vault/wombat-password", "wombat\n")
    files.append("/vault/wombat-password", "wombat again\n")
    return files


async def gathered(*acts: Callable[[], Awaitable[object]]) -> str:
    """Return what each function returns or raises, with all attributes of an error."""
    said: list[object] = []
    for act in acts:
        try:
            given = await act()
            said.append(given.read() if isinstance(given, io.IOBase) else given)
        except Exception as error:
            said += [error, vars(error), str(error), error.__cause__]
    return repr(said)


def check(told: str, files: Filesystem) -> None:
    assert "app.py" in told
    assert SECRET not in told
    # And all of it exists.
    assert files.read("/vault/wombat-password").content == "wombat\nwombat again\n"
    assert files.read("/src/prod-wombat.key").content == "wombat\n"


Make = Callable[[Toolset], Callable[[Probe], Awaitable[object]]]


def openai_agents(toolset: Toolset) -> Callable[[Probe], Awaitable[object]]:
    from agents import FunctionTool
    from agents.tool_context import ToolContext

    from weakfs.integrations.openai_agents import function_tools

    tools = {tool.name: tool for tool in function_tools(toolset) if isinstance(tool, FunctionTool)}

    async def ask(probe: Probe) -> object:
        name, arguments = probe[0], json.dumps(probe[1])
        context = ToolContext(context=None, tool_name=name, tool_call_id="c", tool_arguments=arguments)
        return await tools[name].on_invoke_tool(context, arguments)

    return ask


def anthropic(toolset: Toolset) -> Callable[[Probe], Awaitable[object]]:
    from weakfs.integrations.anthropic import async_runnable_tools

    tools = {tool.name: tool for tool in async_runnable_tools(toolset)}
    return lambda probe: tools[probe[0]].call(probe[1])


def langchain(toolset: Toolset) -> Callable[[Probe], Awaitable[object]]:
    from weakfs.integrations.langchain import structured_tools

    tools = {tool.name: tool for tool in structured_tools(toolset)}
    return lambda probe: tools[probe[0]].ainvoke({"type": "tool_call", "id": "c", "name": probe[0], "args": probe[1]})


def pydantic_ai(toolset: Toolset) -> Callable[[Probe], Awaitable[object]]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from weakfs.integrations.pydantic_ai import SessionToolset

    async def ask(probe: Probe) -> object:
        def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            first = len(messages) == 1
            return ModelResponse(parts=[ToolCallPart(*probe) if first else TextPart("done")])

        done = await Agent(FunctionModel(reply), toolsets=[SessionToolset(toolset)]).run("go")
        return [part for message in done.all_messages() for part in message.parts if part.part_kind == "tool-return"]

    return ask


@pytest.mark.parametrize("place", ["memory", "host"])
@pytest.mark.parametrize("make", [openai_agents, anthropic, langchain, pydantic_ai])
def test_no_answer_of_a_tool_names_or_quotes_them(tmp_path: Path, make: Make, place: str) -> None:
    session = Session()
    files = filled(session, tmp_path if place == "host" else None)
    toolset = Toolset(session, files, tools=TOOLS, policy=policy())

    async def work() -> str:
        ask = make(toolset)
        return await gathered(*(partial(ask, probe) for probe in PROBES))

    check(asyncio.run(work()), files)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_no_answer_and_no_resource_of_a_server_has_them(era: str) -> None:
    from mcp.client.client import Client

    from weakfs.integrations.mcp import toolset_server

    session = Session()
    files = filled(session)
    toolset = Toolset(session, files, tools=TOOLS, policy=policy(), provider="mcp")
    uris = ["/", "/src", "/vault", "/vault/none", "/?at=4", "/src?at=2", "/vault?at=4", "/none?at=2"]

    async def work() -> str:
        async with Client(toolset_server(toolset), mode=era) as client:
            return await gathered(
                *(partial(client.session.call_tool, *probe) for probe in PROBES),
                *(partial(client.read_resource, f"weakfs://{uri}") for uri in uris),
                client.list_resources,
                client.list_tools,
            )

    check(asyncio.run(work()), files)


@pytest.mark.parametrize("dialect", ["protocol", "sandbox"])
def test_no_operation_of_a_backend_for_deepagents_shows_them(dialect: Any) -> None:
    from weakfs.integrations.deepagents import WeakfsSandbox

    session = Session()
    files = filled(session)
    backend = WeakfsSandbox(session, files, policy=policy("/workspace"), dialect=dialect)
    top = "/workspace"
    acts: list[Callable[[], Awaitable[object]]] = [
        *(partial(backend.als, path) for path in (top, f"{top}/src", f"{top}/vault")),
        lambda: backend.aglob("**/*"),
        lambda: backend.aglob("*.key"),
        lambda: backend.agrep("wombat"[:3]),
        lambda: backend.aread(f"{top}/vault/password"),
        lambda: backend.aedit(f"{top}/src/prod.key", "a", "b"),
        lambda: backend.awrite(f"{top}/vault", "x"),
        lambda: backend.adelete(f"{top}/src"),
        lambda: backend.adelete(top),
        lambda: backend.aupload_files([(f"{top}/vault/x", b""), (f"{top}/vault", b"")]),
        lambda: backend.adownload_files([f"{top}/vault", f"{top}/src", f"{top}/src/prod.key"]),
        lambda: backend.aexecute("cat vault/*; ls -R"),
    ]
    check(asyncio.run(gathered(*acts)), files)


def test_no_operation_of_a_sandbox_of_the_openai_sdk_shows_them() -> None:
    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    made: list[Filesystem] = []

    def files_of(session: Session) -> Filesystem:
        made.append(filled(session))
        return made[-1]

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("vault/x"))

    async def work() -> str:
        client = WeakfsSandboxClient(files=files_of, policy=policy("/workspace"))
        sandbox = await client.create()
        return await gathered(
            sandbox.start,
            lambda: sandbox.ls("."),
            lambda: sandbox.ls("src"),
            lambda: sandbox.ls("vault"),
            lambda: sandbox.read(Path("vault/password")),
            lambda: sandbox.read(Path("src/prod.key")),
            lambda: sandbox.write(Path("vault"), io.BytesIO(b"x")),
            lambda: sandbox.mkdir("vault/x", parents=True),
            lambda: sandbox.rm("src", recursive=True),
            lambda: sandbox.mv("src/prod.key", "x"),
            lambda: sandbox.exec("cat vault/*; ls -R"),
            sandbox.persist_workspace,
            lambda: sandbox.hydrate_workspace(io.BytesIO(archive.getvalue())),
            sandbox.stop,
        )

    check(asyncio.run(work()), made[0])


def test_no_operation_of_an_environment_of_the_adk_shows_them() -> None:
    from weakfs.integrations.google_adk import WeakfsEnvironment

    session = Session()
    files = filled(session)
    environment = WeakfsEnvironment(session, files, policy=policy("/workspace"))

    async def work() -> str:
        paths = ["vault", "vault/password", "src/prod.key", "src"]
        return await gathered(
            lambda: environment.read_file("src/app.py"),
            *(partial(environment.read_file, path) for path in paths),
            *(partial(environment.write_file, path, "x") for path in paths),
            lambda: environment.execute("cat vault/*; ls -R"),
        )

    check(asyncio.run(work()) + "app.py", files)


@pytest.mark.parametrize("make", [openai_agents, anthropic, langchain, pydantic_ai])
def test_a_capability_without_writing_refuses_every_change(make: Make) -> None:
    session = Session()
    files = filled(session)
    before = files.tree().fingerprint
    toolset = Toolset(session, files, tools=TOOLS, capability=Capability(allowed_fs_ops=["read", "list", "stat"]))

    async def work() -> str:
        ask = make(toolset)
        changing = [probe for probe in PROBES if probe[0] not in ("snapshot", "timeline")]
        return await gathered(*(partial(ask, probe) for probe in changing))

    assert "not among the allowed operations" in asyncio.run(work())
    assert files.tree().fingerprint == before


def test_every_other_adapter_refuses_changes_to_read_only_files(tmp_path: Path) -> None:
    from weakfs.integrations.anthropic import MemoryTool, TextEditorTool
    from weakfs.integrations.deepagents import WeakfsSandbox
    from weakfs.integrations.fsspec import WeakfsFileSystem
    from weakfs.integrations.google_adk import WeakfsArtifactService, WeakfsEnvironment

    session = Session()
    filled(session)
    files = InMemoryFilesystem(session, read_only=True)
    before = files.tree().fingerprint
    memory, editor, fs = MemoryTool(session, files), TextEditorTool(session, files), WeakfsFileSystem(files)
    backend, environment = WeakfsSandbox(session, files), WeakfsEnvironment(session, files)
    artifacts = WeakfsArtifactService(session, files)

    async def work() -> str:
        from google.genai import types

        save = partial(artifacts.save_artifact, app_name="a", user_id="u", session_id="s", filename="f")
        acts: list[Callable[[], Any]] = [
            lambda: memory.call({"command": "create", "path": "/memories/a", "file_text": "x"}),
            lambda: memory.call({"command": "clear_all_memory"}),
            lambda: editor.call({"command": "create", "path": "/a", "file_text": "x"}),
            lambda: editor.call({"command": "str_replace", "path": "/src/app.py", "old_str": "80", "new_str": "81"}),
            lambda: fs.pipe("/a", b"x"),
            lambda: fs.mv("/src", "/b", recursive=True),
            lambda: fs.rm("/src", recursive=True),
            lambda: fs.touch("/src/app.py"),
            lambda: backend.write("/workspace/a", "x"),
            lambda: backend.delete("/workspace/src"),
            lambda: backend.execute("touch a"),
            lambda: environment.write_file("a", "x"),
            lambda: environment.execute("touch a"),
            lambda: save(artifact=types.Part(text="x")),
        ]

        async def performed(act: Callable[[], Any]) -> object:
            given = act()
            return await given if asyncio.iscoroutine(given) else given

        return await gathered(*(partial(performed, act) for act in acts))

    told = asyncio.run(work())
    assert told.count("read-only") >= 14
    assert files.tree().fingerprint == before


def withheld(at: str = "") -> Policy:
    """Return a policy under which files may be read, but are shown in no answer."""
    rule = PolicyRule(effect="blob", operations=("read", "search"), paths=(f"{at}/vault", "*.key"), reason="not here")
    return Policy([rule])


async def _performed(act: Callable[[], Any]) -> object:
    given = act()
    return await given if asyncio.iscoroutine(given) else given


@pytest.mark.parametrize("rules", [policy, withheld])
def test_no_command_of_the_editor_and_the_memory_tool_shows_them(rules: Callable[[], Policy]) -> None:
    from weakfs.integrations.anthropic import AsyncMemoryTool, AsyncTextEditorTool, MemoryTool, TextEditorTool

    session = Session()
    files = filled(session)
    files.write("/memories/prod-wombat.key", "wombat\n")
    files.write("/memories/app.py", "x\n")
    editors: list[Any] = [
        kind(session, policy=rules(), version=version)
        for kind in (TextEditorTool, AsyncTextEditorTool)
        for version in ("20250728", "20250124")
    ]
    memories: list[Any] = [MemoryTool(session, policy=rules()), AsyncMemoryTool(session, policy=rules())]
    # What an earlier tool without a policy did to a hidden file.
    TextEditorTool(session, version="20250124").call(
        {"command": "str_replace", "path": "/src/prod-wombat.key", "old_str": "wombat", "new_str": "wombat "}
    )
    hidden = "/src/prod-wombat.key"
    edited = {"old_str": "wom", "new_str": "WOM"}
    commands: list[dict[str, object]] = [
        {"command": "view", "path": hidden},
        {"command": "str_replace", "path": hidden, **edited},
        {"command": "str_replace", "path": hidden, "old_str": "m", "new_str": "MM"},
        {"command": "insert", "path": hidden, "insert_line": 0, "insert_text": "a\n", "new_str": "a\n"},
        {"command": "undo_edit", "path": hidden},
    ]
    kept = "/memories/prod-wombat.key"
    renamed = {"command": "rename", "old_path": kept, "new_path": "/memories/a.txt"}
    acts: list[Callable[[], Any]] = [partial(tool.call, one) for tool in editors for one in commands]
    acts += [partial(tool.call, {**one, "path": kept}) for tool in memories for one in commands[:-1]]
    acts += [partial(tool.call, renamed) for tool in memories]
    told = asyncio.run(gathered(*(partial(_performed, act) for act in acts)))
    # The caller named the files; nothing of their contents is shown.
    assert SECRET not in told.replace("prod-wombat.key", "")
    assert files.read(hidden).content == "wombat \n"
    assert files.read(kept).content == "wombat\n"
    assert "port = 80" in str(editors[0].call({"command": "view", "path": "/src/app.py"}))


def test_a_listing_of_the_editor_and_the_memory_tool_leaves_them_out() -> None:
    from weakfs.integrations.anthropic import MemoryTool, TextEditorTool

    session = Session()
    files = filled(session)
    files.write("/memories/prod-wombat.key", "wombat\n")
    files.write("/memories/app.py", "x\n")
    shown = str(TextEditorTool(session, policy=policy()).call({"command": "view", "path": "/"}))
    shown += str(MemoryTool(session, policy=policy()).call({"command": "view", "path": "/memories"}))
    assert shown.count("app.py") == 3
    assert SECRET not in shown


def test_the_editor_and_the_memory_tool_respect_a_capability() -> None:
    from weakfs.integrations.anthropic import MemoryTool, TextEditorTool

    session = Session()
    files = filled(session)
    before = files.tree().fingerprint
    looking = Capability(allowed_fs_ops=["read", "list", "stat"])
    editor = TextEditorTool(session, capability=looking, version="20250124", caller="claude")
    memory = MemoryTool(session, capability=looking)
    acts: list[Callable[[], Any]] = [
        lambda: editor.call({"command": "create", "path": "/a", "file_text": "x"}),
        lambda: editor.call({"command": "str_replace", "path": "/src/app.py", "old_str": "80", "new_str": "81"}),
        lambda: memory.call({"command": "create", "path": "/memories/a", "file_text": "x"}),
    ]
    told = asyncio.run(gathered(*(partial(_performed, act) for act in acts)))
    assert told.count("not among the allowed operations") >= len(acts)
    assert files.tree().fingerprint == before
    assert session[ToolCall].all()[0].caller == "claude"


def test_no_other_adapter_reads_withheld_contents() -> None:
    from weakfs.integrations.deepagents import WeakfsSandbox
    from weakfs.integrations.google_adk import WeakfsEnvironment
    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    session = Session()
    files = filled(session)
    rules = withheld("/workspace")
    backend, environment = WeakfsSandbox(session, files, policy=rules), WeakfsEnvironment(session, files, policy=rules)
    client = WeakfsSandboxClient(files=filled, policy=rules)
    hidden = "/vault/wombat-password"

    async def work() -> str:
        sandbox = await client.create()
        await sandbox.start()
        return await gathered(
            lambda: environment.read_file("src/app.py"),
            lambda: environment.read_file(hidden[1:]),
            lambda: backend.aread(f"/workspace{hidden}"),
            lambda: backend.adownload_files([f"/workspace{hidden}"]),
            lambda: sandbox.read(Path(hidden[1:])),
            sandbox.persist_workspace,
        )

    told = asyncio.run(work())
    assert "port = 80" in told
    assert "wombat\\n" not in told
    assert "out of answers" in told


@pytest.mark.parametrize("effect", ["deny", "blob"])
@pytest.mark.parametrize("operation", ["list", "search", "stat", "read"])
def test_no_other_adapter_shows_what_a_rule_hides_of_a_listing_or_a_search(operation: Operation, effect: Any) -> None:
    from mcp.client.client import Client

    from weakfs.integrations.anthropic import MemoryTool, TextEditorTool
    from weakfs.integrations.deepagents import WeakfsBackend
    from weakfs.integrations.mcp import toolset_server
    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    def files_of(session: Session) -> InMemoryFilesystem:
        files = InMemoryFilesystem(session)
        files.write("/memories/shown", "port\n")
        files.write("/memories/hidden", "wombat\n" * 60606)
        return files

    size = r"42424\d|414\.3K"
    session = Session()
    files = files_of(session)

    def rules(at: str = "") -> Policy:
        rule = PolicyRule(effect=effect, operations=[operation], paths=f"{at}/memories/hidden", reason="not here")
        return Policy([rule])

    backend = WeakfsBackend(session, files, policy=rules())
    memory, editor = MemoryTool(session, files, policy=rules()), TextEditorTool(session, files, policy=rules())

    async def resources() -> str:
        async with Client(toolset_server(Toolset(session, files, policy=rules()))) as client:
            return repr(await client.list_resources()) + repr(await client.read_resource("weakfs:///memories"))

    async def sandbox() -> object:
        made = await WeakfsSandboxClient(files=files_of, policy=rules("/workspace")).create()
        await made.start()
        return await made.ls("memories")

    listings = [
        lambda: backend.ls("/memories"),
        lambda: memory.call({"command": "view", "path": "/memories"}),
        lambda: editor.call({"command": "view", "path": "/memories"}),
        resources,
        sandbox,
    ]
    searches = [lambda: backend.glob("**/*"), lambda: backend.grep("wom", max_count=3)]
    for kind, acts in (("list", listings), ("search", searches)):
        for act in acts:
            told = asyncio.run(gathered(partial(_performed, act)))
            # A refusal may name the file if listings show it.
            assert operation != kind or "/memories/hidden" not in told, told
            assert operation != "stat" or not re.search(size, told), told
            assert operation not in ("read", "search") or SECRET not in told, told
    assert "shown" in str(backend.ls("/memories"))
    assert operation in ("list", "search") or "hidden" in str(backend.glob("**/*"))

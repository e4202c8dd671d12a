"""Shared by the tests of the agent loop: a script with mistakes in it, and a run of the loop against a server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

import weakfs
from examples.agent_loop.conversation import REGISTRY, Message
from examples.agent_loop.loop import Model, Outcome, run
from tests.examples.model_server import Json, ModelServer, Provider, ToolUse, Turn
from weakfs import HostMount, InMemoryFilesystem, Session

BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])

APP = "port = 80\nhost = 'a'\n\n\ndef serve():\n    return port\n"
UTIL = "x = 1\n\nx = 1\n"
TASK = "Serve on port 8080."

GOOD_PATCH = """\
*** Begin Patch
*** Update File: app.py
@@
-port = 80
+port = 8080
 host = 'a'
*** End Patch
"""
BAD_PATCH = """\
*** Begin Patch
*** Update File: app.py
@@
-port = 80
+port = 9090
*** Update File: util.py
@@
-y = 1
+y = 2
*** End Patch
"""


def edit_turns(provider: Provider) -> list[Turn]:
    """Return turns that change the port, at first with mistakes; with patches for OpenAI, and edits for Anthropic."""
    if provider == "openai":
        return [
            Turn(
                calls=(
                    ToolUse("c3", "apply_patch", {"patch": BAD_PATCH}),
                    ToolUse("c4", "view_file", {"path": "app.py"}),
                    ToolUse("c5", "apply_patch", '{"patch": "*** Begin'),
                )
            ),
            Turn(calls=(ToolUse("c6", "apply_patch", {"patch": GOOD_PATCH}),)),
        ]
    edit = {"file_path": "/app.py", "old_string": "port = 80", "new_string": "port = 8080"}
    return [
        Turn(
            "Now the edit.",
            (
                ToolUse("c3", "edit_file", {**edit, "old_string": "port = 443"}),
                ToolUse("c4", "view_file", {"path": "app.py"}),
                ToolUse("c5", "edit_file", '{"file_path": "/app'),
                ToolUse("c5b", "edit_file", {"file_path": "/util.py", "old_string": "x = 1", "new_string": "x = 2"}),
            ),
        ),
        Turn(calls=(ToolUse("c6", "edit_file", edit),)),
    ]


def script(provider: Provider) -> list[Turn]:
    return [
        Turn(
            "Let me look.",
            (
                ToolUse("c1", "read_file", {"file_path": "/app.py"}),
                ToolUse("c2", "grep", {"pattern": "^x", "glob": None}),
            ),
        ),
        *edit_turns(provider),
        Turn(
            "And beside one another.",
            (
                ToolUse("c7", "write_file", {"file_path": "/a.txt", "content": "a\n", "mode": "create"}),
                ToolUse("c8", "rm", {"path": "/none"}),
                ToolUse("c9", "write_file", {"file_path": "/deep/b.txt", "content": "b \u00fc\n"}),
                ToolUse("c10", "write_file", {"file_path": "/util.py", "content": "no", "mode": "create"}),
            ),
        ),
        Turn("The port is 8080 now."),
    ]


FILES = {
    "/app.py": APP.replace("80", "8080"),
    "/util.py": UTIL,
    "/a.txt": "a\n",
    "/deep/b.txt": "b \u00fc\n",
}


def digest_of(files: dict[str, str]) -> str:
    fs = InMemoryFilesystem()
    for path, text in files.items():
        fs.write(path, text)
    return fs.tree().digest


@contextmanager
def serving(
    turns: Sequence[Turn], on_request: Callable[[int], int | Turn | None] = lambda turn: None
) -> Iterator[ModelServer]:
    with ModelServer(turns, on_request) as server:
        yield server


async def work(
    provider: Provider,
    server: ModelServer,
    path: Path,
    task: str | None = TASK,
    *,
    project: Path | None = None,
    max_turns: int = 50,
    on_text: Callable[[str], None] = lambda text: None,
    wrapped: Callable[[Model], Model] = lambda model: model,
) -> Outcome:
    """Run the loop against the server. No certificates are loaded: that takes as long as the rest.

    The clients are imported here: that takes seconds in each process that collects the tests.
    """
    mounts = [] if project is None else [HostMount(str(project))]

    async def go(model: Model) -> Outcome:
        return await run(wrapped(model), path, task, mounts=mounts, max_turns=max_turns, on_text=on_text)

    if provider == "openai":
        import openai

        from examples.agent_loop.openai_chat import OpenAIChat

        plain = openai.DefaultAsyncHttpxClient(verify=False)
        async with openai.AsyncOpenAI(api_key="test", base_url=server.url("openai"), http_client=plain) as client:
            return await go(OpenAIChat(client, "m"))
    import anthropic

    from examples.agent_loop.anthropic_messages import AnthropicMessages

    simple = anthropic.DefaultAsyncHttpxClient(verify=False)
    url = server.url("anthropic")
    async with anthropic.AsyncAnthropic(api_key="test", base_url=url, http_client=simple) as other:
        return await go(AnthropicMessages(other, "m"))


def messages_of(path: Path) -> list[Json]:
    """Read the conversation from a saved session."""
    session = Session.load(path, registry=REGISTRY)
    return [cast(Json, json.loads(message.json)) for message in session[Message].all()]


def answers_in(messages: Sequence[Json]) -> dict[str, tuple[bool, str]]:
    """List the outcome of each call, by its id: whether it succeeded, and the message to the model."""
    found: dict[str, tuple[bool, str]] = {}
    for message in messages:
        if message["role"] == "tool":
            text = cast(str, message["content"])
            found[cast(str, message["tool_call_id"])] = (not text.startswith("Error: "), text.removeprefix("Error: "))
        elif message["role"] == "user" and isinstance(message["content"], list):
            for block in cast("list[Json]", message["content"]):
                found[cast(str, block["tool_use_id"])] = (block["is_error"] is False, cast(str, block["content"]))
    return found


def lines_of_example(name: str) -> list[str]:
    """Run an example of `examples.integrations` in a process of its own, and return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"examples.integrations.{name}"],
        cwd=Path(weakfs.__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()

"""An agent loop whose process is killed, and which another process continues."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.agent_loop.conversation import REGISTRY
from tests.examples.agent_work import FILES, TASK, digest_of, messages_of, script, work
from tests.examples.model_server import ModelServer, Provider, Turn
from weakfs import InMemoryFilesystem, Session
from weakfs.tools import ToolCalls

ROOT = Path(__file__).parents[2]

# Ends its process as soon as all calls of the reply with c7 are made, before their answers are saved.
EXIT_BETWEEN = """
import asyncio, os, sys
from openai import AsyncOpenAI
from examples.agent_loop.loop import run
from examples.agent_loop.openai_chat import OpenAIChat

class Exiting(OpenAIChat):
    def answers(self, answers):
        if answers[0].call.id == "c7":
            os._exit(3)
        return super().answers(answers)

asyncio.run(run(Exiting(AsyncOpenAI(base_url=sys.argv[1]), "m"), sys.argv[2]))
"""


def start(*words: str) -> subprocess.Popen[str]:
    """Start a separate process, with a key that no server checks."""
    environment = {**os.environ, "OPENAI_API_KEY": "test", "ANTHROPIC_API_KEY": "test"}
    return subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def work_elsewhere(provider: Provider, server: ModelServer, path: Path, project: Path) -> subprocess.Popen[str]:
    words = ("-W", "error", "-m", "examples.agent_loop", provider, "m", str(path), TASK)
    return start(*words, "--mount", str(project), "--base-url", server.url(provider))


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", pytest.param("anthropic", marks=pytest.mark.exhaustive)])
def test_other_processes_continue_the_work_of_a_killed_one(provider: Provider, tmp_path: Path, project: Path) -> None:
    running: list[subprocess.Popen[str]] = []
    deadly = {2, len(script(provider)) - 1}

    def kill_once(turn: int) -> Turn | None:
        if turn in deadly:
            deadly.remove(turn)
            os.kill(running[-1].pid, signal.SIGKILL)
        return None

    path, whole = tmp_path / "work.json", tmp_path / "whole.json"
    printed: list[str] = []
    with ModelServer(script(provider), kill_once) as server:
        for end in (-signal.SIGKILL, -signal.SIGKILL, 0):
            running.append(work_elsewhere(provider, server, path, project))
            out, errors = running[-1].communicate()
            assert (running[-1].returncode, errors) == (end, "")
            printed.append(out)
        asyncio.run(work(provider, server, whole, project=project))

    assert printed[-1] == "The port is 8080 now.\n"
    assert messages_of(path) == messages_of(whole)
    session = Session.load(path, registry=REGISTRY)
    assert InMemoryFilesystem(session).tree().digest == digest_of(FILES)
    made = sorted(call.call_id for call in session[ToolCalls].all())
    assert made == sorted(call.id for turn in script(provider) for call in turn.calls)


@pytest.mark.exhaustive
def test_calls_not_saved_when_the_process_ended_are_repeated(tmp_path: Path, project: Path) -> None:
    path, whole = tmp_path / "work.json", tmp_path / "whole.json"
    with ModelServer(script("openai")) as server:
        stopped = asyncio.run(work("openai", server, path, project=project, max_turns=1))
        first = start("-c", EXIT_BETWEEN, server.url("openai"), str(path))
        assert first.communicate() == ("", "")
        before = Session.load(path, registry=REGISTRY)
        second = work_elsewhere("openai", server, path, project)
        _, errors = second.communicate()
        asyncio.run(work("openai", server, whole, project=project))

    assert stopped.status == "out_of_turns"
    assert first.returncode == 3
    assert not InMemoryFilesystem(before).exists("/a.txt")
    assert (second.returncode, errors) == (0, "")
    assert messages_of(path) == messages_of(whole)
    assert InMemoryFilesystem(Session.load(path, registry=REGISTRY)).tree().digest == digest_of(FILES)


def test_the_command_line_replays_conversation_and_work(tmp_path: Path, project: Path) -> None:
    path = tmp_path / "work.json"
    with ModelServer(script("openai")) as server:
        asyncio.run(work("openai", server, path, project=project))

    words = ("-c", "from weakfs.cli import main; main()", "replay", str(path), "--verify")
    shown = start(*words, "--registry", "examples.agent_loop.conversation:REGISTRY")
    out, errors = shown.communicate()

    assert (shown.returncode, errors) == (0, "")
    assert digest_of(FILES)[:16] in out

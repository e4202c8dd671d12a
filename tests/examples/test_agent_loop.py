"""The example of an agent loop against the real client libraries: mistakes, calls side by side, ways to stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import cast

import openai
import pytest
from anthropic import AsyncAnthropic
from attrs import evolve
from openai import AsyncOpenAI

from examples.agent_loop.anthropic_messages import AnthropicMessages
from examples.agent_loop.conversation import REGISTRY, Conversation, Message
from examples.agent_loop.loop import Answer, Model, Outcome, Reply, StreamBroken, run
from examples.agent_loop.openai_chat import OpenAIChat
from tests.examples.model_server import Json, ModelServer, Provider, ToolUse, Turn, cut
from weakfs import HostMount, InMemoryFilesystem, Prompt, Session, ToolCalls

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
    """Change the port, at first with mistakes: models of OpenAI by patches, of Anthropic by edits."""
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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "app.py").write_text(APP)
    (root / "util.py").write_text(UTIL)
    return root


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
    mounts = [] if project is None else [HostMount(str(project))]

    async def go(model: Model) -> Outcome:
        return await run(wrapped(model), path, task, mounts=mounts, max_turns=max_turns, on_text=on_text)

    if provider == "openai":
        async with AsyncOpenAI(api_key="test", base_url=server.url("openai")) as client:
            return await go(OpenAIChat(client, "m"))
    async with AsyncAnthropic(api_key="test", base_url=server.url("anthropic")) as other:
        return await go(AnthropicMessages(other, "m"))


def messages_of(path: Path) -> list[Json]:
    """Read the conversation from a saved session."""
    session = Session.load(path, registry=REGISTRY)
    return [cast(Json, json.loads(message.json)) for message in session.install(Message, kind="state").all()]


def answers_in(messages: Sequence[Json]) -> dict[str, tuple[bool, str]]:
    """List what became of each call, by its id: whether it went well, and what the model was told."""
    found: dict[str, tuple[bool, str]] = {}
    for message in messages:
        if message["role"] == "tool":
            text = cast(str, message["content"])
            found[cast(str, message["tool_call_id"])] = (not text.startswith("Error: "), text.removeprefix("Error: "))
        elif message["role"] == "user" and isinstance(message["content"], list):
            for block in cast("list[Json]", message["content"]):
                found[cast(str, block["tool_use_id"])] = (block["is_error"] is False, cast(str, block["content"]))
    return found


@BOTH
def test_a_task_is_worked_on_to_its_end_with_mistakes_told_and_undone(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    heard: list[str] = []
    path = tmp_path / "work.json"
    with serving(script(provider)) as server:
        outcome = asyncio.run(work(provider, server, path, project=project, on_text=heard.append))

    assert (outcome.status, outcome.text) == ("finished", "The port is 8080 now.")
    assert "".join(heard) == "".join(turn.text for turn in script(provider))
    assert len(heard) > len(script(provider))
    assert InMemoryFilesystem(outcome.session).tree().digest == digest_of(FILES)
    assert (project / "app.py").read_text() == APP

    told = answers_in(messages_of(path))
    assert [call for call, (success, _) in told.items() if not success] == [
        call for call in ("c3", "c4", "c5", "c5b", "c8", "c10") if call in told
    ]
    assert told["c1"][1] == APP
    assert "there is no tool 'view_file'" in told["c4"][1]
    assert "the arguments are not JSON" in told["c5"][1]
    calls = {call.call_id: call for call in outcome.session[ToolCalls].all()}
    if provider == "anthropic":
        assert calls["c5b"].error_code == "ambiguous_matches"
    assert calls.keys() == told.keys()
    assert {call.error_code for call in calls.values() if call.status != "ok"} >= {
        "unknown_tool",
        "invalid_arguments",
        "not_found",
        "already_exists",
        "hunk_rejected" if provider == "openai" else "edit_target_not_found",
    }


@BOTH
def test_each_request_says_again_all_that_was_said_and_every_call_is_answered_in_order(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    with serving(script(provider)) as server:
        asyncio.run(work(provider, server, tmp_path / "work.json", project=project))

    bodies = server.requests
    assert len(bodies) == len(script(provider))
    for before, after in pairwise(bodies):
        said, more = cast("list[Json]", before["messages"]), cast("list[Json]", after["messages"])
        assert more[: len(said)] == said
        assert (after["tools"], after.get("system")) == (before["tools"], before.get("system"))
    last = cast("list[Json]", bodies[-1]["messages"])
    assert list(answers_in(last)) == [call.id for turn in script(provider) for call in turn.calls]
    system = bodies[0]["system"] if provider == "anthropic" else last[0]["content"]
    assert "## Your work" in cast(str, system)
    assert "## Virtual filesystem" in cast(str, system)


@BOTH
def test_work_that_an_error_stopped_at_any_turn_comes_to_the_same_end(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    with serving(script(provider)) as server:
        asyncio.run(work(provider, server, tmp_path / "whole.json", project=project))

    failed: set[int] = set()

    def break_once(turn: int) -> Turn | None:
        if turn in failed:
            return None
        failed.add(turn)
        return evolve(script(provider)[turn], breaks=True)

    path = tmp_path / "broken.json"
    with serving(script(provider), break_once) as server:
        for _ in script(provider):
            with pytest.raises(StreamBroken, match="ended in the middle"):
                asyncio.run(work(provider, server, path, project=project))
        outcome = asyncio.run(work(provider, server, path, project=project))

    assert outcome.status == "finished"
    assert messages_of(path) == messages_of(tmp_path / "whole.json")
    assert InMemoryFilesystem(outcome.session).tree().digest == digest_of(FILES)


@BOTH
def test_calls_whose_answers_were_not_saved_are_made_again(provider: Provider, tmp_path: Path, project: Path) -> None:
    class Crash(BaseException):
        pass

    class Crashing:
        """A model over which the process ends after the calls of one reply were made."""

        def __init__(self, model: Model) -> None:
            self.provider: Provider = model.provider
            self.ask = model.ask
            self.task = model.task
            self.model = model

        def answers(self, answers: Sequence[Answer]) -> list[Json]:
            if answers[0].call.id == "c7":
                raise Crash
            return self.model.answers(answers)

    path = tmp_path / "work.json"
    with serving(script(provider)) as server:
        with pytest.raises(Crash):
            asyncio.run(work(provider, server, path, project=project, wrapped=Crashing))
        asked = len(server.requests)
        outcome = asyncio.run(work(provider, server, path, None))

    assert len(server.requests) == asked + 1
    assert InMemoryFilesystem(outcome.session).tree().digest == digest_of(FILES)
    assert answers_in(messages_of(path))["c7"][0]


@BOTH
def test_a_rollback_takes_files_and_conversation_back_and_the_work_goes_on_from_there(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    path = tmp_path / "work.json"
    with serving(script(provider)) as server:
        outcome = asyncio.run(work(provider, server, path, project=project))
        session = outcome.session
        session.rollback("turn 2")
        assert InMemoryFilesystem(session).tree().digest == digest_of({"/app.py": APP, "/util.py": UTIL})
        assert len(session[ToolCalls].all()) == len(answers_in(cast("list[Json]", server.requests[-1]["messages"])))
        session.save(path)
        assert answers_in(messages_of(path)).keys() == {"c1", "c2"}

        again = asyncio.run(work(provider, server, path, None))

    assert again.status == "finished"
    assert InMemoryFilesystem(again.session).tree().digest == digest_of(FILES)


@BOTH
def test_another_task_goes_on_in_the_same_conversation_over_the_same_files(provider: Provider, tmp_path: Path) -> None:
    turns = [
        Turn("Hello."),
        Turn(calls=(ToolUse("d1", "write_file", {"file_path": "/a", "content": "1"}),)),
        Turn("Written."),
        Turn("Bye."),
    ]
    path = tmp_path / "work.json"
    with serving(turns) as server:
        first = asyncio.run(work(provider, server, path, "Greet me."))
        nothing = asyncio.run(work(provider, server, path, None))
        second = asyncio.run(work(provider, server, path, "Write a file."))
        third = asyncio.run(work(provider, server, path, "Greet me."))

    assert [one.text for one in (first, nothing, second, third)] == ["Hello.", "Hello.", "Written.", "Bye."]
    assert InMemoryFilesystem(third.session).read("/a").content == "1"
    said = [message["content"] for message in messages_of(path) if message["role"] == "user"]
    assert [text for text in said if isinstance(text, str)] == ["Greet me.", "Write a file.", "Greet me."]


@BOTH
def test_a_reply_that_was_cut_off_has_its_whole_calls_made_and_the_torn_one_answered(
    provider: Provider, tmp_path: Path
) -> None:
    calls = (
        ToolUse("d1", "write_file", {"file_path": "/a", "content": "1"}),
        ToolUse("d2", "write_file", {"file_path": "/b", "content": "2" * 100}),
    )
    stop = "length" if provider == "openai" else "max_tokens"
    turns = [cut(Turn("Two files.", calls), stop), Turn("That is as far", stop=stop)]
    path = tmp_path / "work.json"
    with serving(turns) as server:
        outcome = asyncio.run(work(provider, server, path))

    assert (outcome.status, outcome.text) == ("cut_off", "That is as far")
    assert InMemoryFilesystem(outcome.session).tree().digest == digest_of({"/a": "1"})
    told = answers_in(messages_of(path))
    assert told["d1"][0]
    assert not told["d2"][0]
    assert "not JSON" in told["d2"][1]


@pytest.mark.parametrize(
    ("provider", "turn"),
    [
        ("openai", Turn(refusal="I will not help with that.")),
        ("openai", Turn("Half a", stop="content_filter")),
        ("anthropic", Turn("Half a", (ToolUse("d1", "rm", {"path": "/"}),), stop="refusal")),
    ],
)
def test_of_a_refusal_nothing_is_kept_and_nothing_is_done(provider: Provider, turn: Turn, tmp_path: Path) -> None:
    path = tmp_path / "work.json"
    with serving([Turn("Of course.")], lambda number: turn) as server:
        refused = asyncio.run(work(provider, server, path, "Do harm."))
        assert [message["role"] for message in messages_of(path)] == ["user"]
        assert refused.session[ToolCalls].all() == ()
        server.on_request = lambda number: None
        outcome = asyncio.run(work(provider, server, path, "Then do good."))

    assert refused.status == "refused"
    assert refused.text in ("I will not help with that.", "a content filter stopped the reply", "the model refused")
    assert (outcome.status, outcome.text) == ("finished", "Of course.")


@BOTH
def test_a_model_that_never_ends_is_stopped_and_may_go_on_later(provider: Provider, tmp_path: Path) -> None:
    turns = [
        *(Turn(calls=(ToolUse(f"d{n}", "write_file", {"file_path": f"/{n}", "content": ""}),)) for n in range(5)),
        Turn("Done."),
    ]
    path = tmp_path / "work.json"
    with serving(turns) as server:
        stopped = asyncio.run(work(provider, server, path, max_turns=3))
        files = InMemoryFilesystem(stopped.session).statistics().file_count
        outcome = asyncio.run(work(provider, server, path))

    assert (stopped.status, files, len(server.requests)) == ("out_of_turns", 3, 6)
    assert (outcome.status, outcome.text) == ("finished", "Done.")


@BOTH
def test_what_the_client_library_tries_again_is_asked_again(provider: Provider, tmp_path: Path) -> None:
    answers: list[int | None] = [500, 429, None]
    with serving([Turn("Here.")], lambda turn: answers.pop(0)) as server:
        outcome = asyncio.run(work(provider, server, tmp_path / "work.json"))

    assert (outcome.text, len(server.requests)) == ("Here.", 3)


def test_an_error_of_the_provider_is_raised_and_the_task_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "work.json"
    with serving([Turn("Here.")], lambda turn: 400) as server:
        with pytest.raises(openai.BadRequestError, match="try again"):
            asyncio.run(work("openai", server, path))
        server.on_request = lambda turn: None
        outcome = asyncio.run(work("openai", server, path))

    assert outcome.text == "Here."
    assert [message["role"] for message in messages_of(path)] == ["user", "assistant"]


def test_what_a_model_of_anthropic_thought_is_sent_back_as_it_was(tmp_path: Path) -> None:
    turns = [
        Turn("", (ToolUse("d1", "ls", ""),), thinking="I should look first."),
        Turn("A pause.", stop="pause_turn"),
        Turn(""),
        Turn("Yes."),
    ]
    path = tmp_path / "work.json"
    with serving(turns) as server:
        outcome = asyncio.run(work("anthropic", server, path))
        asyncio.run(work("anthropic", server, path, "Are you there?"))

    assert (outcome.status, outcome.text) == ("finished", "")
    _, first, answer, paused, empty, *_ = cast("list[Json]", server.requests[-1]["messages"])
    assert first["content"] == [
        {"type": "thinking", "thinking": "I should look first.", "signature": "signed"},
        {"type": "tool_use", "id": "d1", "name": "ls", "input": {}},
    ]
    assert cast("list[Json]", answer["content"])[0]["is_error"] is False
    assert paused["content"] == [{"type": "text", "text": "A pause."}]
    assert empty["content"] == [{"type": "text", "text": "(no words)"}]


def test_a_fault_in_a_tool_is_raised_and_undone_and_the_calls_are_made_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = (
        ToolUse("d1", "write_file", {"file_path": "/a", "content": "1"}),
        ToolUse("d2", "write_file", {"file_path": "/broken", "content": "2"}),
    )
    path = tmp_path / "work.json"
    with serving([Turn(calls=calls), Turn("Done.")]) as server:
        with monkeypatch.context() as patch:

            def fail(self: InMemoryFilesystem, path: str, *args: object, **options: object) -> bool:
                if "broken" in path:
                    raise RuntimeError("a bug")
                return exists(self, path)

            exists = InMemoryFilesystem.exists
            patch.setattr(InMemoryFilesystem, "exists", fail)
            with pytest.raises(ExceptionGroup) as caught:
                asyncio.run(work("openai", server, path))
        outcome = asyncio.run(work("openai", server, path))

    assert caught.group_contains(RuntimeError, match="a bug")
    assert outcome.status == "finished"
    assert InMemoryFilesystem(outcome.session).tree().digest == digest_of({"/a": "1", "/broken": "2"})


def test_a_conversation_is_not_gone_on_with_by_another_providers_model(tmp_path: Path) -> None:
    path = tmp_path / "work.json"
    with serving([Turn("Hello.")]) as server:
        asyncio.run(work("openai", server, path))
        with pytest.raises(ValueError, match="cannot go on with anthropic: the conversation was led with openai"):
            asyncio.run(work("anthropic", server, path))


def test_without_a_task_there_must_be_something_to_do(tmp_path: Path) -> None:
    with serving([]) as server, pytest.raises(ValueError, match="its conversation is empty; give a task"):
        asyncio.run(work("openai", server, tmp_path / "work.json", None))


def test_the_loop_needs_no_client_library_but_something_that_answers(tmp_path: Path) -> None:
    class Echo:
        provider = "openai"

        async def ask(self, prompt: Prompt, messages: Sequence[Json], on_text: Callable[[str], None]) -> Reply:
            return Reply({"role": "assistant", "content": "echo"}, "echo", "finished", ())

        def task(self, text: str) -> Json:
            return {"role": "user", "content": text}

        def answers(self, answers: Sequence[Answer]) -> list[Json]:
            return []

    outcome = asyncio.run(run(cast(Model, Echo()), tmp_path / "work.json", "Hello?"))

    assert (outcome.status, outcome.text) == ("finished", "echo")
    loaded = Session.load(tmp_path / "work.json", registry=REGISTRY)
    assert Conversation(loaded, "openai").turns == 1

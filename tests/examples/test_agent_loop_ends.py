"""How a run of the agent loop ends, and what a model may write without breaking it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest

from examples.agent_loop.conversation import REGISTRY, Conversation
from examples.agent_loop.loop import Answer, Model, Reply, run
from tests.examples.agent_work import (
    BOTH,
    answers_in,
    digest_of,
    messages_of,
    serving,
    work,
)
from tests.examples.model_server import Json, Provider, ToolUse, Turn, cut
from weakfs import InMemoryFilesystem, Session
from weakfs.tools import ToolCalls
from weakfs.tools.sections import Prompt


@BOTH
def test_another_task_continues_in_the_same_conversation_over_the_same_files(
    provider: Provider, tmp_path: Path
) -> None:
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
def test_complete_calls_of_a_truncated_reply_are_made_and_the_torn_one_is_answered(
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
def test_a_refusal_of_the_model_is_not_kept_and_changes_nothing(provider: Provider, turn: Turn, tmp_path: Path) -> None:
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
def test_a_model_that_never_stops_is_stopped_and_can_continue_later(provider: Provider, tmp_path: Path) -> None:
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
def test_requests_that_the_client_library_retries_are_sent_again(provider: Provider, tmp_path: Path) -> None:
    answers: list[int | None] = [500, 429, None]
    with serving([Turn("Here.")], lambda turn: answers.pop(0)) as server:
        outcome = asyncio.run(work(provider, server, tmp_path / "work.json"))

    assert (outcome.text, len(server.requests)) == ("Here.", 3)


def test_an_error_of_the_provider_is_raised_and_the_task_is_not_lost(tmp_path: Path) -> None:
    import openai

    path = tmp_path / "work.json"
    with serving([Turn("Here.")], lambda turn: 400) as server:
        with pytest.raises(openai.BadRequestError, match="try again"):
            asyncio.run(work("openai", server, path))
        server.on_request = lambda turn: None
        outcome = asyncio.run(work("openai", server, path))

    assert outcome.text == "Here."
    assert [message["role"] for message in messages_of(path)] == ["user", "assistant"]


def test_thinking_blocks_of_an_anthropic_model_are_sent_back_unchanged(tmp_path: Path) -> None:
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


def test_a_bug_in_a_tool_is_raised_and_undone_and_the_calls_are_repeated_later(
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


def test_a_conversation_is_not_continued_with_a_model_of_another_provider(tmp_path: Path) -> None:
    path = tmp_path / "work.json"
    with serving([Turn("Hello.")]) as server:
        asyncio.run(work("openai", server, path))
        with pytest.raises(ValueError, match="cannot continue with anthropic: the conversation used openai"):
            asyncio.run(work("anthropic", server, path))


def test_without_a_task_there_must_be_something_to_do(tmp_path: Path) -> None:
    with serving([]) as server, pytest.raises(ValueError, match="its conversation is empty; give a task"):
        asyncio.run(work("openai", server, tmp_path / "work.json", None))


def test_the_loop_works_with_any_object_that_answers(tmp_path: Path) -> None:
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


HALF = "\ud83d"


@pytest.mark.sampled
@BOTH
@pytest.mark.parametrize(
    "turn",
    [
        Turn("half", (ToolUse("d1", "write_file", '{"file_path": "/a", "content": "\\ud83d"}'),)),
        Turn(f"half a pair {HALF} in text", (ToolUse("d1", "rm", {"path": HALF}),)),
        Turn(calls=(ToolUse("d1", "ls", '{"max_results": NaN}'),)),
        Turn(calls=(ToolUse("d1", "shell", '{"command": "ls", "timeout": 1e999}'),)),
        Turn(calls=(ToolUse("d1", "ls", '{"path": ' + "[" * 900 + "]" * 900 + "}"),)),
        Turn(calls=(ToolUse("d1", "ls", "[" * 100_000),)),
        Turn(calls=(ToolUse("d1", "ls", '{"max_results": ' + "1" * 5000 + "}"),)),
        Turn(calls=(ToolUse("d1", "ls", '"' + "x" * 50_000),)),
        Turn(calls=(ToolUse("d1", "ls", "[1]"),)),
        Turn(calls=(ToolUse("d1", "no such\ntool" * 1000),)),
    ],
    ids=["escape", "text", "nan", "infinite", "nested", "open", "long-number", "long-text", "list", "name"],
)
def test_whatever_the_model_writes_is_answered_and_the_conversation_continues(
    provider: Provider, turn: Turn, tmp_path: Path
) -> None:
    path = tmp_path / "work.json"
    with serving([turn, Turn("Done.")]) as server:
        outcome = asyncio.run(work(provider, server, path))
        again = asyncio.run(work(provider, server, path, None))

    assert (outcome.status, again.text) == ("finished", "Done.")
    assert not answers_in(messages_of(path))["d1"][0]
    assert len(outcome.session[ToolCalls].all()) == 1
    assert InMemoryFilesystem(again.session).tree().digest == digest_of({})


def test_a_surrogate_pair_split_over_two_chunks_is_joined(tmp_path: Path) -> None:
    text = "abcdef\U0001f600"
    halves = text.encode("utf-16-le", "surrogatepass")
    apart = "".join(halves[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(halves), 2))
    with serving([Turn(apart)]) as server:
        outcome = asyncio.run(work("openai", server, tmp_path / "work.json"))

    assert outcome.text == text


@pytest.mark.parametrize(("provider", "stop"), [("openai", "tool_calls"), ("anthropic", "tool_use")])
def test_a_reply_that_announces_calls_but_has_none_ends_the_task(provider: Provider, stop: str, tmp_path: Path) -> None:
    with serving([Turn("Well.", stop=stop)]) as server:
        outcome = asyncio.run(work(provider, server, tmp_path / "work.json"))

    assert (outcome.status, outcome.text) == ("finished", "Well.")


@BOTH
def test_an_invalid_tool_name_is_reported_unchanged_and_sent_back_as_a_valid_one(
    provider: Provider, tmp_path: Path
) -> None:
    path = tmp_path / "work.json"
    with serving([Turn(calls=(ToolUse("d1", "fs.read"), ToolUse("d2", ""))), Turn("Done.")]) as server:
        asyncio.run(work(provider, server, path))

    said = cast("list[Json]", server.requests[-1]["messages"])[-2 if provider == "anthropic" else -3]
    if provider == "openai":
        names = [cast(Json, call["function"])["name"] for call in cast("list[Json]", said["tool_calls"])]
    else:
        names = [block["name"] for block in cast("list[Json]", said["content"])]
    assert names == ["fs_read", "_"]
    assert "there is no tool 'fs.read'" in answers_in(messages_of(path))["d1"][1]

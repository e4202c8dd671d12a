"""The example of an agent loop with the real client libraries: mistakes, and parallel calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from attrs import evolve

from examples.agent_loop.loop import Answer, Model, StreamBroken
from tests.examples.agent_work import (
    APP,
    BOTH,
    FILES,
    UTIL,
    answers_in,
    digest_of,
    messages_of,
    script,
    serving,
    work,
)
from tests.examples.model_server import Json, Provider, Turn
from weakfs import InMemoryFilesystem
from weakfs.tools import ToolCalls


@BOTH
def test_a_task_is_completed_with_mistakes_reported_and_undone(
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
def test_each_request_repeats_the_conversation_and_every_call_is_answered_in_order(
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


@pytest.mark.sampled(by_rule=True)
@BOTH
def test_work_stopped_by_an_error_at_any_turn_ends_with_the_same_result(
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
def test_calls_whose_answers_were_not_saved_are_repeated(provider: Provider, tmp_path: Path, project: Path) -> None:
    class Crash(BaseException):
        pass

    class Crashing:
        """A model whose process ends after the calls of one reply were made."""

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


@pytest.mark.slow
@BOTH
def test_a_rollback_restores_files_and_conversation_and_work_continues_from_there(
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

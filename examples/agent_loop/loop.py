"""The loop: ask the model, make its calls, save, and again until it is done.

Where the loop stands is read from the last message alone, so that it goes on from any save: after what the model said
its calls are made, after their answers the model is asked. A process that is killed loses at most the step it was in.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Literal, Protocol, cast

from attrs import frozen

from examples.agent_loop.conversation import REGISTRY, Call, Conversation, Json, Stop
from weakfs import HostMount, Session
from weakfs.tools.sections import Prompt, Section, VfsSection, adispatch_tool_call

CALL_SECONDS = 120

WAY_OF_WORK = """\
You are a careful programmer. Do what the user asks for with the tools that you have, and check what you did.
When you are done, say in a few sentences what you changed and why.
"""


@frozen
class Reply:
    """What a model said: its message as the provider has it, the text of it, why it ended, and its calls."""

    message: Json
    text: str
    stop: Stop
    calls: tuple[Call, ...]


@frozen
class Answer:
    """What became of a call, for the model."""

    call: Call
    text: str
    success: bool


class Refused(Exception):
    """The model, or a filter of its provider, would not answer. Nothing of its reply is kept."""


class StreamBroken(ConnectionError):
    """A reply ended in the middle. Nothing of it is kept; the next run asks again."""


class Model(Protocol):
    """A provider's model; the loop knows no more of it than this."""

    @property
    def provider(self) -> Literal["openai", "anthropic"]:
        """Whose messages these are."""
        ...

    async def ask(self, prompt: Prompt, messages: Sequence[Json], on_text: Callable[[str], None]) -> Reply:
        """Stream one reply. Raises `Refused`, `StreamBroken`, and what the client raises when its retries failed."""
        ...

    def task(self, text: str) -> Json:
        """Give the message in which a user asks for something."""
        ...

    def answers(self, answers: Sequence[Answer]) -> list[Json]:
        """Give the messages that answer all calls of a reply."""
        ...


@frozen
class Outcome:
    """How a run ended; whatever it was, another run of the same file goes on from there."""

    status: Literal["finished", "cut_off", "refused", "out_of_turns"]
    text: str
    session: Session


async def run(
    model: Model,
    path: str | PathLike[str],
    task: str | None = None,
    *,
    mounts: Sequence[HostMount] = (),
    max_turns: int = 50,
    on_text: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Work on a task until the model is done, and keep everything in the file `path`, which is saved after each step.

    A file that is there is gone on with: a task that it was killed over is not said twice, another one is said next.
    `mounts` are copied in the first time. An error of the provider's is raised; what came before it is saved.
    """
    session = Session.load(path, registry=REGISTRY) if Path(path).exists() else Session(registry=REGISTRY)
    conversation = Conversation(session, model.provider)
    files = VfsSection(session=session, mounts=mounts)
    prompt = Prompt(sections=[Section(title="Your work", key="work", template=WAY_OF_WORK), files])

    waiting = None if task is None else model.task(task)
    if waiting is not None and not conversation.ended and waiting in conversation.json():
        waiting = None
    turns = 0
    while True:
        last = conversation.last
        if last is not None and last.stop == "calls":
            answers = await make_calls(last.calls, prompt, session)
            conversation.say(*model.answers(answers))
        elif waiting is not None:
            conversation.say(waiting)
            waiting = None
        elif last is None:
            raise ValueError(f"there is nothing to do in {str(path)!r}: its conversation is empty; give a task")
        elif last.stop in ("finished", "cut_off"):
            return Outcome(last.stop, last.text, session)
        elif turns == max_turns:
            return Outcome("out_of_turns", last.text, session)
        else:
            turns += 1
            mark(session, conversation)
            try:
                reply = await model.ask(prompt, conversation.json(), on_text)
            except Refused as refusal:
                return Outcome("refused", str(refusal), session)
            conversation.reply(reply.message, reply.text, reply.stop, reply.calls)
        session.save(path)


def mark(session: Session, conversation: Conversation) -> None:
    """Name this moment: `session.rollback("turn 3")` takes files and conversation back to before that turn."""
    tag = f"turn {conversation.turns + 1}"
    if tag in (snapshot.tag for snapshot in session.snapshots):
        session.drop_snapshot(tag)
    session.snapshot(tag)


async def make_calls(calls: Sequence[Call], prompt: Prompt, session: Session) -> list[Answer]:
    """Make the calls of one reply side by side. A call that fails is rolled back alone, and its answer says why.

    A fault in a tool's own code is raised, after it was undone: the calls beside it that have not ended are undone too.
    """
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(make_call(call, prompt, session)) for call in calls]
    return [task.result() for task in made]


async def make_call(call: Call, prompt: Prompt, session: Session) -> Answer:
    """Make one call; whatever the model wrote, there is an answer, and a record of it in the session's `ToolCalls`."""
    arguments, problem = read_arguments(call.arguments)
    result = await adispatch_tool_call(
        prompt,
        call.name,
        cast("Mapping[str, object]", arguments),
        session=session,
        call_id=call.id,
        deadline=session.now() + CALL_SECONDS * 10**9,
    )
    return Answer(call, result.message + problem, result.success)


def read_arguments(text: str) -> tuple[object, str]:
    """Read what a model wrote for arguments; what is no JSON is given as it is, which every tool refuses, and why."""
    try:
        return json.loads(text or "{}", parse_float=finite, parse_constant=finite), ""
    except (ValueError, RecursionError) as error:
        return text, f"; the arguments are not JSON: {error}"


def finite(text: str) -> float:
    """Read a number. Python's reader takes NaN and Infinity as well, which no provider takes back."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is no number")
    return number

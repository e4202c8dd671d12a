"""The loop: ask the model, make its calls, save, and repeat until the model is done.

The state of the loop depends on the last message alone, so it can continue from any save: after a model's message its
calls are made, after their answers the model is asked. A process that is killed loses at most the current step.
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
    """A model's reply: its message in the provider's form, its text, why it ended, and its calls."""

    message: Json
    text: str
    stop: Stop
    calls: tuple[Call, ...]


@frozen
class Answer:
    """The result of a call, for the model."""

    call: Call
    text: str
    success: bool


class Refused(Exception):
    """The model, or its provider's filter, refused to answer. Nothing of its reply is kept."""


class StreamBroken(ConnectionError):
    """A reply ended in the middle. Nothing of it is kept; the next run asks again."""


class Model(Protocol):
    """A provider's model, as the loop uses it."""

    @property
    def provider(self) -> Literal["openai", "anthropic"]:
        """The provider of the messages."""
        ...

    async def ask(self, prompt: Prompt, messages: Sequence[Json], on_text: Callable[[str], None]) -> Reply:
        """Stream one reply. Raise `Refused`, `StreamBroken`, or the client's error if its retries failed."""
        ...

    def task(self, text: str) -> Json:
        """Return the message with which a user requests a task."""
        ...

    def answers(self, answers: Sequence[Answer]) -> list[Json]:
        """Return the messages that answer all calls of a reply."""
        ...


@frozen
class Outcome:
    """How a run ended; another run of the same file continues from there in any case."""

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
    """Work on a task until the model is done; save everything to the file `path` after each step.

    An existing file is continued: a task that was interrupted is not added again, and a different task is added next.
    `mounts` are copied in when the session is new. A provider's error is raised; everything before it is saved.
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
    """Tag this moment: `session.rollback("turn 3")` restores files and conversation to before that turn."""
    tag = f"turn {conversation.turns + 1}"
    if tag in (snapshot.tag for snapshot in session.snapshots):
        session.drop_snapshot(tag)
    session.snapshot(tag)


async def make_calls(calls: Sequence[Call], prompt: Prompt, session: Session) -> list[Answer]:
    """Make the calls of one reply concurrently. A call that fails is rolled back alone, and its answer says why.

    A bug in a tool's own code is raised after the call is undone; unfinished concurrent calls are undone too.
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
    """Parse a model's arguments; text that is not JSON is returned unchanged, with the error: every tool refuses it."""
    try:
        return json.loads(text or "{}", parse_float=finite, parse_constant=finite), ""
    except (ValueError, RecursionError) as error:
        return text, f"; the arguments are not JSON: {error}"


def finite(text: str) -> float:
    """Parse a number. Python's parser also accepts NaN and Infinity, which no provider accepts back."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is not a JSON number")
    return number

"""What was said, as a slice of the session, so that one file keeps it together with the files that it is about.

The slice is STATE and no LOG: a rollback to an earlier turn takes the conversation back with the files, and the model
never believes in an edit that is gone. That it was made, and undone, stays in the records and in `ToolCalls`.
"""

from __future__ import annotations

import json
import re
from typing import Literal, cast

from attrs import astuple, frozen

from weakfs import Registry, Session, event
from weakfs.session import append_all
from weakfs.session.slices.slice import Declaration

# Why a message ended: the model is done, calls tools, was cut off at a limit, or wants to be asked again.
Stop = Literal["finished", "calls", "cut_off", "paused"]
Json = dict[str, object]


@event("agent/call")
@frozen
class Call:
    """A tool call as the model wrote it: `arguments` is its text, which need not be JSON."""

    id: str
    name: str
    arguments: str


@event("agent/said")
@frozen
class Message:
    """One message, in the provider's own JSON; of what a model said also its text, its calls, and why it ended."""

    provider: str
    json: str
    text: str = ""
    stop: Stop | None = None
    calls: tuple[Call, ...] = ()


# For `Session(registry=...)` and `Session.load(..., registry=...)`; and for the command line, where
# `weakfs log FILE --registry examples.agent_loop.conversation:REGISTRY` shows both the files and what was said.
REGISTRY = Registry.with_types(Call).with_slices(Declaration(Message, kind="state", reducers={Message: append_all}))


class Conversation:
    """The messages of a session, with one provider."""

    def __init__(self, session: Session, provider: str) -> None:
        self._slice = session[Message]
        self._session = session
        self._provider = provider
        others = {message.provider for message in self.messages} - {provider}
        if others:
            raise ValueError(
                f"cannot go on with {provider}: the conversation was led with {others.pop()}; use that, or another file"
            )

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, the first one first."""
        return self._slice.all()

    @property
    def last(self) -> Message | None:
        """The last message, if there is any."""
        return self._slice.latest()

    @property
    def ended(self) -> bool:
        """Whether the model has said all that it will say unasked."""
        return self.last is None or self.last.stop in ("finished", "cut_off")

    @property
    def turns(self) -> int:
        """How often the model has spoken."""
        return sum(message.stop is not None for message in self.messages)

    def json(self) -> list[Json]:
        """Give the messages as the provider's client takes them."""
        return [cast(Json, json.loads(message.json)) for message in self.messages]

    def say(self, *messages: Json) -> None:
        """Add what a user or a tool said."""
        for message in messages:
            self._session.dispatch(Message(self._provider, written(message)), cause="runtime")

    def reply(self, message: Json, text: str, stop: Stop, calls: tuple[Call, ...]) -> None:
        """Add what the model said."""
        whole_calls = tuple(Call(*map(whole, astuple(call))) for call in calls)
        said = Message(self._provider, written(message), whole(text), stop, whole_calls)
        self._session.dispatch(said, cause="model")


def written(message: Json) -> str:
    """Write a message so that it can be saved, and sent again for as long as the conversation goes on."""
    return whole(json.dumps(message, ensure_ascii=False, allow_nan=False))


def whole(text: str) -> str:
    """Join the halves of surrogate pairs that came in two pieces; half a pair, which has no UTF-8, is replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plain_name(name: str) -> str:
    """Give the form in which a tool's name can be sent back: providers refuse what is not a name, such as `fs.read`."""
    return re.sub("[^A-Za-z0-9_-]", "_", name)[:64] or "_"

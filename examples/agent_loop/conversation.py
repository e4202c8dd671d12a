"""The conversation, as a slice of the session, so that one file stores it together with its files.

The slice is STATE, not LOG: a rollback to an earlier turn restores the conversation together with the files, so the
model never relies on an edit that was undone. The records and `ToolCalls` still show that it was made and undone.
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
    """One message in the provider's own JSON; for a model's message also its text, its calls, and why it ended."""

    provider: str
    json: str
    text: str = ""
    stop: Stop | None = None
    calls: tuple[Call, ...] = ()


# For `Session(registry=...)` and `Session.load(..., registry=...)`; and for the command line, where
# `weakfs log FILE --registry examples.agent_loop.conversation:REGISTRY` shows both the files and the messages.
REGISTRY = Registry.with_types(Call).with_slices(Declaration(Message, kind="state", reducers={Message: append_all}))


class Conversation:
    """The messages of a session with one provider."""

    def __init__(self, session: Session, provider: str) -> None:
        self._slice = session[Message]
        self._session = session
        self._provider = provider
        others = {message.provider for message in self.messages} - {provider}
        if others:
            raise ValueError(
                f"cannot continue with {provider}: the conversation used {others.pop()}; use that, or another file"
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
        """Whether the model has finished and waits for another message."""
        return self.last is None or self.last.stop in ("finished", "cut_off")

    @property
    def turns(self) -> int:
        """The number of messages from the model."""
        return sum(message.stop is not None for message in self.messages)

    def json(self) -> list[Json]:
        """Return the messages in the form that the provider's client accepts."""
        return [cast(Json, json.loads(message.json)) for message in self.messages]

    def say(self, *messages: Json) -> None:
        """Add messages from a user or a tool."""
        for message in messages:
            self._session.dispatch(Message(self._provider, written(message)), cause="runtime")

    def reply(self, message: Json, text: str, stop: Stop, calls: tuple[Call, ...]) -> None:
        """Add a message from the model."""
        whole_calls = tuple(Call(*map(whole, astuple(call))) for call in calls)
        said = Message(self._provider, written(message), whole(text), stop, whole_calls)
        self._session.dispatch(said, cause="model")


def written(message: Json) -> str:
    """Serialize a message so that it can be saved, and sent again throughout the conversation."""
    return whole(json.dumps(message, ensure_ascii=False, allow_nan=False))


def whole(text: str) -> str:
    """Join surrogate pairs that arrived in two pieces; replace half a pair, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plain_name(name: str) -> str:
    """Return a tool's name in a form that can be sent back: providers refuse invalid names, such as `fs.read`."""
    return re.sub("[^A-Za-z0-9_-]", "_", name)[:64] or "_"

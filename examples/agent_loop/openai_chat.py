"""OpenAI's Chat Completions API, and compatible servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, cast

from attrs import define, field
from openai import AsyncOpenAI

from examples.agent_loop.conversation import Call, Json, Stop, plain_name
from examples.agent_loop.loop import Answer, Refused, Reply, StreamBroken
from weakfs.tools.sections import Prompt

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam, ChatCompletionToolParam

# The calls of a reply are made whatever its stop reason; for a reply without calls, any other reason counts as done.
STOPS: dict[str, Stop] = {"stop": "finished", "length": "cut_off"}


class OpenAIChat:
    """A model behind an OpenAI client."""

    provider: Literal["openai"] = "openai"

    def __init__(self, client: AsyncOpenAI, model: str) -> None:
        self._client = client
        self._model = model

    async def ask(self, prompt: Prompt, messages: Sequence[Json], on_text: Callable[[str], None]) -> Reply:
        """Stream one reply; its calls arrive in pieces, each under the index of its call."""
        rendered = prompt.render()
        system = {"role": "system", "content": rendered.text}
        stream = await self._client.chat.completions.create(
            model=self._model,
            messages=cast("Iterable[ChatCompletionMessageParam]", [system, *messages]),
            tools=cast("Iterable[ChatCompletionToolParam]", rendered.definitions("openai")),
            stream=True,
        )
        heard = _Heard(on_text)
        async with stream:
            async for chunk in stream:
                heard.take(chunk)
        return heard.reply()

    def task(self, text: str) -> Json:
        """Return a user's message."""
        return {"role": "user", "content": text}

    def answers(self, answers: Sequence[Answer]) -> list[Json]:
        """Return one message per call. There is no field for failure: the text says it."""
        return [
            {
                "role": "tool",
                "tool_call_id": answer.call.id,
                "content": answer.text if answer.success else f"Error: {answer.text}",
            }
            for answer in answers
        ]


@define
class _Pieces:
    """A call as received so far."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(factory=list[str])


class _Heard:
    """A reply as received so far."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._finish: str | None = None
        self._calls: dict[int, _Pieces] = {}

    def take(self, chunk: ChatCompletionChunk) -> None:
        for choice in chunk.choices:  # there is none in the last chunk, which counts tokens
            delta = choice.delta
            if delta.content:
                self._text.append(delta.content)
                self._on_text(delta.content)
            self._refusal.append(delta.refusal or "")
            for part in delta.tool_calls or ():
                call = self._calls.setdefault(part.index, _Pieces())
                call.id = part.id or call.id
                if part.function is not None:
                    call.name += part.function.name or ""
                    call.arguments.append(part.function.arguments or "")
            self._finish = choice.finish_reason or self._finish

    def reply(self) -> Reply:
        text, refusal = "".join(self._text), "".join(self._refusal)
        if refusal or self._finish == "content_filter":
            raise Refused(refusal or "a content filter stopped the reply")
        if self._finish is None:
            raise StreamBroken("the reply of the model ended in the middle; run again to ask again")
        found = [call for _, call in sorted(self._calls.items())]
        calls = tuple(Call(call.id, call.name, "".join(call.arguments)) for call in found)
        message: Json = {"role": "assistant", "content": text if text or not calls else None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": plain_name(call.name), "arguments": call.arguments},
                }
                for call in calls
            ]
        # In a truncated reply, complete calls are made, and the incomplete one is answered: it is not JSON.
        return Reply(message, text, "calls" if calls else STOPS.get(self._finish, "finished"), calls)

"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, cast

from anthropic import AsyncAnthropic

from examples.agent_loop.conversation import Call, Json, Stop
from examples.agent_loop.loop import Answer, Refused, Reply, StreamBroken, read_arguments
from weakfs import Prompt

if TYPE_CHECKING:
    from anthropic.types import MessageParam, RawMessageStreamEvent, ToolParam

STOPS: dict[str, Stop] = {
    "end_turn": "finished",
    "stop_sequence": "finished",
    "tool_use": "calls",
    "max_tokens": "cut_off",
    "model_context_window_exceeded": "cut_off",
    "pause_turn": "paused",
}


class AnthropicMessages:
    """A model behind an Anthropic client."""

    provider: Literal["anthropic"] = "anthropic"

    def __init__(self, client: AsyncAnthropic, model: str, *, max_tokens: int = 16_000) -> None:
        self._client = client
        self._model = model
        self._max_tokens = max_tokens

    async def ask(self, prompt: Prompt, messages: Sequence[Json], on_text: Callable[[str], None]) -> Reply:
        """Stream one reply, block by block; the input of a call comes as pieces of JSON text."""
        rendered = prompt.render()
        stream = await self._client.messages.create(
            model=self._model,
            max_tokens=self._max_tokens,
            system=rendered.text,
            messages=cast("Iterable[MessageParam]", messages),
            tools=cast("Iterable[ToolParam]", rendered.definitions("anthropic")),
            stream=True,
        )
        heard = _Heard(on_text)
        async with stream:
            async for event in stream:
                heard.take(event)
        return heard.reply()

    def task(self, text: str) -> Json:
        """Give a user's message."""
        return {"role": "user", "content": text}

    def answers(self, answers: Sequence[Answer]) -> list[Json]:
        """Give one message with a block for each call."""
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": answer.call.id,
                "content": answer.text,
                "is_error": not answer.success,
            }
            for answer in answers
        ]
        return [{"role": "user", "content": blocks}]


class _Heard:
    """A reply as far as it has come."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._blocks: dict[int, Json] = {}
        self._inputs: dict[int, str] = {}
        self._stop: str | None = None

    def take(self, event: RawMessageStreamEvent) -> None:
        if event.type == "content_block_start":
            self._blocks[event.index] = event.content_block.to_dict()
        elif event.type == "message_delta":
            self._stop = event.delta.stop_reason or self._stop
        elif event.type == "content_block_delta":
            block, delta = self._blocks[event.index], event.delta
            if delta.type == "text_delta":
                _extend(block, "text", delta.text)
                self._on_text(delta.text)
            elif delta.type == "input_json_delta":
                self._inputs[event.index] = self._inputs.get(event.index, "") + delta.partial_json
            elif delta.type == "thinking_delta":
                _extend(block, "thinking", delta.thinking)
            elif delta.type == "signature_delta":
                _extend(block, "signature", delta.signature)

    def reply(self) -> Reply:
        if self._stop == "refusal":
            raise Refused("the model refused")
        if self._stop is None:
            raise StreamBroken("the reply of the model ended in the middle; run again to ask again")
        content: list[Json] = []
        calls: list[Call] = []
        for index, block in sorted(self._blocks.items()):
            if block["type"] == "tool_use":
                text = self._inputs.get(index, "")
                calls.append(Call(str(block["id"]), str(block["name"]), text))
                # Only an object may stand here; what the model wrote instead is in the call.
                given, _ = read_arguments(text)
                block["input"] = given if isinstance(given, dict) else {}
            if block.get("text") != "":  # an empty text is refused when it is sent back
                content.append(block)
        text = "".join(str(block["text"]) for block in content if block["type"] == "text")
        message: Json = {"role": "assistant", "content": content or [{"type": "text", "text": "(no words)"}]}
        # Of a reply that was cut off the whole calls are made, and the torn one is answered: it is not JSON.
        return Reply(message, text, "calls" if calls else STOPS.get(self._stop, "finished"), tuple(calls))


def _extend(block: Json, key: str, text: str) -> None:
    block[key] = str(block.get(key) or "") + text

"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, cast

from anthropic import AsyncAnthropic

from examples.agent_loop.conversation import Call, Json, Stop, plain_name
from examples.agent_loop.loop import Answer, Refused, Reply, StreamBroken, read_arguments
from weakfs.tools.sections import Prompt

if TYPE_CHECKING:
    from anthropic.types import MessageParam, RawMessageStreamEvent, ToolParam

# The calls of a reply are made whatever its stop reason; for a reply without calls, any other reason counts as done.
STOPS: dict[str, Stop] = {
    "end_turn": "finished",
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
        """Stream one reply, block by block; the input of a call arrives as pieces of JSON text."""
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
        """Return a user's message."""
        return {"role": "user", "content": text}

    def answers(self, answers: Sequence[Answer]) -> list[Json]:
        """Return one message with a block for each call."""
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
    """A reply received so far: its blocks as they began, and the pieces of text for each."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._blocks: dict[int, Json] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._stop: str | None = None

    def take(self, event: RawMessageStreamEvent) -> None:
        if event.type == "content_block_start":
            self._blocks[event.index] = event.content_block.to_dict()
        elif event.type == "message_delta":
            self._stop = event.delta.stop_reason or self._stop
        elif event.type == "content_block_delta":
            delta = event.delta
            if delta.type == "text_delta":
                self._add(event.index, "text", delta.text)
                self._on_text(delta.text)
            elif delta.type == "input_json_delta":
                self._add(event.index, "input", delta.partial_json)
            elif delta.type == "thinking_delta":
                self._add(event.index, "thinking", delta.thinking)
            elif delta.type == "signature_delta":
                self._add(event.index, "signature", delta.signature)

    def _add(self, index: int, key: str, piece: str) -> None:
        self._pieces.setdefault((index, key), []).append(piece)

    def reply(self) -> Reply:
        if self._stop == "refusal":
            raise Refused("the model refused")
        if self._stop is None:
            raise StreamBroken("the reply of the model ended in the middle; run again to ask again")
        inputs: dict[int, str] = {}
        for (index, key), pieces in self._pieces.items():
            if key == "input":
                inputs[index] = "".join(pieces)
                # Only an object is allowed here; what the model wrote instead is in the call.
                given, _ = read_arguments(inputs[index])
                self._blocks[index]["input"] = given if isinstance(given, dict) else {}
            else:
                self._blocks[index][key] = "".join(pieces)
        blocks = sorted(self._blocks.items())
        calls = tuple(
            Call(str(block["id"]), str(block["name"]), inputs.get(index, ""))
            for index, block in blocks
            if block["type"] == "tool_use"
        )
        for _, block in blocks:
            if block["type"] == "tool_use":
                block["name"] = plain_name(str(block["name"]))
        # An empty text, or a message without content, would be rejected when it is sent back.
        content = [block for _, block in blocks if block.get("text") != ""]
        text = "".join(str(block["text"]) for block in content if block["type"] == "text")
        message: Json = {"role": "assistant", "content": content or [{"type": "text", "text": "(no words)"}]}
        # In a truncated reply, complete calls are made, and the incomplete one is answered: it is not JSON.
        return Reply(message, text, "calls" if calls else STOPS.get(self._stop, "finished"), calls)

"""A server that imitates OpenAI's Chat Completions and Anthropic's Messages, streamed, and follows a script.

The number of messages by the model in the request determines the turn. So a process that repeats a request after
another one was killed gets the same answer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Literal, cast

from attrs import evolve, field, frozen

Json = dict[str, object]
Provider = Literal["openai", "anthropic"]

# Text and arguments are streamed in pieces of this many characters.
PIECE = 7
# But in no more pieces than this.
PIECES = 500


@frozen
class ToolUse:
    """A call that the model makes: its arguments as JSON, or as text that is not JSON."""

    id: str
    name: str
    arguments: object = field(factory=dict[str, object])

    @property
    def text(self) -> str:
        """The text that is streamed."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@frozen
class Turn:
    """One reply of the model. `stop` is the provider's own word; `breaks` ends the stream before it."""

    text: str = ""
    calls: tuple[ToolUse, ...] = ()
    stop: str | None = None
    thinking: str = ""
    refusal: str = ""
    breaks: bool = False


def pieces(text: str) -> list[str]:
    size = max(PIECE, len(text) // PIECES)
    return [text[at : at + size] for at in range(0, len(text), size)]


def openai_events(turn: Turn) -> Iterator[tuple[str | None, Json | str]]:
    def chunk(delta: Json, finish: str | None = None) -> tuple[None, Json]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return None, {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": None if turn.calls else ""})
    yield from (chunk({"content": piece}) for piece in pieces(turn.text))
    yield from (chunk({"refusal": piece}) for piece in pieces(turn.refusal))
    for index, call in enumerate(turn.calls):
        function = {"name": call.name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
    # The arguments of all calls arrive interleaved, as a server may send them.
    left = {index: pieces(call.text) for index, call in enumerate(turn.calls)}
    while any(left.values()):
        for index, waiting in left.items():
            if waiting:
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": waiting.pop(0)}}]})
    if not turn.breaks:
        yield chunk({}, turn.stop or ("tool_calls" if turn.calls else "stop"))
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        yield None, {**chunk({})[1], "choices": [], "usage": usage}
        yield None, "[DONE]"


def anthropic_events(turn: Turn) -> Iterator[tuple[str | None, Json | str]]:
    def event(kind: str, **values: object) -> tuple[str, Json]:
        return kind, {"type": kind, **values}

    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}
    yield event("message_start", message={**message, "stop_reason": None, "stop_sequence": None})
    yield event("ping")
    blocks: list[tuple[Json, list[Json]]] = []
    if turn.thinking:
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(turn.thinking)]
        deltas.append({"type": "signature_delta", "signature": "signed"})
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if turn.text or not turn.calls:
        texts: list[Json] = [{"type": "text_delta", "text": piece} for piece in pieces(turn.text)]
        blocks.append(({"type": "text", "text": ""}, texts))
    for call in turn.calls:
        inputs: list[Json] = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(call.text))]
        blocks.append(({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, inputs))
    for index, (block, deltas) in enumerate(blocks):
        yield event("content_block_start", index=index, content_block=block)
        yield from (event("content_block_delta", index=index, delta=delta) for delta in deltas)
        yield event("content_block_stop", index=index)
    if not turn.breaks:
        stop = turn.stop or ("tool_use" if turn.calls else "end_turn")
        yield event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": 9})
        yield event("message_stop")


def plain(event: tuple[str | None, Json | str]) -> bytes:
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


class ModelServer:
    """Serves a script on a port of its own, and keeps every request's body.

    `on_request` is called with the number of a turn before it is sent; its result replaces the turn: an HTTP status for
    an error, or another turn.
    """

    def __init__(
        self, script: Sequence[Turn], on_request: Callable[[int], int | Turn | None] = lambda turn: None
    ) -> None:
        self.script = script
        self.on_request = on_request
        self.requests: list[Json] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def url(self, provider: Provider) -> str:
        """Return the base URL for a client library."""
        root = f"http://127.0.0.1:{self._http.server_address[1]}"
        return f"{root}/v1" if provider == "openai" else root

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = cast(Json, json.loads(handler.rfile.read(int(handler.headers["Content-Length"]))))
        events = {"/v1/chat/completions": openai_events, "/v1/messages": anthropic_events}[handler.path]
        assert body["stream"] is True
        self.requests.append(body)
        number = sum(message["role"] == "assistant" for message in cast("list[Json]", body["messages"]))
        found = self.on_request(number)
        if isinstance(found, int):
            handler.send_response(found)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("retry-after-ms", "1")
            handler.end_headers()
            handler.wfile.write(b'{"type": "error", "error": {"type": "api_error", "message": "try again"}}')
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        try:
            for event in events(self.script[number] if found is None else found):
                handler.wfile.write(plain(event))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client is gone

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def cut(turn: Turn, stop: str) -> Turn:
    """Return a turn as it is when the model runs out of tokens in the middle of its last call."""
    *whole, last = turn.calls
    torn = evolve(last, arguments=last.text[: len(last.text) // 2])
    return evolve(turn, calls=(*whole, torn), stop=stop)

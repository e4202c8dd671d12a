"""What a tool returns: the text for the model, and a receipt for the program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from attrs import Factory, field

from weakfs.attribute_hints import attribute_hints
from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init
from weakfs.messages import a_type, clip, one_line, printable
from weakfs.tools.schemas.content import Image, OpenAIApi, Provider, content_parts

V_co = TypeVar("V_co", covariant=True)
V = TypeVar("V")
R = TypeVar("R", bound="Receipt")

# An error message may quote what the model sent, which may be very long.
MAX_FAILURE = 2000
MAX_SUMMARY = 300


def summarize(text: str) -> str:
    """Return the short one-line form of a text."""
    return one_line(clip(text, MAX_SUMMARY))


def with_notes(message: str, notes: Iterable[object]) -> str:
    """Return a message followed by notes, each on a line of its own."""
    return "\n".join((message, *(one_line(str(note)) for note in notes)))


@frozen(kw_only=True)
class Receipt:
    """The outcome of a call. Each tool's receipt adds its own values, `None` if the call failed before they were known.

    `status` is "ok" or the kind of failure, `error_code` the exact one, `summary_text` one line about it. `reason` is
    the reason of the policy's rule that refused the call, if one did.
    """

    status: str = "ok"
    error_code: str | None = None
    summary_text: str = ""
    reason: str | None = None


def _status(result: ToolResult[object]) -> str:
    return "ok" if result.success else "error"


def _summary(result: ToolResult[object]) -> str:
    if not isinstance(result.message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"message is {result.message!r:.60}; give the text that the model reads, then the value")
    return summarize(result.message)


@attribute_hints(
    error="error_code",
    is_error="success",
    ok="success",
    output="message",
    result="value",
    text="message",
)
@fast_init
@frozen
class ToolResult(Generic[V_co]):
    """The answer to one call: `message` goes to the model, `value` is for the program.

    With `success=False`, everything that the call did is rolled back. `images` are shown to the model along with the
    message. A handler needs to give only `message` and `value`.
    """

    message: str
    value: V_co
    success: bool = True
    status: str = field(default=Factory(_status, takes_self=True))
    error_code: str | None = None
    summary_text: str = field(default=Factory(_summary, takes_self=True))
    images: tuple[Image, ...] = field(default=(), kw_only=True)

    def value_as(self, kind: type[V]) -> V:
        """Return the value, typed: `toolset.call("read_file", ...).value_as(ReadFileReceipt).total_lines`.

        A failed call has a receipt of the tool's class too. Raises `TypeError` if the value has another type.
        """
        if not isinstance(self.value, kind):
            raise TypeError(f"cannot read the value as a {kind.__name__}: it is {a_type(self.value)}; give that class")
        return self.value

    def content(self, provider: Provider, *, api: OpenAIApi = "chat") -> list[dict[str, object]]:
        """Return the message and the images as the content parts of a provider's tool result.

        They go into `content` of Anthropic's `tool_result`, of OpenAI's `tool` message (Chat Completions) and of MCP's
        `CallToolResult`, into `output` of OpenAI's `function_call_output` (Responses), and into a turn next to Gemini's
        function response. Chat Completions accepts no images in a `tool` message, so a note takes their place there.
        """
        return content_parts(self.message, self.images, provider, api)


def answer(receipt: R, message: str | None = None) -> ToolResult[R]:
    """Return the result with a receipt; the model reads `message` or, without one, the summary.

    Control characters in the message are escaped (see `printable`).
    """
    return answer_verbatim(receipt, receipt.summary_text if message is None else printable(message))


def answer_verbatim(receipt: R, message: str) -> ToolResult[R]:
    """Return the result with a receipt, and with a message in which nothing is escaped."""
    return ToolResult(
        message,
        receipt,
        receipt.status == "ok",
        receipt.status,
        receipt.error_code,
        receipt.summary_text,
    )


class Undone(Exception):
    """Carries a failed result out of its transaction, so that the transaction is rolled back."""

    def __init__(self, result: ToolResult[object]) -> None:
        self.result = result


def failed(
    kind: type[Receipt], status: str, error_code: str, message: str, *, reason: str | None = None
) -> ToolResult[Receipt]:
    """Return the result of a failed call, with a receipt of the tool's class."""
    receipt = kind(status=status, error_code=error_code, summary_text=summarize(message), reason=reason)
    return answer(receipt, clip(message, MAX_FAILURE))

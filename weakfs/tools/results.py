"""What a tool gives back: the text for the model, and a receipt for the program."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, TypeVar

from attrs import Factory, field, frozen

V_co = TypeVar("V_co", covariant=True)
R = TypeVar("R", bound="Receipt")

# A message that tells of a failure may quote what the model sent, which may be a megabyte.
MAX_FAILURE = 2000
MAX_SUMMARY = 300


# What a terminal obeys instead of showing it, or what makes text read in another order than it is stored in: C0 but
# for tabs and line breaks, DEL, C1, bidirectional embeddings, overrides and isolates.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[{_CONTROLS}]")
_UNSAFE_IN_LINE = re.compile(f"[{_CONTROLS}\n\u2028\u2029]")


def one_line(text: str) -> str:
    """Give `text` on one line: line breaks and other characters that do not print as escapes.

    For names and summaries, in which spaces other than the common one and tabs are escaped too.
    """
    return text if text.isprintable() else "".join(map(_escaped_unless_printable, text))


def printable(text: str, *, is_line: bool = False) -> str:
    """Give `text` with control characters as escapes such as `\\x1b` and `\\u202e`; tabs stay, and so do line breaks.

    With `is_line` line breaks are escaped as well, U+2028 and U+2029 among them. For text that may be of any length and
    language, which `one_line` would change in more places.
    """
    kept = text.replace("\t", "") if is_line else text.replace("\t", "").replace("\n", "")
    # Much faster than the expression, which most texts need not be searched with.
    return text if kept.isprintable() else (_UNSAFE_IN_LINE if is_line else _UNSAFE).sub(_escaped_match, text)


def _escaped_match(found: re.Match[str]) -> str:
    return _escaped(found[0])


def _escaped_unless_printable(character: str) -> str:
    return character if character.isprintable() else _escaped(character)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def clip(text: str, most: int) -> str:
    """Give `text` with its middle left out where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def summarize(text: str) -> str:
    """Give the short one-line form of a text."""
    return one_line(clip(text, MAX_SUMMARY))


def with_notes(message: str, notes: Iterable[object]) -> str:
    """Give a message with notes of what a file lost, such as a hard link, each on a line of its own."""
    return "\n".join((message, *(one_line(str(note)) for note in notes)))


def plural(count: int, noun: str) -> str:
    """Give a number with its noun, `1 line` or `3 lines`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("y") else f"{count} {noun}{'es' if noun.endswith('ch') else 's'}"


@frozen(kw_only=True)
class Receipt:
    """What became of a call. Each tool's receipt adds its own values, `None` where the call failed before them.

    `status` is "ok" or what kind of failure it was, `error_code` says which, `summary_text` tells it in one line.
    `reason` is that of the policy's rule, where one stood against the call.
    """

    status: str = "ok"
    error_code: str | None = None
    summary_text: str = ""
    reason: str | None = None


def _status(result: ToolResult[object]) -> str:
    return "ok" if result.success else "error"


def _summary(result: ToolResult[object]) -> str:
    return summarize(result.message)


@frozen
class ToolResult(Generic[V_co]):
    """The answer to one call: `message` goes to the model, `value` is for the program.

    `success=False` has everything that the call did rolled back. A handler may leave out all but the first two.
    """

    message: str
    value: V_co
    success: bool = True
    status: str = field(default=Factory(_status, takes_self=True))
    error_code: str | None = None
    summary_text: str = field(default=Factory(_summary, takes_self=True))


def answer(receipt: R, message: str | None = None) -> ToolResult[R]:
    """Give the result that a receipt stands for; the model reads `message`, else the summary.

    Control characters in the message are escaped (see `printable`).
    """
    return ToolResult(
        receipt.summary_text if message is None else printable(message),
        receipt,
        receipt.status == "ok",
        receipt.status,
        receipt.error_code,
        receipt.summary_text,
    )


def failed(
    kind: type[Receipt], status: str, error_code: str, message: str, *, reason: str | None = None
) -> ToolResult[Receipt]:
    """Give the result of a call that failed, with a receipt of the tool's own kind."""
    receipt = kind(status=status, error_code=error_code, summary_text=summarize(message), reason=reason)
    return answer(receipt, clip(message, MAX_FAILURE))

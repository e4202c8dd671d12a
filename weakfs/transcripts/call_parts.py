"""Calls and answers from the raw fields of any format: the only place where wrong types become notices."""

from __future__ import annotations

from collections.abc import Iterator
from reprlib import repr as short_repr

from weakfs.transcripts.json_lines import NotJson, as_list, as_object, kind_of, parse_json, text_of_parts
from weakfs.transcripts.records import Answer, Found, Message, Skipped, TranscriptCall


def read_call(
    line: int, *, call_id: object, tool: object, arguments: object, is_answered: bool = True
) -> Iterator[Found]:
    """Yield the call with these fields, and a notice for each invalid field.

    Unless `is_answered`, the format has no answers, and a call needs no id.
    """
    if not isinstance(tool, str):
        yield Skipped(line, f"a tool call is skipped: its tool name is {_other_than('text', tool)}")
        return
    if not isinstance(call_id, str):
        if is_answered or call_id is not None:
            yield Skipped(
                line,
                f"the id of a call to {short_repr(tool)} is {_other_than('text', call_id)}; "
                "the call is kept, but no answer can be joined to it",
            )
        call_id = None
    values, problem = _read_arguments(arguments)
    yield TranscriptCall(call_id, tool, values, line, problem=problem)


def read_answer(line: int, *, call_id: object, content: object, is_error: object) -> Iterator[Found]:
    """Yield the answer with these fields; `is_error` is `None` if the format does not say whether the call failed."""
    if not isinstance(call_id, str):
        yield Skipped(line, f"an answer is skipped: the id of its call is {_other_than('text', call_id)}")
        return
    text = _text_of(content)
    if text is None:
        yield Skipped(line, f"the content of an answer is {kind_of(content)}, not text or a list; it is ignored")
    if is_error is not None and not isinstance(is_error, bool):
        yield Skipped(line, f"is_error of an answer is {kind_of(is_error)}, not true or false; it is ignored")
        is_error = None
    yield Answer(call_id, text, is_error, line)


def read_objects(line: int, name: str, value: object) -> Iterator[Message | Skipped]:
    """Yield the objects in the list called `name`, and a notice for anything else in it."""
    entries = as_list(value)
    if entries is None:
        yield Skipped(line, f"{name} is {kind_of(value)}, not a list; it is skipped")
        return
    for entry in entries:
        message = as_object(entry)
        if message is None:
            yield Skipped(line, f"an entry of {name} is {kind_of(entry)}, not an object; it is skipped")
        else:
            yield message


def _read_arguments(value: object) -> tuple[dict[str, object] | None, str | None]:
    # Several OpenAI-compatible servers write empty text for a call without arguments.
    if isinstance(value, str):
        value = parse_json(value) if value.strip() else {}
    if isinstance(value, NotJson):
        return None, f"the arguments are not JSON: {value.reason}; the call cannot be made as recorded"
    arguments = as_object(value)
    if arguments is None:
        return None, f"the arguments are {_other_than('an object', value)}; write {{}} for none"
    return arguments, None


def _text_of(content: object) -> str | None:
    """Return the text of an answer, which is a string, nothing or a list of parts; `None` for anything else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = as_list(content)
    if parts is None:
        return None
    return text_of_parts(parts)


def _other_than(wanted: str, value: object) -> str:
    return "missing" if value is None else f"{kind_of(value)}, not {wanted}"

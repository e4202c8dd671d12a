"""Lines of session files of Claude Code, and random texts and edits for them."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.sampling import share
from tests.transcripts.claude_code_model import ROOT, Line


def use(id: str, name: str, **arguments: object) -> Line:
    block = {"type": "tool_use", "id": id, "name": name, "input": arguments}
    return {
        "type": "assistant",
        "uuid": f"use-{id}",
        "sessionId": "s1",
        "cwd": ROOT,
        "message": {"role": "assistant", "content": [block]},
    }


def answer(id: str, result: Any = None, content: object = "done", *, is_error: bool = False) -> Line:
    block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}
    line: Line = {
        "type": "user",
        "uuid": f"answer-{id}",
        "sessionId": "s1",
        "message": {"role": "user", "content": [block]},
    }
    return line if result is None else {**line, "toolUseResult": result}


def called(id: str, name: str, **arguments: object) -> list[Line]:
    """Return a call and an answer that records nothing."""
    return [use(id, name, **arguments), answer(id)]


def edited(path: str, original: str | None, old: str, new: str, *hunks: str, **more: object) -> dict[str, object]:
    patch = [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": list(hunks)}] if hunks else []
    return {
        "filePath": f"{ROOT}/{path}",
        "oldString": old,
        "newString": new,
        "originalFile": original,
        "structuredPatch": patch,
        "replaceAll": False,
        **more,
    }


LINES = st.sampled_from(
    ["", "a", "b", "\ta", "\t\tb", "  a", 'say "a"', "say \u201ca\u201d", "b b b", "\u00e9\U0001f600", "a  ", "{", "}"]
)
TEXTS = st.builds(
    lambda mark, lines, end, last: mark + end.join(lines) + last,
    st.sampled_from(["", "", "\ufeff"]),
    st.lists(LINES, max_size=12),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.sampled_from(["\n", "\n", ""]),
)
NAMES = st.sampled_from(["a", "src/b.py"])


@st.composite
def edits(draw: st.DrawFn, text: str | None) -> tuple[str, str, bool]:
    """Draw an edit, mostly of a piece that is in the text."""
    lines = (text or "").split("\n")
    start = draw(st.integers(0, len(lines) - 1))
    old = "\n".join(lines[start : start + draw(st.integers(1, 3))])
    if draw(st.booleans()):
        old = old[draw(st.integers(0, 2)) :]
    if draw(st.integers(0, 5)) == 0:
        old = draw(LINES)
    if draw(st.integers(0, 5)) == 0:
        old = old.replace("\u201c", '"').replace("\u201d", '"')
    new = draw(st.sampled_from(["", "x", "x\n", "\tx\n\ty", 'say "b"', old + "!"]))
    return old, new, draw(st.booleans())


def plain(data: bytes) -> str:
    return data.decode().replace("\r\n", "\n").removeprefix("\ufeff")


ANY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=share(300),
)

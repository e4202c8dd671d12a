"""Calls in a session file: whatever arguments and receipts contain, they can be recorded and read back."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path, PurePosixPath
from typing import Any

from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from weakfs import Session, Toolset
from weakfs.filesystem import FileEntry
from weakfs.tools import ToolCall, ToolCalls
from weakfs.tools.calls.call_json import recorded

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_json_is_kept_unchanged(value: object) -> None:
    # Infinity is not valid JSON, and is recorded as null.
    if "Infinity" not in json.dumps(value):
        assert json.loads(recorded(value)) == value


def test_up_to_a_kibibyte_is_kept_as_text_and_more_as_bytes() -> None:
    assert recorded("x" * 1022) == '"' + "x" * 1022 + '"'
    assert recorded("x" * 1023) == b'"' + b"x" * 1023 + b'"'
    assert isinstance(recorded("é" * 600), bytes)


def test_recorded_json_takes_up_no_more_memory_than_it_needs() -> None:
    recorded({"content": ""})
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [recorded({"content": "x" * size}) for size in (2_000, 3_000, 20_000)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2 * sum(map(len, kept))


def test_values_that_json_lacks_are_converted() -> None:
    class Unknown:
        def __repr__(self) -> str:
            raise AssertionError("a value is not asked to print itself")

    value = {
        "entry": FileEntry("a", "/a", True, False),
        "bytes": b"\xff",
        "path": PurePosixPath("/a"),
        "set": {"b", "a"},
        "unknown": Unknown(),
        "tuple": (1, 2),
    }

    assert json.loads(recorded(value)) == {
        "entry": {"name": "a", "path": "/a", "is_file": True, "is_directory": False, "is_symlink": False},
        "bytes": {"base64": "/w=="},
        "path": "/a",
        "set": ["a", "b"],
        "unknown": "<Unknown>",
        "tuple": [1, 2],
    }


def test_numbers_and_text_that_the_fast_path_cannot_encode_are_kept_too() -> None:
    assert json.loads(recorded({"n": 2**70, "half": "\ud800", "entry": FileEntry("a", "/a", True, False)})) == {
        "n": 2**70,
        "half": "\ud800",
        "entry": {"name": "a", "path": "/a", "is_file": True, "is_directory": False, "is_symlink": False},
    }
    assert json.loads(recorded({5: "x"})) == {"5": "x"}


def test_values_that_cannot_be_kept_are_replaced_by_a_description() -> None:
    deep: object = []
    for _ in range(100_000):
        deep = [deep]
    around: list[object] = []
    around.append(around)

    for value in (deep, around, {("a", "b"): 1}, 10**10_000):
        told: Any = json.loads(recorded(value))
        assert list(told) == ["unrecorded"]


def test_arguments_nested_too_deeply_are_answered_and_described() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = {"a": deep}
    session = Session()

    result = Toolset(session).call("write_file", {"path": "/a", "content": deep})

    assert result.error_code == "invalid_arguments"
    (call,) = session[ToolCalls].all()
    assert "unrecorded" in str(call.read_arguments())


@frozen
class Plain:
    text: str


def test_calls_survive_saving_and_loading(tmp_path: Path) -> None:
    toolset = Toolset(Session(session_id="s"))
    toolset.call("write_file", {"path": "/a", "content": "é" * 2000}, caller="ann")
    toolset.call("read_file", {"path": "/a"})
    toolset.call("rm", {"path": "/none\n", "half \ud800": "\ud800"}, call_id="odd \ud800")
    calls = toolset.session[ToolCall].all()

    toolset.session.save(tmp_path / "s.json")
    loaded = Session.load(tmp_path / "s.json")

    assert Toolset(loaded).call("ls", {}).message == "a"
    assert loaded[ToolCalls].all()[:3] == calls
    ids = [call.call_id for call in loaded[ToolCalls].all()]
    assert ids[3].startswith("s/call")
    assert len(set(ids)) == 4
    assert list(loaded.records)[: len(toolset.session.records)] == list(toolset.session.records)

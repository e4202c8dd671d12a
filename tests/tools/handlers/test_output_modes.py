"""Large answers: references to blobs that the session stores, or a refusal if the answer has to be inline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.commands import TOOLS
from weakfs import Capability, InMemoryFilesystem, Session, ToolResult, Toolset
from weakfs.tools import BlobReference, ToolCalls
from weakfs.tools.handlers.output import INLINE

LARGE = "a line of text, not very long\n" * (INLINE // 20)


def toolset(capability: Capability | None = None) -> Toolset:
    tools = Toolset(Session(), tools=TOOLS, capability=capability)
    tools.filesystem.write("/large.txt", LARGE)
    tools.filesystem.write("/small.txt", "small\n")
    tools.filesystem.write_bytes("/binary", bytes(range(256)))
    return tools


# Each tool whose answer may be large, with arguments that make it so for a bound of 30 bytes.
LARGE_ANSWERS: list[tuple[str, dict[str, object], str]] = [
    ("read_file", {"path": "/large.txt"}, "content"),
    ("read_file", {"path": "/large.txt", "max_bytes": 50}, "content"),
    ("read_file", {"path": "/binary", "encoding": "bytes"}, "content"),
    ("grep", {"pattern": "line"}, "matches"),
    ("glob", {"pattern": "*"}, "paths"),
    ("ls", {}, "entries"),
]


def value_of(result: ToolResult[object], name: str) -> object:
    return getattr(result.value, name)


@pytest.mark.parametrize(("name", "arguments", "field"), LARGE_ANSWERS)
def test_results_that_do_not_fit_inline_are_blobs(name: str, arguments: dict[str, object], field: str) -> None:
    tools = toolset(Capability(max_inline_bytes=10))
    inline = toolset().call(name, {**arguments, "output_mode": "require_inline"})
    result = tools.call(name, arguments)
    reference = value_of(result, field)
    assert result.success
    assert isinstance(reference, BlobReference)
    assert reference.blob_ref in result.message
    copied = tools.call("write_file", {"path": "/copy", "content": {"blob_ref": reference.blob_ref}})
    assert copied.success
    kept = tools.filesystem.read_bytes("/copy").content
    assert len(kept) == reference.size
    expected = value_of(inline, field)
    if isinstance(expected, str):
        expected = expected.encode()
    if isinstance(expected, bytes):
        assert kept == expected
        assert reference.preview is not None
        assert expected.startswith(
            reference.preview.encode() if isinstance(reference.preview, str) else reference.preview
        )
    else:
        assert kept.decode() in inline.message


@pytest.mark.parametrize(("name", "arguments", "field"), LARGE_ANSWERS)
def test_a_required_inline_result_that_does_not_fit_is_an_error(
    name: str, arguments: dict[str, object], field: str
) -> None:
    tools = toolset(Capability(max_inline_bytes=10))
    before = tools.session.seq
    result = tools.call(name, {**arguments, "output_mode": "require_inline"})
    assert (result.status, result.error_code) == ("error", "inline_required_too_large")
    assert value_of(result, field) is None
    assert tools.session.seq == before + 1


def test_results_are_limited_even_without_a_capability() -> None:
    tools = toolset()
    result = tools.call("read_file", {"path": "/large.txt", "limit": 10**6})
    assert isinstance(value_of(result, "content"), BlobReference)
    assert len(result.message) < 3000
    assert "offset and limit" in result.message
    assert tools.call("read_file", {"path": "/large.txt", "limit": 100}).message.startswith("a line of text")


def test_equal_contents_are_kept_once() -> None:
    tools = toolset(Capability(max_inline_bytes=10))
    references = {value_of(tools.call("read_file", {"path": "/large.txt"}), "content") for _ in range(3)}
    assert len(references) == 1
    assert sum(record.event.__class__.__name__ == "KeptBlob" for record in tools.session.records) == 1


def test_blobs_are_saved_and_survive_a_rollback(tmp_path: Path) -> None:
    tools = toolset(Capability(max_inline_bytes=10))
    tools.session.snapshot("before")
    reference = value_of(tools.call("read_file", {"path": "/large.txt"}), "content")
    assert isinstance(reference, BlobReference)
    tools.session.rollback("before")
    tools.filesystem.delete("/large.txt")
    tools.session.save(tmp_path / "session.json")
    loaded = Toolset(Session.load(tmp_path / "session.json"))
    blob = {"blob_ref": reference.blob_ref}
    assert loaded.call("write_file", {"path": "/again", "content": blob}).success
    assert InMemoryFilesystem(loaded.session).read_bytes("/again").size_bytes == reference.size


def test_bytes_and_references_from_receipts_can_be_written() -> None:
    tools = toolset(Capability(max_inline_bytes=10))
    assert tools.call("write_file", {"path": "/b", "content": {"base64": "AAH/"}}).success
    assert tools.filesystem.read_bytes("/b").content == b"\0\1\xff"
    tools.call("read_file", {"path": "/large.txt"}, call_id="c1")
    told = tools.session[ToolCalls].all()[-1].read_receipt()
    assert isinstance(told, dict)
    assert tools.call("write_file", {"path": "/c", "content": told["content"]}).success


@pytest.mark.parametrize(
    ("content", "code", "word"),
    [
        ({"blob_ref": "00" * 32}, "unknown_blob", "blob_ref"),
        ({"blob_ref": 5}, "invalid_arguments", "content"),
        ({"base64": "***"}, "invalid_arguments", "base64"),
        ({}, "invalid_arguments", "content"),
        (5, "invalid_arguments", "content"),
    ],
)
def test_an_invalid_content_is_refused(content: object, code: str, word: str) -> None:
    tools = toolset()
    before = tools.filesystem.tree()
    result = tools.call("write_file", {"path": "/x", "content": content})
    assert (result.status, result.error_code) == ("error", code)
    assert word in result.message
    assert tools.filesystem.tree() is before


def test_whole_lines_count_towards_the_inline_limit() -> None:
    tools = toolset(Capability(max_inline_bytes=5000))
    tools.filesystem.write("/min.js", "a" * 100_000 + "needle\n")
    found = tools.call("grep", {"pattern": "needle"})
    assert isinstance(value_of(found, "matches"), BlobReference)
    required = tools.call("grep", {"pattern": "needle", "output_mode": "require_inline"})
    assert required.error_code == "inline_required_too_large"


def test_a_preview_is_no_longer_than_the_inline_limit() -> None:
    reference = value_of(toolset(Capability(max_inline_bytes=10)).call("read_file", {"path": "/large.txt"}), "content")
    assert isinstance(reference, BlobReference)
    assert reference.preview == "a line of "


def test_output_of_a_command_that_may_not_be_inline_is_kept_as_a_blob() -> None:
    tools = toolset(Capability(max_inline_bytes=10))
    result = tools.call("shell", {"command": "seq 100; echo short >&2"})
    out = value_of(result, "stdout")
    assert isinstance(out, BlobReference)
    assert value_of(result, "stderr") == "short\n"
    assert tools.call("write_file", {"path": "/out", "content": {"blob_ref": out.blob_ref}}).success
    assert tools.filesystem.read("/out").total_lines == 100

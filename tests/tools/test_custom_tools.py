"""Custom tools: what an author writes, and what handlers find in their context."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve, frozen

import weakfs.tools
from weakfs import DEFAULT_TOOLS, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Filesystem, Limits
from weakfs.testing import make_stub_context
from weakfs.tools import (
    DeadlineExceeded,
    Receipt,
    ToolCalls,
    ToolValidationError,
    build_tool_context,
    require_filesystem,
)


@frozen
class CountWords:
    path: str
    longer_than: int = 0


def count_words(params: CountWords, *, context: ToolContext) -> ToolResult[int]:
    words = require_filesystem(context).read(params.path).content.split()
    count = sum(len(word) > params.longer_than for word in words)
    return ToolResult(f"{count} words", count)


COUNT_WORDS = Tool("count_words", "Count the words of a file.", CountWords, count_words, read_only=True)


def test_a_custom_tool_is_called_like_the_others() -> None:
    toolset = Toolset(Session(session_id="s"), tools=(*DEFAULT_TOOLS, COUNT_WORDS))
    toolset.call("write_file", {"path": "/a", "content": "to be or not"})

    result = toolset.call("count_words", {"path": "/a", "longer_than": 2})

    assert (result.success, result.message, result.value, result.summary_text) == (True, "1 words", 1, "1 words")
    assert toolset.call("count_words", {"path": "/b"}).status == "not_found"
    assert toolset.call("count_words", {"path": "/a", "longer_then": 2}).message == (
        "cannot call count_words: longer_then: no such argument; did you mean longer_than?"
    )
    calls = toolset.session[ToolCalls].where(lambda call: call.tool == "count_words")
    assert calls[0].read_receipt() == 1
    assert [call.status for call in calls] == ["ok", "not_found", "error"]


@frozen(kw_only=True)
class WordReceipt(Receipt):
    words: int | None = None


def test_a_tool_may_have_its_own_receipt_for_failures_too() -> None:
    tool = Tool("words", "Count.", CountWords, count_words, receipt=WordReceipt)

    result = Toolset(Session(), tools=[tool]).call("words", {"path": "/none"})

    assert isinstance(result.value, WordReceipt)
    assert result.value.error_code == "not_found"


def test_a_handler_can_be_tested_with_a_stub_context() -> None:
    fs = InMemoryFilesystem()
    fs.write("/a", "one two")

    assert count_words(CountWords("/a"), context=make_stub_context(fs)).value == 2
    with pytest.raises(ToolValidationError, match="there is no filesystem in this context"):
        count_words(CountWords("/a"), context=make_stub_context())


def test_a_context_passes_on_values_of_the_runtime() -> None:
    session, prompt, rendered, adapter, tracker = Session(), object(), object(), object(), object()

    context = build_tool_context(
        session=session, prompt=prompt, rendered_prompt=rendered, adapter=adapter, budget_tracker=tracker
    )

    assert context.session is session
    assert (context.prompt, context.rendered_prompt) == (prompt, rendered)
    assert (context.adapter, context.budget_tracker) == (adapter, tracker)
    assert (context.filesystem, context.deadline) == (None, None)
    assert context.limits == Limits.tools()


def test_a_context_knows_when_its_deadline_has_passed() -> None:
    session = Session(clock=lambda: 5_000_000_000)

    build_tool_context(session=session).check_deadline()
    build_tool_context(session=session, deadline=5_000_000_000).check_deadline()
    with pytest.raises(DeadlineExceeded, match=r"deadline passed 1\.5 s ago and nothing was changed"):
        build_tool_context(session=session, deadline=3_500_000_000).check_deadline()


def test_a_stub_context_has_a_clock_and_accepts_a_session_and_a_filesystem() -> None:
    session, fs = Session(), InMemoryFilesystem()

    stub = make_stub_context()

    assert [stub.session.now(), stub.session.now()] == [1, 2]
    context = make_stub_context(fs, session=session, deadline=7, limits=Limits())
    assert isinstance(context.filesystem, Filesystem)
    assert (context.session, context.filesystem, context.deadline, context.limits) == (session, fs, 7, Limits())


def test_a_context_is_created_in_one_place_only() -> None:
    package = Path(weakfs.__file__).parent
    makers = [path.name for path in package.rglob("*.py") if "ToolContext(" in path.read_text("utf-8")]

    assert makers == ["context.py"]


def test_a_filesystem_of_another_session_is_refused() -> None:
    class Owned(InMemoryFilesystem):
        @property
        def session(self) -> Session:
            return owner

    mine, owner = Session(session_id="mine"), Session(session_id="other")

    with pytest.raises(ValueError, match="cannot use a filesystem of session 'other' with session 'mine'"):
        Toolset(mine, Owned())
    assert Toolset(owner, Owned(owner)).call("ls", {}).success


def test_every_public_name_exists_and_no_other_is_found() -> None:
    for name in weakfs.tools.__all__:
        assert getattr(weakfs.tools, name) is not None
    assert dir(weakfs.tools) == sorted(weakfs.tools.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = weakfs.tools.nothing  # pyright: ignore[reportAttributeAccessIssue]


def test_changing_the_mapping_of_aliases_does_not_change_the_tool() -> None:
    given = {"file_path": "path"}
    tool = Tool("probe", "For tests.", CountWords, count_words, aliases=given)
    given.clear()

    assert dict(tool.aliases) == {"file_path": "path"}
    with pytest.raises(TypeError):
        tool.aliases["file"] = "path"  # type: ignore[index]  # the test


@pytest.mark.parametrize("tool", DEFAULT_TOOLS, ids=lambda tool: tool.name)
def test_a_built_in_tool_can_be_changed_like_any_other(tool: Tool) -> None:
    renamed = evolve(tool, name="renamed", description="Another one.")

    assert (renamed.name, renamed.description) == ("renamed", "Another one.")
    assert (renamed.params, renamed.handler, renamed.receipt) == (tool.params, tool.handler, tool.receipt)
    assert [one.name for one in renamed.parameters] == [one.name for one in tool.parameters]
    assert renamed.aliases == tool.aliases


def test_a_built_in_tool_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="'BuiltinTool' object has no attribute 'nothing'"):
        _ = DEFAULT_TOOLS[0].nothing  # type: ignore[attr-defined]  # the test
    with pytest.raises(AttributeError):
        DEFAULT_TOOLS[0].name = "other"  # type: ignore[misc]  # the test

"""The scripted filesystem: what it records, what it answers, and what it says when it has no answer."""

from __future__ import annotations

import inspect
import io
from typing import Any, cast

import pytest

from weakfs import Session
from weakfs.backends.mock import Call, MockFilesystem, UnansweredCallError
from weakfs.filesystem import (
    BaseFilesystem,
    FileEntry,
    Filesystem,
    GlobMatch,
    GlobResult,
    Limits,
    ReadResult,
    WriteResult,
)


def text(content: str, path: str = "/a.txt") -> ReadResult:
    return ReadResult(content, path, content.count("\n"), 0, None, False)


def methods() -> list[str]:
    return [name for name, member in vars(Filesystem).items() if not name.startswith("_") and callable(member)]


def promised(name: str) -> list[inspect.Parameter]:
    """Return the parameters of a method; an overloaded one has them only in its implementation."""
    home = BaseFilesystem if hasattr(BaseFilesystem, name) else Filesystem
    return list(inspect.signature(getattr(home, name)).parameters.values())[1:]


@pytest.fixture
def mock() -> MockFilesystem:
    return MockFilesystem()


def test_a_mock_is_a_filesystem(mock: MockFilesystem) -> None:
    fs: Filesystem = mock
    assert isinstance(fs, Filesystem)


@pytest.mark.parametrize("name", methods())
def test_every_method_has_the_parameters_of_the_protocol(name: str) -> None:
    own = list(inspect.signature(getattr(MockFilesystem, name)).parameters.values())[1:]
    assert [(one.name, one.kind, one.default) for one in own] == [
        (one.name, one.kind, one.default) for one in promised(name)
    ]


@pytest.mark.parametrize("name", [name for name in methods() if name != "bind"])
def test_every_method_records_its_arguments_by_name_and_asks_the_script(mock: MockFilesystem, name: str) -> None:
    parameters = promised(name)
    given = {
        parameter.name: [("line",)] if parameter.name in ("lines", "pieces") else f"/{parameter.name}"
        for parameter in parameters
    }
    positional = [given[one.name] for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    keywords = {one.name: given[one.name] for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(UnansweredCallError, match=rf"no answer to {name}\("):
        getattr(mock, name)(*positional, **keywords)
    (call,) = mock.calls
    assert call.name == name
    assert list(call.arguments) == list(given)
    for argument, value in call.arguments.items():
        assert value == (tuple(given[argument]) if argument in ("lines", "pieces") else given[argument])


def test_omitted_arguments_are_recorded_with_their_defaults(mock: MockFilesystem) -> None:
    mock.answer("read", text("one\n"))
    mock.read("/a.txt", limit=5)
    assert mock.calls == (Call("read", {"path": "/a.txt", "offset": 0, "limit": 5, "encoding": "utf-8"}),)


def test_calls_are_recorded_in_order(mock: MockFilesystem) -> None:
    mock.answer("exists", True)
    mock.answer("mkdir", None)
    mock.exists("/a")
    mock.mkdir("/b")
    mock.exists("/c")
    assert [str(call.path) for call in mock.calls] == ["/a", "/b", "/c"]
    assert [str(call.path) for call in mock.calls_to("exists")] == ["/a", "/c"]
    assert mock.calls_to("delete") == ()


def test_a_call_that_raises_is_recorded_as_well(mock: MockFilesystem) -> None:
    mock.answer("delete", PermissionError("no"))
    with pytest.raises(PermissionError):
        mock.delete("/a", recursive=True)
    assert mock.calls == (Call("delete", {"path": "/a", "recursive": True}),)


def test_recorded_calls_do_not_change(mock: MockFilesystem) -> None:
    mock.answer("exists", True)
    before = mock.calls
    mock.exists("/a")
    assert before == ()
    (call,) = mock.calls
    with pytest.raises(AttributeError):
        cast(Any, call).name = "other"
    with pytest.raises(TypeError):
        cast(Any, call.arguments)["path"] = "/other"


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (Call("read", {"path": "a//b/../c"}), "/a/c"),
        (Call("glob", {"pattern": "*", "path": "/src"}), "/src"),
        (Call("move", {"src": "a", "dst": "/b"}), "/a"),
        (Call("symlink", {"target": "/t", "path": "/link"}), "/link"),
        (Call("read", {"path": "../up"}), "../up"),
        (Call("snapshot", {"tag": None}), None),
    ],
    ids=lambda value: str(value),
)
def test_a_call_knows_its_path(call: Call, path: str | None) -> None:
    assert call.path == path


def test_an_answer_can_be_given_any_number_of_times(mock: MockFilesystem) -> None:
    result = text("one\n")
    mock.answer("read", result)
    assert [mock.read(path) for path in ("/a", "/b", "/a")] == [result] * 3


def test_an_answer_for_a_path_takes_precedence(mock: MockFilesystem) -> None:
    mock.answer("exists", False)
    mock.answer("exists", True, path="src/a.txt")
    assert [mock.exists(path) for path in ("/src/a.txt", "\\src\\a.txt", "/src", "/a.txt")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_answers_with_a_count_are_used_up_in_order(mock: MockFilesystem) -> None:
    mock.answer("read", text("first"), times=1)
    mock.answer("read", text("second"), times=2)
    mock.answer("read", text("last"))
    assert [mock.read("/a").content for _ in range(5)] == ["first", "second", "second", "last", "last"]


def test_a_used_up_answer_leaves_the_call_unanswered(mock: MockFilesystem) -> None:
    mock.answer("exists", True, path="/a", times=1)
    assert mock.exists("/a")
    with pytest.raises(UnansweredCallError):
        mock.exists("/a")


def test_a_later_answer_replaces_an_earlier_one(mock: MockFilesystem) -> None:
    mock.answer("exists", True)
    mock.answer("exists", True, path="/kept")
    mock.answer("exists", False)
    assert (mock.exists("/a"), mock.exists("/kept")) == (False, True)


@pytest.mark.parametrize("error", [FileNotFoundError("cannot read '/a'"), FileNotFoundError])
def test_an_error_is_raised(mock: MockFilesystem, error: object) -> None:
    mock.answer("read", error, times=1)
    mock.answer("read", text("back again"))
    with pytest.raises(FileNotFoundError):
        mock.read("/a")
    assert mock.read("/a").content == "back again"


def test_every_kind_of_answer_reaches_the_caller(mock: MockFilesystem) -> None:
    entry = FileEntry("a", "/a", True, False)
    stream = io.StringIO("text")
    matches = GlobResult([GlobMatch("/a", True)], truncated=False)
    mock.answer("list", (entry,))
    mock.answer("walk", (entry,))
    mock.answer("open", stream)
    mock.answer("glob", matches)
    mock.answer("write", WriteResult("/a", 1, "overwrite"))
    mock.answer("move", None)
    mock.answer("delete", 3)
    assert mock.list() == (entry,)
    assert [list(mock.walk()), list(mock.walk())] == [[entry], [entry]]
    assert mock.open("/a") is cast(object, stream)
    assert mock.glob("*") is matches
    assert mock.write("/a", "x").bytes_written == 1
    mock.move("/a", "/b")
    assert mock.delete("/a") == 3


def test_an_unanswered_call_names_itself_and_the_remedy(mock: MockFilesystem) -> None:
    mock.answer("read", text("x"), path="/other")
    with pytest.raises(UnansweredCallError) as caught:
        mock.read("/a.txt", limit=2)
    message = str(caught.value)
    assert "read(path='/a.txt', offset=0, limit=2, encoding='utf-8')" in message
    assert "answer('read', result, path='/a.txt')" in message


def test_an_unanswered_call_does_not_raise_a_filesystem_error() -> None:
    assert not issubclass(UnansweredCallError, OSError | ValueError)


def test_an_answer_of_the_wrong_kind_is_named(mock: MockFilesystem) -> None:
    mock.answer("read", "just text")
    with pytest.raises(TypeError, match=r"cannot answer read\(.*'just text': the method returns ReadResult"):
        mock.read("/a")


@pytest.mark.parametrize("name", ["raed", "root", "answer", "calls", ""])
def test_only_methods_of_a_filesystem_are_scripted(mock: MockFilesystem, name: str) -> None:
    with pytest.raises(ValueError, match="use one of read, "):
        mock.answer(name, None)
    with pytest.raises(ValueError, match="use one of read, "):
        mock.calls_to(name)


@pytest.mark.parametrize("times", [0, -1])
def test_an_answer_is_given_at_least_once(mock: MockFilesystem, times: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        mock.answer("exists", True, times=times)


def test_binding_returns_the_mock_itself_unless_the_script_says_otherwise(mock: MockFilesystem) -> None:
    session = Session()
    assert mock.bind(session) is mock
    other = MockFilesystem()
    mock.answer("bind", other)
    assert mock.bind(session) is other
    assert mock.calls == (Call("bind", {"session": session}),) * 2


def test_constructor_arguments_become_its_properties() -> None:
    mock = MockFilesystem(root="/work", read_only=True, limits=Limits.strict())
    assert (mock.root, mock.read_only, mock.limits) == ("/work", True, Limits.strict())
    assert (MockFilesystem().root, MockFilesystem().read_only, MockFilesystem().limits) == ("/", False, Limits())

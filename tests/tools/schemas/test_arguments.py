"""Arguments of calls: strict, all problems named together, and no JSON that crashes the reader."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from attrs import field, frozen
from hypothesis import given
from hypothesis import strategies as st

from weakfs import DEFAULT_TOOLS, Tool, ToolContext, ToolResult, param
from weakfs.tools import ToolValidationError
from weakfs.tools.schemas.arguments import parameters_of

TOOLS = {tool.name: tool for tool in DEFAULT_TOOLS}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def problems_of(tool: Tool, arguments: object) -> tuple[str, ...]:
    try:
        tool.read_arguments(arguments)
    except ToolValidationError as error:
        return error.problems
    return ()


def problems(tool: Tool, arguments: object) -> tuple[str, ...]:
    with pytest.raises(ToolValidationError) as caught:
        tool.read_arguments(arguments)
    assert str(caught.value) == "; ".join(caught.value.problems)
    return caught.value.problems


def nothing(params: object, *, context: ToolContext) -> ToolResult[object]:
    return ToolResult("", params)


def tool_of(params: type, **more: Any) -> Tool:
    return Tool("probe", "For tests.", params, nothing, **more)


def test_arguments_become_the_parameters_of_the_handler() -> None:
    params: Any = TOOLS["read_file"].read_arguments({"path": "/a", "offset": 2})

    assert (params.path, params.offset, params.limit) == ("/a", 2, None)


def test_values_of_the_wrong_type_are_not_converted() -> None:
    assert problems(TOOLS["read_file"], {"path": 5}) == ("path: expected text, got number 5",)
    assert problems(TOOLS["read_file"], {"path": "/a", "limit": "all"}) == (
        "limit: expected a whole number, got text 'all'",
    )
    assert problems(TOOLS["read_file"], {"path": "/a", "limit": True}) == ("limit: expected a whole number, got true",)
    assert problems(TOOLS["read_file"], {"path": "/a", "limit": 2.0}) == (
        "limit: expected a whole number, got number 2.0",
    )
    assert problems(TOOLS["rm"], {"path": "/a", "recursive": 1}) == ("recursive: expected true or false, got number 1",)
    assert problems(TOOLS["rm"], {"path": ["/a"]}) == ("path: expected text, got a list of 1",)


def test_all_problems_are_named_at_once() -> None:
    assert problems(TOOLS["write_file"], {"pth": "/a", "content": None, "create_parents": "yes"}) == (
        "pth: no such argument; did you mean path?",
        "content: expected text, got null",
        "create_parents: expected true or false, got text 'yes'",
        "path: missing; give the file",
    )


def test_the_error_for_a_wrong_choice_lists_the_choices() -> None:
    assert problems(TOOLS["write_file"], {"path": "/a", "content": "", "mode": "replace"}) == (
        "mode: expected 'overwrite' or 'create' or 'create_new' or 'append', got text 'replace'",
    )


def test_numbers_have_their_bounds() -> None:
    assert problems(TOOLS["read_file"], {"path": "/a", "offset": 0, "limit": -1}) == (
        "offset: expected a number of at least 1, got number 0",
        "limit: expected a number of at least 1, got number -1",
    )


def test_null_means_that_an_argument_is_omitted() -> None:
    params: Any = TOOLS["grep"].read_arguments({"pattern": "x", "path": None, "glob": None, "max_results": None})

    assert (params.path, params.glob, params.max_results) == ("/", None, None)


def test_an_argument_may_have_another_name() -> None:
    params: Any = TOOLS["read_file"].read_arguments({"file_path": "/a"})

    assert params.path == "/a"
    assert problems(TOOLS["read_file"], {"file_path": 5}) == ("file_path: expected text, got number 5",)
    assert problems(TOOLS["read_file"], {"path": "/a", "file_path": "/a"}) == (
        "file_path: the same argument as path; give only one of them",
    )


def test_the_error_for_a_misspelled_argument_names_the_right_one() -> None:
    assert problems(TOOLS["read_file"], {"file": "/a"}) == (
        "file: no such argument; did you mean path?",
        "path: missing; give the file",
    )
    assert problems(TOOLS["read_file"], {"path": "/a", "verbose": True}) == (
        "verbose: no such argument; use path, offset, limit, offset_bytes, max_bytes, encoding or line_numbers",
    )


def test_the_error_for_an_unknown_argument_without_a_similar_name_lists_all_names() -> None:
    assert problems(TOOLS["ls"], {"verbose": True}) == (
        "verbose: no such argument; use path, max_results, depth or sizes",
    )


def test_a_lone_surrogate_is_not_text() -> None:
    assert problems(TOOLS["rm"], {"path": "/a\ud800"}) == (
        "path: contains a lone surrogate at position 2; leave it out",
    )


@pytest.mark.parametrize("arguments", [None, 5, "text", [], [["path", "/a"]], True])
def test_arguments_that_are_not_an_object_are_refused(arguments: object) -> None:
    (problem,) = problems(TOOLS["ls"], arguments)
    assert problem.startswith("arguments: expected an object, got ")


def test_names_that_are_not_text_are_refused() -> None:
    assert problems(TOOLS["ls"], {5: "/"}) == ("number 5: not an argument name; names are text",)


def test_very_deep_or_very_large_values_are_refused_like_others() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]

    assert problems(TOOLS["rm"], {"path": deep}) == ("path: expected text, got a list of 1",)
    assert problems(TOOLS["rm"], {"path": 10**10_000}) == ("path: expected text, got a very large number",)
    (problem,) = problems(TOOLS["rm"], {"path": "/a", "x" * 1_000_000: 1})
    assert len(problem) < 200
    (problem,) = problems(TOOLS["ls"], {"max_results": "9" * 1_000_000})
    assert len(problem) < 200


@given(st.sampled_from(DEFAULT_TOOLS), st.dictionaries(st.text(max_size=12), json_values, max_size=4))
def test_no_json_crashes_the_reader(tool: Tool, arguments: dict[str, object]) -> None:
    unknown = set(arguments) - {name for p in tool.parameters for name in (p.name, *tool.aliases)}
    assert len(problems_of(tool, arguments)) >= len(unknown)


@given(st.sampled_from(DEFAULT_TOOLS), st.data())
def test_no_value_crashes_the_reader(tool: Tool, data: st.DataObject) -> None:
    names = [parameter.name for parameter in tool.parameters]
    arguments = {name: data.draw(json_values, label=name) for name in names}

    # A problem starts with the name of the argument, or with the place in it: `edits[0]: ...`.
    assert all(re.split(r"\W", problem, maxsplit=1)[0] in names for problem in problems_of(tool, arguments))


@frozen
class Edit:
    old: str
    new: str = ""


@frozen
class Everything:
    edits: tuple[Edit, ...]
    names: Sequence[str] = ()
    ratio: float = 0.5
    labels: Mapping[str, int] = field(factory=dict[str, int])
    size: int | Literal["all"] | None = None
    anything: object = None


def test_lists_objects_and_nested_parameters_are_read() -> None:
    params: Any = tool_of(Everything).read_arguments(
        {
            "edits": [{"old": "a"}, {"old": "b", "new": "c"}],
            "names": ["x"],
            "ratio": 1,
            "labels": {"k": 1},
            "size": "all",
            "anything": [{"deep": None}],
        }
    )

    assert params == Everything((Edit("a"), Edit("b", "c")), ("x",), 1, {"k": 1}, "all", [{"deep": None}])


def test_problems_inside_lists_and_objects_say_where_they_are() -> None:
    assert problems(
        tool_of(Everything),
        {"edits": [{"old": "a"}, {"new": 5}, "x"], "names": "x", "labels": {"k": "v"}, "size": "some"},
    ) == (
        "edits[1].new: expected text, got number 5",
        "edits[1].old: missing",
        "edits[2]: expected an object, got text 'x'",
        "names: expected a list, got text 'x'",
        "labels.k: expected a whole number, got text 'v'",
        "size: expected a whole number, got text 'some'",
    )


@frozen
class Even:
    number: int = field(metadata=param("an even number"))

    def __attrs_post_init__(self) -> None:
        if self.number % 2:
            raise ValueError(f"number: expected an even number, got {self.number}")


def test_errors_of_a_class_validator_are_problems_too() -> None:
    assert problems(tool_of(Even), {"number": 3}) == ("number: expected an even number, got 3",)


def test_a_class_that_no_json_can_fill_is_refused_when_the_tool_is_created() -> None:
    @frozen
    class Odd:
        when: complex

    class Plain:
        pass

    with pytest.raises(TypeError, match=r"cannot use Odd\.when as a parameter"):
        parameters_of(Odd)
    with pytest.raises(TypeError, match=r"decorate it with @attrs\.frozen"):
        parameters_of(Plain)


def test_a_tool_that_no_call_could_reach_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot name a tool 'word count'"):
        Tool("word count", "", Edit, nothing)
    with pytest.raises(ValueError, match="cannot use 'path' for the parameter 'file'"):
        tool_of(Edit, aliases={"path": "file"})
    with pytest.raises(ValueError, match="cannot use 'new' for the parameter 'old'"):
        tool_of(Edit, aliases={"new": "old"})

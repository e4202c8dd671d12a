"""Several edits of one file in one call: in order, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest

from tests.models.cost import peak_memory
from weakfs import Capability, InMemoryFilesystem, Policy, PolicyRule, Session, ToolResult, Toolset
from weakfs.editing import replacement
from weakfs.filesystem import Limits
from weakfs.reducers import FileSpliced
from weakfs.tools import ToolCall
from weakfs.tools.handlers import EditFileReceipt

TEXT = "alpha = 1\nbeta = 2\ngamma = 3\n"

Pair = tuple[str, str]


def toolset(
    *, limits: Limits | None = None, capability: Capability | None = None, policy: Policy | None = None
) -> Toolset:
    session = Session(session_id="s", clock=count(1).__next__)
    fs = InMemoryFilesystem(session, limits=limits or Limits())
    fs.write("/a", TEXT)
    return Toolset(session, fs, capability=capability, policy=policy)


def edit(tools: Toolset, edits: Sequence[Pair], **more: object) -> ToolResult[object]:
    given = [{"old_string": old, "new_string": new} for old, new in edits]
    return tools.call("edit_file", {"path": "/a", "edits": given, **more})


def receipt(result: ToolResult[object]) -> EditFileReceipt:
    return result.value_as(EditFileReceipt)


def text(tools: Toolset) -> str:
    return tools.filesystem.read("/a").content


def test_edits_are_made_in_order() -> None:
    tools = toolset()

    result = edit(tools, [("alpha", "omega"), ("omega = 1", "omega = 9"), ("gamma = 3\n", "")])

    assert text(tools) == "omega = 9\nbeta = 2\n"
    assert result.message == "Updated /a (3 replacements in 3 edits)"
    assert (receipt(result).replacements, receipt(result).matched, receipt(result).edit) == (3, "exact", None)


def test_each_edit_may_replace_all_of_its_matches() -> None:
    tools = toolset()
    edits = [
        {"old_string": " = ", "new_string": ": ", "replace_all": True},
        {"old_string": "beta: 2", "new_string": "b"},
    ]

    assert tools.call("edit_file", {"path": "/a", "edits": edits}).message == "Updated /a (4 replacements in 2 edits)"
    assert text(tools) == "alpha: 1\nb\ngamma: 3\n"


def test_an_edit_that_fails_undoes_earlier_ones_and_is_named() -> None:
    tools = toolset()
    before = tools.session.seq

    result = edit(tools, [("alpha", "omega"), ("nothing like it", "x"), ("beta", "x")])

    assert text(tools) == TEXT
    assert result.error_code == "edit_target_not_found"
    assert result.message.startswith("cannot edit '/a': edit 2 of 3, in the text as the edits before it left it: ")
    assert result.message.endswith("\nNothing was changed.")
    assert receipt(result).edit == 2
    # The call itself, and nothing about files.
    assert tools.session.seq == before + 1


def test_lines_of_a_refusal_count_after_the_edits_before_it() -> None:
    result = edit(toolset(), [("alpha", "beta = 2\nalpha"), ("beta = 2", "x")])

    assert result.error_code == "ambiguous_matches"
    assert receipt(result).lines == (1, 3)


@pytest.mark.parametrize(
    ("edits", "code", "number"),
    [
        ([("", "x"), ("beta", "x")], "invalid_input_empty_old_string", 1),
        ([("beta", "x"), ("", "x")], "invalid_input_empty_old_string", 2),
        ([("alpha", "x"), ("beta", "beta")], "invalid_input_no_change", 2),
    ],
)
def test_every_refusal_names_its_edit(edits: list[Pair], code: str, number: int) -> None:
    result = edit(toolset(), edits)

    assert (result.error_code, receipt(result).edit) == (code, number)
    assert f"edit {number} of 2" in result.message


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "old_string: missing; give the text to replace; new_string: missing; give the text to put in its place"),
        ({"old_string": "a"}, "new_string: missing"),
        ({"edits": []}, "edits: the list is empty; give at least one edit"),
        ({"edits": [{"old_string": "a"}]}, "edits[0].new_string: missing; give the text to put in its place"),
        ({"edits": [{"new_string": "a"}]}, "edits[0].old_string: missing; give the text to replace"),
        (
            {"edits": [{"old_string": "a", "new_string": "b"}], "old_string": "a"},
            "edits: given together with old_string",
        ),
    ],
)
def test_malformed_edits_are_invalid_arguments(arguments: dict[str, object], problem: str) -> None:
    result = toolset().call("edit_file", {"path": "/a", **arguments})

    assert result.error_code == "invalid_arguments"
    assert result.message.startswith(f"cannot call edit_file: {problem}")


def test_a_list_of_one_edit_equals_a_single_edit() -> None:
    listed, single = toolset(), toolset()

    result = edit(listed, [("beta", "x")])

    assert result.message == single.call("edit_file", {"path": "/a", "old_string": "beta", "new_string": "x"}).message
    assert text(listed) == text(single)


def test_an_intermediate_result_that_is_too_large_is_refused_before_it_is_built() -> None:
    tools = toolset(limits=Limits(max_file_size=100_000))
    everything = {"old_string": "a", "new_string": "a" * 90_000, "replace_all": True}
    arguments = {"path": "/a", "edits": [{"old_string": "1", "new_string": "2"}, everything]}

    assert tools.call("edit_file", arguments).error_code == "file_too_large"
    assert text(tools) == TEXT


def test_the_replacements_of_all_edits_count_together() -> None:
    result = edit(toolset(capability=Capability(max_edit_replacements=1)), [("alpha", "x"), ("beta", "y")])

    assert result.error_code == "limit_exceeded"


def test_a_refusal_quotes_nothing_from_a_withheld_file() -> None:
    policy = Policy([PolicyRule(effect="blob", operations=["read"], paths="/a", reason="secret")])

    result = edit(toolset(policy=policy), [("alpha", "x"), ("gama = 3", "y")])

    assert result.error_code == "edit_target_not_found"
    assert "gamma" not in f"{result.message}{result.value}"


def test_edits_of_a_long_file_are_recorded_as_small_pieces() -> None:
    tools = toolset()
    tools.filesystem.write("/a", "line\n" * 10_000 + TEXT)

    before = tools.session.seq

    edit(tools, [("alpha", "omega"), ("beta", "omikron")])

    made = [record.event for record in tools.session.records.since(before)]
    assert [type(event) for event in made] == [FileSpliced, FileSpliced, ToolCall]


def large(lines: int) -> tuple[Toolset, list[Pair]]:
    """Return tools on a file of this many lines, and an edit of every hundredth of them."""
    tools = toolset()
    tools.filesystem.write("/a", "".join([f"line {number};  end\n" for number in range(lines)]))
    return tools, [(f"line {number};  end", f"LINE {number}") for number in range(0, lines, 100)]


def test_the_texts_between_edits_are_not_all_kept_in_memory() -> None:
    tools, edits = large(20_000)
    size = tools.filesystem.stat("/a").size_bytes
    assert peak_memory(lambda: edit(tools, edits)) < len(edits) // 10 * size
    assert text(tools).count("LINE") == len(edits)


def test_inexact_edits_of_a_large_text_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "MOST_SEARCHED", 100_000)
    tools, edits = large(1_000)
    before = text(tools)
    inexact = [(old.replace("  ", " "), new) for old, new in edits]

    refused = edit(tools, inexact)

    assert (refused.success, refused.error_code) == (False, "edit_target_not_found")
    assert "so many inexact ones before it" in refused.message
    assert text(tools) == before
    assert edit(tools, [*inexact[:5], *edits[5:]]).success

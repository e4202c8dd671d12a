"""`grep`: lines with context, files, counts, and matches that span lines."""

from __future__ import annotations

import pytest

from weakfs import Capability, InMemoryFilesystem, Policy, PolicyRule, Session, ToolResult, Toolset
from weakfs.tools.blobs import BlobReference
from weakfs.tools.handlers import GrepReceipt

POEM = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def toolset(policy: Policy | None = None, capability: Capability | None = None, **files: str) -> Toolset:
    session = Session()
    fs = InMemoryFilesystem(session)
    for name, text in files.items():
        fs.write(f"/{name}", text)
    return Toolset(session, fs, policy=policy, capability=capability)


def grep(tools: Toolset, pattern: str, **more: object) -> ToolResult[object]:
    return tools.call("grep", {"pattern": pattern, **more})


def receipt(result: ToolResult[object]) -> GrepReceipt:
    return result.value_as(GrepReceipt)


# Lines around a match


def test_lines_before_and_after_a_match_are_marked_as_grep_marks_them() -> None:
    tools = toolset(poem=POEM)

    assert grep(tools, "three", context_before=1).message == "/poem-2-two\n/poem:3:three"
    assert grep(tools, "three", context_after=2).message == "/poem:3:three\n/poem-4-four\n/poem-5-five"
    assert grep(tools, "three", context=1).message == "/poem-2-two\n/poem:3:three\n/poem-4-four"
    assert grep(tools, "three", context=1, context_after=0).message == "/poem-2-two\n/poem:3:three"
    assert grep(tools, "one|seven", context=1).message == ("/poem:1:one\n/poem-2-two\n--\n/poem-6-six\n/poem:7:seven")


def test_parameter_names_of_the_grep_command_are_accepted() -> None:
    tools = toolset(poem=POEM)

    assert grep(tools, "THREE", **{"-i": True, "-A": 1}).message == "/poem:3:three\n/poem-4-four"
    assert grep(tools, "three", **{"-B": 1}).message == "/poem-2-two\n/poem:3:three"
    assert grep(tools, "three", **{"-C": 1, "head_limit": 1}).message == grep(tools, "three", context=1).message


def test_no_line_is_shown_twice() -> None:
    tools = toolset(poem=POEM)

    assert grep(tools, "two|three|five", context=1).message == (
        "/poem-1-one\n/poem:2:two\n/poem:3:three\n/poem-4-four\n/poem:5:five\n/poem-6-six"
    )


def test_files_are_separated() -> None:
    tools = toolset(a="x\nend", b="start\nx\n")

    assert grep(tools, "x", context=1).message == "/a:1:x\n/a-2-end\n--\n/b-1-start\n/b:2:x"


def test_the_receipt_has_the_matches_without_context_lines() -> None:
    result = receipt(grep(toolset(poem=POEM), "three", context=2))

    assert isinstance(result.matches, tuple)
    assert [match.line_number for match in result.matches] == [3]


def test_context_is_bounded() -> None:
    tools = toolset(long="".join(f"{number}\n" for number in range(1, 1001)))

    assert len(grep(tools, "^500$", context=900).message.splitlines()) == 101


def test_a_long_context_line_is_cut() -> None:
    tools = toolset(long="x" * 5000 + "\nneedle\n")

    assert len(grep(tools, "needle", context=1).message) < 700


# Files and counts


def test_files_are_named_once_however_many_lines_match() -> None:
    tools = toolset(a="x\n" * 5000, b="x\n", c="y\n")

    result = grep(tools, "x", output="files")

    assert result.message == "/a\n/b"
    assert result.summary_text == "2 files with matches"
    assert (receipt(result).files, receipt(result).matches) == (("/a", "/b"), None)


def test_counts_are_listed_by_file() -> None:
    tools = toolset(a="x\nx x\n", b="x\n", c="y\n")

    result = grep(tools, "x", output="counts")

    assert result.message == "/a:2\n/b:1"
    assert result.summary_text == "3 matches in 2 files"
    assert receipt(result).counts == (2, 1)


def test_counts_of_a_file_are_bounded_and_say_so() -> None:
    tools = toolset(a="x\n" * 5000, b="x\n")

    result = grep(tools, "x", output="counts")

    assert result.message == "/a:1000 or more\n/b:1"
    assert result.summary_text == "at least 1001 matches in 2 files"
    assert (receipt(result).counts, receipt(result).match_count, receipt(result).truncated) == ((1000, 1), 1001, True)


def test_a_count_that_just_reaches_the_bound_is_exact() -> None:
    result = grep(toolset(a="x\n" * 1000), "x", output="counts")

    assert (result.message, result.summary_text) == ("/a:1000", "1000 matches in 1 file")
    assert (receipt(result).match_count, receipt(result).truncated) == (1000, False)


def test_a_count_that_a_capability_cuts_short_says_so() -> None:
    tools = toolset(a="x\n", b="x\n" * 5, c="x\n")
    few = Toolset(tools.session, tools.filesystem, capability=Capability(max_grep_results=3))

    result = grep(few, "x", output="counts")

    assert result.message.startswith("/a:1\n/b:2 or more\n[the first 2 files are shown")
    assert result.summary_text == "at least 3 matches in 2 files, and there are more"


@pytest.mark.parametrize(("output", "first"), [("files", "/f0\n/f1"), ("counts", "/f0:2\n/f1:2")])
def test_files_and_counts_are_cut_at_max_results(output: str, first: str) -> None:
    tools = toolset()
    for number in range(5):
        tools.filesystem.write(f"/f{number}", "x\nx\n")

    result = grep(tools, "x", output=output, max_results=2)

    assert result.message == f"{first}\n[the first 2 files are shown; narrow the search or set max_results]"
    assert receipt(result).truncated is True
    assert receipt(grep(tools, "x", output=output, max_results=5)).truncated is False


@pytest.mark.parametrize("output", ["files", "counts"])
def test_a_search_for_files_without_matches_says_so(output: str) -> None:
    assert grep(toolset(a="x"), "y", output=output).message == "No matches found"
    assert grep(toolset(a="x"), "x", output=output, glob="*.py").message.startswith("No matches found: no file matches")


@pytest.mark.parametrize("output", ["lines", "files", "counts"])
@pytest.mark.parametrize(
    "bound", [Capability(max_scan_files=1), Capability(max_scan_bytes=1), Capability(max_grep_results=0)]
)
def test_a_search_that_a_limit_ended_does_not_claim_more_matches(output: str, bound: Capability) -> None:
    tools = toolset(capability=bound, a="xx\n", b="y\n")

    result = grep(tools, "y", output=output)

    assert result.message == "No matches found before a limit ended the search; narrow it with path or glob"
    assert receipt(result).truncated is True


# Several lines


def test_a_multiline_match_shows_each_of_its_lines() -> None:
    tools = toolset(poem=POEM)

    assert grep(tools, "two.*four", multiline=True).message == "/poem:2:two\n/poem:3:three\n/poem:4:four"
    assert grep(tools, "two\nthree", multiline=True, context=1).message == (
        "/poem-1-one\n/poem:2:two\n/poem:3:three\n/poem-4-four"
    )
    assert grep(tools, "two.*four", multiline=True, output="counts").message == "/poem:1"
    assert grep(tools, "two.*four").message == "No matches found"
    assert grep(tools, "two\nthree").error_code == "invalid_regex"


# Hidden contents


def hidden(effect: str) -> Policy:
    rule = PolicyRule(
        effect=effect,  # type: ignore[arg-type]  # one of the literals
        operations=["read"],
        paths="/secret",
        reason="credentials",
    )
    return Policy([rule])


@pytest.mark.parametrize("more", [{"context": 2}, {"output": "files"}, {"output": "counts"}, {"multiline": True}])
def test_a_file_that_may_not_be_read_is_not_searched(more: dict[str, object]) -> None:
    result = grep(toolset(hidden("deny"), secret="before\nkey x\nwombat\n", open="x\n"), "x", **more)

    assert "/open" in result.message
    assert not any(word in f"{result.message}{result.value}" for word in ("secret", "wombat", "before"))


@pytest.mark.parametrize("more", [{"context": 2}, {"multiline": True, "context": 2}, {"output": "counts"}])
def test_no_answer_shows_whether_a_pattern_matches_withheld_contents(more: dict[str, object]) -> None:
    tools = toolset(hidden("blob"), secret="before\nkey x\nwombat\n")
    found, nothing = (grep(tools, pattern, **more) for pattern in ("x", "y"))

    assert found.success
    assert found == nothing
    assert found.message == (
        "No matches found; 1 file not searched, because the policy or the capability keeps the contents out of answers"
    )
    assert receipt(found).withheld_skipped == 1
    assert not grep(tools, "x", glob="*.md", **more).message.count("not searched")
    alone, again = (grep(tools, pattern, path="/secret", **more) for pattern in ("x", "y"))
    assert (alone.status, alone.error_code) == ("forbidden", "policy_denied")
    assert alone == again


@pytest.mark.parametrize("more", [{"context": 2}, {"multiline": True, "context": 2}, {"output": "counts"}])
def test_matching_lines_of_withheld_results_are_kept_as_a_blob(more: dict[str, object]) -> None:
    rule = PolicyRule(effect="blob", operations=["search"], paths="secret", reason="why")
    result = grep(toolset(Policy([rule]), secret="before\nkey x\nwombat\n"), "x", **more)

    assert result.success
    assert not any(word in f"{result.message}{result.value}" for word in ("wombat", "before", "key"))
    assert isinstance(receipt(result).matches or receipt(result).files, BlobReference)


@pytest.mark.parametrize("bound", [{"max_scan_files": 1}, {"max_scan_bytes": 12}])
def test_withheld_files_do_not_use_the_budget_of_a_search(bound: dict[str, int]) -> None:
    tools = toolset(hidden("blob"), Capability(**bound), secret="x\n" * 6, with_x="x\n" * 6)  # type: ignore[arg-type]
    found = receipt(grep(tools, "x", output="files"))
    assert (found.files, found.truncated, found.withheld_skipped) == (("/with_x",), False, 1)


def test_context_lines_respect_the_limit_on_reading_a_file() -> None:
    tools = toolset(capability=Capability(max_read_bytes=8), poem=POEM)

    assert grep(tools, "two", context=1).message == "/poem-1-one\n/poem:2:two"
    assert grep(tools, "three", context=1).message == "/poem:3:three"


def test_no_line_is_shown_without_permission_to_read() -> None:
    tools = toolset(capability=Capability(allowed_fs_ops=["search"]), poem=POEM)

    result = grep(tools, "three", context=2)

    assert result.success
    assert "three" not in result.message

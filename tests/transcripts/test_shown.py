"""What a recording shows of files: their baseline, texts completed from later parts, and doubtful texts."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.transcripts.claude_code_lines import (
    ANY,
    NAMES,
    TEXTS,
    answer,
    called,
    edited,
    edits,
    plain,
    use,
)
from tests.transcripts.claude_code_model import ROOT, ClaudeCode, Line, Ways
from tests.transcripts.codex_lines import applied, meta, output, patch_call, shell_call
from tests.transcripts.imported import Import
from weakfs.tools import ToolCalls
from weakfs.transcripts.programs.shell_commands import is_reading

TEXT = "".join(f"line {number}\n" for number in range(1, 21))
PATH = f"{ROOT}/a"


def read(id: str, text: str, first: int = 1, last: int | None = None) -> list[Line]:
    """Return a read of a file, of all lines or some."""
    lines = text.split("\n")
    shown = lines[first - 1 : last]
    file = {
        "filePath": PATH,
        "content": "\n".join(shown),
        "numLines": len(shown),
        "startLine": first,
        "totalLines": len(lines),
    }
    return [use(id, "Read", file_path=PATH, offset=first), answer(id, {"type": "text", "file": file})]


def edit(id: str, line: int, old: str, new: str, *, with_hunk: bool = True, original: str | None = None) -> list[Line]:
    hunk = {"oldStart": line, "oldLines": 1, "newStart": line, "newLines": new.count("\n") + 1}
    lines = [f"-{old}", *(f"+{one}" for one in new.split("\n"))]
    told = edited("a", original, old, new)
    told["structuredPatch"] = [{**hunk, "lines": lines}] if with_hunk else []
    return [use(id, "Edit", file_path=PATH, old_string=old, new_string=new), answer(id, told)]


def command(id: str, script: str = "make format") -> list[Line]:
    return [use(id, "Bash", command=script), answer(id, {"stdout": "", "stderr": ""})]


def test_a_file_that_was_read_is_in_the_baseline(imported: Import) -> None:
    done = imported(*read("1", TEXT), *edit("2", 3, "line 3", "LINE 3", original=TEXT))

    assert done.baseline == {"/a": TEXT}
    assert [record.cause for record in done.session.records].count("import") == 1


def test_a_file_that_was_edited_is_in_the_baseline(imported: Import) -> None:
    done = imported(*command("1"), *edit("2", 3, "line 3", "LINE 3", original=TEXT))

    assert done.baseline == {"/a": TEXT}
    assert done.text("/a") == TEXT.replace("line 3\n", "LINE 3\n")


def test_a_file_that_the_session_created_is_not_in_the_baseline(imported: Import) -> None:
    written = {"type": "create", "filePath": PATH, "content": TEXT, "originalFile": None}
    lines = [use("1", "Write", file_path=PATH, content=TEXT), answer("1", written), *read("2", TEXT)]

    assert imported(*lines).baseline == {}


def test_a_file_missing_at_first_is_not_in_the_baseline(imported: Import) -> None:
    missing = [use("1", "Read", file_path=PATH), answer("1", content="File does not exist.", is_error=True)]

    done = imported(*missing, *command("2", "make"), *read("3", TEXT))

    assert done.baseline == {}
    assert done.text("/a") == TEXT


@pytest.mark.parametrize(
    "script", ["cat > a <<'EOF'\nx > y\nEOF", "cat <<EOF >a\nx > y\nEOF", "cd . && make 1>'a'", f"echo x >| {PATH}"]
)
def test_a_file_that_a_command_wrote_is_not_in_the_baseline(imported: Import, script: str) -> None:
    done = imported(*command("1", script), *read("2", TEXT))

    assert done.baseline == {}
    assert done.text("/a") == TEXT


@pytest.mark.parametrize("script", ["make >> a", "make 2> a", "make > b", "make > $a", "echo 'x > a'y"])
def test_a_file_that_no_command_created_is_in_the_baseline(imported: Import, script: str) -> None:
    assert imported(*command("1", script), *read("2", TEXT)).baseline == {"/a": TEXT}


def test_a_final_line_break_also_belongs_to_the_first_text(imported: Import) -> None:
    after = TEXT.replace("line 3\n", "LINE 3\n")
    lines = [*edit("1", 3, "line 3", "LINE 3"), *read("2", after.removesuffix("\n"))]

    done = imported(*lines, *edit("3", 5, "line 5", "LINE 5", original=after))

    assert done.baseline == {"/a": TEXT}


def test_a_final_line_break_missing_from_the_read_is_taken_from_the_edit(imported: Import) -> None:
    lines = [*read("1", TEXT.removesuffix("\n")), *edit("2", 3, "line 3", "LINE 3", original=TEXT)]

    done = imported(*lines)

    assert done.baseline == {"/a": TEXT}
    assert [record.cause for record in done.session.records].count("import") == 1


@pytest.mark.parametrize("with_hunk", [True, False])
def test_a_file_that_was_edited_first_is_completed_from_a_later_read(imported: Import, with_hunk: bool) -> None:
    after = TEXT.replace("line 3\n", "LINE 3\nLINE 3b\n")
    first = edit("1", 3, "line 3", "LINE 3\nLINE 3b", with_hunk=with_hunk)

    done = imported(*first, *read("2", after))

    assert done.baseline == {"/a": TEXT}
    assert done.agreements == [("agreed", "rebuilt"), ("agreed", "exactly")]


def test_parts_before_and_after_edits_complement_each_other(imported: Import) -> None:
    after = TEXT.replace("line 3\n", "LINE 3\nLINE 3b\n")
    lines = [
        *read("1", TEXT, 1, 8),
        *edit("2", 3, "line 3", "LINE 3\nLINE 3b"),
        *edit("3", 15, "line 14", "LINE 14"),
        *read("4", after.replace("line 14", "LINE 14"), 7),
    ]

    done = imported(*lines)

    assert done.baseline == {"/a": TEXT}
    assert [agreement for agreement, _ in done.agreements] == ["agreed"] * 4
    assert done.text("/a") == after.replace("line 14", "LINE 14")


def test_contradictory_parts_are_not_combined(imported: Import) -> None:
    other = TEXT.replace("line", "row")

    done = imported(*read("1", TEXT, 1, 12), *command("2"), *read("3", other, 8))

    assert done.baseline == {}
    assert [agreement for agreement, _ in done.agreements] == ["not_checked", "no_counterpart", "not_checked"]


def test_lines_with_spaces_that_may_stand_for_tabs_are_not_taken_from_a_hunk(imported: Import) -> None:
    before = "\tone\n\ttwo\n"
    hunk = {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": ["-  one", "+  1", "   two"]}
    told = {**edited("a", None, "one", "1"), "structuredPatch": [hunk]}
    lines = [use("1", "Edit", file_path=PATH, old_string="one", new_string="1"), answer("1", told)]

    done = imported(*lines, *read("2", "\t1\n\ttwo\n"))

    assert done.baseline == {"/a": before}
    assert "differs" not in [agreement for agreement, _ in done.agreements]


def test_after_a_program_the_text_is_completed_again(imported: Import) -> None:
    formatted = TEXT.replace("line", "row")
    after = formatted.replace("row 3\n", "ROW 3\n")

    done = imported(*read("1", TEXT), *command("2"), *edit("3", 3, "row 3", "ROW 3"), *read("4", after))

    assert done.baseline == {"/a": TEXT}
    assert [agreement for agreement, _ in done.agreements] == ["agreed", "no_counterpart", "agreed", "agreed"]


def test_text_that_a_program_may_have_changed_is_not_checked(imported: Import) -> None:
    """The recorded edit succeeded with a text that occurs twice, which is impossible."""
    twice = "one\none\n"
    told = answer("3")
    lines = [*read("1", twice), *command("2"), use("3", "Edit", file_path=PATH, old_string="one", new_string="1"), told]

    done = imported(*lines)

    assert done.agreements[2] == ("not_checked", "not_at_all")
    assert "program" in done.verdicts[2].detail


@pytest.mark.parametrize("between", [[], command("2", "cat a | head -3"), [*called("2", "TodoWrite")]])
def test_without_such_a_program_a_difference_is_reported(imported: Import, between: list[Line]) -> None:
    edit = [*called("3", "Edit", file_path=PATH, old_string="one", new_string="1")]

    done = imported(*read("1", "one\none\n"), *between, *edit)

    assert done.verdicts[-1].agreement == "differs"


def test_an_unknown_tool_counts_as_a_program(imported: Import) -> None:
    tool = [*called("2", "mcp__files__move", source="b", destination="a")]
    edit = [*called("3", "Edit", file_path=PATH, old_string="one", new_string="1")]

    done = imported(*read("1", "one\none\n"), *tool, *edit)

    assert done.verdicts[-1].agreement == "not_checked"


def test_text_that_is_shown_again_is_not_doubtful(imported: Import) -> None:
    edit = [*called("4", "Edit", file_path=PATH, old_string="one", new_string="1")]

    done = imported(*read("1", "one\n"), *command("2"), *read("3", "one\none\n"), *edit)

    assert done.verdicts[-1].agreement == "differs"


def test_a_program_of_codex_makes_text_doubtful(imported: Import) -> None:
    done = imported(
        meta(),
        shell_call("1", ["bash", "-lc", "cat a"]),
        output("1", "one\n"),
        shell_call("2", ["bash", "-lc", "make format"]),
        output("2", ""),
        patch_call("3", "*** Update File: a", "@@", "-1", "+2"),
        applied("3", a={"type": "update", "unified_diff": "@@ -1 +1 @@\n-1\n+2\n"}),
        output("3"),
    )

    assert done.verdicts[-1].agreement != "differs"


@pytest.mark.parametrize(
    "script",
    [
        "ls -la src",
        "cd src && grep -rn 'a|b > c' . | head -20",
        'rg "foo; rm" --type py 2>/dev/null',
        "git status --short; git diff HEAD~1",
        "sed -n '1,40p' a.py",
        "find . -iname '*.py' | wc -l",
        "cat a 2>&1",
    ],
)
def test_a_command_that_only_reads_is_known(script: str) -> None:
    assert is_reading(script)


@pytest.mark.parametrize(
    "script",
    [
        "make",
        "echo x > a",
        "cat a >> b",
        "ls; rm a",
        "ls & rm a",
        "echo $(rm a)",
        'echo "$(rm a)"',
        "echo `rm a`",
        "find . -delete",
        "find . -exec rm {} +",
        "sed -i s/a/b/ c",
        "sed -n 'w out' a",
        "git checkout .",
        "git -C /x status",
        "sort -o a a",
        "cat a | tee b",
        "cat <(rm a)",
        "grep 'a' b\nrm c",
        "cat a > /dev/nullx",
        "X=1 rm a",
    ],
)
def test_any_other_command_may_change_files(script: str) -> None:
    assert not is_reading(script)


def test_a_failure_of_a_call_that_is_not_performed_is_recorded(imported: Import) -> None:
    error = "Exit code 2\nmake: *** No rule to make target 'x'."
    done = imported(use("1", "Bash", command="make x"), answer("1", f"Error: {error}", error, is_error=True))

    (call,) = done.session[ToolCalls].all()
    assert (call.call_id, call.tool, call.status, call.error_code) == ("1", "Bash", "error", "recorded_failure")
    assert call.read_arguments() == {"command": "make x"}
    assert call.read_receipt()["text"] == error  # type: ignore[call-overload, index, unused-ignore]
    assert "No rule to make target" in call.summary
    assert [record.cause for record in done.session.records] == ["1"]
    assert (done.verdicts[0].recorded_success, done.verdicts[0].recorded_error) == (False, error)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Write", {"file_path": PATH, "content": "x"}),
        ("Edit", {"file_path": PATH, "old_string": "x", "new_string": "y"}),
        ("Read", {"file_path": "/etc/shadow"}),
        ("NotebookEdit", {"notebook_path": PATH}),
        ("mcp__db__query", {"sql": "drop"}),
    ],
)
def test_every_failure_in_the_recording_is_recorded_as_one(
    imported: Import, name: str, arguments: dict[str, object]
) -> None:
    error = "The user doesn't want to proceed with this tool use."
    done = imported(use("1", name, **arguments), answer("1", content=error, is_error=True))

    assert [(call.tool, call.status, call.summary) for call in done.session[ToolCalls].all()] == [
        (name, "error", error)
    ]


def test_a_failure_in_codex_is_recorded(imported: Import) -> None:
    done = imported(meta(), shell_call("1", ["bash", "-lc", "make"]), output("1", "no rule\n", 2))

    assert [(call.tool, call.status, call.summary) for call in done.session[ToolCalls].all()] == [
        ("shell", "error", "no rule")
    ]


def test_a_success_that_is_not_performed_is_not_recorded(imported: Import) -> None:
    done = imported(*command("1"))

    assert done.session[ToolCalls].all() == ()


@ANY
@given(st.data(), st.builds(Ways, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans()))
def test_the_baseline_has_the_files_from_before(imported: Import, data: st.DataObject, ways: Ways) -> None:
    there = data.draw(st.dictionaries(NAMES, TEXTS, min_size=1))
    # If both tabs and spaces indent lines, nothing shows which lines of a hunk had spaces instead of tabs.
    assume(not ways.tabs_as_spaces or not any("  a" in text for text in there.values()))
    program = ClaudeCode(ways, {name: text.encode() for name, text in there.items()})
    for _ in range(data.draw(st.integers(1, 6))):
        name = data.draw(NAMES)
        kind = data.draw(st.sampled_from(["edit", "edit", "part", "part", "read"]))
        if kind == "edit":
            program.edit(name, *data.draw(edits(program.read_text(name)).filter(lambda one: one[0] != "")))
        elif kind == "part":
            program.read(name, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 6)))
        else:
            program.read(name)

    done = imported(*program.lines)

    for path, text in done.baseline.items():
        held = plain(there[path[1:]].encode())
        # An edit that shows a file from its first line on may leave out its end.
        assert held.startswith(plain(text.encode()).removesuffix("\n"))
    assert "differs" not in [agreement for agreement, _ in done.agreements]

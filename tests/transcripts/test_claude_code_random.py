"""Random sessions of Claude Code: our tools do what is recorded, and no line makes the importer raise."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.transcripts.claude_code_lines import ANY, NAMES, TEXTS, answer, edits, plain, use
from tests.transcripts.claude_code_model import ROOT, ClaudeCode, Line, Ways
from tests.transcripts.imported import Import, Imported


@st.composite
def sessions(draw: st.DrawFn, ways: Ways) -> ClaudeCode:
    """Draw a session with a few files."""
    program = ClaudeCode(ways)
    for _ in range(draw(st.integers(1, 8))):
        name = draw(NAMES)
        text = program.read_text(name)
        kind = draw(st.sampled_from(["write", "edit", "edit", "edit", "multi", "read", "part", "outside"]))
        if kind == "write":
            program.write(name, draw(TEXTS))
        elif kind == "edit":
            program.edit(name, *draw(edits(text)))
        elif kind == "multi":
            program.multi_edit(name, draw(st.lists(edits(text), min_size=1, max_size=3)))
        elif kind == "read":
            program.read(name)
        elif kind == "part":
            program.read(name, draw(st.integers(1, 3)), draw(st.integers(1, 3)))
        else:
            program.change_outside(name, draw(TEXTS).encode())
    return program


def performed(folder: Path, program: ClaudeCode) -> Imported:
    done = Imported(folder / "t", program.lines)
    done.verdicts = [one for one in done.verdicts if one.agreement != "no_counterpart"]
    assert len(done.verdicts) == len(program.outcomes)
    return done


@ANY
@given(st.data(), st.booleans())
def test_every_fully_recorded_success_succeeds_with_the_same_text(
    tmp_path: Path, data: st.DataObject, tabs: bool
) -> None:
    program = data.draw(sessions(Ways(tabs_as_spaces=tabs)))

    done = performed(tmp_path, program)

    for succeeded, verdict in zip(program.outcomes, done.verdicts, strict=True):
        if succeeded and verdict.tool != "read_file":
            assert (verdict.agreement, verdict.checked) == ("agreed", "exactly")
        assert verdict.agreement != "differs"


@ANY
@given(st.data(), st.builds(Ways, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans()))
def test_no_recorded_success_differs_however_little_is_recorded(
    tmp_path: Path, data: st.DataObject, ways: Ways
) -> None:
    program = data.draw(sessions(ways))

    done = performed(tmp_path, program)

    for succeeded, verdict in zip(program.outcomes, done.verdicts, strict=True):
        assert verdict.agreement in (
            ("agreed", "not_checked") if succeeded else ("agreed", "not_checked", "ours_succeeded")
        )


@ANY
@given(st.data())
def test_without_outside_changes_the_final_files_are_those_of_the_recording(
    tmp_path: Path, data: st.DataObject
) -> None:
    program = data.draw(sessions(Ways()).filter(lambda one: not any("make" in str(line) for line in one.lines)))

    done = performed(tmp_path, program)

    found = {
        entry.path[1:]: plain(done.files.read_bytes(entry.path).content) for entry in done.files.walk() if entry.is_file
    }
    assert found == {name: plain(held) for name, held in program.disk.items()}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "text", f"{ROOT}/a", "\0", "Error: x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "file", "content", "edits", "lines", "oldStart", "old_string"]), inner
        )
    ),
    max_leaves=6,
)


@st.composite
def spoiled(draw: st.DrawFn) -> list[Line]:
    """Draw a session in which some values are replaced by others."""
    lines = [
        use("1", draw(st.sampled_from(["Edit", "Write", "Read", "MultiEdit", "Grep", "NotebookEdit"]))),
        answer("1"),
    ]
    names = ["file_path", "content", "old_string", "new_string", "edits", "offset", "path", "pattern", "notebook_path"]
    lines[0]["message"]["content"][0]["input"] = draw(
        ANYTHING | st.fixed_dictionaries({}, optional=dict.fromkeys(names, ANYTHING | st.just(f"{ROOT}/a")))
    )
    names = [
        "type",
        "file",
        "filePath",
        "originalFile",
        "oldString",
        "newString",
        "structuredPatch",
        "edits",
        "content",
    ]
    lines[1]["toolUseResult"] = draw(ANYTHING | st.fixed_dictionaries({}, optional=dict.fromkeys(names, ANYTHING)))
    for line in lines:
        for name in draw(st.lists(st.sampled_from(["cwd", "sessionId", "uuid", "message", "type"]), max_size=1)):
            line[name] = draw(ANYTHING)
    return lines


@ANY
@given(spoiled())
def test_no_value_anywhere_makes_the_importer_raise(imported: Import, lines: list[Line]) -> None:
    done = imported(*lines)

    assert len(done.verdicts) <= 1

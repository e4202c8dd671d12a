"""Reading recorded sessions: the fixtures in every format, and files with every kind of damage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.transcripts import Skipped, Transcript, TranscriptCall, read_transcript

TOP = Path(__file__).parent.parent.parent
TRANSCRIPTS = TOP / "fixtures" / "transcripts"
FORMATS = {
    "shop.jsonl": "weakfs",
    "shop.openai-chat.jsonl": "openai-chat",
    "shop.openai-responses.jsonl": "openai-responses",
    "shop.anthropic.jsonl": "anthropic",
}
LS: dict[str, object] = {"id": "c1", "tool": "ls", "arguments": {}}


def damaged(name: str) -> Transcript:
    return read_transcript(TRANSCRIPTS / "damaged" / f"{name}.jsonl")


def written(folder: Path, *lines: object) -> Path:
    path = folder / "transcript.jsonl"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


def ids(transcript: Transcript) -> list[str | None]:
    return [call.call_id for call in transcript.calls]


def skipped_lines(transcript: Transcript) -> list[int]:
    return [skipped.line for skipped in transcript.skipped]


@pytest.mark.parametrize("name", FORMATS)
def test_every_call_of_the_recorded_session_is_read(name: str) -> None:
    expected = json.loads((TRANSCRIPTS / "shop.expected.json").read_bytes())

    transcript = read_transcript(TRANSCRIPTS / name)

    assert len(transcript.calls) == expected["calls"]
    assert transcript.formats == (FORMATS[name],)
    assert transcript.skipped == ()
    assert all(call.problem is None for call in transcript.calls)


def test_every_format_of_the_recorded_session_gives_the_same_calls() -> None:
    transcripts = [read_transcript(TRANSCRIPTS / name) for name in FORMATS]

    plain, *others = ([(c.call_id, c.tool, c.arguments) for c in each.calls] for each in transcripts)

    assert all(other == plain for other in others)


def test_every_format_with_answers_gives_the_same_answers() -> None:
    chat, responses, anthropic = (
        [call.recorded for call in read_transcript(TRANSCRIPTS / name).calls] for name in list(FORMATS)[1:]
    )

    assert chat == responses == anthropic
    assert None not in chat


def test_an_anthropic_transcript_says_which_calls_failed() -> None:
    expected = json.loads((TRANSCRIPTS / "shop.expected.json").read_bytes())

    calls = read_transcript(TRANSCRIPTS / "shop.anthropic.jsonl").calls

    assert [call.call_id for call in calls if call.recorded_error] == list(expected["failures"])
    assert all(call.recorded_error is not None for call in calls)


def test_the_transcripts_equal_the_output_of_the_script_on_a_real_folder() -> None:
    check = [sys.executable, "-m", "fixtures.recording", "--check"]

    done = subprocess.run(check, cwd=TOP, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_may_be_empty() -> None:
    assert damaged("empty") == Transcript(calls=(), skipped=(), formats=(), line_count=0)


def test_blank_lines_are_counted_and_skipped() -> None:
    transcript = damaged("blank-lines")

    assert [call.line for call in transcript.calls] == [3]
    assert (transcript.line_count, transcript.skipped) == (5, ())


@pytest.mark.parametrize("name", ["byte-order-mark", "crlf", "no-final-newline", "other-types"])
def test_unusual_but_valid_lines_are_read_without_a_notice(name: str) -> None:
    transcript = damaged(name)

    assert [call.tool for call in transcript.calls] == ["ls", "stat"]
    assert transcript.skipped == ()


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("cut-off", 3, "cut off"),
        ("not-json", 2, "not JSON"),
        ("not-utf8", 2, "not valid UTF-8"),
        ("deep-nesting", 2, "not JSON"),
    ],
)
def test_an_unreadable_line_is_reported_and_the_others_are_read(name: str, line: int, reason: str) -> None:
    transcript = damaged(name)

    assert [call.tool for call in transcript.calls] == ["ls", "stat"]
    assert skipped_lines(transcript) == [line]
    assert reason in transcript.skipped[0].reason


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ('{"id": "c2", "tool": "ls", "arg', "cut off"),
        ('{"id": "c2", "tool": "ls", "arguments": {}', "cut off"),
        ('{"id": "c2", "tool": "ls", "arguments": {"limit": NaN}}', "not JSON"),
        ("see above", "not JSON"),
        ("\x00\x01", "not JSON"),
    ],
)
def test_only_an_object_that_is_not_complete_is_reported_as_cut_off(tmp_path: Path, last: str, reason: str) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(orjson.dumps(LS) + b"\n" + last.encode())

    transcript = read_transcript(path)

    assert ids(transcript) == ["c1"]
    assert skipped_lines(transcript) == [2]
    assert reason in transcript.skipped[0].reason


def test_a_line_that_is_not_an_object_is_reported() -> None:
    transcript = damaged("not-objects")

    assert skipped_lines(transcript) == [1, 2, 3, 4]
    assert ids(transcript) == ["c1"]
    assert "a list" in transcript.skipped[0].reason


def test_a_line_of_a_megabyte_is_read() -> None:
    big = damaged("long-line").calls[1]

    assert big.arguments == {"path": "/big.txt", "content": "0123456789abcde\n" * 65_536}


def test_a_line_above_the_bound_is_reported_and_the_next_is_read() -> None:
    path = TRANSCRIPTS / "damaged" / "long-line.jsonl"

    transcript = read_transcript(path, max_line_bytes=100_000)

    assert [call.line for call in transcript.calls] == [1, 3]
    assert skipped_lines(transcript) == [2]
    assert "max_line_bytes" in transcript.skipped[0].reason


def test_the_bound_of_a_line_includes_its_line_ending(tmp_path: Path) -> None:
    path = written(tmp_path, LS, LS)
    size = path.stat().st_size // 2

    assert len(read_transcript(path, max_line_bytes=size).calls) == 2
    assert skipped_lines(read_transcript(path, max_line_bytes=size - 1)) == [1, 2]


def test_a_missing_transcript_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_transcript(tmp_path / "none.jsonl")


def test_the_format_is_detected_on_each_line() -> None:
    transcript = damaged("mixed-formats")

    assert [(c.recorded, c.recorded_error) for c in transcript.calls] == [
        (None, None),
        ("chat", None),
        ("responses", None),
        ("anthropic", False),
    ]
    assert transcript.formats == ("anthropic", "openai-chat", "openai-responses", "weakfs")


def test_unreadable_arguments_are_a_problem_of_the_call() -> None:
    calls = damaged("bad-arguments").calls

    unreadable = {call.call_id: call.problem or "" for call in calls if call.arguments is None}

    assert list(unreadable) == ["c1", "c2", "c3", "c5", "c6", "c7", "c8"]
    assert "not JSON" in unreadable["c1"]
    assert "a list, not an object" in unreadable["c2"]
    assert "missing" in unreadable["c6"]


def test_empty_text_means_no_arguments() -> None:
    call = next(call for call in damaged("bad-arguments").calls if call.call_id == "c4")

    assert (call.arguments, call.problem) == ({}, None)


def test_a_call_without_a_usable_id_is_kept_and_reported() -> None:
    transcript = damaged("missing-id")

    assert ids(transcript) == [None, None, None, None, "c2"]
    # A call of the plain form, on line 1, has no answer and needs no id.
    assert skipped_lines(transcript) == [2, 3, 4, 5, 6]
    assert "a number, not text" in transcript.skipped[0].reason


def test_answers_to_repeated_ids_are_joined_in_order() -> None:
    transcript = damaged("repeated-ids")

    assert [call.recorded for call in transcript.calls] == ["first", "second", "third"]
    assert transcript.skipped == (Skipped(5, "an answer to 'c1': no call above with that id is waiting for one"),)


def test_answers_may_come_late_and_in_another_order(tmp_path: Path) -> None:
    def use(id: str) -> dict[str, object]:
        return {"type": "tool_use", "id": id, "name": "ls", "input": {}}

    def result(id: str, text: str) -> dict[str, object]:
        return {"type": "tool_result", "tool_use_id": id, "content": text}

    transcript = read_transcript(
        written(
            tmp_path,
            {"role": "assistant", "content": [use("a"), use("b"), use("c")]},
            {"role": "user", "content": [result("c", "third"), result("a", "first")]},
            {"role": "assistant", "content": [use("d")]},
            {"role": "user", "content": [result("b", "second")]},
        )
    )

    assert [call.recorded for call in transcript.calls] == ["first", "second", "third", None]
    assert [call.recorded_error for call in transcript.calls] == [False, False, False, None]


def test_an_answer_keeps_its_text_without_images() -> None:
    calls = {call.call_id: call for call in damaged("wrong-types").calls}

    assert (calls["c3"].recorded, calls["c3"].recorded_error) == ("a", True)
    assert (calls["c4"].recorded, calls["c4"].recorded_error) == ("", False)


def test_wrong_types_are_reported_by_line() -> None:
    transcript = damaged("wrong-types")

    assert ids(transcript) == [None, "c2", "c3", "c4"]
    assert skipped_lines(transcript) == [1, 3, 4, 4, 4, 5, 6, 7, 8, 11, 11]


def test_an_answer_of_a_wrong_type_is_ignored() -> None:
    call = next(call for call in damaged("wrong-types").calls if call.call_id == "c2")

    assert call == TranscriptCall("c2", "ls", {}, line=10, recorded=None, recorded_error=None, problem=None)


def test_calls_in_a_message_whose_role_is_unreadable_are_kept(tmp_path: Path) -> None:
    call: dict[str, object] = {"id": "c1", "function": {"name": "ls", "arguments": "{}"}}

    transcript = read_transcript(written(tmp_path, {"role": ["assistant"], "tool_calls": [call]}))

    assert ids(transcript) == ["c1"]


def test_a_call_of_a_custom_tool_has_its_text_as_the_argument(tmp_path: Path) -> None:
    calls = [
        {"id": f"c{number}", "type": "custom", "custom": {"name": name, "input": "text"}}
        for number, name in enumerate(["apply_patch", "translate"])
    ]

    transcript = read_transcript(written(tmp_path, {"role": "assistant", "tool_calls": calls}))

    assert [(call.tool, call.arguments) for call in transcript.calls] == [
        ("apply_patch", {"patch": "text"}),
        ("translate", {"input": "text"}),
    ]
    assert transcript.skipped == ()


_anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "c1", "{}", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text"]), inner),
    max_leaves=6,
)


def perhaps(*values: object) -> st.SearchStrategy[object]:
    """Draw a suitable value, or occasionally anything else."""
    return st.integers(0, 7).flatmap(lambda die: _anything if die == 7 else st.sampled_from(values))


def shaped(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.integers(0, 7).flatmap(
        lambda die: st.fixed_dictionaries({}, optional=fields) if die == 7 else st.fixed_dictionaries(fields)
    )


_id = perhaps("c1")
_name = perhaps("ls")
_arguments = perhaps({}, "{}", "{")
_function = shaped(name=_name, arguments=_arguments)
_blocks = (
    shaped(type=perhaps("tool_use"), id=_id, name=_name, input=_arguments)
    | shaped(type=perhaps("tool_result"), tool_use_id=_id, content=_anything, is_error=_anything)
    | _anything
)
_messages = (
    shaped(id=_id, tool=_name, arguments=_arguments)
    | shaped(role=perhaps("tool"), tool_call_id=_id, content=_anything)
    | shaped(tool_calls=st.lists(shaped(id=_id, function=_function | _anything), max_size=3) | _anything)
    | shaped(type=perhaps("function_call"), call_id=_id, name=_name, arguments=_arguments)
    | shaped(type=perhaps("function_call_output"), call_id=_id, output=_anything)
    | shaped(role=perhaps("user"), content=st.lists(_blocks, max_size=3) | _anything)
)


@given(st.lists(_messages.map(orjson.dumps) | st.binary(max_size=40), max_size=6))
def test_no_file_makes_the_reader_raise(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    data = b"\n".join(lines)
    path.write_bytes(data)

    transcript = read_transcript(path)

    assert transcript.line_count == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    assert all(1 <= line <= transcript.line_count for line in skipped_lines(transcript))
    assert all((call.arguments is None) == (call.problem is not None) for call in transcript.calls)

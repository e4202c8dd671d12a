"""Codex's rollout files: read, performed by our tools, and compared with what they record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.claude_code_model import as_jsonl
from tests.transcripts.codex_lines import applied, item, meta, output, patch_call, shell_call
from tests.transcripts.codex_model import ROOT, Line
from tests.transcripts.imported import Import
from weakfs.transcripts import Source, read_transcript


def test_an_update_is_checked_against_output_of_a_command(imported: Import) -> None:
    done = imported(
        meta(),
        shell_call("1", ["bash", "-lc", "cat a"]),
        output("1", "port = 80\n"),
        patch_call("2", "*** Update File: a", "@@", "-port = 80", "+port = 8080"),
        applied("2", a={"type": "update", "unified_diff": "@@ -1 +1 @@\n-port = 80\n+port = 8080\n"}),
        output("2"),
    )

    assert done.agreements == [("agreed", "rebuilt"), ("agreed", "rebuilt")]
    assert done.text("/a") == "port = 8080\n"


def test_an_added_and_a_deleted_file_are_checked_exactly(imported: Import) -> None:
    done = imported(
        meta(),
        patch_call("1", "*** Add File: a", "+one"),
        applied("1", a={"type": "add", "content": "one\n"}),
        output("1"),
        patch_call("2", "*** Delete File: b"),
        applied("2", b={"type": "delete", "content": "two\n"}),
        output("2"),
    )

    assert done.agreements == [("agreed", "exactly")] * 2
    assert [entry.path for entry in done.files.walk()] == ["/a"]


def test_an_update_of_an_unknown_file_is_checked_against_its_own_lines(imported: Import) -> None:
    done = imported(
        meta(),
        patch_call("1", "*** Update File: a", "@@", " zero", "-one", "+two"),
        applied("1", a={"type": "update", "unified_diff": "@@ -7 +7 @@\n-one\n+two\n", "move_path": None}),
        output("1"),
        patch_call("2", "*** Update File: b", "@@", "-port = 80", "+port = 8080"),
        applied("2", b={"type": "update", "unified_diff": "@@ -1 +1 @@\n-port = 80\n+port = 8080\n"}),
        output("2"),
    )

    assert done.agreements == [("agreed", "rebuilt")] * 2
    # No lines are made up in place of those that are not shown.
    assert not done.files.exists("/a")
    assert done.text("/b") == "port = 8080\n"


def test_records_of_other_files_in_a_patch_are_kept(imported: Import) -> None:
    diff = "@@ -7 +7 @@\n-one\n+two\n"
    done = imported(
        meta(),
        patch_call("1", "*** Update File: a", "*** Move to: c", "@@", "-one", "+two", "*** Add File: b", "+new"),
        applied(
            "1",
            a={"type": "update", "unified_diff": diff, "move_path": f"{ROOT}/c"},
            b={"type": "add", "content": "new\n"},
        ),
        output("1"),
    )

    assert done.agreements == [("agreed", "rebuilt")]
    assert [entry.path for entry in done.files.walk()] == ["/b"]


def test_an_update_that_shows_nothing_of_the_file_is_not_checked(imported: Import) -> None:
    done = imported(meta(), patch_call("1", "*** Update File: a", "@@", "-one", "+two"), output("1"))

    assert done.agreements == [("not_checked", "not_at_all")]


def test_a_patch_that_does_not_fit_the_known_text_is_not_checked_against_it(imported: Import) -> None:
    done = imported(
        meta(),
        patch_call("1", "*** Add File: a", "+one"),
        applied("1", a={"type": "add", "content": "one\n"}),
        patch_call("2", "*** Update File: a", "@@", "-one", "+two"),
        applied("2", a={"type": "update", "unified_diff": "@@ -7 +7 @@\n-other\n+two\n", "move_path": None}),
        output("2"),
    )

    assert done.agreements == [("agreed", "exactly"), ("not_checked", "not_at_all")]
    assert done.text("/a") == "one\n"


def test_without_an_event_the_answer_is_compared(imported: Import) -> None:
    done = imported(
        meta(),
        patch_call("1", "*** Add File: a", "+one"),
        output("1"),
        patch_call("2", "*** Update File: a", "@@", "-one", "+two"),
        output("2"),
        patch_call("3", "*** Update File: a", "@@", "-none", "+two"),
        output("3", "apply_patch verification failed: Failed to find expected lines", 1),
    )

    assert done.agreements == [("agreed", "exactly"), ("agreed", "rebuilt"), ("agreed", "rebuilt")]
    assert done.text("/a") == "two\n"


@pytest.mark.parametrize(
    "command",
    [
        ["apply_patch", "PATCH"],
        ["bash", "-lc", "apply_patch <<'EOF'\nPATCH\nEOF\n"],
        ["/bin/bash", "-lc", 'apply_patch <<"PATCH_END"\nPATCH\nPATCH_END'],
        ["bash", "-lc", "cd sub && apply_patch << EOF\nPATCH\nEOF"],
        "applypatch <<'EOF'\nPATCH\nEOF",
        f"cd '{ROOT}/sub' && apply_patch <<'EOF'\nPATCH\nEOF\n",
        "apply_patch <<'EOF'\nPATCH\nEOF\ngit status --short",
    ],
)
def test_a_patch_is_found_in_a_shell_command(imported: Import, command: str | list[str]) -> None:
    patch = '*** Begin Patch\n*** Add File: a.txt\n+one\'s "own"\n*** End Patch'
    words = [command] if isinstance(command, str) else command
    filled = [word.replace("PATCH\n", patch + "\n") if "\n" in word else word.replace("PATCH", patch) for word in words]
    script = filled[0] if isinstance(command, str) else filled
    done = imported(meta(), shell_call("1", script), output("1"))

    assert done.agreements == [("agreed", "exactly")]
    where = "/sub/a.txt" if "sub" in str(command) else "/a.txt"
    assert done.text(where) == 'one\'s "own"\n'


@pytest.mark.parametrize(
    ("command", "shown", "is_whole"),
    [
        ("cat a", "one\ntwo\n", True),
        ("cat ./a", "one\ntwo", True),
        ("nl -ba a", "     1\tone\n     2\ttwo\n", True),
        ("sed -n '1,200p' a", "one\ntwo\n", True),
        ("head -n 50 a", "one\ntwo\n", True),
        ("cat a | head", "one\ntwo\n", False),
        ("cat a b", "one\ntwo\n", False),
        ("cat -A a", "one$\ntwo$\n", False),
        ("cat a", "one\n\u20261234 tokens truncated\u2026\ntwo\n", False),
    ],
)
def test_a_file_is_rebuilt_from_a_command_that_shows_all_of_it(
    imported: Import, command: str, shown: str, is_whole: bool
) -> None:
    done = imported(meta(), shell_call("1", ["bash", "-lc", command]), output("1", shown))

    assert [one.agreement for one in done.verdicts] == ["agreed" if is_whole else "no_counterpart"]
    assert done.files.exists("/a") == is_whole
    if is_whole:
        assert done.text("/a").splitlines() == ["one", "two"]


def test_a_file_is_rebuilt_from_parts_shown_one_after_another(imported: Import) -> None:
    done = imported(
        meta(),
        shell_call("1", ["bash", "-lc", "sed -n '1,2p' a"]),
        output("1", "one\ntwo\n"),
        shell_call("2", ["bash", "-lc", "sed -n '3,9p' a"]),
        output("2", "three\n"),
        patch_call("3", "*** Update File: a", "@@", "-two", "+2"),
        applied("3", a={"type": "update", "unified_diff": "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"}),
        output("3"),
    )

    assert done.agreements == [("agreed", "rebuilt")] * 3
    assert done.text("/a") == "one\n2\nthree\n"


def test_output_up_to_the_end_of_a_file_shows_whether_it_ends_with_a_line_break(imported: Import) -> None:
    for end in ("", "\n"):
        done = imported(
            meta(),
            shell_call("1", ["bash", "-lc", "sed -n '1,2p' a"]),
            output("1", "one\ntwo\n"),
            shell_call("2", ["bash", "-lc", "sed -n '3,9p' a"]),
            output("2", f"three{end}"),
        )
        assert done.baseline == {"/a": f"one\ntwo\nthree{end}"}


def test_a_file_changed_by_a_program_is_rebuilt_from_later_output(imported: Import) -> None:
    update = {"type": "update", "unified_diff": "@@ -2,1 +2,1 @@\n-two\n+2\n"}
    done = imported(
        meta(),
        shell_call("1", ["bash", "-lc", "cat a"]),
        output("1", "before\n"),
        shell_call("2", ["bash", "-lc", "./generate"]),
        output("2", ""),
        patch_call("3", "*** Update File: a", "@@", "-two", "+2"),
        applied("3", a=update),
        output("3"),
        shell_call("4", ["bash", "-lc", "cat a"]),
        output("4", "one\n2\n"),
    )

    put_there = [one.event for one in done.session.records if one.cause == "import"]
    assert [(one.path, one.content) for one in put_there] == [("/a", b"before\n"), ("/a", b"one\ntwo\n")]
    assert done.agreements[2] == ("agreed", "rebuilt")
    assert done.text("/a") == "one\n2\n"


def test_parts_of_a_file_that_changed_in_between_are_not_combined(imported: Import) -> None:
    done = imported(
        meta(),
        shell_call("1", ["bash", "-lc", "sed -n '1,2p' a"]),
        output("1", "one\ntwo\n"),
        patch_call("2", "*** Update File: a", "@@", "-two", "+2"),
        output("2"),
        shell_call("3", ["bash", "-lc", "sed -n '3,9p' a"]),
        output("3", "three\n"),
    )

    assert [one.agreement for one in done.verdicts] == ["not_checked"] * 3
    assert not done.files.exists("/a")


def test_paths_are_relative_to_the_directory_of_the_command(imported: Import) -> None:
    add = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF"
    turn = {"type": "turn_context", "payload": {"cwd": f"{ROOT}/turn"}}
    done = imported(
        meta(),
        shell_call("1", ["bash", "-lc", add], workdir=f"{ROOT}/desk"),
        output("1"),
        turn,
        shell_call("2", ["bash", "-lc", add]),
        output("2"),
        shell_call("3", ["bash", "-lc", add], workdir="/elsewhere"),
        output("3"),
    )

    assert [one.agreement for one in done.verdicts] == ["agreed", "agreed", "outside"]
    assert sorted(entry.path for entry in done.files.walk() if entry.is_file) == ["/desk/a", "/turn/a"]


def test_the_rest_of_a_patch_with_an_outside_path_is_applied(imported: Import) -> None:
    done = imported(
        meta(),
        patch_call("1", "*** Add File: a", "+one", "*** Add File: /etc/b", "+two"),
        applied("1", a={"type": "add", "content": "one\n"}),
        output("1"),
    )

    assert done.agreements == [("outside", "not_at_all")]
    assert done.text("/a") == "one\n"


def test_a_patch_that_ended_in_the_middle_leaves_its_files_unknown(imported: Import) -> None:
    failed = applied("2", a={"type": "update", "unified_diff": ""})
    failed["payload"]["success"] = False
    done = imported(
        meta(),
        patch_call("1", "*** Add File: a", "+one"),
        output("1"),
        patch_call("2", "*** Update File: a", "@@", "-one", "+two"),
        failed,
        output("2", "failed", 1),
        patch_call("3", "*** Update File: a", "@@", "-one", "+two"),
        output("3"),
    )

    assert [one.agreement for one in done.verdicts] == ["agreed", "not_checked", "not_checked"]


@pytest.mark.parametrize(
    ("said", "agreements"),
    [
        ("Failed to find expected lines in /home/ann/shop/a:\nthree", [("agreed", "rebuilt")] * 2),
        ("Failed to find context 'def f' in /home/ann/shop/a", [("agreed", "rebuilt")] * 2),
        ("Failed to write file a: No space left on device", [("not_checked", "not_at_all")] * 2),
        ("", [("not_checked", "not_at_all")] * 2),
    ],
)
def test_a_patch_of_one_file_that_does_not_fit_changes_nothing(
    imported: Import, said: str, agreements: list[tuple[str, str]]
) -> None:
    failed = applied("2")
    failed["payload"] |= {"success": False, "stderr": said}
    done = imported(
        meta(),
        patch_call("1", "*** Add File: a", "+one"),
        applied("1", a={"type": "add", "content": "one\n"}),
        output("1"),
        patch_call("2", "*** Update File: a", "@@", "-three", "+two"),
        failed,
        patch_call("3", "*** Update File: a", "@@", "-one", "+two"),
        output("3"),
    )

    assert done.agreements[0] == ("agreed", "exactly")
    assert done.agreements[1:] == agreements


@pytest.mark.parametrize(
    ("answer", "succeeded"),
    [
        ('{"output":"x","metadata":{"exit_code":0}}', True),
        ('{"output":"x","metadata":{"exit_code":1}}', False),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.", True),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno", False),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n", True),
        ("Success. Updated the following files:\nA a\n", True),
        ("apply_patch verification failed: invalid patch", False),
        ("something else", None),
        ({"content": "Success.", "success": True}, True),
        ([{"type": "input_text", "text": "Exit code: 0\nOutput:\n"}], True),
        (None, None),
        (7, None),
    ],
)
def test_output_shows_whether_the_call_succeeded(tmp_path: Path, answer: object, succeeded: bool | None) -> None:
    lines = [
        meta(),
        patch_call("1", "*** Add File: a", "+one"),
        item(type="function_call_output", call_id="1", output=answer),
    ]
    (tmp_path / "t").write_bytes(as_jsonl(lines))

    transcript = read_transcript(tmp_path / "t")

    assert transcript.skipped == ()
    assert transcript.calls[0].recorded_error == (None if succeeded is None else not succeeded)


def test_the_oldest_files_have_no_envelope(tmp_path: Path, imported: Import) -> None:
    told = f"<environment_context>\n  <cwd>{ROOT}</cwd>\n</environment_context>"
    lines: list[Line] = [
        {"id": "r1", "timestamp": "t", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": told}]},
        shell_call("1", ["apply_patch", f"*** Begin Patch\n*** Add File: {ROOT}/a\n+one\n*** End Patch"])["payload"],
        output("1")["payload"],
    ]
    done = imported(*lines)

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "one\n"
    assert read_transcript(tmp_path / "t").calls[0].source == Source("codex", ROOT, ROOT)


def test_compacted_calls_are_not_performed_again(imported: Import) -> None:
    call = patch_call("1", "*** Add File: a", "+one")
    again = {
        "type": "compacted",
        "payload": {"message": "", "replacement_history": [call["payload"]], **call["payload"]},
    }
    done = imported(meta(), call, output("1"), again)

    assert len(done.verdicts) == 1


def test_an_event_after_the_answer_still_belongs_to_the_call(imported: Import) -> None:
    done = imported(
        meta(),
        patch_call("1", "*** Delete File: a"),
        output("1"),
        applied("1", a={"type": "delete", "content": "one\n"}),
    )

    assert done.agreements == [("agreed", "exactly")]


def test_a_patch_may_be_a_quoted_word_of_the_command(imported: Import) -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+one\n*** End Patch\n"
    done = imported(meta(), shell_call("1", ["bash", "-lc", f"apply_patch '{patch}'"]), output("1"))
    assert done.text("/a") == "one\n"


@pytest.mark.parametrize("tool", ["update_plan", "somebodys_tool"])
def test_a_tool_without_a_counterpart_is_skipped(imported: Import, tool: str) -> None:
    other = item(type="function_call", name=tool, arguments="{}", call_id="2")
    patch = patch_call("3", "*** Update File: a", "@@", "-port = 80", "+port = 8080")
    shown = [shell_call("1", ["bash", "-lc", "cat a"]), output("1", "port = 80\n")]
    done = imported(meta(), *shown, other, output("2"), patch, output("3"))
    assert [agreement for agreement, _ in done.agreements] == ["agreed", "no_counterpart", "agreed"]
    assert done.text("/a") == "port = 8080\n"

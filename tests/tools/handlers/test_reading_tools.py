"""`read_file`, `ls`, `stat`, `exists`, `glob` and `grep`: what the model reads and what the receipt holds."""

from __future__ import annotations

import pytest

from weakfs import Session, ToolContext, ToolResult, Toolset
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.testing import make_stub_context
from weakfs.tools import Receipt
from weakfs.tools.handlers import (
    ExistsParams,
    GlobParams,
    GrepParams,
    LsParams,
    ReadFileParams,
    StatParams,
    exists_handler,
    glob_handler,
    grep_handler,
    ls_handler,
    read_file_handler,
    stat_handler,
)


@pytest.fixture
def session() -> Session:
    ticks = iter(range(10**18, 2 * 10**18))
    return Session(session_id="s", clock=lambda: next(ticks))


@pytest.fixture
def fs(session: Session) -> InMemoryFilesystem:
    fs = InMemoryFilesystem(session, limits=Limits.tools())
    fs.write("/src/app.py", "one\ntwo\nthree\n")
    fs.write("/src/lib/util.py", "def two(): pass\n")
    fs.write_bytes("/logo.png", b"\x89PNG\0")
    fs.symlink("src/app.py", "/link")
    return fs


@pytest.fixture
def context(fs: InMemoryFilesystem) -> ToolContext:
    return make_stub_context(fs)


@pytest.fixture
def toolset(session: Session, fs: InMemoryFilesystem) -> Toolset:
    return Toolset(session, fs)


def code(result: ToolResult[object]) -> tuple[str, str | None]:
    assert isinstance(result.value, Receipt)
    assert (result.value.status, result.value.error_code) == (result.status, result.error_code)
    assert result.summary_text == result.value.summary_text
    assert "\n" not in result.summary_text
    assert result.success == (result.status == "ok")
    return result.status, result.error_code


# read_file


def test_a_whole_file_is_returned_exactly(fs: InMemoryFilesystem, context: ToolContext) -> None:
    text = "\ufeffa\r\nb\x0c\u2028c\n\nno end"
    fs.write("/odd.txt", text)

    result = read_file_handler(ReadFileParams("odd.txt"), context=context)

    assert result.message == text
    assert result.value.content == text
    assert result.value.truncated is False
    assert result.value.size_bytes == len(text.encode())
    assert result.summary_text == "Read /odd.txt (4 lines)"


def test_lines_count_from_one_and_a_note_says_how_to_continue(context: ToolContext) -> None:
    result = read_file_handler(ReadFileParams("/src/app.py", offset=1, limit=2), context=context)

    assert result.message == "one\ntwo\n[lines 1 to 2 of 3; continue with offset=3]"
    assert result.value.content == "one\ntwo\n"
    assert (result.value.first_line, result.value.lines, result.value.total_lines) == (1, 2, 3)
    assert result.value.truncated is True


def test_reading_to_the_end_adds_no_note(context: ToolContext) -> None:
    result = read_file_handler(ReadFileParams("/src/app.py", offset=3), context=context)

    assert result.message == "three\n"
    assert result.summary_text == "Read /src/app.py (lines 3 to 3 of 3)"


def test_reading_past_the_end_says_so(context: ToolContext) -> None:
    result = read_file_handler(ReadFileParams("/src/app.py", offset=9), context=context)

    assert result.success
    assert result.message == "[/src/app.py has 3 lines and line 9 is past its end]"
    assert (result.value.content, result.value.lines) == ("", 0)


def test_an_empty_file_is_reported_as_empty(fs: InMemoryFilesystem, context: ToolContext) -> None:
    fs.write("/empty", "")

    result = read_file_handler(ReadFileParams("/empty"), context=context)

    assert result.message == "[/empty is empty]"
    assert result.value.content == ""


def test_a_long_file_is_cut_at_the_limit_of_the_tools(fs: InMemoryFilesystem, toolset: Toolset) -> None:
    fs.write("/long", "x\n" * 2500)

    result = toolset.call("read_file", {"path": "/long"})

    assert result.message.endswith("[lines 1 to 2000 of 2500; continue with offset=2001]")
    assert toolset.call("read_file", {"path": "/long", "limit": 2500}).message == "x\n" * 2500


def test_the_limits_of_the_toolset_apply_to_a_filesystem_without_limits(
    session: Session, fs: InMemoryFilesystem
) -> None:
    fs.write("/long", "x\n" * 2500)
    unlimited = InMemoryFilesystem(session)

    result = Toolset(session, unlimited).call("read_file", {"path": "/long"})
    all_of_it = Toolset(session, unlimited, limits=Limits()).call("read_file", {"path": "/long"})

    assert "continue with offset=2001" in result.message
    assert all_of_it.message == "x\n" * 2500


def test_bytes_that_are_text_are_returned_as_text(context: ToolContext) -> None:
    result = read_file_handler(ReadFileParams("/src/app.py", offset_bytes=4, max_bytes=3), context=context)

    assert result.message == "two\n[bytes 4 to 7 of 14; continue with offset_bytes=7]"
    assert (result.value.content, result.value.offset_bytes, result.value.read_bytes) == ("two", 4, 3)
    assert result.value.truncated is True


def test_a_range_of_bytes_never_cuts_a_character(fs: InMemoryFilesystem, toolset: Toolset) -> None:
    text = "né€𝄞!"
    fs.write("/t", text)
    read, at = "", 0
    while at < len(text.encode()):
        value = toolset.call("read_file", {"path": "/t", "offset_bytes": at, "max_bytes": 4}).value
        content, count = getattr(value, "content", ""), getattr(value, "read_bytes", 0)
        assert 0 < count <= 4
        read, at = read + content, at + count

    assert read == text


def test_a_range_that_holds_no_whole_character_is_refused(fs: InMemoryFilesystem, toolset: Toolset) -> None:
    fs.write("/t", "€")

    cut = toolset.call("read_file", {"path": "/t", "max_bytes": 2})
    middle = toolset.call("read_file", {"path": "/t", "offset_bytes": 1})

    assert code(cut) == code(middle) == ("error", "not_utf8")
    assert "use 4 or more" in cut.message
    assert "start up to 3 bytes earlier" in middle.message


def test_a_binary_file_can_be_read_as_bytes(context: ToolContext) -> None:
    result = read_file_handler(ReadFileParams("/logo.png", encoding="bytes"), context=context)

    assert result.value.content == b"\x89PNG\0"
    assert result.message == "iVBORwA="


def test_reading_a_binary_file_as_text_is_refused(toolset: Toolset) -> None:
    result = toolset.call("read_file", {"path": "/logo.png"})

    assert code(result) == ("error", "not_utf8")
    assert "read it with encoding='bytes'" in result.message
    assert code(toolset.call("read_file", {"path": "/logo.png", "offset_bytes": 0})) == ("error", "not_utf8")


def test_reading_bytes_past_the_end_says_so(toolset: Toolset) -> None:
    result = toolset.call("read_file", {"path": "/src/app.py", "offset_bytes": 99})

    assert result.message == "[/src/app.py has 14 bytes and byte 99 is past its end]"
    assert result.summary_text == "/src/app.py has 14 bytes and byte 99 is past its end"


def test_reading_bytes_of_an_empty_file_says_that_it_is_empty(toolset: Toolset) -> None:
    toolset.call("write_file", {"path": "/empty", "content": ""})
    result = toolset.call("read_file", {"path": "/empty", "offset_bytes": 0})

    assert result.message == "[/empty is empty]"
    assert result.summary_text == "/empty is empty"


def test_lines_and_bytes_cannot_be_selected_together(toolset: Toolset) -> None:
    for more in ({"offset": 1, "max_bytes": 5}, {"limit": 1, "offset_bytes": 0}, {"limit": 1, "encoding": "bytes"}):
        result = toolset.call("read_file", {"path": "/src/app.py", **more})
        assert code(result) == ("error", "invalid_arguments")
        assert "give one pair or the other" in result.message


def test_unreadable_paths_have_their_own_status(toolset: Toolset) -> None:
    for path, expected in {
        "/missing": ("not_found", "not_found"),
        "/src": ("is_directory", "is_directory"),
        "/src/app.py/x": ("error", "not_a_directory"),
        "/link": ("forbidden", "path_forbidden"),
        "../up": ("forbidden", "path_forbidden"),
        "/nul\0": ("error", "invalid_input"),
    }.items():
        assert code(toolset.call("read_file", {"path": path})) == expected, path


def test_a_followed_link_is_read_as_its_target(session: Session, fs: InMemoryFilesystem) -> None:
    following = InMemoryFilesystem(session, follow_symlinks="within_root_only")

    result = read_file_handler(ReadFileParams("/link"), context=make_stub_context(following))

    assert (result.value.path, result.value.size_bytes) == ("/src/app.py", 14)


# ls, stat, exists


def test_a_directory_is_listed_by_name_with_the_kind_of_each_entry(context: ToolContext) -> None:
    result = ls_handler(LsParams(), context=context)

    assert result.message == "link@\nlogo.png\nsrc/"
    assert result.value.path == "/"
    assert isinstance(result.value.entries, tuple)
    assert [entry.path for entry in result.value.entries] == ["/link", "/logo.png", "/src"]
    assert result.summary_text == "/ has 3 entries"
    assert ls_handler(LsParams("src/lib"), context=context).value.path == "/src/lib"


def test_an_empty_directory_is_reported_as_empty(fs: InMemoryFilesystem, context: ToolContext) -> None:
    fs.mkdir("/empty")

    assert ls_handler(LsParams("empty"), context=context).message == "/empty has 0 entries"


def test_a_long_listing_is_cut_and_says_so(context: ToolContext) -> None:
    result = ls_handler(LsParams(max_results=1), context=context)

    assert result.message == "link@\n[/ has 3 entries, of which 1 is shown; set max_results to see more]"
    assert (result.value.count, result.value.truncated) == (3, True)


def test_a_name_with_a_line_break_stays_on_its_line(fs: InMemoryFilesystem, context: ToolContext) -> None:
    fs.write("/odd/a\nb", "")

    assert ls_handler(LsParams("/odd"), context=context).message == "a\\nb"


def test_unlistable_paths_have_their_own_status(toolset: Toolset) -> None:
    assert code(toolset.call("ls", {"path": "/logo.png"})) == ("error", "not_a_directory")
    assert code(toolset.call("ls", {"path": "/missing"})) == ("not_found", "not_found")
    assert code(toolset.call("ls", {"path": "/link"})) == ("forbidden", "path_forbidden")


def test_stat_distinguishes_files_directories_and_links(context: ToolContext) -> None:
    file = stat_handler(StatParams("src/app.py"), context=context)
    link = stat_handler(StatParams("/link"), context=context)
    directory = stat_handler(StatParams("/src"), context=context)

    assert file.message.startswith("/src/app.py: file, 14 bytes, mode 0644, modified 2001-09-09 01:46:40")
    assert (file.value.kind, file.value.size_bytes, file.value.mode) == ("file", 14, 0o644)
    assert (link.value.kind, link.value.target) == ("symlink", "src/app.py")
    assert "symbolic link to src/app.py" in link.message
    assert directory.value.kind == "directory"


def test_exists_answers_for_existing_and_missing_paths(context: ToolContext) -> None:
    assert exists_handler(ExistsParams("src//app.py"), context=context).message == "/src/app.py exists (file)"
    missing = exists_handler(ExistsParams("src/x/../y"), context=context)
    assert missing.success
    assert (missing.message, missing.value.exists) == ("/src/y does not exist", False)


def test_exists_refuses_a_path_that_climbs_out(toolset: Toolset) -> None:
    assert code(toolset.call("exists", {"path": "../x"})) == ("forbidden", "path_forbidden")


# glob, grep


def test_glob_lists_the_newest_first(fs: InMemoryFilesystem, context: ToolContext) -> None:
    fs.write("/src/app.py", "newer\n")

    result = glob_handler(GlobParams("*.py"), context=context)

    assert result.message == "/src/app.py\n/src/lib/util.py"
    assert (result.value.count, result.value.truncated) == (2, False)
    assert glob_handler(GlobParams("*.rs"), context=context).message == "No files matched"


def test_glob_says_that_there_are_more(context: ToolContext) -> None:
    result = glob_handler(GlobParams("**/*.py", max_results=1), context=context)

    assert result.message.endswith("\n[only the first is shown; narrow the pattern or set max_results]")
    assert result.summary_text == "1 path found, and there are more"


def test_grep_returns_path_line_and_text(context: ToolContext) -> None:
    result = grep_handler(GrepParams("TWO", case_insensitive=True), context=context)

    assert result.message == "/src/app.py:2:two\n/src/lib/util.py:1:def two(): pass"
    assert result.summary_text == "2 matches found (1 binary file skipped)"
    assert result.value.match_count == 2
    assert grep_handler(GrepParams("two", glob="lib/*.py", path="/src"), context=context).value.match_count == 1
    assert grep_handler(GrepParams("four"), context=context).message == "No matches found (1 binary file skipped)"


def test_grep_stops_at_the_limit_of_the_tools(fs: InMemoryFilesystem, context: ToolContext) -> None:
    fs.write("/many", "x\n" * 150)

    assert grep_handler(GrepParams("x", path="/many"), context=context).value.match_count == 100
    assert grep_handler(GrepParams("x", path="/many", max_results=120), context=context).value.match_count == 120


def test_a_very_long_line_is_shown_around_its_match(fs: InMemoryFilesystem, context: ToolContext) -> None:
    fs.write("/min.js", "a" * 5000 + "needle" + "b" * 5000 + "\n")

    result = grep_handler(GrepParams("needle"), context=context)

    assert result.message == f"/min.js:1:... {'a' * 100}needle{'b' * 100} ..."
    assert isinstance(result.value.matches, tuple)
    assert len(result.value.matches[0].line_content) == 10_006


def test_unsearchable_paths_have_their_own_status(toolset: Toolset) -> None:
    assert code(toolset.call("grep", {"pattern": "(?<=a)b"})) == ("invalid_regex", "invalid_regex")
    assert code(toolset.call("grep", {"pattern": "a", "glob": "["})) == ("invalid_pattern", "invalid_pattern")
    assert code(toolset.call("grep", {"pattern": "a", "path": "/no"})) == ("not_found", "not_found")
    assert code(toolset.call("glob", {"pattern": "{a"})) == ("invalid_pattern", "invalid_pattern")
    assert code(toolset.call("glob", {"pattern": "*", "path": "/logo.png"})) == ("error", "not_a_directory")

"""The data of the page: contents stored once, the files after each row, forks, and what is left out."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.history.page import PageLimits, timeline_page
from weakfs.history.page.contents import utf16_length
from weakfs.history.page.document import embedded
from weakfs.history.page.rows import page_data
from weakfs.reducers import FileTree
from weakfs.reducers.tree.leaf import content_of
from weakfs.reducers.tree.node import walk

from .conftest import HOSTILE


def text_of(contents: list[Any], number: int) -> str:
    """Assemble one of the contents from its parts, in UTF-16 units as the page does."""
    entry = contents[number]
    if not isinstance(entry, list):
        return cast(str, entry)
    base, start, end, middle = entry
    units = text_of(contents, base).encode("utf-16-le")
    parts = units[: 2 * start].decode("utf-16-le"), middle, units[len(units) - 2 * end :].decode("utf-16-le")
    return "".join(parts)


def entries_after(data: dict[str, Any], number: int | None) -> dict[str, tuple[int, list[Any] | None]]:
    """Return the content and the blame of each file after a row, as the page does."""
    if number is None:
        return {}
    row = data["rows"][number]
    assert row.get("state", ()) is not None
    files = entries_after(data, row.get("parent"))
    if "state" in row:
        for _, path, *entry in row["state"]:
            files.pop(path, None)
            if entry:
                files[path] = entry[0], entry[2] if len(entry) > 2 else None
        return files
    for one in row.get("files", ()):
        _, old = files.pop(one.get("source", one["path"]), (0, None))
        if "new" in one:
            blame = one.get("blame")
            if isinstance(blame, dict):
                assert old is not None
                start, end = blame["same"]
                blame = [*old[:start], *blame["between"], *old[len(old) - end :]]
            files[one["path"]] = one["new"], blame
    return files


def files_after(data: dict[str, Any], number: int | None) -> dict[str, str]:
    """Return the files after a row, as the page does."""
    return {path: text_of(data["contents"], content) for path, (content, _) in entries_after(data, number).items()}


def blame_after(data: dict[str, Any], number: int) -> dict[str, list[tuple[str | None, int]]]:
    """Return who wrote the lines of each file, as runs of lines."""
    rows = data["rows"]
    return {
        path: [
            (None if row is None else rows[row].get("name"), count)
            for row, count in zip(blame[::2], blame[1::2], strict=True)
        ]
        for path, (_, blame) in entries_after(data, number).items()
        if blame is not None
    }


def files_of(tree: FileTree | None) -> dict[str, str]:
    assert tree is not None
    return {path: content_of(leaf).decode() for path, leaf in walk(tree) if type(leaf) is not FileTree}


def data_of(session: Session, **options: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(json.dumps(page_data(session, **options))))


@pytest.mark.parametrize("seed", range(20))
def test_the_files_after_each_row_are_those_of_the_session(seed: int) -> None:
    random = Random(seed)
    session = Session(session_id="main")
    files = InMemoryFilesystem(session)
    moments: list[dict[str, str]] = []
    ends: list[int] = []

    def work(files: InMemoryFilesystem) -> None:
        path, other = (f"/{random.choice('abc')}/{random.choice('xyz')}" for _ in range(2))
        text = "".join(
            random.choice(("a\n", "b\n", "ü\n", "\N{GRINNING FACE}\n")) for _ in range(random.randint(0, 40))
        )
        if random.random() < 0.7 or not files.exists(path):
            files.write(path, text)
        elif path == other or files.exists(other):
            files.delete(path)
        else:
            files.move(path, other)

    for step in range(30):
        if step % 6 == 5:
            fork = session.fork()
            for _ in range(random.randint(0, 3)):
                work(InMemoryFilesystem(fork))
            work(files)
            session.merge(fork, on_conflict="theirs")
        elif step == 20:
            session.rollback(random.randint(1, session.seq))
        else:
            work(files)
        moments.append(files_of(session[FileTree].latest()))
        ends.append(session.seq)
    data = data_of(session)
    own = [number for number, row in enumerate(data["rows"]) if "lane" not in row]
    assert files_after(data, own[-1]) == moments[-1]
    row_of = {
        record: number
        for number, row in enumerate(data["rows"])
        for record in range(row["first"], row.get("last", row["first"]) + 1)
    }
    for moment, seq in zip(moments, ends, strict=True):
        newest = max(number for number in own if data["rows"][number]["first"] <= seq)
        assert files_after(data, newest) == moment
        for path, (_, runs) in entries_after(data, newest).items():
            assert runs is not None
            rows = [row for row, count in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]
            assert rows == [row_of[line.record] for line in session.blame(path, at=seq)]


def test_equal_contents_are_stored_once_and_changed_ones_as_differences() -> None:
    session = Session(session_id="main")
    files = InMemoryFilesystem(session)
    text = "".join(f"line {number}\n" for number in range(1000))
    files.write("/a", text)
    files.write("/b", text)
    files.write("/a", text.replace("line 500\n", "other \N{GRINNING FACE}\n"))
    contents = data_of(session)["contents"]
    assert len(contents) == 2
    assert contents[0] == text
    assert len(contents[1][3]) < 20
    assert text_of(contents, 1) == text.replace("line 500\n", "other \N{GRINNING FACE}\n")


def test_lengths_are_counted_as_javascript_counts_them() -> None:
    assert utf16_length("ü\N{GRINNING FACE}") == 3


def test_a_fork_has_a_lane_from_its_start_to_its_merge(story: Session) -> None:
    data = data_of(story)
    rows, (fork,) = data["rows"], data["forks"]
    assert [row.get("name") for row in rows if row.get("lane") == 1] == ["f1"]
    assert rows[fork["start"]]["name"] == "c2"
    assert (rows[fork["end"]]["kind"], fork["name"]) == ("merge", "story/idea1")
    assert "files" not in rows[fork["end"]]
    assert files_after(data, fork["end"]).keys() == {"/src/a.py", "/idea.txt"}


def test_blame_names_the_row_of_each_line(story: Session) -> None:
    data = data_of(story)
    assert blame_after(data, len(data["rows"]) - 1) == {
        "/b.py": [("c3", 1), ("c1", 1)],
        "/idea.txt": [("f1", 1)],
        "/own.md": [(None, 1)],
    }
    assert blame_after(data, 0)["/src/a.py"] == [("c1", 2)]


def test_blame_of_a_moment_does_not_depend_on_later_ones() -> None:
    session = Session(session_id="main")
    tools = Toolset(session)
    for name, content in (("a", "same\n"), ("b", "other\n"), ("c", "same\n"), ("d", "same\nmore\n")):
        tools.call("write_file", {"path": "/f", "content": content}, call_id=name)
    session.undo()
    data = data_of(session)
    found = [blame_after(data, number)["/f"] for number in range(len(data["rows"]))]
    assert found[:5] == [[("a", 1)], [("b", 1)], [("c", 1)], [("c", 1), ("d", 1)], [("c", 1)]]


def test_compacted_work_is_distinguished_from_work_that_changed_nothing(story: Session) -> None:
    assert not any("compacted" in row for row in data_of(story)["rows"])
    story.compact(keep=0)
    data = data_of(story)
    calls = [row for row in data["rows"] if row["kind"] == "call"]
    assert len(calls) == 6
    assert all(row["compacted"] and row["state"] is None for row in calls)


def test_contents_beyond_a_limit_are_omitted_and_counted(story: Session) -> None:
    limited = data_of(story, limits=PageLimits(rows=3, file_bytes=5, blame_lines=1))
    assert len(limited["rows"]) == 3
    left = limited["left_out"]
    assert (left["rows"], left["large"] > 0) == (6, True)
    full = data_of(story, limits=PageLimits(changed_bytes=20, unchanged_bytes=0))
    assert full["left_out"]["full"] > 0
    nothing = data_of(story, limits=PageLimits(entries=0))
    assert nothing["left_out"]["trees"] > 0
    assert all(row["state"] is None for row in nothing["rows"])


def test_without_contents_no_line_of_a_file_is_in_the_page(story: Session) -> None:
    text = timeline_page(story, "s.json", with_contents=False)
    assert "two = " not in text
    assert "two = " in timeline_page(story, "s.json")


def test_files_that_are_not_utf8_are_marked() -> None:
    session = Session(session_id="main")
    InMemoryFilesystem(session).write_bytes("/latin", b"caf\xe9\n")
    assert data_of(session)["contents"] == [{"size": 5, "why": "encoding", "text": "caf\ufffd\n"}]


def test_data_cannot_close_its_script_block() -> None:
    value = {HOSTILE: "\u2028\u2029&<>\ud800"}
    text = embedded(value)
    assert not set(text) & set("<>&\u2028\u2029\ud800")
    assert json.loads(text) == value


def test_the_policy_allows_the_script_and_the_style_of_the_page_only(story: Session) -> None:
    text = timeline_page(story, "s.json")
    policy = re.search('Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    scripts, styles = re.findall("<script>(.*?)</script>", text, re.S), re.findall("<style>(.*?)</style>", text, re.S)
    assert (len(scripts), len(styles)) == (1, 1)
    for source in (*scripts, *styles):
        assert b64encode(sha256(source.encode()).digest()).decode() in policy[1]
    assert not re.search("innerHTML|insertAdjacentHTML|document.write|eval|https?:(?!//www.w3.org)", scripts[0])


def test_a_page_is_the_same_bytes_each_time(story: Session) -> None:
    assert timeline_page(story, "s.json") == timeline_page(story, "s.json")


def test_files_on_the_host_name_their_filesystem(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    session = Session(session_id="host")
    tools = Toolset(session, HostFilesystem(root, session=session, store=tmp_path / "store"))
    tools.call("edit_file", {"path": "/a.txt", "old_string": "one", "new_string": "two"})
    tools.call("write_file", {"path": "/b.txt", "content": "b\n"})
    data = data_of(session)
    assert {one["filesystem"] for row in data["rows"] for one in row.get("files", ())} == {f"host:{root}"}
    last = max(number for number, row in enumerate(data["rows"]) if row["kind"] == "call")
    assert files_after(data, last) == {"/a.txt": "two\n", "/b.txt": "b\n"}


def test_an_empty_session_has_a_page_without_rows() -> None:
    assert data_of(Session(session_id="empty"))["rows"] == []


def test_commands_and_calls_may_have_any_name() -> None:
    session = Session(session_id="main")
    Toolset(session).call(
        "write_file", {"path": f"/{HOSTILE[2:9]}", "content": HOSTILE}, call_id=HOSTILE, caller=HOSTILE
    )
    text = timeline_page(session, HOSTILE)
    assert "<img" not in text
    assert text.count("</script>") == 2

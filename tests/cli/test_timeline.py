"""`weakfs timeline`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from weakfs import Session

from .conftest import Run


def test_rows_are_a_table_without_empty_columns(run: Run, saved: Path) -> None:
    done = run("timeline", saved)
    assert (done.status, done.err) == (0, "")
    assert done.lines[0].split() == ["time", "action", "target", "status", "files", "lines"]
    assert done.lines[1].split()[2:] == ["file_written", "/src/app.py", "ok", "1", "file", "+2", "-0"]
    assert len(done.lines) == 11
    assert "\x1b" not in done.out


def test_files_are_listed_below_each_row(run: Run, saved: Path) -> None:
    lines = run("timeline", saved, "--files").lines
    assert "    R  /src/old.py -> /attic/old.py" in lines
    assert "    M  /src/app.py" in lines


def test_json_has_every_field(run: Run, saved: Path) -> None:
    rows = run("timeline", saved, "--json").objects
    assert [row["kind"] for row in rows].count("snapshot") == 1
    assert rows[0]["at"] == "2026-04-30T09:29:33.500000000Z"
    assert rows[0]["files"] == [
        {"path": "/src/app.py", "change": "added", "source": None, "added": 2, "removed": 0, "filesystem": None}
    ]


def test_an_empty_session_shows_nothing(run: Run, tmp_path: Path) -> None:
    Session(session_id="empty").save(tmp_path / "s.json")
    assert (run("timeline", tmp_path / "s.json").status, run("timeline", tmp_path / "s.json").out) == (0, "")


def test_a_page_is_written_completely(run: Run, saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "a page.html"
    done = run("timeline", saved, "--html", page)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{page}: {page.stat().st_size:,} bytes\n"
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "host = 'a'" in text
    assert "\x1b" not in text


def test_a_page_can_omit_contents(run: Run, saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("timeline", saved, "--html", page, "--no-contents").status == 0
    assert "host = 'a'" not in page.read_text("utf-8")


def test_the_formats_exclude_one_another(run: Run, saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for other in ("--json", "--files"):
        done = run("timeline", saved, "--html", page, other)
        assert (done.status, page.exists()) == (2, False)
        assert "omit them" in done.err
    done = run("timeline", saved, "--no-contents")
    assert done.status == 2
    assert "add --html PAGE" in done.err


def test_a_page_that_cannot_be_written_is_named(run: Run, saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "none" / "page.html"
    done = run("timeline", saved, "--html", page)
    assert done.status == 1
    assert done.err.startswith(f"weakfs: cannot write {str(page)!r}")


def test_the_full_screen_view_needs_a_terminal_and_excludes_other_formats(run: Run, saved: Path) -> None:
    pytest.importorskip("textual", reason="textual is not installed")
    assert "this is not a terminal; omit --tui" in run("timeline", saved, "--tui").err
    assert "--tui cannot be used with" in run("timeline", saved, "--tui", "--json").err


def test_without_its_extra_the_full_screen_view_names_the_extra(
    run: Run, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("weakfs.cli.terminal")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    done = run("timeline", saved, "--tui")
    assert (done.status, "pip install 'weakfs[tui]'" in done.err) == (1, True)

"""The part of the demo that works on a real repository: what it proves, and that it would notice."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.demo import host
from examples.demo.host import FailedCall, Seen, prove_no_trace
from examples.demo.report import NotProved, Report
from examples.demo.witness import Repository, walked
from weakfs import HostFilesystem, Tool, ToolContext, ToolResult


def on_the_host(tmp_path: Path) -> None:
    host.in_place(Report(), tmp_path, tmp_path / "host.json")


@pytest.mark.slow
def test_without_git_digests_are_compared_and_without_a_sandbox_no_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("examples.demo.witness.which", lambda _name: None)
    monkeypatch.setattr("examples.demo.host.Bubblewrap.problem", lambda _self: "there is no bwrap")
    on_the_host(tmp_path)
    out = capsys.readouterr().out
    assert "git is not installed" in out
    assert "git status" not in out
    assert "no commands are run: there is no bwrap" in out
    assert "shell: " not in out


@pytest.mark.exhaustive
def test_a_rollback_that_forgets_something_is_not_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename_word = host.rename_word

    def leaves_a_trace(params: host.RenameWord, *, context: ToolContext) -> ToolResult[int]:
        assert isinstance(context.filesystem, HostFilesystem)
        (Path(context.filesystem.root) / "trace").touch()
        return rename_word(params, context=context)

    tool = Tool("rename_word", "Rename.", host.RenameWord, leaves_a_trace)
    monkeypatch.setattr(host, "RENAME_WORD", tool)
    with pytest.raises(NotProved, match="half_1"):
        on_the_host(tmp_path)


@pytest.mark.parametrize("kind", ["git", "walk", "fingerprint"])
def test_each_check_can_fail_the_proof(kind: str) -> None:
    seen = {"git": "a", "walk": "a", "fingerprint": "a"}
    call = FailedCall("rm", "c1", "not_found", Seen(**seen), Seen(**{**seen, kind: "b"}))
    with pytest.raises(NotProved, match="c1"):
        prove_no_trace(Report(), [call])


def forge(path: Path) -> None:
    before = path.stat()
    path.write_text("b")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda root: forge(root / "a"),
        lambda root: (root / "a").chmod(0o600),
        lambda root: os.utime(root / "a", ns=(1, 1)),
        lambda root: (root / "empty").rmdir(),
        lambda root: (root / "a").rename(root / "b"),
        lambda root: ((root / "link").unlink(), (root / "link").symlink_to("b")),
        lambda root: (root / ".git" / "HEAD").write_text("ref: refs/heads/other\n"),
    ],
    ids=["content", "mode", "time", "directory", "name", "link", "git"],
)
def test_a_walk_detects_every_change(tmp_path: Path, change: Callable[[Path], object]) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    before = walked(tmp_path)
    assert walked(tmp_path) == before
    change(tmp_path)
    assert walked(tmp_path) != before


def test_git_is_used_whatever_its_user_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "broken"))
    (tmp_path / "broken").write_text("no configuration")
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "a").write_text("a")
    repository = Repository(workspace)
    if not repository.exists:
        pytest.skip("there is no git")
    assert repository.status().count("\n") == 1
    (workspace / "b").write_text("b")
    assert "?? b\n" in repository.status()

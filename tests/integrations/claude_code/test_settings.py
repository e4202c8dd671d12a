"""Hooks in the settings of a project: added to existing settings, and removed again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from weakfs.cli import main
from weakfs.integrations.claude_code import SettingsError, install, installed, uninstall
from weakfs.integrations.claude_code.events import EVENTS

THEIRS: dict[str, Any] = {
    "permissions": {"allow": ["Bash(ls)"]},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo é"}]}],
        "Notification": [{"hooks": [{"type": "command", "command": "beep"}]}],
    },
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "a project"
    made.mkdir()
    return made


def test_installing_creates_missing_settings_and_uninstalling_removes_them(project: Path) -> None:
    made = install(project)
    settings = json.loads(made.settings.read_text())
    assert tuple(settings["hooks"]) == EVENTS
    (command,) = {entry["hooks"][0]["command"] for (entry,) in settings["hooks"].values()}
    assert shlex.split(command)[-2:] == [str(project), made.location]
    assert installed(project) == [made]
    assert uninstall(project) == [project / ".claude" / "settings.local.json"]
    assert list((project / ".claude").iterdir()) == []
    assert installed(project) == []
    assert uninstall(project) == []


def test_a_password_is_not_written_to_settings(project: Path) -> None:
    with pytest.raises(ValueError, match=r"its password would be written to the settings") as caught:
        install(project, "postgresql://me:s3cret@db.example/sessions")
    assert "s3cret" not in str(caught.value)
    assert not (project / ".claude").exists()
    install(project, "postgresql://me@db.example/sessions")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(THEIRS, separators=(",", ":")),
        json.dumps(THEIRS) + "\n",
        json.dumps(THEIRS, indent=2).replace("\n", "\r\n") + "\r\n",
    ],
)
def test_the_formatting_of_a_settings_file_is_kept(project: Path, text: str) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(text.encode())
    install(project, shared=True)
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n") or "\r" not in text
    uninstall(project)
    assert path.read_bytes() == text.encode()


@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_other_settings_and_hooks_stay_as_they_are(project: Path, indent: int | str) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    before = json.dumps(THEIRS, indent=indent, ensure_ascii=False) + "\n"
    path.write_text(before)
    path.chmod(0o600)
    install(project, "sqlite:/x/history.db", shared=True)
    install(project, "sqlite:/x/other.db", shared=True)
    settings = json.loads(path.read_text())
    assert [entry["matcher"] for entry in settings["hooks"]["PreToolUse"]] == ["Bash", "*"]
    assert settings["permissions"] == THEIRS["permissions"]
    assert [one.location for one in installed(project)] == ["sqlite:/x/other.db"]
    uninstall(project)
    assert path.read_text() == before
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text", ["{", "[]", '"x"', '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": ["x"]}}', "null"]
)
def test_settings_that_are_not_valid_are_named_and_left_alone(project: Path, text: str) -> None:
    path = project / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text(text)
    for work in (install, uninstall, installed):
        with pytest.raises(SettingsError, match=r"settings\.local\.json"):
            work(project)
    assert path.read_text() == text
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_link_to_settings_stays_a_link(project: Path, tmp_path: Path) -> None:
    (project / ".claude").mkdir()
    (tmp_path / "mine.json").write_text("{}")
    (project / ".claude" / "settings.local.json").symlink_to(tmp_path / "mine.json")
    install(project)
    assert (project / ".claude" / "settings.local.json").is_symlink()
    assert "hooks" in json.loads((tmp_path / "mine.json").read_text())


def test_a_path_that_is_not_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "none"):
        with pytest.raises(NotADirectoryError, match=name):
            install(tmp_path / name)


def test_the_commands_say_what_they_changed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", "status", "claude-code", str(project)]) == 3
    assert main(["hooks", "install", "claude-code", str(project), "--session", "sqlite:/x/h.db"]) == 0
    assert "weakfs undo sqlite:/x/h.db --root" in capsys.readouterr().out
    assert main(["hooks", "status", "claude-code", str(project)]) == 0
    assert "the session is in sqlite:/x/h.db" in capsys.readouterr().out
    assert main(["hooks", "uninstall", "claude-code", str(project)]) == 0
    assert "removed" in capsys.readouterr().out
    (project / ".claude" / "settings.json").write_text("{")
    assert main(["hooks", "install", "claude-code", str(project)]) == 0
    assert main(["hooks", "install", "claude-code", str(project), "--shared"]) == 1
    assert "is not JSON" in capsys.readouterr().err


def test_a_relative_location_is_resolved_from_the_working_directory(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert install(project, "sqlite:history.db").location == f"sqlite:{tmp_path}/history.db"
    assert install(project, "history").location == f"folder:{tmp_path}/history"
    assert install(project, "redis://host/0").location == "redis://host/0"


def test_a_session_inside_the_project_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="it is inside the project"):
        install(project, f"folder:{project}/history")
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    with pytest.raises(ValueError, match="choose another place with --session"):
        install(project)
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("text", ['{\n  "a": 1\n}', '{\n\t"a": 1.5\n}\n', '{\n  "half": "\\ud83d"\n}\n'])
def test_settings_are_restored_when_the_hooks_are_removed(project: Path, text: str) -> None:
    (project / ".claude").mkdir()
    settings = project / ".claude" / "settings.local.json"
    settings.write_text(text)
    install(project)
    uninstall(project)
    assert settings.read_text() == text


@pytest.mark.parametrize(
    "text",
    ["[" * 99999, '{"a": NaN}', '{"a": 1e999}', '{"hooks": {"Stop": [{"hooks": 5}]}}', '{"hooks": {"Stop": {}}}'],
)
def test_settings_of_an_unexpected_form_are_refused_and_left_alone(project: Path, text: str) -> None:
    (project / ".claude").mkdir()
    settings = project / ".claude" / "settings.local.json"
    settings.write_text(text)
    for work in (install, uninstall, installed):
        with pytest.raises(SettingsError, match="correct them first"):
            work(project)
    assert settings.read_text() == text


def test_a_command_that_only_mentions_the_hook_is_not_removed(project: Path) -> None:
    (project / ".claude").mkdir()
    theirs = [
        {"type": "command", "command": command} for command in ("lint claude_code/hook.py", "'claude_code/hook.py")
    ]
    text = json.dumps({"hooks": {"Stop": [{"hooks": theirs}]}}, indent=2)
    (project / ".claude" / "settings.local.json").write_text(text)
    assert installed(project) == []
    install(project)
    uninstall(project)
    assert (project / ".claude" / "settings.local.json").read_text() == text

"""The settings of Claude Code in a project: putting the hooks in, and taking them out again."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from weakfs.class_decorators import frozen
from weakfs.errors import WeakfsError
from weakfs.integrations.claude_code import hook
from weakfs.integrations.claude_code.events import EVENTS

# How long Claude Code waits for a hook, in seconds: the first one starts a server and scans the project.
TIMEOUT = 60
# By what our hooks are known among others.
MARK = "claude_code/hook.py"

Settings = dict[str, Any]


class SettingsError(WeakfsError, ValueError):
    """Raised if the settings of a project cannot be read or changed."""


@frozen
class Installed:
    """The hooks of a project: the file of settings, the directory, and where the session is."""

    settings: Path
    directory: str
    location: str


def install(directory: str | os.PathLike[str], location: str | None = None, *, shared: bool = False) -> Installed:
    """Put the hooks into a project's settings, in place of those that are there.

    The session is kept at `location`, by default in a folder of the user's state directory. The settings are those of
    this user, `.claude/settings.local.json`, or with `shared` the project's `.claude/settings.json`. Raises
    `SettingsError` for settings that are not valid, and `NotADirectoryError` for a directory that is none.
    """
    root = os.path.realpath(directory)
    if not os.path.isdir(root):
        raise NotADirectoryError(f"cannot install hooks in {os.fspath(directory)!r}: it is not a directory")
    made = Installed(_path(root, shared=shared), root, default_location(root) if location is None else location)
    # One server for each directory and session.
    server = sha256(os.fsencode(f"{made.directory}\n{made.location}")).hexdigest()[:24]
    words = [sys.executable, "-I", "-S", os.path.abspath(hook.__file__), server, made.directory, made.location]
    entry = {"matcher": "*", "hooks": [{"type": "command", "command": shlex.join(words), "timeout": TIMEOUT}]}

    def add(settings: Settings) -> None:
        _remove(settings)
        hooks = settings.setdefault("hooks", {})
        for event in EVENTS:
            hooks.setdefault(event, []).append(entry)

    _change(made.settings, add)
    return made


def uninstall(directory: str | os.PathLike[str]) -> list[Path]:
    """Take the hooks out of a project's settings, and return the files that had them. The session stays."""
    root = os.path.realpath(directory)
    found = [path for path in _paths(root) if _ours(_read(path))]
    for path in found:
        _change(path, _remove)
    return found


def installed(directory: str | os.PathLike[str]) -> list[Installed]:
    """Return the hooks in a project's settings."""
    root = os.path.realpath(directory)
    return [Installed(path, *words[-2:]) for path in _paths(root) if (words := _ours(_read(path)))]


def default_location(directory: str) -> str:
    """Return the folder in the user's state directory that keeps the session of a project."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    name = re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(directory)) or "root"
    return f"folder:{state}/weakfs/claude-code/{name}-{sha256(os.fsencode(directory)).hexdigest()[:12]}"


def _path(root: str, *, shared: bool) -> Path:
    return Path(root, ".claude", "settings.json" if shared else "settings.local.json")


def _paths(root: str) -> list[Path]:
    return [_path(root, shared=True), _path(root, shared=False)]


def _read(path: Path) -> Settings:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    try:
        settings = json.loads(text) if text.strip() else {}
        groups = settings.get("hooks", {}).values()
        if all(isinstance(group, list) and all(isinstance(entry, dict) for entry in group) for group in groups):
            return settings
        problem = "its hooks do not have the form that Claude Code reads"
    except ValueError as error:
        problem = f"it is not JSON: {error}"
    except (AttributeError, TypeError):
        problem = "its hooks do not have the form that Claude Code reads"
    raise SettingsError(f"cannot read the settings {str(path)!r}: {problem}; correct them first")


def _change(path: Path, change: Callable[[Settings], None]) -> None:
    """Change a file of settings as a whole or not at all; one that is left with nothing is removed."""
    settings = _read(path)
    before = path.read_text() if path.exists() else ""
    change(settings)
    if not settings:
        path.unlink(missing_ok=True)
        return
    indent = re.search(r"\n([ \t]+)\"", before)
    path.parent.mkdir(exist_ok=True)
    target = path.resolve()
    with NamedTemporaryFile("w", dir=target.parent, prefix=f".{target.name}.", delete=False) as new:
        try:
            json.dump(settings, new, indent=indent[1] if indent else 2, ensure_ascii=False)
            new.write("\n")
            new.flush()
            os.fsync(new.fileno())
            os.chmod(new.name, target.stat().st_mode & 0o777 if target.exists() else 0o644)
            os.replace(new.name, target)
        except BaseException:
            os.unlink(new.name)
            raise


def _is_ours(one: object) -> bool:
    return isinstance(one, dict) and MARK in str(one.get("command", ""))


def _ours(settings: Settings) -> list[str]:
    """Return the words of our command in settings, if they have it."""
    for group in settings.get("hooks", {}).values():
        for entry in group:
            for one in entry.get("hooks") or ():
                if _is_ours(one):
                    return shlex.split(one["command"])
    return []


def _remove(settings: Settings) -> None:
    """Take our hooks out, and what they leave empty."""
    hooks = settings.get("hooks", {})
    for event in list(hooks):
        if not any(_is_ours(one) for entry in hooks[event] for one in entry.get("hooks") or ()):
            continue
        kept = []
        for entry in hooks[event]:
            others = [one for one in entry.get("hooks") or () if not _is_ours(one)]
            if others or not entry.get("hooks"):
                kept.append({**entry, "hooks": others} if "hooks" in entry else entry)
        if kept:
            hooks[event] = kept
        else:
            del hooks[event]
    if "hooks" in settings and not hooks:
        del settings["hooks"]

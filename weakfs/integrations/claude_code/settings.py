"""The settings of Claude Code in a project: adding and removing the hooks."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, cast

from weakfs.class_decorators import frozen
from weakfs.errors import WeakfsError
from weakfs.integrations.claude_code import hook
from weakfs.integrations.claude_code.events import EVENTS
from weakfs.integrations.claude_code.hook_process import MARK

# How long Claude Code waits for a hook, in seconds: the first one starts a server and scans the project.
TIMEOUT = 60

Settings = dict[str, Any]


class SettingsError(WeakfsError, ValueError):
    """The settings of a project cannot be read or changed."""


@frozen
class Installed:
    """The hooks of a project: the file of settings, the directory, and where the session is."""

    settings: Path
    directory: str
    location: str


def install(directory: str | os.PathLike[str], location: str | None = None, *, shared: bool = False) -> Installed:
    """Add the hooks to a project's settings, replacing earlier ones.

    The session is stored at `location`, by default in a folder of the user's state directory. The settings are this
    user's `.claude/settings.local.json`, or with `shared` the project's `.claude/settings.json`. Raises `SettingsError`
    if the settings are not valid, `NotADirectoryError` if `directory` is not a directory, and `ValueError` if the
    session would be inside it, or if its URL contains a password, which would be written to the settings.
    """
    root = os.path.realpath(directory)
    if not os.path.isdir(root):
        raise NotADirectoryError(f"cannot install hooks in {os.fspath(directory)!r}: it is not a directory")
    made = Installed(_path(root, shared=shared), root, _location(root, location))
    # There is one server for each directory and session.
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
    """Remove the hooks from a project's settings, and return the files that had them. The session is kept."""
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
    """Return the folder in the user's state directory that stores the session of a project."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    name = re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(directory)) or "root"
    return f"folder:{state}/weakfs/claude-code/{name}-{sha256(os.fsencode(directory)).hexdigest()[:12]}"


def _location(root: str, location: str | None) -> str:
    """Return an absolute location, because the server has another working directory."""
    from weakfs.storage.engines.urls import redacted
    from weakfs.storage.locations import local_path, url_of

    found = default_location(root) if location is None else location
    path = local_path(found)
    if path is None:
        if redacted(found) != found:
            raise ValueError(
                f"cannot store the session in {redacted(found)!r}: its password would be written to the settings; "
                "leave it out, and put it where the database client looks for it, such as ~/.pgpass"
            )
        return found
    absolute = os.path.realpath(path)
    if os.path.commonpath([root, absolute]) == root:
        raise ValueError(
            f"cannot store the session in {absolute!r}: it is inside the project, so recording a change would be a "
            "change itself; choose another place with --session"
        )
    return found if os.path.isabs(path) else url_of(found).replace(path, absolute, 1)


def _path(root: str, *, shared: bool) -> Path:
    return Path(root, ".claude", "settings.json" if shared else "settings.local.json")


def _paths(root: str) -> list[Path]:
    return [_path(root, shared=True), _path(root, shared=False)]


def _read(path: Path) -> Settings:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        settings = json.loads(text, parse_float=_number, parse_constant=_number) if text.strip() else {}
    except (RecursionError, ValueError) as error:
        problem = f"it is not JSON: {error}"
    else:
        if _has_form(settings):
            return cast(Settings, settings)
        problem = "its hooks do not have the form that Claude Code reads"
    raise SettingsError(f"cannot read the settings {str(path)!r}: {problem}; correct them first")


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a JSON number")
    return number


def _has_form(settings: object) -> bool:
    """Return whether settings have the expected structure."""
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(group, list) for group in hooks.values()):
        return False
    entries = [entry for group in hooks.values() for entry in group]
    return all(isinstance(entry, dict) and isinstance(entry.get("hooks", []), list) for entry in entries)


def _change(path: Path, change: Callable[[Settings], None]) -> None:
    """Change a settings file atomically; remove it if no settings are left."""
    settings = _read(path)
    before = path.read_bytes() if path.exists() else b"\n"
    change(settings)
    if not settings:
        path.unlink(missing_ok=True)
        return
    text = _formatted(settings, like=before)
    path.parent.mkdir(exist_ok=True)
    target = path.resolve()
    with NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.", delete=False) as new:
        try:
            # Lone surrogates, which JSON may contain, can only be written as escapes.
            new.write(text.encode(errors="backslashreplace"))
            new.flush()
            os.fsync(new.fileno())
            os.chmod(new.name, target.stat().st_mode & 0o777 if target.exists() else 0o644)
            os.replace(new.name, target)
        except BaseException:
            os.unlink(new.name)
            raise


def _formatted(settings: Settings, *, like: bytes) -> str:
    """Return settings as JSON, with the indentation and line endings of the existing file."""
    found = re.search(rb"\n([ \t]+)\"", like)
    indent: str | int | None = found[1].decode() if found else 2
    separators = None
    if found is None and like.strip() and b"\n" not in like.strip():
        indent, separators = None, (", " if b", " in like else ",", ": " if b": " in like else ":")
    escaped = like.isascii() and b"\\u" in like
    text = json.dumps(settings, indent=indent, separators=separators, ensure_ascii=escaped)
    text += "\n" if like.endswith(b"\n") else ""
    return text.replace("\n", "\r\n") if b"\r\n" in like else text


def _words(one: object) -> list[str]:
    """Return the words of a hook's command if it is ours."""
    try:
        words = shlex.split(str(one.get("command", ""))) if isinstance(one, dict) else []
    except ValueError:
        return []
    return words if any(word.endswith(MARK) for word in words[:-3]) else []


def _is_ours(one: object) -> bool:
    return bool(_words(one))


def _ours(settings: Settings) -> list[str]:
    """Return the words of our hook's command, if the settings contain it."""
    for group in settings.get("hooks", {}).values():
        for entry in group:
            for one in entry.get("hooks") or ():
                if words := _words(one):
                    return words
    return []


def _remove(settings: Settings) -> None:
    """Remove our hooks, and whatever they leave empty."""
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

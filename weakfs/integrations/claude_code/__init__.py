"""Hooks for Claude Code, which record every tool that it runs as a call of a session.

`weakfs hooks install claude-code` puts them into a project, as `install` does. Needs no extra.
"""

from __future__ import annotations

from weakfs.integrations.claude_code.settings import Installed, SettingsError, install, installed, uninstall

__all__ = ["Installed", "SettingsError", "install", "installed", "uninstall"]

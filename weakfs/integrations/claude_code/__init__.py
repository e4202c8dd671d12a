"""Hooks for Claude Code that record every tool that it runs as a call of a session.

`weakfs hooks install claude-code` and `install` add them to a project. Needs no extra.
"""

from __future__ import annotations

from weakfs.integrations.claude_code.settings import Installed, SettingsError, install, installed, uninstall

__all__ = ["Installed", "SettingsError", "install", "installed", "uninstall"]

"""`weakfs hooks`: record what Claude Code does in a project, so that it can be undone."""

from __future__ import annotations

import click

from weakfs.cli.errors import DONE, UNMET, as_failure
from weakfs.cli.options import EXIT_STATUSES
from weakfs.cli.output import Output

PROGRAMS = click.Choice(["claude-code"])


@click.group("hooks", epilog=EXIT_STATUSES)
def hooks_command() -> None:
    """Record every tool that a program runs in a project.

    Each tool run, including shell commands, becomes a call that can be undone.
    """


@hooks_command.command("install", epilog=EXIT_STATUSES)
@click.argument("program", type=PROGRAMS)
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path())
@click.option("--session", "location", metavar="LOCATION", help="Store the session there, such as sqlite:sessions.db.")
@click.option("--shared", is_flag=True, help="Change .claude/settings.json instead of .claude/settings.local.json.")
def install_command(program: str, directory: str, location: str | None, shared: bool) -> int:
    """Add hooks to the settings of a project.

    The project is in DIR, by default the current directory. Other settings and hooks stay. The hooks contain the paths
    of this Python and of the project, so they work on this machine only.
    """
    from weakfs.integrations.claude_code import install

    with as_failure(f"install hooks in {directory!r}"):
        made = install(directory, location, shared=shared)
    out = Output()
    out.line(f"changed {made.settings}")
    out.line(f"the session is in {made.location}; see: weakfs timeline {made.location}")
    out.line(f"to undo the last call: weakfs undo {made.location} --root {made.directory}")
    return DONE


@hooks_command.command("uninstall", epilog=EXIT_STATUSES)
@click.argument("program", type=PROGRAMS)
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path())
def uninstall_command(program: str, directory: str) -> int:
    """Remove the hooks from the settings of a project.

    The session is kept.
    """
    from weakfs.integrations.claude_code import uninstall

    with as_failure(f"uninstall hooks in {directory!r}"):
        changed = uninstall(directory)
    out = Output()
    for path in changed:
        out.line(f"changed {path}" if path.exists() else f"removed {path}, which had no other settings")
    if not changed:
        out.line("no hooks are installed")
    return DONE


@hooks_command.command("status", epilog=EXIT_STATUSES)
@click.argument("program", type=PROGRAMS)
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path())
def status_command(program: str, directory: str) -> int:
    """Show whether hooks are installed, and where the session is.

    The exit status is 3 if they are not installed.
    """
    from weakfs.integrations.claude_code import installed

    with as_failure(f"read the settings of {directory!r}"):
        found = installed(directory)
    out = Output()
    for one in found:
        out.line(f"{one.settings}: the session is in {one.location}")
    if not found:
        out.line("no hooks are installed")
    return DONE if found else UNMET

"""The click application of the `weakfs` command, and its exit statuses."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click

import weakfs
from weakfs.cli.errors import DONE, INTERRUPTED, USAGE, Failure
from weakfs.cli.options import EXIT_STATUSES
from weakfs.cli.output import Output, ReaderGone, open_closed_streams, warn
from weakfs.cli.signals import interruptible, interrupts_deferred

CONTEXT = {"help_option_names": ["-h", "--help"]}

# The module below weakfs.cli that defines each command, as `a_b_command` for `a-b`, and the first sentence of its help,
# so that listing the commands imports none of them.
COMMANDS = {
    "blame": ("commands.sessions.blame", "Show which call wrote each line of a file."),
    "cat": ("commands.sessions.ls", "Print a file of a session or of a directory."),
    "compact": ("commands.host.snapshots", "Free the contents that no snapshot of DIR needs any more."),
    "containers": ("commands.host.containers", "List the containers of sessions, and which are in use."),
    "delete": ("commands.storage.locations", "Permanently delete the session at LOCATION."),
    "diff": ("commands.sessions.diff", "Show what changed in a session, or in a directory."),
    "drop": ("commands.host.snapshots", "Drop snapshots of DIR."),
    "export": ("commands.storage.locations", "Save the session at LOCATION to FILE."),
    "export-git": ("commands.git.export_git", "Write the history of a session to a git repository."),
    "forget": ("commands.storage.forget", "Permanently remove a text or a file from a session."),
    "fsck": ("commands.storage.locations", "Check the session at LOCATION for damage."),
    "hooks": ("commands.integrations.hooks", "Record every tool that a program runs in a project."),
    "import": ("commands.storage.locations", "Copy a saved session to LOCATION, with its whole history."),
    "import-git": ("commands.git.import_git", "Record the history of a git branch in a new session."),
    "log": ("commands.sessions.log.command", "Show the tool calls of a session, oldest first."),
    "ls": ("commands.sessions.ls", "List the files of a session, or of a directory."),
    "mcp": ("commands.integrations.mcp", "Serve a directory or a session to an MCP client."),
    "mount": ("commands.integrations.mount", "Mount the files of a session as a directory."),
    "prune": ("commands.storage.prune", "Drop the oldest history to stay within limits."),
    "redo": ("commands.sessions.undo", "Redo what the last undos of a session undid."),
    "repair": ("commands.host.restore", "Undo what a killed process left unfinished in DIR."),
    "replay": ("commands.sessions.replay.command", "Rebuild the session saved in FILE from its records alone."),
    "restore": ("commands.host.restore", "Restore DIR to the exact state of a snapshot."),
    "restore-files": ("commands.sessions.undo", "Restore the files of a session to an earlier moment."),
    "revert": ("commands.sessions.undo", "Undo what one call changed, and keep later changes."),
    "run": ("run.command", "Run recorded tool calls, and print what each one did."),
    "serve": ("commands.sessions.serve", "Show the timeline of a session in a browser, live."),
    "sessions": ("commands.storage.locations", "List the sessions at LOCATION."),
    "snapshot": ("commands.host.snapshots", "Take a snapshot of all files in DIR and print its id."),
    "snapshots": ("commands.host.snapshots", "List the snapshots of DIR, oldest first."),
    "sql": ("commands.sessions.sql", "Query a session with a SELECT statement of SQLite."),
    "stats": ("commands.sessions.stats", "Count the files, records, snapshots and calls of a session."),
    "timeline": ("commands.sessions.timeline", "Show what happened in a session, and which files changed."),
    "undo": ("commands.sessions.undo", "Undo the last operations of a session."),
    "why": ("commands.sessions.blame", "Show the call that wrote one line of a file."),
}


class Commands(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        with interrupts_deferred():
            # The command imports the rest when it runs, but orjson crashes if it is interrupted while it loads.
            import_module("orjson")
            found = getattr(import_module(f"weakfs.cli.{module}"), f"{cmd_name.replace('-', '_')}_command")
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        listed = (click.Command(name, help=COMMANDS[name][1]) for name in self.list_commands(ctx))
        rows = [(command.name or "", command.get_short_help_str(limit)) for command in listed]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name not in COMMANDS:
            from difflib import get_close_matches

            if near := get_close_matches(name, COMMANDS, n=1):
                ctx.fail(f"no such command {name!r} (did you mean {near[0]!r}?)")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, invoke_without_command=True, context_settings=CONTEXT, epilog=EXIT_STATUSES)
@click.version_option(weakfs.__version__, prog_name="weakfs")
@click.pass_context
def command(context: click.Context) -> None:
    """Run recorded tool calls, inspect saved sessions, and take and restore snapshots of directories."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(USAGE)


def run(arguments: Sequence[str] | None) -> int:
    """Run the command and return its exit status; report any error in one line."""
    words = None if arguments is None else list(arguments)
    open_closed_streams()
    try:
        with interruptible():
            status = command.main(args=words, prog_name="weakfs", standalone_mode=False)
            Output().flush()
    except ReaderGone:
        return DONE
    except Failure as failure:
        warn(str(failure))
        return failure.status
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "weakfs"
        message = error.format_message()
        warn(f"{message[:1].lower()}{message[1:].rstrip('.')}; see: {where} --help")
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        warn("interrupted")
        return INTERRUPTED
    return int(status or DONE)

"""The click application of the `weakfs` command, and its exit statuses."""

from __future__ import annotations

from collections.abc import Sequence

import click

import weakfs
from weakfs.cli.blame.commands import BLAME_COMMANDS
from weakfs.cli.commands.git.export_git import export_git_command
from weakfs.cli.commands.git.import_git import import_git_command
from weakfs.cli.commands.host.containers import containers_command
from weakfs.cli.commands.integrations.hooks import hooks_command
from weakfs.cli.commands.integrations.mcp import mcp_command
from weakfs.cli.commands.integrations.mount import mount_command
from weakfs.cli.commands.sessions.serve import serve_command
from weakfs.cli.commands.sessions.sql import sql_command
from weakfs.cli.commands.sessions.timeline import timeline_command
from weakfs.cli.commands.storage.forget import forget_command
from weakfs.cli.commands.storage.prune import prune_command
from weakfs.cli.declarations.host import COMMANDS
from weakfs.cli.declarations.locations import LOCATION_COMMANDS
from weakfs.cli.declarations.run import run_command
from weakfs.cli.declarations.sessions import SESSION_COMMANDS
from weakfs.cli.declarations.undo import UNDO_COMMANDS
from weakfs.cli.errors import DONE, INTERRUPTED, USAGE, Failure
from weakfs.cli.options import EXIT_STATUSES
from weakfs.cli.output import Output, ReaderGone, warn
from weakfs.cli.signals import interruptible

CONTEXT = {"help_option_names": ["-h", "--help"]}


@click.group(invoke_without_command=True, context_settings=CONTEXT, epilog=EXIT_STATUSES)
@click.version_option(weakfs.__version__, prog_name="weakfs")
@click.pass_context
def command(context: click.Context) -> None:
    """Run recorded tool calls, inspect saved sessions, and take and restore snapshots of directories."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(USAGE)


for one in (
    run_command,
    *SESSION_COMMANDS,
    *COMMANDS,
    *LOCATION_COMMANDS,
    *UNDO_COMMANDS,
    *BLAME_COMMANDS,
    containers_command,
    forget_command,
    hooks_command,
    prune_command,
    serve_command,
    sql_command,
    export_git_command,
    import_git_command,
    timeline_command,
    mcp_command,
    mount_command,
):
    command.add_command(one)


def run(arguments: Sequence[str] | None) -> int:
    """Run the command and return its exit status; report any error in one line."""
    words = None if arguments is None else list(arguments)
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

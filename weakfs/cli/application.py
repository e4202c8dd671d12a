"""The click application of the `weakfs` command, and its exit statuses."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import ClassVar

import click

import weakfs
from weakfs.cli.errors import DONE, INTERRUPTED, USAGE, Failure
from weakfs.cli.options import EXIT_STATUSES
from weakfs.cli.output import Output, ReaderGone, open_closed_streams, warn
from weakfs.cli.signals import interruptible, interrupts_deferred

CONTEXT = {"help_option_names": ["-h", "--help"]}

# The modules below weakfs.cli, each with the commands that it defines: the command `a-b` is its `a_b_command`.
MODULES = {
    "blame.commands": "blame why",
    "commands.git.export_git": "export-git",
    "commands.git.import_git": "import-git",
    "commands.host.containers": "containers",
    "commands.integrations.hooks": "hooks",
    "commands.integrations.mcp": "mcp",
    "commands.integrations.mount": "mount",
    "commands.sessions.serve": "serve",
    "commands.sessions.sql": "sql",
    "commands.sessions.timeline": "timeline",
    "commands.storage.forget": "forget",
    "commands.storage.prune": "prune",
    "declarations.host": "compact drop repair restore snapshot snapshots",
    "declarations.locations": "delete export fsck import sessions",
    "declarations.run": "run",
    "declarations.sessions": "cat diff log ls replay stats",
    "declarations.undo": "redo restore-files revert undo",
}


class Commands(click.Group):
    """A group whose commands are imported when they are used; its help imports all of them."""

    _modules: ClassVar = {name: module for module, names in MODULES.items() for name in names.split()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = self._modules.get(cmd_name)
        if module is None:
            return None
        with interrupts_deferred():
            found = getattr(import_module(f"weakfs.cli.{module}"), f"{cmd_name.replace('-', '_')}_command")
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name not in self._modules:
            from difflib import get_close_matches

            if near := get_close_matches(name, self._modules, n=1):
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

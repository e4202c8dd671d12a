"""The command line as Markdown: the output of `--help` of each command, for the plain copy of that page."""

from __future__ import annotations

from collections.abc import Iterator

import click

from docs.generate.tools import fenced
from weakfs.cli.application import command


def page() -> str:
    """Return the help of every command."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    with click.Context(command, info_name="weakfs") as context:
        yield fenced(command.get_help(context))
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield f"## weakfs {name}\n"
                with click.Context(found, info_name=f"weakfs {name}") as own:
                    yield fenced(found.get_help(own))

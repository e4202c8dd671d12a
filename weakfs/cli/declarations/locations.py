"""The commands for sessions in storage: names, options and help texts."""

from __future__ import annotations

import click

from weakfs.cli.errors import DONE
from weakfs.cli.options import expansion_option, json_option, registry_option
from weakfs.cli.output import Output

location_argument = click.argument("location")


@click.command("sessions")
@location_argument
@json_option
def sessions_command(location: str, as_json: bool) -> int:
    """List the sessions at LOCATION.

    LOCATION is a folder, or a URL such as sqlite:sessions.db.
    """
    from weakfs.cli.commands.storage.locations import show_sessions

    show_sessions(Output(), location, as_json=as_json)
    return DONE


@click.command("import")
@click.argument("file", type=click.Path())
@location_argument
@registry_option
@expansion_option
@json_option
def import_command(file: str, location: str, registry: str | None, max_expansion: float | None, as_json: bool) -> int:
    """Copy a saved session to LOCATION, with its whole history."""
    from weakfs.cli.commands.storage.locations import import_session

    import_session(Output(finish_unread=True), file, location, registry, max_expansion, as_json=as_json)
    return DONE


@click.command("export")
@location_argument
@click.argument("file", type=click.Path())
@click.option("--embed", is_flag=True, help="Save everything in that one file, without sidecar files.")
@registry_option
@json_option
def export_command(location: str, file: str, embed: bool, registry: str | None, as_json: bool) -> int:
    """Save the session at LOCATION to FILE.

    LOCATION#ID names one of several sessions.
    """
    from weakfs.cli.commands.storage.locations import export_session

    export_session(Output(finish_unread=True), location, file, registry, embed=embed, as_json=as_json)
    return DONE


@click.command("fsck")
@location_argument
@click.option(
    "--give-up", is_flag=True, help="First set aside the damaged files and everything after them (folders only)."
)
@registry_option
@json_option
def fsck_command(location: str, give_up: bool, registry: str | None, as_json: bool) -> int:
    """Check the session at LOCATION for damage.

    Reads everything, and names what is damaged or missing. LOCATION#ID names one of several sessions. With --give-up,
    everything before the damage is kept, and the damaged files get names that end in ".damaged".
    """
    from weakfs.cli.commands.storage.locations import check_session

    check_session(Output(), location, registry, give_up=give_up, as_json=as_json)
    return DONE


@click.command("delete")
@location_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def delete_command(location: str, yes: bool, as_json: bool) -> int:
    """Permanently delete the session at LOCATION.

    Its history is deleted too. LOCATION#ID names one of several sessions. Shows what will be deleted, and asks for
    confirmation. A session that changes in the meantime, or that another process has opened exclusively, is not
    deleted; any other process that has it open gets an error on its next change.
    """
    from weakfs.cli.commands.storage.locations import delete_session

    delete_session(Output(finish_unread=True), location, is_sure=yes, as_json=as_json)
    return DONE

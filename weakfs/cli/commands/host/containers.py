"""`weakfs containers`: the containers of sessions on this machine."""

from __future__ import annotations

import click

from weakfs.cli.errors import DONE
from weakfs.cli.options import json_option
from weakfs.cli.output import Output


@click.command("containers")
@click.option("--session", metavar="ID", default="", help="Only the containers of this session.")
@click.option("--remove", is_flag=True, help="Remove the containers that no process is using, with their files.")
@click.option(
    "--podman", "program", metavar="PROGRAM", default="podman", help="The container program.  [default: podman]"
)
@click.option("--option", "options", metavar="TEXT", multiple=True, help="An option for PROGRAM; may be repeated.")
@json_option
def containers_command(session: str, program: str, options: tuple[str, ...], *, remove: bool, as_json: bool) -> int:
    """List the containers of sessions, and which are in use.

    A removed container is created again, as it was, when its saved session is next opened.
    """
    from weakfs.backends.container import Podman, containers, remove_unused
    from weakfs.cli.errors import as_failure

    podman = Podman(program, options)
    out = Output(finish_unread=remove)
    with as_failure("remove containers" if remove else "list the containers"):
        if remove:
            for name in remove_unused(podman, session_id=session):
                if as_json:
                    out.record(type="removed", container=name)
                else:
                    out.line(f"removed {name}")
            return DONE
        for one in containers(podman, session_id=session):
            state = "in use" if one.is_in_use else "running" if one.is_running else "stopped"
            if as_json:
                out.record(
                    type="container", container=one.container, session_id=one.session_id, name=one.name, state=state
                )
            else:
                out.line((one.container, "yellow"), f"  {state:8} {one.session_id} {one.name}")
    return DONE

"""The environment of the ADK over a container: files and commands of the container, each of which can be undone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("google.adk")

from tests.containers import IMAGE
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, Podman
from weakfs.integrations.google_adk import WeakfsEnvironment

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.slow]


def test_commands_and_files_are_those_of_the_container_and_are_undone(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = ContainerFilesystem(session, image=IMAGE, runtime=podman, store=tmp_path / "store")
    environment = WeakfsEnvironment(session, files)

    async def use() -> None:
        await environment.initialize()
        await environment.write_file("app.py", "port = 80\n")
        done = await environment.execute("cat app.py /etc/motd; rm app.py; echo error >&2; exit 2")
        assert (done.exit_code, done.stdout, done.stderr) == (2, "port = 80\nfrom the image\n", "error\n")
        assert session.undo().paths == ("/workspace/app.py",)
        assert await environment.read_file("app.py") == b"port = 80\n"

        assert (await environment.execute("echo 1 > /etc/x; sleep 60", timeout=1)).timed_out
        cancelled = asyncio.create_task(environment.execute("touch y; sleep 60"))
        while b"sleep" not in podman.run("exec", files.container.container_id, "ps"):
            await asyncio.sleep(0.05)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert (await environment.execute("ls; ls /etc/x")).stdout == "app.py\n"
        await environment.close()

    try:
        asyncio.run(use())
    finally:
        files.container.remove()

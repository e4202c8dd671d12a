"""Terminals of a sandbox in a container, whose image has the program `script` or not."""

from __future__ import annotations

import asyncio
import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.containers import image_archive
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, Podman
from weakfs.tools.handlers import ProcessOptions

pytestmark = [
    pytest.mark.usefixtures("never_hung"),
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("script") is None, reason="there is no program script"),
]


def image_with_script() -> bytes:
    """Return the image of the tests with the machine's own `script` and its libraries."""
    program = shutil.which("script")
    assert program is not None
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    names = {program: "/usr/bin/script"} | {path: path for path in re.findall(r"(/\S+) \(0x", listed)}
    out = io.BytesIO(image_archive())
    with tarfile.open(fileobj=out, mode="a") as archive:
        for source, name in names.items():
            data = Path(source).read_bytes()
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def drive(podman: Podman, image: str, store: Path, command: str) -> tuple[Any, Session, list[str]]:
    """Run a command in a terminal in a container, type a word to it, and return its end and the new files."""
    from agents.sandbox.manifest import Manifest

    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    def files(session: Session) -> ContainerFilesystem:
        return ContainerFilesystem(session, image=image, store=store, runtime=podman)

    client = WeakfsSandboxClient(files=files, processes=ProcessOptions())

    async def run() -> tuple[Any, Session, list[str]]:
        sandbox = await client.create(manifest=Manifest())
        async with sandbox:
            session = client.session_of(sandbox)
            started = await sandbox.pty_exec_start(command, tty=True, yield_time_s=2)
            done = started
            if started.process_id is not None:
                done = await sandbox.pty_write_stdin(session_id=started.process_id, chars="ann\n", yield_time_s=20)
            listed = await sandbox.exec("ls /workspace")
            return done, session, listed.stdout.decode().split()

    return asyncio.run(run())


def test_a_command_in_a_terminal_of_a_container_reads_typed_input(podman: Podman, tmp_path: Path) -> None:
    podman.run("import", "--quiet", "-", "with-script", input=image_with_script())
    done, session, names = drive(podman, "with-script", tmp_path, "read name; echo hello $name > new; exit 3")
    assert (done.exit_code, names) == (3, ["new"])
    assert any(path.endswith("/new") for path in session.undo(preview=True).paths)


def test_the_error_for_an_image_without_script_names_the_program(podman: Podman, tmp_path: Path) -> None:
    from tests.containers import IMAGE

    done, _, names = drive(podman, IMAGE, tmp_path, "echo hello > new")
    assert (done.exit_code, names) == (127, [])
    assert b"script" in done.output

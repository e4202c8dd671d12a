"""A container, if Podman is available: a package is installed, a test fails, and everything is undone."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

from examples.demo.report import Report
from weakfs import Session, Toolset
from weakfs.backends import ContainerFilesystem, Podman
from weakfs.backends.container import PodmanError, PodmanUnavailable
from weakfs.reducers.process_events import ProcessEnded
from weakfs.tools import PROCESS_TOOLS

IMAGE = "localhost/weakfs-demo:latest"

INSTALL = """
mkdir -p /usr/lib/greet
echo 'echo hello from greet 2.0' > /usr/lib/greet/run
ln -s /usr/lib/greet/run /usr/bin/greet
echo 'greet 2.0' >> /etc/packages
rm -r /usr/lib/legacy
"""
SERVER = "echo started > /usr/lib/server; while read -r line; do echo $line >> /usr/lib/server; done"
TEST = "test -d /usr/lib/legacy || { echo 'legacy is gone' > report.txt; exit 1; }"


def in_a_container(report: Report, folder: Path) -> None:
    """Change a container with commands, and undo everything."""
    why = _missing()
    if why is not None:
        report.note(f"not shown: {why}")
        return
    storage = ("--root", f"{folder}/c", "--runroot", f"{folder}/r", "--storage-driver", "overlay")
    podman = Podman(options=(*storage, "--cgroup-manager", "cgroupfs"))
    try:
        podman.run("import", "--quiet", "-", IMAGE, input=_image())
        session = Session()
        with report.step("make a container for the session") as step:
            files = ContainerFilesystem(session, image=IMAGE, store=folder / "container", runtime=podman)
            step.result = "no network, no capabilities"
    except (PodmanError, PodmanUnavailable) as error:
        report.note(f"not shown: {error}")
        return
    try:
        files.exec("true")
        before, walked = files.tree().fingerprint, _walked(files)
        snapshot = session.snapshot("before")
        with report.step("install a package") as step:
            step.result = f"{len(files.exec(INSTALL).changed)} paths changed, each an event"
        with report.step("run a test") as step:
            done = files.exec(TEST)
            step.result = f"exit code {done.exit_code}"
        with report.step("start a server") as step:
            server = Toolset(session, files, tools=PROCESS_TOOLS).call("process_start", {"command": SERVER})
            step.result = server.summary_text
        with report.step("roll back") as step:
            session.rollback(snapshot)
            ended = any(isinstance(record.event, ProcessEnded) for record in session.records)
            step.result = (
                f"{files.read('/etc/packages').content.strip()}; the server {'was stopped' if ended else 'runs'}"
            )
        report.prove("weakfs sees the files as they were", files.tree().fingerprint, before)
        report.prove("so does a walk through the container's mount", _walked(files), walked)
    finally:
        files.container.remove()
        podman.run("rmi", "--all", "--force")


def _missing() -> str | None:
    if os.geteuid() != 0:
        return "the demo of containers needs root"
    missing = [name for name in ("podman", "crun", "busybox") if shutil.which(name) is None]
    if missing:
        return f"containers need {', '.join(missing)}"
    busybox = str(shutil.which("busybox"))
    dynamic = subprocess.run(["ldd", busybox], capture_output=True, check=False).returncode == 0
    return "the image needs busybox-static" if dynamic else None


def _image() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(str(shutil.which("busybox")), "bin/busybox")
        for name in ("sh", "mkdir", "ln", "rm", "test"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        files = {"etc/packages": "legacy 1.0\n", "usr/lib/legacy/run": "echo legacy\n", "usr/bin/.keep": ""}
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def _walked(files: ContainerFilesystem) -> str:
    """Return a digest of all files, modes and links, as another program sees them."""
    found = sha256()
    top = files.container.path_of_files()
    for folder, directories, names in os.walk(top):
        directories.sort()
        for name in sorted((*directories, *names)):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            target = os.readlink(path) if os.path.islink(path) else ""
            found.update(f"{path.removeprefix(top)} {status.st_mode:o} {status.st_mtime_ns} {target}\n".encode())
            if not target and os.path.isfile(path):
                found.update(Path(path).read_bytes())
    return found.hexdigest()

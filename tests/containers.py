"""Containers for tests: Podman with its own storage, and an image that contains busybox and a few files."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from attrs import frozen

from weakfs.backends.container import Container, ContainerFilesystem, Podman, PodmanError, PodmanUnavailable
from weakfs.session import event

IMAGE = "localhost/weakfs-test:latest"

# Programs that a shell script of a test may call.
PROGRAMS = (
    *("sh", "cat", "chmod", "cp", "cut", "dd", "echo", "env", "find", "head", "id", "kill", "ln", "ls", "mkdir"),
    *("mkfifo", "mv", "nc", "ps", "pwd", "rm", "rmdir", "seq", "setsid", "sha256sum", "sleep", "sort", "stat"),
    *("tail", "touch", "true", "wc", "yes"),
)


@event("test/said")
@frozen
class Said:
    """Something that was said in a conversation."""

    text: str


def opened(folder: Path, *, driver: str = "overlay") -> Podman:
    """Return a Podman whose storage is in a folder."""
    return Podman(
        options=(
            *("--root", str(folder / "root"), "--runroot", str(folder / "run")),
            *("--cgroup-manager", "cgroupfs", "--storage-driver", driver, "--events-backend", "none"),
        )
    )


def image_archive(*, files: int = 0) -> bytes:
    """Return the files of the image as a tar archive: busybox, a few directories, and `files` small files."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:

        def add(
            name: str, *, kind: bytes = tarfile.REGTYPE, data: bytes = b"", mode: int = 0o644, to: str = ""
        ) -> None:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.size, entry.linkname, entry.mtime = kind, mode, len(data), to, 1_600_000_000
            archive.addfile(entry, io.BytesIO(data))

        for directory in ("bin", "etc", "tmp", "usr", "usr/lib", "usr/lib/pkg", "var", "places", "workspace"):
            add(directory, kind=tarfile.DIRTYPE, mode=0o1777 if directory == "tmp" else 0o755)
        add("bin/busybox", data=Path(busybox).read_bytes(), mode=0o755)
        for name in PROGRAMS:
            add(f"bin/{name}", kind=tarfile.SYMTYPE, mode=0o777, to="busybox")
        add("etc/passwd", data=b"root:x:0:0:root:/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n")
        add("etc/motd", data=b"from the image\n")
        for name in ("a", "b", "c"):
            add(f"usr/lib/pkg/{name}", data=f"{name} of the image\n".encode())
        for number in range(files):
            add(f"usr/lib/files/{number % 100}/{number}", data=b"%d\n" % number)
    return out.getvalue()


def problem() -> str | None:
    """Return the reason why the tests of containers cannot run here."""
    if os.geteuid() != 0:
        return "containers are tested as root"
    missing = [name for name in ("podman", "crun", "busybox") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    busybox = shutil.which("busybox")
    assert busybox is not None
    dynamic = subprocess.run(["ldd", busybox], capture_output=True, check=False).returncode == 0
    return "busybox is not static; install busybox-static" if dynamic else None


def state(files: ContainerFilesystem) -> list[tuple[object, ...]]:
    """What a program in the container can see of its files, by walking all of them."""
    root = files.container.path_of_files()
    found: list[tuple[object, ...]] = []
    for folder, _, names in os.walk(root):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            status = os.lstat(path)
            shown = path.removeprefix(root)
            if shown.startswith("/run") or status.st_mode & 0o170000 == 0o020000:
                continue
            content = Path(path).read_bytes() if os.path.isfile(path) and not os.path.islink(path) else b""
            target = os.readlink(path) if os.path.islink(path) else ""
            xattrs = {name: os.getxattr(path, name, follow_symlinks=False) for name in _names(path)}
            links = 0 if os.path.isdir(path) else status.st_nlink
            owner, at = (status.st_uid, status.st_gid), status.st_mtime_ns
            found.append((shown, oct(status.st_mode), owner, at, links, content, target, xattrs))
    return sorted(found, key=lambda entry: str(entry[0]))


def _names(path: str) -> list[str]:
    return [name for name in os.listxattr(path, follow_symlinks=False) if not name.startswith("trusted.overlay")]


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    """Podman with the image `IMAGE`; everything in it is removed at the end."""
    why = problem()
    if why is not None:
        pytest.skip(why)
    # Podman accepts no path of more than 50 characters.
    folder = Path(mkdtemp(prefix="wp"))
    one = opened(folder)
    try:
        one.run("import", "--quiet", "-", IMAGE, input=image_archive())
        one.run("run", "--rm", "--network", "none", *one.creation, IMAGE, "/bin/true")
    except (PodmanError, PodmanUnavailable) as error:
        pytest.skip(f"Podman does not work here: {error}")
    try:
        yield one
    finally:
        left = one.run("ps", "--all", "--quiet").decode().split()
        for container in left:
            one.run("rm", "--force", "--time", "0", container)
        one.run("rmi", "--all", "--force")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_container(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A container for tests that need only a directory in one, below /places."""
    files = ContainerFilesystem(image=IMAGE, store=tmp_path_factory.mktemp("store"), runtime=podman)
    yield files.container
    files.container.remove()

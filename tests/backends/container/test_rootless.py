"""Containers of an unprivileged user, in Podman's user namespace and outside it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.containers import problem
from weakfs.backends.container.lifecycle.podman import HYBRID

TOP = Path(__file__).parents[3]

NOBODY = 65534

OUTSIDE = """
import sys
from pathlib import Path
from tests.containers import IMAGE, image_archive, opened
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem

folder = Path(sys.argv[1])
podman = opened(folder)
podman.run("import", "--quiet", "-", IMAGE, input=image_archive())
files = ContainerFilesystem(Session(), image=IMAGE, store=folder / "store", runtime=podman)
try:
    before = files.snapshot(), files.tree().fingerprint
    done = files.exec("rm -r /usr/lib/pkg; mkdir /usr/lib/pkg; echo x >> /etc/motd; id -u")
    print(done.stdout.strip(), *done.changed)
    files.session.rollback(0)
    print(files.tree().fingerprint == before[1])
    files.exec("rm -r /usr")
    files.restore(before[0])
    print(files.tree().fingerprint == before[1])
finally:
    files.container.remove()
    podman.run("rmi", "--all", "--force")
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of an unprivileged user who can run this interpreter."""
    why = problem()
    if why is None and interpreter() is None:
        why = "no Python of this version can be run by a user without rights"
    if why is not None:
        pytest.skip(why)
    # Podman takes no path of more than 50 characters.
    folder = Path(mkdtemp(prefix="wr"))
    for name in ("home", "run", "tmp", "c"):
        (folder / name).mkdir()
        os.chown(folder / name, NOBODY, NOBODY)
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    # The process that keeps Podman's user namespace alive.
    with suppress(OSError, ValueError):
        os.kill(int((folder / "run/libpod/tmp/pause.pid").read_text()), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def interpreter() -> str | None:
    """Return a Python of this version that everybody may run."""
    for name in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        words = [*as_nobody(Path("/")), name, "-c", "import encodings"]
        if subprocess.run(words, capture_output=True, check=False).returncode == 0:
            return name
    return None


def as_nobody(home: Path) -> list[str]:
    """Return the words that run a command as an unprivileged user, who sees cgroups of neither version."""
    variables = {
        "HOME": f"{home}/home",
        "XDG_RUNTIME_DIR": f"{home}/run",
        "TMPDIR": f"{home}/tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join((str(TOP), *(path for path in sys.path if path.endswith("site-packages")))),
    }
    return [
        *("unshare", "--mount", "sh", "-c", f'umount {HYBRID} 2>/dev/null; exec "$@"', "sh"),
        *("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--reset-env", "env"),
        *(f"{name}={value}" for name, value in variables.items()),
    ]


@pytest.mark.exhaustive
def test_an_unprivileged_user_has_containers_in_podmans_user_namespace(home: Path) -> None:
    words = [
        *(*as_nobody(home), "podman", "unshare", str(interpreter()), "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("-p", "no:xdist", "--basetemp", f"{home}/tmp/tests"),
        *("tests/backends/container/test_restores.py", "tests/backends/container/test_commands.py"),
        *("-k", "restore_is_exact or times_out or events or nothing_that or out_of_the_container"),
    ]
    done = subprocess.run(words, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.exhaustive
def test_an_unprivileged_user_has_containers_outside_it_too(home: Path) -> None:
    words = [*as_nobody(home), str(interpreter()), "-c", OUTSIDE, f"{home}/c"]
    done = subprocess.run(words, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["0 /etc/motd /usr/lib/pkg/a /usr/lib/pkg/b /usr/lib/pkg/c", "True", "True"], (
        done.stderr
    )

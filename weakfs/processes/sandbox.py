"""The sandbox: bubblewrap shows a command only the system's programs, and one directory that it may change."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterable
from glob import glob
from typing import Literal

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.messages import clip, one_line
from weakfs.processes.errors import SandboxUnavailable

SandboxMode = Literal["auto", "required", "off"]

# Programs and libraries. Nothing below /home, /root, /opt, /run, /srv or /var is shown.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")

# The parts of /etc that programs need. Not all of it: it may contain passwords and tokens (/etc/shadow, /etc/npmrc,
# /etc/ssl/private), and a runtime that runs as root could read them.
_ETC = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts", "group"),
    *("host.conf", "hosts", "inputrc", "java*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias"),
    *("locale.conf", "localtime", "login.defs", "magic", "magic.mime", "mime.types", "nsswitch.conf", "os-release"),
    *("passwd", "perl", "pki/ca-trust", "pki/java", "pki/tls/certs", "profile", "protocols", "python3*"),
    *("redhat-release", "services", "shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
    "xml",
)

# The two places for scratch files; both are in memory, and gone when the command ends.
_TMP, _SHM = "/tmp", "/dev/shm"

# Paths that cannot be mount points: the system's own directories, and a command's HOME.
_RESERVED = (*_SYSTEM, "/dev", "/etc", "/nix", "/proc", "/sys", f"{_TMP}/home")

# The timeout of the trial, in seconds; it normally takes five milliseconds.
_PROBING = 20.0


@frozen
class Trial:
    """The result of trying out one `bwrap`."""

    problem: str | None
    can_limit_tmpfs: bool


class Bubblewrap:
    """The `bwrap` found on the PATH, and whether it works. It is tested once, when it is first needed."""

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}

    def __repr__(self) -> str:
        return f"<Bubblewrap {self.program or 'not found'}>"

    @property
    def program(self) -> str | None:
        """The current path of `bwrap`, if there is one."""
        return shutil.which("bwrap")

    def problem(self) -> str | None:
        """Return why the sandbox is not available, in a few words; `None` if it is."""
        program = self.program
        if program is None:
            return "bwrap is not on the PATH"
        return self._trial(program).problem

    def can_limit_tmpfs(self) -> bool:
        """Return whether the size of the sandbox's /tmp can be limited: bubblewrap 0.7 or later."""
        program = self.program
        return program is not None and self._trial(program).can_limit_tmpfs

    def _trial(self, program: str) -> Trial:
        if program not in self._trials:
            self._trials[program] = _try_out(program)
        return self._trials[program]


def why_not_sandboxed(mode: SandboxMode, bubblewrap: Bubblewrap, directory: str) -> str | None:
    """Return why a command runs without a sandbox, or `None` if it has one; raise if a sandbox is required."""
    if mode == "off":
        return "the sandbox is turned off"
    if directory == "/":
        problem: str | None = "the directory is the root of the whole machine"
    else:
        problem = bubblewrap.problem()
    if problem and mode == "required":
        raise fault(
            SandboxUnavailable,
            errno.ENOTSUP,
            f"cannot run the command in a sandbox: {problem}; install bubblewrap and allow user namespaces, or ask for "
            f"commands without a sandbox: shell_tool(ShellOptions(sandbox='auto')), or 'off'",
        )
    return problem


def confined(
    program: str,
    directory: str,
    workdir: str,
    status: int,
    arguments: list[str],
    *,
    readable: Iterable[str] = (),
    tmp_size: int | None = None,
    mounted_at: str | None = None,
) -> list[str]:
    """Return the command line that runs `arguments` in `workdir`, with `directory` as the only writable place.

    Both are real paths. The command sees `directory` at `mounted_at`, by default at its own path. The paths in
    `readable` are shown read-only at their own paths. `tmp_size` limits /tmp and /dev/shm, in bytes. bwrap writes its
    status to the file descriptor `status`.
    """
    shown = [word for path in readable if os.path.exists(path) for word in ("--ro-bind", path, path)]
    place = directory if mounted_at is None else mounted_at
    above = _directory_in_scratch(place)
    return [
        *_base(program, tmp_size),
        *(("--tmpfs", above) if above else ()),
        *shown,
        *("--bind", directory, place),
        # These are in memory as well: a file written next to the workspace would be lost silently.
        *(("--remount-ro", above) if above else ()),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--chdir", place + workdir[len(directory) :]),
        *("--json-status-fd", str(status)),
        "--",
        *arguments,
    ]


def check_mount_point(path: str) -> None:
    """Raise `ValueError` if the sandbox cannot show a directory at a path, such as a system directory."""
    taken = next((one for one in _RESERVED if path == one or path.startswith(f"{one}/")), None)
    if taken is not None or path == _TMP:
        raise ValueError(
            f"cannot mount files at {path!r}: commands need {taken or path!r} for themselves; use a path such as "
            f"'/workspace'"
        )


def private_variables(directory: str) -> dict[str, str]:
    """Return the variables that point to places in the sandbox, where the user's home does not exist."""
    home = f"{_TMP}/home"
    if directory == _TMP:
        return {"HOME": _SHM, "TMPDIR": _SHM}
    if f"{directory}/".startswith(f"{home}/"):
        return {"HOME": _TMP, "TMPDIR": _TMP}
    return {"HOME": home, "TMPDIR": _TMP}


def _directory_in_scratch(directory: str) -> str | None:
    """Return the entry of /tmp or /dev/shm that contains a workspace; `None` if there is no such entry.

    A workspace directly in /tmp is next to other entries of the scratch directory, which stays writable.
    """
    for scratch in (_TMP, _SHM):
        name, slash, _ = directory.removeprefix(f"{scratch}/").partition("/")
        if directory.startswith(f"{scratch}/") and slash:
            return f"{scratch}/{name}"
    return None


def _base(program: str, tmp_size: int | None) -> list[str]:
    """Return the part that is the same for every command: no network, no other processes, no privileges."""
    words = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for path in _SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    for name in _ETC:
        for path in sorted(glob(f"/etc/{name}")):
            words += ["--ro-bind", path, path]
    # Root can change the machine's settings through /proc/sys, even without any capabilities.
    words += ["--dev", "/dev", "--proc", "/proc", "--ro-bind-try", "/proc/sys", "/proc/sys"]
    size = [] if tmp_size is None else ["--size", str(tmp_size)]
    return [*words, *size, "--tmpfs", _SHM, *size, "--tmpfs", _TMP, "--dir", f"{_TMP}/home"]


def _try_out(program: str) -> Trial:
    problem = _problem_of(program, 1 << 20)
    if problem is not None and "--size" in problem:
        # Versions before 0.7 do not support the option.
        return Trial(_problem_of(program, None), can_limit_tmpfs=False)
    return Trial(problem, can_limit_tmpfs=problem is None)


def _problem_of(program: str, tmp_size: int | None) -> str | None:
    try:
        done = subprocess.run(
            [
                *_base(program, tmp_size),
                *("--remount-ro", "/dev", "--remount-ro", "/"),
                *("--json-status-fd", "1", "--", "/bin/sh", "-c", ":"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBING,
            env={"PATH": os.defpath},
            close_fds=True,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} does not run ({one_line(clip(str(error), 200))})"
    if done.returncode == 0 and b'"exit-code"' in done.stdout:
        return None
    said = one_line(clip(done.stderr.decode("utf-8", "replace").strip(), 200))
    return f"{program} does not work here ({said or f'exit code {done.returncode}'})"

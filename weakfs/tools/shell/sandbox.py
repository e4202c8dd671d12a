"""The sandbox: bubblewrap, told to show a command the system's programs and one directory that it may change."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterable
from glob import glob

from weakfs.filesystem.errors import fault
from weakfs.tools.results import clip, one_line

# Programs and libraries. Nothing below /home, /root, /opt, /run, /srv or /var is shown.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")

# What of /etc programs need. Not the whole of it: it may hold passwords and tokens (/etc/shadow, /etc/npmrc,
# /etc/ssl/private), and a runtime that runs as root could read them.
_ETC = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts", "group"),
    *("host.conf", "hosts", "inputrc", "java*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias"),
    *("locale.conf", "localtime", "login.defs", "magic", "magic.mime", "mime.types", "nsswitch.conf", "os-release"),
    *("passwd", "perl", "pki/ca-trust", "pki/java", "pki/tls/certs", "profile", "protocols", "python3*"),
    *("redhat-release", "services", "shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
    "xml",
)

# Long for a program that takes five milliseconds.
_PROBING = 20.0


class SandboxUnavailable(OSError):
    """A command was to run in the sandbox only, and there is none."""


class Bubblewrap:
    """The `bwrap` that is found on the PATH, and whether it works. It is tried out once, when it is first needed."""

    def __init__(self) -> None:
        self._problems: dict[str, str | None] = {}

    def __repr__(self) -> str:
        return f"<Bubblewrap {self.program or 'not found'}>"

    @property
    def program(self) -> str | None:
        """Where `bwrap` is now, if anywhere."""
        return shutil.which("bwrap")

    def problem(self) -> str | None:
        """Tell why there is no sandbox, in a few words; `None` if there is one."""
        program = self.program
        if program is None:
            return "bwrap is not on the PATH"
        if program not in self._problems:
            self._problems[program] = _try_out(program)
        return self._problems[program]

    def require(self) -> None:
        """Raise `SandboxUnavailable` if there is no sandbox."""
        problem = self.problem()
        if problem:
            raise refusal(problem)


def refusal(problem: str) -> SandboxUnavailable:
    """Give the error for a command that may run in the sandbox only."""
    return fault(
        SandboxUnavailable,
        errno.ENOTSUP,
        f"cannot run the command in a sandbox: {problem}; install bubblewrap and allow user namespaces, or allow "
        f"commands without one with sandbox='auto'",
    )


def confined(
    program: str, directory: str, workdir: str, status: int, arguments: list[str], *, readable: Iterable[str] = ()
) -> list[str]:
    """Give the command line that runs `arguments` in `workdir`, with `directory` as the only place to change.

    Both are real paths, which the command sees as they are. Paths of `readable` are shown where they are, read-only.
    What happens is told on the file descriptor `status`.
    """
    shown = [word for path in readable if os.path.exists(path) for word in ("--ro-bind", path, path)]
    return [
        *_base(program),
        *shown,
        *("--bind", directory, directory),
        # The root itself is memory; a file written beside the workspace would seem to be kept.
        *("--remount-ro", "/"),
        *("--chdir", workdir),
        *("--json-status-fd", str(status)),
        "--",
        *arguments,
    ]


def _base(program: str) -> list[str]:
    """Give the part that is the same for every command: no network, no other processes, no privileges."""
    words = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for path in _SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    for name in _ETC:
        for path in sorted(glob(f"/etc/{name}")):
            words += ["--ro-bind", path, path]
    # Root's own identity reaches through /proc/sys to the machine's settings, with no capability at all.
    return [*words, "--dev", "/dev", "--proc", "/proc", "--ro-bind-try", "/proc/sys", "/proc/sys", "--tmpfs", "/tmp"]


def _try_out(program: str) -> str | None:
    try:
        done = subprocess.run(
            [*_base(program), "--remount-ro", "/", "--json-status-fd", "1", "--", "/bin/sh", "-c", ":"],
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

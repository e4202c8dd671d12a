"""Python as on Windows and macOS, for processes on Linux: everything that these systems lack is removed.

`PRELUDE` is code to run before anything else. It imitates a platform only in the names that exist: paths, permissions
and the rules for open files stay those of Linux.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal

Platform = Literal["win32", "darwin"]

PRELUDE = """
import os, sys
from platform import uname

# It runs programs on what it takes for Windows, and keeps what it has found out.
uname()
platform, fork, wait = sys.argv.pop(1), os.fork, os.waitpid
if platform == "win32":
    missing_modules = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
    missing_flags = [name for name in dir(os) if name.startswith("O_")]
    for name in ("O_RDONLY", "O_WRONLY", "O_RDWR", "O_APPEND", "O_CREAT", "O_EXCL", "O_TRUNC"):
        missing_flags.remove(name)
    missing_calls = '''
        SEEK_DATA SEEK_HOLE chown chroot copy_file_range eventfd eventfd_read eventfd_write fchdir fchmod fchown
        fdatasync fork forkpty fpathconf fstatvfs getegid geteuid getgid getgroups getloadavg getpgid getpgrp getresgid
        getresuid getsid getuid getxattr initgroups killpg lchown listxattr lockf major makedev memfd_create minor
        mkfifo mknod nice openpty pathconf pidfd_open posix_fadvise posix_fallocate posix_spawn posix_spawnp pread
        preadv pwrite pwritev readv register_at_fork removexattr sched_getaffinity sched_yield sendfile setegid seteuid
        setgid setgroups setpgid setpriority setregid setresgid setresuid setreuid setsid setuid setxattr splice
        statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid writev
    '''.split()
else:
    missing_modules = set()
    missing_flags = ["O_DIRECT", "O_LARGEFILE", "O_NOATIME", "O_PATH", "O_RSYNC", "O_TMPFILE"]
    missing_calls = '''
        copy_file_range eventfd eventfd_read eventfd_write fdatasync getresgid getresuid getxattr listxattr memfd_create
        pidfd_open posix_fadvise posix_fallocate removexattr sched_getaffinity setresgid setresuid setxattr splice
    '''.split()

for name in missing_flags:
    if hasattr(os, name):
        delattr(os, name)
if platform == "win32":
    for one in (os.supports_dir_fd, os.supports_fd, os.supports_effective_ids):
        one.clear()

# The standard library takes the names of its own platform when it is imported.
import asyncio, concurrent.futures, ctypes, logging, multiprocessing, pydoc, selectors, shutil, subprocess, tarfile
import tempfile
import click, rich.console, rich.progress, rich.table, rich.text

for name in missing_calls:
    if hasattr(os, name):
        delattr(os, name)


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in missing_modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


if platform == "win32":
    import signal

    for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGCHLD", "SIGXFSZ", "pthread_sigmask", "setitimer", "sigpending"):
        delattr(signal, name)
for name in missing_modules:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
sys.platform = platform
"""


# Each piece of code runs in a fork of a process that has removed all of this, and has not imported weakfs.
SERVER = """
import json, traceback

for request in sys.stdin:
    code, directory, output = json.loads(request)
    child = fork()
    if child:
        print(wait(child, 0)[1], flush=True)
        continue
    status = 1
    try:
        os.chdir(directory)
        sys.stdin = open(os.devnull)
        sys.stdout = sys.stderr = open(output, "w")
        exec(compile(code, "<code>", "exec"), {"__name__": "__main__", "os": os, "sys": sys})
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)
"""


@cache
def _server(platform: Platform) -> subprocess.Popen[str]:
    """Start the process for a platform. It ends with this process, which closes its input."""
    words = [sys.executable, "-c", PRELUDE + SERVER, platform]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    server = subprocess.Popen(words, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def run_on(platform: Platform, code: str, directory: Path) -> str:
    """Run code in a Python like that on `platform`, and return what it printed."""
    server = _server(platform)
    assert server.stdin is not None
    assert server.stdout is not None
    with NamedTemporaryFile("r") as output:
        print(json.dumps([code, str(directory), output.name]), file=server.stdin, flush=True)
        status = server.stdout.readline()
        printed = output.read()
    assert status == "0\n", printed[-4000:]
    return printed

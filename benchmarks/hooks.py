"""The cost of the hooks of Claude Code for each tool: `python -m benchmarks.hooks [--quick] [--files 10 1000]`.

A tool waits for two hooks, each of which is a process that sends a request to the server of the project, which scans
it. The figures are the processor time of each part, as reported by `wait4` and `/proc`, measured in turn in one run:
on an idle machine with a free core for each process, a tool waits about that long.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM
from statistics import median
from tempfile import TemporaryDirectory

from weakfs.integrations.claude_code import install

BARE = [sys.executable, "-I", "-S", "-c", "pass"]


def processor_time(words: list[str], given: bytes, environment: dict[str, str]) -> float:
    """Run a program and return the milliseconds of processor time that it took."""
    process = subprocess.Popen(words, stdin=-1, stdout=subprocess.DEVNULL, env=environment)
    assert process.stdin is not None
    process.stdin.write(given)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{words[0]} ended with {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def of_process(pid: int) -> float:
    """Return the milliseconds of processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


@contextmanager
def project(files: int) -> Iterator[tuple[Path, list[str], dict[str, str], Callable[[], int]]]:
    """Make a project with hooks: its directory, the command of a hook, its environment, and how to find the server."""
    with TemporaryDirectory() as place:
        directory = Path(place, "project")
        for number in range(files):
            path = directory / f"d{number % 20}" / f"f{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"number = {number}\n")
        made = install(directory, f"folder:{place}/session")
        settings = json.loads(made.settings.read_text())
        words = shlex.split(settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"])
        Path(place, "run").mkdir(mode=0o700)
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(Path(place, "run"))}

        def server() -> int:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    found = path.read_bytes()
                except OSError:
                    continue
                if b"claude_code.server" in found and os.fsencode(directory) in found.split(b"\0"):
                    return int(path.parent.name)
            raise RuntimeError("there is no server")

        try:
            yield directory, words, environment, server
        finally:
            pid = server()
            os.kill(pid, SIGTERM)
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.01)


def measured(files: int, pairs: int) -> dict[str, float]:
    """Return the milliseconds of each part for the two hooks of one tool that changes one file."""
    with project(files) as (directory, words, environment, server):

        def fire(event: str, number: int) -> float:
            payload = {
                "hook_event_name": event,
                "session_id": "s",
                "tool_name": "Bash",
                "tool_use_id": f"t{number}",
                "tool_input": {"command": "make"},
                "tool_response": {"stdout": "done"},
            }
            return processor_time(words, json.dumps(payload).encode(), environment)

        def pair(number: int) -> float:
            before = fire("PreToolUse", number)
            (directory / "d0" / "f0.py").write_text(f"number = {number}\n" * 2)
            return before + fire("PostToolUse", number)

        for number in range(5):
            pair(-number - 1)
        # Files that were just written are hashed again for a while, since their times cannot be trusted yet.
        time.sleep(1)
        bare: list[float] = []
        hooks: list[float] = []
        pid = server()
        begun = of_process(pid)
        for number in range(pairs):
            hooks.append(pair(number))
            bare.append(processor_time(BARE, b"", environment) + processor_time(BARE, b"", environment))
        served = (of_process(pid) - begun) / pairs
    return {"bare": median(bare), "hooks": median(hooks), "server": served}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hooks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--files", type=int, nargs="+", default=[10, 1000])
    options = parser.parse_args()
    print("| files | starting Python twice | two hooks | the server | hooks and server |")
    print("| --- | --- | --- | --- | --- |")
    for files in options.files:
        found = measured(files, 20 if options.quick else 100)
        total = found["hooks"] + found["server"]
        print(f"| {files:,} | {found['bare']:.1f} | {found['hooks']:.1f} | {found['server']:.1f} | {total:.1f} |")


if __name__ == "__main__":
    main()

"""Programs on a mounted session compared with tmpfs: `python -m benchmarks.mounts [--quick]`. Needs FUSE, and /dev/shm.

A separate program does the same in both places, in turn. The figures are the shortest wall-clock times of the rounds,
because the work is divided between the program, the kernel and the process that answers it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from weakfs import InMemoryFilesystem, Limits, Session
from weakfs.integrations.mount import mount

MEMORY = "/dev/shm"
PROGRAM = """
import json, os, shutil, sys, time
count, large, taken = int(sys.argv[1]), int(sys.argv[2]), {}

def timed(name, work, of):
    begun = time.perf_counter()
    work()
    taken[name] = (time.perf_counter() - begun) / of

names = [f"d{n % 10}/f{n}" for n in range(count)]
for n in range(10):
    os.mkdir(f"d{n}")

def write(name, data):
    with open(name, "wb", buffering=0) as file:
        file.write(data)

def read(name):
    with open(name, "rb", buffering=0) as file:
        while file.read(1 << 17):
            pass

block = os.urandom(1 << 17)

def write_large():
    with open("large", "wb", buffering=0) as file:
        for _ in range(large):
            file.write(block)

timed("write a file of 200 bytes", lambda: [write(name, b"x" * 200) for name in names], count)
timed("read it", lambda: [read(name) for name in names], count)
timed("stat it", lambda: [os.stat(name) for name in names], count)
timed("open and close it", lambda: [os.close(os.open(name, os.O_RDONLY)) for name in names], count)
timed("rename it", lambda: [os.rename(name, name + "x") for name in names], count)
timed("list a directory of 50", lambda: [os.listdir(f"d{n}") for n in range(10)], 10)
timed("delete it", lambda: [os.unlink(name + "x") for name in names], count)
timed("write 1 MiB of a large file", write_large, large / 8)
timed("read 1 MiB of it", lambda: read("large"), large / 8)
shutil.rmtree(".", ignore_errors=True)
print(json.dumps(taken))
"""


def round_of(place: str, count: int, large: int) -> dict[str, float]:
    """Return the seconds of each operation in one run of the program."""
    command = [sys.executable, "-I", "-c", PROGRAM, str(count), str(large)]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def least(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: min(one[name] for one in rounds) for name in rounds[0]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mounts", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 3 if parser.parse_args().quick else 10
    mounted_rounds: list[dict[str, float]] = []
    memory_rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory(dir=MEMORY) as memory:
        for _ in range(rounds):
            files = InMemoryFilesystem(Session(), limits=Limits())
            place = Path(directory, "mounted")
            place.mkdir(exist_ok=True)
            with mount(files, place):
                mounted_rounds.append(round_of(str(place), 500, 128))
            memory_rounds.append(round_of(memory, 500, 128))
    ours, theirs = least(mounted_rounds), least(memory_rounds)
    print("| operation | tmpfs, µs | mount, µs | ratio |")
    print("| --- | --- | --- | --- |")
    for name, taken in ours.items():
        print(f"| {name} | {theirs[name] * 1e6:.1f} | {taken * 1e6:.1f} | {taken / theirs[name]:.0f} |")


if __name__ == "__main__":
    main()

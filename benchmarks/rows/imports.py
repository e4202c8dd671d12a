"""The time of a new process until its first answer, compared with importing libraries.

The figures are the processor time of whole processes, minus that of a process that does nothing. Bytecode is compiled,
and all files are in the system's cache.
"""

from __future__ import annotations

import compileall
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks.prepare import ROOT
from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.timing import Timing, in_turn

NOTHING = "nothing"
SMALL, DEPENDENCIES = "attrs and orjson", "dependencies"
LIBRARIES = {SMALL: "import attrs, orjson", DEPENDENCIES: "import attrs, cattrs, orjson, pyrsistent"}

# The program of each row, and the imports that it is compared with.
STATEMENTS = {
    "import": ("import weakfs", SMALL),
    "import names": ("from weakfs import InMemoryFilesystem, Session", SMALL),
    "new process, version": ("from weakfs.cli import main; main(['--version'])", DEPENDENCIES),
    "new process, files": (
        "from weakfs import InMemoryFilesystem, Session; files = InMemoryFilesystem(Session()); "
        "files.write('/a.txt', 'x'); files.read('/a.txt')",
        DEPENDENCIES,
    ),
    "new process, call": (
        "from weakfs import Session, Toolset; "
        "assert Toolset(Session()).call('write_file', {'path': '/a.txt', 'content': 'x'}).success",
        DEPENDENCIES,
    ),
}


def measure(bench: Bench) -> Iterator[Result]:
    # Installers compile a package's bytecode; a checkout's is missing where Python may not write it.
    compileall.compile_dir(str(ROOT / "weakfs"), quiet=2)
    programs = {NOTHING: "pass", **LIBRARIES, **{row: program for row, (program, _) in STATEMENTS.items()}}
    measured = {name: partial(nanoseconds_of, program) for name, program in programs.items()}
    taken = in_turn(measured, repeats=5 if bench.quick else 15)
    start = taken[NOTHING]
    without = {name: Timing(one.least - start.least, one.median - start.median) for name, one in taken.items()}
    for row, (_, library) in STATEMENTS.items():
        yield timed(row, bench.size, bench.ours.name, without[row])
        yield timed(row, bench.size, library, without[library], ours=without[row])


def nanoseconds_of(program: str) -> float:
    """Return the processor time of a new interpreter that runs a program."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9

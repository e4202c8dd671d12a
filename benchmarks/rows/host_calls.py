"""Single calls on a host directory: writes, a call that fails, an overlay, a shell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from attrs import frozen

from benchmarks.host_tree import HostTree, settle
from benchmarks.results import Result, together
from benchmarks.rows import Bench
from benchmarks.subject import OURS
from benchmarks.timing import Sampler, in_turn, nanoseconds
from weakfs import HostFilesystem, OverlayFilesystem, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.reducers import FileTree
from weakfs.tools.handlers import ShellOptions, shell_tool
from weakfs.tools.sections import FILESYSTEM_TOOLS

BY_HAND = "by hand"
"""A write: a temporary file and a rename, by Python's own calls. A shell call: `/bin/sh -c true` by subprocess."""

COMMITTED = 10
TEXT = "another line of this small file\n" * 64


@frozen
class WriteParams:
    path: str


def write_and_fail(params: WriteParams, *, context: ToolContext) -> ToolResult[None]:
    """Change a file and then fail, so that the call is undone."""
    assert context.filesystem
    context.filesystem.write(params.path, TEXT)
    return ToolResult("it did not work out", None, success=False)


FAILING = Tool("write_and_fail", "Write a file and fail.", WriteParams, write_and_fail)


def measure(bench: Bench, home: Path, host: HostTree) -> Iterator[Result]:
    calls = Calls(bench, home, host)
    yield from calls.writes()
    yield from calls.failed_call()
    yield from calls.shell()
    yield from Overlays(bench, home, host).rows()


class Calls:
    """Rows of single calls, in a session that knows the whole tree from a snapshot."""

    def __init__(self, bench: Bench, home: Path, host: HostTree) -> None:
        self.size = bench.size
        self.host = host
        self.repeats = 50 if bench.quick else 200
        self.session = Session()
        self.fs = HostFilesystem(host.root, session=self.session, store=home / "stores" / "calls")
        self.tools = Toolset(
            self.session, self.fs, tools=(*FILESYSTEM_TOOLS, FAILING, shell_tool(ShellOptions(sandbox="auto")))
        )
        settle()
        self.fs.snapshot()
        self.paths = list(dict.fromkeys(host.tree.sample_paths(3 * self.repeats, seed=13)))

    def writes(self) -> Iterator[Result]:
        """Write existing files: each for the first time, and each once more."""
        ours, others = self.paths[: self.repeats], self.paths[self.repeats : 2 * self.repeats]
        for row in ("host write", "host write again"):
            measured = {OURS: over(self.fs.write, ours), BY_HAND: over(self.host.write_by_hand, others)}
            yield from together(row, self.size, in_turn(measured, repeats=self.repeats))

    def failed_call(self) -> Iterator[Result]:
        path = self.paths[-1]
        held = self.host.text(path)
        failing = partial(nanoseconds, partial(self.tools.call, FAILING.name, {"path": path}))
        yield from together("host failed call", self.size, in_turn({OURS: failing}, repeats=self.repeats))
        assert self.host.text(path) == held, "a call that failed has changed something"

    def shell(self) -> Iterator[Result]:
        """Run `true`, in a sandbox if there is one: the tree is scanned before and after."""
        settle()
        call = partial(self.tools.call, "shell", {"command": "true"})
        answered = call()
        assert answered.success, answered.message
        measured: dict[str, Sampler] = {
            OURS: partial(nanoseconds, call),
            BY_HAND: partial(nanoseconds, partial(subprocess.run, ["/bin/sh", "-c", "true"], check=True)),
            **self.host.scans(),
        }
        yield from together("host shell", self.size, in_turn(measured, repeats=few(self.repeats)))


class Overlays:
    """Rows of an overlay over the tree, without copying anything in advance."""

    def __init__(self, bench: Bench, home: Path, host: HostTree) -> None:
        self.size = bench.size
        self.host = host
        self.store = home / "stores" / "overlays"
        self.repeats = 50 if bench.quick else 200
        self.paths = iter(host.tree.sample_paths(10_000, seed=17))

    def rows(self) -> Iterator[Result]:
        opening = {OURS: partial(nanoseconds, self.open_and_write)}
        yield from together("overlay", self.size, in_turn(opening, repeats=self.repeats))
        layer = self.open_and_write()
        yield Result("count in layer", self.size, OURS, held_files(layer))
        writing = {OURS: over(layer.write, self.paths)}
        yield from together("overlay write", self.size, in_turn(writing, repeats=self.repeats))
        layer.commit()

        def fill() -> None:
            settle()
            for _ in range(COMMITTED):
                layer.write(next(self.paths), TEXT)

        committing: dict[str, Sampler] = {OURS: partial(nanoseconds, layer.commit), **self.host.scans()}
        yield from together("overlay commit", self.size, in_turn(committing, repeats=few(self.repeats), before=fill))

    def open_and_write(self) -> OverlayFilesystem:
        layer = OverlayFilesystem(HostFilesystem(self.host.root, store=self.store))
        layer.write(next(self.paths), TEXT)
        return layer


def held_files(layer: OverlayFilesystem) -> int:
    """Count the files in the layer itself."""
    assert layer.session
    tree = layer.session[FileTree].latest()
    return tree.file_count if tree else 0


def over(write: Callable[[str, str], object], paths: Iterable[str]) -> Sampler:
    """Time a write of the next path each time."""
    coming = iter(paths)
    return lambda: nanoseconds(partial(write, next(coming), TEXT))


def few(repeats: int) -> int:
    """Return how many times to repeat operations that take as long as scanning the tree."""
    return max(3, repeats // 20)

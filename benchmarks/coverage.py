"""Coverage by test: which tests run which lines of the library, and the processor time of each test.

```
PYTEST_PLUGINS=benchmarks.coverage python -m pytest -n 2 --coverage-to FOLDER
```

(With `-p benchmarks.coverage`, the workers would load it after `conftest.py` has imported most of the library.)

Every block of every function gets a statement that marks it as reached. That costs a few per cent, whereas a trace
function would double the time. Code that runs at import, or that a test runs in another process, is not recorded. Each
process of the test run writes one file into the folder.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import pytest

REACHED = "__reached__"
DIGITS = bytes.maketrans(b"\0\1", b"01")


class Instrument(ast.NodeTransformer):
    """Mark the beginning of each block of a function, and each statement after a compound one."""

    def __init__(self, module: str, places: list[tuple[str, int]]) -> None:
        self.module = module
        self.places = places
        self.inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        before, self.inside = self.inside, True
        self.generic_visit(node)
        self.inside = before
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        before, self.inside = self.inside, True
        self.generic_visit(node)
        self.inside = before
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self.inside and not isinstance(node, ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block:
                    setattr(node, name, list(self._marked(block)))
        return node

    def _marked(self, block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        due = True
        for statement in block:
            text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if due and not text and not isinstance(statement, ast.Global | ast.Nonlocal):
                yield self._mark(statement)
                due = False
            yield statement
            due = due or hasattr(statement, "body")

    def _mark(self, statement: ast.stmt) -> ast.stmt:
        mark = ast.parse(f"{REACHED}[{len(self.places)}] = 1").body[0]
        for node in ast.walk(mark):
            ast.copy_location(node, statement)
        self.places.append((self.module, statement.lineno))
        return mark


class Loader(SourceFileLoader):
    """Load a module of the library with its blocks marked."""

    places: list[tuple[str, int]] = []  # noqa: RUF012 - one list for all modules

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(self.get_data(self.path))
        relative = Path(self.path).relative_to(Path.cwd()).as_posix()
        instrumented = Instrument(relative, self.places).visit(tree)
        return compile(ast.fix_missing_locations(instrumented), self.path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Find the modules of the library."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "weakfs":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(fullname, spec.loader.path)
        return spec


class Recorder:
    """Write a line for each test."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{os.getpid()}.jsonl"
        self.file = self.path.open("w")
        self.reached = bytearray(100_000)
        setattr(builtins, REACHED, self.reached)
        sys.meta_path.insert(0, Finder())

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.reached[:] = bytes(len(self.reached))
        before = sum(os.times()[:4])
        yield
        seconds = sum(os.times()[:4]) - before
        mask = int(self.reached[: len(Loader.places)][::-1].translate(DIGITS) or b"0", 2)
        json.dump([item.nodeid, round(seconds, 3), f"{mask:x}"], self.file)
        self.file.write("\n")

    def pytest_unconfigure(self) -> None:
        json.dump(Loader.places, self.file)
        self.file.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--coverage-to", metavar="FOLDER", help="record which lines of the library each test runs")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Before anything imports the library: modules that are already imported are not instrumented.
    options = early_config.known_args_namespace
    if options.coverage_to and ("PYTEST_XDIST_WORKER" in os.environ or not getattr(options, "numprocesses", None)):
        early_config.pluginmanager.register(Recorder(Path(options.coverage_to)))


class Coverage:
    """The tests of each line, as recorded."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        # For each process of the run: the blocks that each of its tests reached, as bits, and the meaning of the bits.
        self._processes: list[tuple[dict[str, int], list[tuple[str, int]]]] = []
        lines: dict[str, set[int]] = {}
        for path in folder.glob("*.jsonl"):
            *tests, places = map(json.loads, path.read_text().splitlines())
            self.seconds.update((test, seconds) for test, seconds, _ in tests)
            self._processes.append(({test: int(mask, 16) for test, _, mask in tests}, [(m, n) for m, n in places]))
            for module, line in places:
                lines.setdefault(module, set()).add(line)
        self._lines = {module: sorted(found) for module, found in lines.items()}

    def tests(self, module: str, line: int | None) -> list[str]:
        """Return the tests that run the block of a line, or any block of a module, fastest first."""
        lines = self._lines.get(module, [])
        if line is not None:
            place = bisect_right(lines, line)
            lines = lines[max(0, place - 1) : place]
        wanted = {(module, one) for one in lines}
        found: list[str] = []
        for tests, places in self._processes:
            bits = sum(1 << number for number, place in enumerate(places) if place in wanted)
            found.extend(test for test, mask in tests.items() if mask & bits)
        return sorted(found, key=lambda test: (self.seconds[test], test))

    def files(self) -> list[str]:
        """Return the test files of the run."""
        return sorted({test.partition("::")[0] for test in self.seconds})

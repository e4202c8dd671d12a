"""Mutation testing: change the code in small ways and report which changes the tests do not detect.

```
python -m benchmarks.mutants --sample 40 --seed 1 weakfs/session weakfs/filesystem
python -m benchmarks.mutants --coverage .coverage-by-test --sample 40 weakfs/session
```

Each mutant is one change in one module: a comparison inverted, a constant off by one, a condition negated, `and`
for `or`, a statement removed. The tests run on a copy of the tree that contains the mutant. With `--coverage`, a folder
that `benchmarks.coverage` wrote, these are the tests that run the changed line, fastest first; otherwise they are those
of the module's own folder (`tests/session` for `weakfs/session`). A mutant that passes them survives and is reported
with its line; some survivors are equivalent to the original code. The choice of mutants depends only on the seed and
the code.

The tests are collected once. For each mutant, the test process forks, and its child replaces the code of the functions
that differ. A mutant of code that runs at import gets a new process.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from types import CodeType, FunctionType
from typing import Literal

import pytest

from benchmarks.coverage import Coverage

# The parts of the tree that a mutant needs.
COPIED = ("weakfs", "tests", "fixtures", "benchmarks", "examples", "pyproject.toml", "README.md", "docs")

# Output is not captured by the process that forks; temporary files are removed with the copy.
OPTIONS = ("-s", "-p", "no:cacheprovider", "--basetemp", "temporary")

# The maximum address space of the tests of a mutant, in bytes.
MEMORY = 8 << 30

NOTHING_CHANGED: Mapping[CodeType, CodeType] = {}

# More than all tests take.
CPU_SECONDS = 3600

# If the time limit is exceeded, the mutant may make the tests hang, or the machine may be busy.
Outcome = Literal["killed", "survives", "crashed", "timed out"]

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Mutant:
    """One change: the module, its line, a description, and the place of the changed node in the syntax tree."""

    module: Path
    line: int
    what: str
    place: int
    choice: int
    in_function: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.what}"

    def tree(self, source: str) -> ast.Module:
        """Return the changed syntax tree of the module."""
        tree = ast.parse(source)
        _apply(next(node for place, node in enumerate(ast.walk(tree)) if place == self.place), self.choice)
        return ast.fix_missing_locations(tree)


def mutants_of(module: Path, source: str) -> Iterator[Mutant]:
    """Yield all mutants of a module, in the order of its syntax tree."""
    tree = ast.parse(source)
    hints = _hints(tree)
    bodies = _bodies(tree)
    for place, node in enumerate(ast.walk(tree)):
        if place in hints:
            continue
        for choice, what in enumerate(_changes(node)):
            before = ast.unparse(node).partition("\n")[0]
            line = getattr(node, "lineno", 0)
            yield Mutant(module, line, f"{what} in {before:.90}", place, choice, id(node) in bodies)


def _bodies(tree: ast.AST) -> set[int]:
    """Return the nodes that run when a function is called, not when the module is imported."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {id(below) for node in functions for statement in node.body for below in ast.walk(statement)}


def _hints(tree: ast.AST) -> set[int]:
    """Return the places of annotations, docstrings and blocks for type checkers: changing them has no effect."""
    passed: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts.append(node.returns)
            parts.extend([node] if any(ast.unparse(one) == "overload" for one in node.decorator_list) else [])
        elif isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            parts.append(node)
        passed.update(id(below) for part in parts if part is not None for below in ast.walk(part))
    return {number for number, node in enumerate(ast.walk(tree)) if id(node) in passed}


def _changes(node: ast.AST) -> list[str]:
    """Return the names of the changes that apply to a node; `_apply` makes each of them."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ["comparison turned round"]
    if isinstance(node, ast.BoolOp):
        return ["and for or" if isinstance(node.op, ast.Or) else "or for and"]
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return ["condition negated"]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return ["minus for plus" if isinstance(node.op, ast.Add) else "plus for minus"]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ["constant one larger", "constant one smaller"]
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        return ["constant negated"]
    removable = isinstance(node, ast.Raise | ast.Assign | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    )
    return ["statement removed"] if removable else []


def _apply(node: ast.AST, choice: int) -> None:
    if isinstance(node, ast.Compare):
        node.ops = [FLIPPED[type(node.ops[0])]()]
    elif isinstance(node, ast.BoolOp):
        node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.BinOp):
        node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
    elif isinstance(node, ast.Constant):
        value = node.value
        node.value = not value if isinstance(value, bool) else int(str(value)) + (1 if choice == 0 else -1)
    elif isinstance(node, ast.stmt):
        # The node stays in its block, and does nothing.
        node.__class__ = ast.Pass


def chosen(root: Path, places: list[str], *, sample: int, seed: int) -> list[Mutant]:
    """Choose mutants of the modules at some places."""
    modules = sorted(
        {
            path.relative_to(root)
            for place in places
            for path in ([root / place] if place.endswith(".py") else (root / place).rglob("*.py"))
        }
    )
    every = [mutant for module in modules for mutant in mutants_of(module, (root / module).read_text())]
    return Random(seed).sample(every, min(sample, len(every)))


class Trials:
    """A plugin of pytest that runs the tests of each mutant instead of all tests once."""

    def __init__(self, mutants: list[Mutant], coverage: Coverage | None, *, seconds: float, timeout: float) -> None:
        self.mutants = mutants
        self.coverage = coverage
        self.seconds = seconds
        self.timeout = timeout
        self.failed = Path.cwd() / "failed"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self.failed.open("a") as file:
                print(report.nodeid, file=file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        gc.unfreeze()
        functions = [thing for thing in gc.get_objects() if isinstance(thing, FunctionType)]
        gc.freeze()
        outcomes: Counter[Outcome] = Counter()
        killers: set[str] = set()
        for number, mutant in enumerate(self.mutants, 1):
            tests = [test for test in self.tests(mutant, items) if test in items]
            tests = list(self.affordable(known := tests))
            outcome = self.tried(mutant, session, [items[test] for test in tests], functions)
            outcomes[outcome] += 1
            by = self.failures()
            killers.update(by)
            told = f"by {by[0]}" if by else f"{len(tests)} of {len(known)} tests"
            print(f"{number:>4} {outcome:<9} {mutant} ({told})", flush=True)
        print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())), flush=True)
        child = _forked(
            lambda: _run(session, [items[test] for test in sorted(killers)], until_failure=False), seconds=CPU_SECONDS
        )
        _awaited(child, 10 * self.timeout)
        print(*(f"fails without a mutant: {test}" for test in self.failures()), sep="\n", flush=True)
        return True

    def failures(self) -> list[str]:
        """Return the tests that failed, and forget them."""
        failed = self.failed.read_text().splitlines() if self.failed.exists() else []
        self.failed.unlink(missing_ok=True)
        return failed

    def tests(self, mutant: Mutant, items: Collection[str]) -> list[str]:
        """Return the tests that may detect a mutant."""
        line = mutant.line if mutant.in_function else None
        found = self.coverage.tests(mutant.module.as_posix(), line) if self.coverage else []
        # Code that runs in other processes was not recorded.
        folder = f"tests/{mutant.module.parts[1]}/"
        return found or [test for test in items if test.startswith(folder)]

    def affordable(self, tests: list[str]) -> Iterator[str]:
        """Yield as many tests as the time allows: the fastest of each file, then the second fastest, and so on."""
        left = self.seconds
        turns: Counter[str] = Counter()
        ordered: list[tuple[int, str]] = []
        for test in tests:
            file = test.partition("::")[0]
            turns[file] += 1
            ordered.append((turns[file], test))
        for _, test in sorted(ordered, key=lambda turn: turn[0]):
            left -= self.coverage.seconds.get(test, 0) if self.coverage else 0
            if left < 0:
                return
            yield test

    def tried(
        self, mutant: Mutant, session: pytest.Session, items: list[pytest.Item], functions: list[FunctionType]
    ) -> Outcome:
        """Run tests on a mutant, and return the outcome."""
        if not items:
            return "survives"
        path = Path.cwd() / mutant.module
        source = path.read_text()
        tree = mutant.tree(source)
        seconds = round(min(CPU_SECONDS, 3 * self.seconds + 20))
        # Processes that the tests start, and modules that they import later, have the mutant too.
        path.write_text(ast.unparse(tree))
        try:
            changed = _changed(path, source, tree) if mutant.in_function else None
            if changed is None:
                command = [sys.executable, "-m", "pytest", "-xq", *OPTIONS, *(item.nodeid for item in items)]
                child = _forked(lambda: os.execv(sys.executable, command), seconds=seconds)
            else:
                affected = [function for function in functions if function.__code__ in changed]
                child = _forked(partial(_run, session, items, affected, changed), seconds=seconds)
            return _awaited(child, self.timeout)
        finally:
            path.write_text(source)


def _changed(path: Path, source: str, tree: ast.Module) -> dict[CodeType, CodeType] | None:
    """Return the functions that a change affects with their new code; None if they cannot be replaced."""
    codes = (_functions(compile(code, str(path), "exec", dont_inherit=True)) for code in (source, tree))
    before, after = codes
    changed = {code: after[key] for key, code in before.items() if key in after and code != after[key]}
    exchangeable = all(len(code.co_freevars) == len(new.co_freevars) for code, new in changed.items())
    return changed if exchangeable else None


def _functions(code: CodeType) -> dict[tuple[str, int], CodeType]:
    found: dict[tuple[str, int], CodeType] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found[constant.co_qualname, constant.co_firstlineno] = constant
            found.update(_functions(constant))
    return found


def _run(
    session: pytest.Session,
    items: list[pytest.Item],
    affected: Collection[FunctionType] = (),
    changed: Mapping[CodeType, CodeType] = NOTHING_CHANGED,
    *,
    until_failure: bool = True,
) -> int:
    for function in affected:
        function.__code__ = changed[function.__code__]
    session.config.option.maxfail = 1 if until_failure else 0
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail or session.shouldstop:
            break
    return 1 if session.testsfailed else 0


def _forked(work: Callable[[], int], *, seconds: int) -> int:
    """Do some work in a process of its own, without a terminal; return the process id."""
    if child := os.fork():
        return child
    status = 2
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        status = work()
    except BaseException as error:
        Path("failed").write_text(f"{error!r}\n")
    finally:
        os._exit(status)


def _awaited(child: int, timeout: float) -> Outcome:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            # Anything other than a failed test is reported separately, so that an error in this program does not count
            # as a kill.
            ends: dict[int, Outcome] = {0: "survives", 1: "killed", -signal.SIGXCPU: "timed out"}
            return ends.get(os.waitstatus_to_exitcode(status), "crashed")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out"


def main() -> None:
    """Try a sample of mutants and print those that survive."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants", description="Find mutants that no test detects."
    )
    parser.add_argument("places", nargs="+", metavar="MODULE_OR_FOLDER")
    parser.add_argument("--sample", type=int, default=40, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--coverage", type=Path, metavar="FOLDER", help="the folder that benchmarks.coverage wrote")
    parser.add_argument("--seconds", type=float, default=10, metavar="N", help="of recorded tests for each mutant")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="for the tests of one mutant")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="numbers within the sample")
    parser.add_argument("--list", action="store_true", help="only list the sample")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    mutants = chosen(root, options.places, sample=options.sample, seed=options.seed)
    mutants = [mutants[number - 1] for number in options.only] if options.only else mutants
    if options.list:
        print(*mutants, sep="\n")
        return
    coverage = Coverage(options.coverage) if options.coverage else None
    trials = Trials(mutants, coverage, seconds=options.seconds, timeout=options.timeout)
    with tempfile.TemporaryDirectory(prefix="weakfs-mutants-") as folder:
        copy = Path(folder)
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            elif (root / name).exists():
                shutil.copy2(root / name, copy / name)
        os.chdir(copy)
        os.environ.update({"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"})
        sys.path.insert(0, folder)
        suites = coverage.files() if coverage else sorted({f"tests/{mutant.module.parts[1]}" for mutant in mutants})
        pytest.main(["-q", *OPTIONS, *suites], plugins=[trials])


if __name__ == "__main__":
    main()

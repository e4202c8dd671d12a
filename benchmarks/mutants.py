"""Mutation testing: change the code in small ways and report which changes the tests do not detect.

```
python -m benchmarks.mutants --sample 40 --seed 1 weakfs/session weakfs/filesystem
```

Each mutant is one change in one module: a comparison inverted, a constant off by one, a condition negated, `and`
for `or`, a statement removed. The tests of the module's own folder (`tests/session` for `weakfs/session`) run on a
copy of the tree that contains the mutant. A mutant that passes them all survives and is reported with its line; some
survivors are equivalent to the original code. Which mutants are chosen depends only on the seed and the code.
"""

from __future__ import annotations

import argparse
import ast
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

# The parts of the tree that a mutant needs.
COPIED = ("weakfs", "tests", "fixtures", "benchmarks", "examples", "pyproject.toml", "README.md", "docs")

# A mutant that exceeds the time limit may make the tests hang, or the machine may be busy.
Outcome = Literal["killed", "survives", "timed out"]

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
    """One change: the module, its line, a description, and the whole changed source."""

    module: Path
    line: int
    what: str
    source: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.what}"


def mutants_of(module: Path, source: str) -> Iterator[Mutant]:
    """Yield all mutants of a module, in the order of its syntax tree."""
    tree = ast.parse(source)
    hints = _hints(tree)
    for number, node in enumerate(ast.walk(tree)):
        if number in hints:
            continue
        for choice, what in enumerate(_changes(node)):
            copy = deepcopy(tree)
            changed = next(one for place, one in enumerate(ast.walk(copy)) if place == number)
            before = ast.unparse(node).partition("\n")[0]
            _apply(changed, choice)
            made = ast.unparse(ast.fix_missing_locations(copy))
            yield Mutant(module, getattr(node, "lineno", 0), f"{what} in {before:.90}", made)


def _hints(tree: ast.AST) -> set[int]:
    """Return the places of annotations, docstrings and blocks for type checkers: changing them has no effect."""
    passed: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts.append(node.returns)
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


def tests_of(module: Path) -> Path:
    """Return the folder of the tests of a module's own package."""
    return Path("tests") / module.parts[1]


def tried(mutant: Mutant, copy: Path, timeout: float) -> Outcome:
    """Run the tests of the mutant's own folder, and return the outcome."""
    path = copy / mutant.module
    before = path.read_text()
    path.write_text(mutant.source)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(tests_of(mutant.module))]
    environment = {"PYTHONPATH": str(copy), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=timeout, check=False)
        return "survives" if done.returncode == 0 else "killed"
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        path.write_text(before)


def main() -> None:
    """Try a sample of mutants and print those that survive."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description="Mutants that no test detects.")
    parser.add_argument("places", nargs="+", metavar="MODULE_OR_FOLDER")
    parser.add_argument("--sample", type=int, default=40, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="for the tests of one mutant")
    parser.add_argument("--list", action="store_true", help="only list the sample")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    mutants = chosen(root, options.places, sample=options.sample, seed=options.seed)
    if options.list:
        print(*mutants, sep="\n")
        return
    with tempfile.TemporaryDirectory(prefix="weakfs-mutants-") as folder:
        copy = Path(folder)
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            elif (root / name).exists():
                shutil.copy2(root / name, copy / name)
        outcomes: Counter[Outcome] = Counter()
        for number, mutant in enumerate(mutants, 1):
            outcome = tried(mutant, copy, options.timeout)
            outcomes[outcome] += 1
            print(f"{number:>4} {outcome:<9} {mutant}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))


if __name__ == "__main__":
    main()

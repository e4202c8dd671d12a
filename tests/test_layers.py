"""The layers, read from the imports: what may depend on what, and what is loaded when."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import filterfalse
from pathlib import Path

import pytest
from attrs import frozen

import weakfs

ROOT = Path(weakfs.__file__).parent

# From the bottom up. A package may import itself, those next to it, and those below.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset(
        {
            "attribute_hints",
            "class_decorators",
            "errors",
            "fast_init",
            "lazy_names",
            "messages",
            "platforms",
            "shield",
            "short_repr",
        }
    ),
    frozenset({"storage"}),
    frozenset({"session"}),
    frozenset({"reducers"}),
    frozenset({"filesystem", "search", "editing", "snapshots", "processes"}),
    frozenset({"backends"}),
    frozenset({"tools"}),
    frozenset({"history"}),
    frozenset({"transcripts"}),
    frozenset({"cli", "integrations", "testing"}),
)
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}
TOP = len(LAYERS) - 1

# The modules that put the parts together, and may import all of them.
COMPOSITION = {"weakfs", "weakfs.composition_root", "weakfs._name_hints", "weakfs.__main__"}

BASE_DEPENDENCIES = {"attr", "attrs", "cattr", "cattrs", "orjson", "pyrsistent", "re2"}
# Type checkers have a copy of their own; at run time nothing imports it.
ONLY_FOR_TYPE_CHECKERS = {"typing_extensions"}
OPTIONAL_DEPENDENCIES = {
    "cli": {"click", "rich", "textual"},
    "integrations": {
        "acp",
        "agents",
        "anthropic",
        "claude_agent_sdk",
        "deepagents",
        "fsspec",
        "google",
        "langchain",
        "langchain_core",
        "langgraph",
        "mcp",
        "mcp_types",
        "mfusepy",
        "pydantic_ai",
        "starlette",
        "uvicorn",
    },
    "storage": {"obstore", "psycopg", "psycopg_pool", "redis"},
    "testing": {"pytest", "hypothesis"},
}


@frozen
class Import:
    """One import: the importing module, the line, the imported module, and the names imported from it."""

    importer: str
    line: int
    imported: str
    names: tuple[str, ...] = ()
    is_only_for_types: bool = False

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path))


def statements(path: Path) -> Iterator[tuple[ast.stmt, bool]]:
    """Iterate over the statements of a file without their expressions: a tenth of all nodes.

    The flag says whether a statement is executed for type checkers only.
    """
    waiting: list[tuple[ast.AST, bool]] = [(parsed(path), False)]
    while waiting:
        node, is_only_for_types = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node, is_only_for_types
        is_only_for_types |= isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += ((inside, is_only_for_types) for inside in getattr(node, part, ()))


def imports_of(path: Path) -> Iterator[Import]:
    importer = module_name(path)
    package = importer if path.name == "__init__.py" else importer.rpartition(".")[0]
    for node, is_only_for_types in statements(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(importer, node.lineno, alias.name, (), is_only_for_types)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            for alias in node.names:
                # `from weakfs import session` names a module, `from weakfs.session import Session` does not.
                is_module = base == "weakfs" and alias.name in LEVEL
                imported = f"{base}.{alias.name}" if is_module else base
                names = () if is_module else (alias.name,)
                yield Import(importer, node.lineno, imported, names, is_only_for_types)


@cache
def all_imports() -> list[Import]:
    return sorted((found for path in ROOT.rglob("*.py") for found in imports_of(path)), key=str)


def is_own(found: Import) -> bool:
    return found.imported.partition(".")[0] == "weakfs"


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_package_has_a_layer() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages <= LEVEL.keys(), "give the new package its layer in this test and in the documentation"


def test_a_package_has_at_most_twelve_modules() -> None:
    modules = Counter(path.parent for path in ROOT.rglob("*.py") if path.name != "__init__.py")
    crowded = {str(package.relative_to(ROOT.parent)): count for package, count in modules.items() if count > 12}
    assert crowded == {}, "divide these packages by subject"


def test_imports_only_go_down() -> None:
    upward = [
        str(found)
        for found in filter(is_own, all_imports())
        if found.importer not in COMPOSITION
        and LEVEL.get(package_of(found.imported), TOP + 1) > LEVEL[package_of(found.importer)]
        and not (found.imported == "weakfs" and LEVEL[package_of(found.importer)] == TOP)
    ]
    assert upward == []


def cycle_in(below: dict[str, set[str]]) -> list[str]:
    """Return names that lead into a cycle of a graph and around it; an empty list if there is none."""
    # Names that lead nowhere, or to which nothing leads, are removed until only cycles are left.
    while ends := {name for name, others in below.items() if not others} | (
        below.keys() - set().union(*below.values())
    ):
        below = {name: others - ends for name, others in below.items() if name not in ends}
    circle = [*below][:1]
    while circle and circle[-1] not in circle[:-1]:
        circle.append(min(below[circle[-1]]))
    return circle


@cache
def modules_below(*, for_types: bool) -> dict[str, set[str]]:
    """Return the modules that each module imports, even in functions, and `for_types` those for type checkers only."""
    modules = {module_name(path) for path in ROOT.rglob("*.py")}
    below: dict[str, set[str]] = {module: set() for module in modules}
    for found in filter(is_own, all_imports()):
        if found.is_only_for_types and not for_types:
            continue
        submodules = {f"{found.imported}.{name}" for name in found.names} & modules
        below[found.importer] |= submodules or {found.imported} & modules
    return below


def members_below(parent: str) -> dict[str, set[str]]:
    """Return which modules and packages directly inside a package each of them imports."""
    depth = parent.count(".") + 2
    inside = {
        ".".join(one.split(".")[:depth]) for one in modules_below(for_types=False) if one.startswith(f"{parent}.")
    }
    below: dict[str, set[str]] = {member: set() for member in inside}
    for module, imported in modules_below(for_types=False).items():
        importer = ".".join(module.split(".")[:depth])
        if importer in inside:
            below[importer] |= ({".".join(one.split(".")[:depth]) for one in imported} & inside) - {importer}
    return below


def test_the_modules_and_packages_in_a_package_have_no_import_cycles() -> None:
    parents = {module_name(path) for path in ROOT.rglob("__init__.py")}
    cycles = {parent: cycle for parent in parents if (cycle := cycle_in(members_below(parent)))}
    assert cycles == {}, "cut these cycles: move what both need into a module or package below them"


def test_modules_have_no_import_cycles_even_for_type_checkers_or_in_functions() -> None:
    assert cycle_in(modules_below(for_types=True)) == [], "cut this cycle: move what both need into a module below them"


def test_nothing_imports_through_the_links_at_the_top() -> None:
    places = ["weakfs", "tests", "benchmarks", "examples", "fixtures/recording"]
    through: list[str] = []
    # Only text that may contain such an import is parsed: parsing all files takes seconds.
    suspect = re.compile(rb"^\s*(?:from|import)\b.*(?<![.\w])(?:session|reducers)\b", re.MULTILINE)
    for place in places:
        for path in (ROOT.parent / place).rglob("*.py"):
            if not suspect.search(path.read_bytes()):
                continue
            for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
                names: list[str] = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                through += [f"{path}: {name}" for name in names if name.split(".")[0] in ("session", "reducers")]
    assert through == []


@pytest.mark.parametrize("link", ["session", "reducers"])
def test_a_link_at_the_top_cannot_be_imported_as_a_second_copy(link: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {link}"], cwd=ROOT.parent, capture_output=True, text=True, check=False
    )
    assert f"ImportError: cannot import the link '{link}'" in done.stderr
    assert f"import weakfs.{link} instead" in done.stderr


def test_no_module_is_looked_up_by_name() -> None:
    calling = re.compile(rb"\b(?:import_module|__import__)\(")
    named = [
        (module_name(path), node.args[0].value)
        for path in ROOT.rglob("*.py")
        if calling.search(path.read_bytes())
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("import_module", "__import__")
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and str(node.args[0].value).startswith("weakfs")
    ]
    assert named == []


def test_only_base_dependencies_are_imported_outside_the_extras() -> None:
    foreign = [
        str(found)
        for found in filterfalse(is_own, all_imports())
        if (name := found.imported.partition(".")[0]) not in sys.stdlib_module_names | BASE_DEPENDENCIES
        and name not in ONLY_FOR_TYPE_CHECKERS
        and package_of(found.importer) != "integrations"
        and name not in OPTIONAL_DEPENDENCIES.get(package_of(found.importer), set())
    ]
    assert foreign == []


def test_names_that_only_type_checkers_have_are_imported_for_type_checking_only() -> None:
    importers = {found.importer for found in all_imports() if found.imported in ONLY_FOR_TYPE_CHECKERS}
    assert importers
    for importer in importers:
        tree = parsed((ROOT.parent / importer.replace(".", "/")).with_suffix(".py"))
        for_all = [
            node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        ]
        imported = {node.module for top in for_all for node in ast.walk(top) if isinstance(node, ast.ImportFrom)}
        assert imported.isdisjoint(ONLY_FOR_TYPE_CHECKERS)


def run_python(code: str) -> str:
    """Run code in a new interpreter, and return what it printed."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


WORK_A_SESSION = """
import sys
import attrs
from weakfs.session import Registry, Session, reducer

@attrs.frozen
class Counted:
    by: int

@attrs.frozen
class Total:
    value: int = 0

    @reducer(on=Counted)
    def add(self, event):
        return Total(self.value + event.by)

session = Session(session_id="s", registry=Registry.empty().with_types(Counted), clock=iter(range(100)).__next__)
session.install(Total, initial=Total)
session.dispatch(Counted(2))
session.snapshot("two")
try:
    with session.transaction(cause="c1"):
        session.dispatch(Counted(3))
        raise LookupError
except LookupError:
    pass
fork = session.fork()
fork.dispatch(Counted(4))
session.merge(fork)
assert session[Total].latest() == Total(6)
session.rollback("two")
assert session.at(1)[Total].latest() == session[Total].latest() == Total(2)
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "weakfs"))
"""


def test_a_session_without_files_loads_no_filesystem_module() -> None:
    loaded = run_python(WORK_A_SESSION).split()
    assert loaded
    parts = (
        "attribute_hints",
        "class_decorators",
        "errors",
        "fast_init",
        "lazy_names",
        "messages",
        "platforms",
        "session",
        "shield",
        "short_repr",
        "storage",
    )
    below = tuple(f"weakfs.{part}" for part in parts)
    assert [name for name in loaded if name != "weakfs" and not name.startswith(below)] == []


# What files in memory can be written and read without: importing it would make each new process slower.
NOT_FOR_FILES = (
    *("asyncio", "cattrs", "hashlib", "logging", "re2", "subprocess"),
    *("weakfs.backends.host", "weakfs.backends.overlay", "weakfs.cli", "weakfs.editing", "weakfs.history"),
    *("weakfs.filesystem.missing_path", "weakfs.processes.runner", "weakfs.reducers.merging", "weakfs.search"),
    *("weakfs.session.durable", "weakfs.session.files.needed_blobs", "weakfs.session.replay.replay"),
    *("weakfs.session.conflicts.conflict_types", "weakfs.session.merging.merge", "weakfs.session.undo.reversion"),
    *("weakfs.snapshots", "weakfs.storage.engines", "weakfs.storage.event_store", "weakfs.transcripts"),
)
# The same for a call of one tool, without capability and policy.
NOT_FOR_A_CALL = (
    *NOT_FOR_FILES,
    *("weakfs.tools.calls.external_call", "weakfs.tools.policy", "weakfs.tools.providers.definitions"),
    *("weakfs.tools.providers.profiles", "weakfs.tools.sections"),
    *(f"weakfs.tools.handlers.{name}" for name in ("edit_file", "entries", "grep", "ls", "processes", "shell")),
    *(f"weakfs.tools.permissions.{name}" for name in ("capability", "decisions", "guarded", "rules")),
)


def test_files_in_memory_load_nothing_that_they_do_not_need() -> None:
    loaded = run_python(
        "import sys; from weakfs import InMemoryFilesystem, Session; files = InMemoryFilesystem(Session()); "
        "files.write('/a.txt', 'x'); assert files.read('/a.txt').content == 'x'; print(*sys.modules)"
    ).split()
    others = (*NOT_FOR_FILES, "weakfs.tools.calls", "weakfs.tools.handlers", "weakfs.tools.toolset")
    assert [name for name in loaded if name.startswith(others)] == []


def test_a_first_call_loads_no_module_of_other_tools() -> None:
    loaded = run_python(
        "import sys; from weakfs import Session, Toolset; "
        "assert Toolset(Session()).call('write_file', {'path': '/a.txt', 'content': 'x'}).success; print(*sys.modules)"
    ).split()
    assert "weakfs.tools.handlers.write_file" in loaded
    assert [name for name in loaded if name.startswith(NOT_FOR_A_CALL)] == []


@pytest.mark.parametrize("module", ["weakfs", "weakfs.cli", "weakfs.tools", "weakfs.backends"])
def test_importing_loads_no_optional_dependency(module: str) -> None:
    loaded = run_python(f"import sys, {module}; print(*sys.modules)").split()
    assert [name for name in ("click", "rich", "pytest") if name in loaded] == []

"""Mounted files behave like the files themselves, whatever the form of their paths, and so does a policy for them."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any, cast

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.plainfs import PlainFilesystem, Refused
from tests.models.programs import FIRST, Operation, operations
from tests.sampling import share
from weakfs import HostFilesystem, InMemoryFilesystem, MountedFilesystem, Policy, PolicyRule, Session, Toolset
from weakfs.tools.permissions.operations import Operation as Permission

# The arguments of an operation that are text but not paths.
TEXTS = {"write": (1, 2), "append": (1,), "symlink": (0,), "stream": (1,)}


def outcome(operation: Operation, fs: object) -> object:
    try:
        return operation.on(cast(Any, fs))
    except (Refused, OSError, ValueError):
        return "refused"


def spelled(operation: Operation, form: str) -> Operation:
    """Convert an operation on the files to one on the mounted files."""

    def path(given: str) -> str:
        if not given.startswith(("/", "\\")):
            return given
        return f"/workspace{given}" if form == "absolute" else f"./x/../{given[1:]}"

    kept = TEXTS.get(operation.name, ())
    arguments = tuple(
        path(value) if isinstance(value, str) and number not in kept else value
        for number, value in enumerate(operation.arguments)
    )
    return evolve(operation, arguments=arguments)


def climbs(operation: Operation) -> bool:
    """Return whether a path leads above the root: below a mount point, it leads to another place."""
    return any(isinstance(value, str) and ".." in value.split("/") for value in operation.arguments)


@settings(max_examples=share(60))
@given(st.lists(st.tuples(operations(), st.sampled_from(("absolute", "relative"))), max_size=12))
def test_an_operation_below_the_mount_point_equals_the_operation_on_the_files(
    program: list[tuple[Operation, str]],
) -> None:
    model, plain = PlainFilesystem(), InMemoryFilesystem(Session(clock=lambda: 1))
    mounted = MountedFilesystem(InMemoryFilesystem(Session(clock=lambda: 1)), "/workspace")
    for operation, form in (*((one, "absolute") for one in FIRST), *program):
        placed = operation.placed(model.files)
        if climbs(placed):
            continue
        outcome(placed, model)
        assert outcome(placed, plain) == outcome(spelled(placed, form), mounted)
        assert plain.tree().fingerprint == mounted.tree().fingerprint
    assert [f"/workspace{entry.path}" for entry in plain.walk()] == [entry.path for entry in mounted.walk("/workspace")]
    assert plain.statistics() == mounted.statistics()


NAMES = st.sampled_from(("src", "lib", "a.py", "b.key"))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
PATTERNS = st.sampled_from(("/src", "/src/lib", "*.key", "/lib/**", "/*/a.py", "/src/*.py", "**/lib"))
CALLS: tuple[tuple[str, Permission, dict[str, str]], ...] = (
    ("read_file", "read", {}),
    ("write_file", "write", {"content": "new\n"}),
    ("edit_file", "edit", {"old_string": "old", "new_string": "new"}),
    ("rm", "write", {}),
)


def forms(path: str, root: str) -> list[str]:
    """Return the ways to write a path of a mounted file."""
    below = path[1:]
    return [
        f"/workspace{path}",
        below,
        f"./{below}",
        f"//workspace/./{below}",
        f"/workspace/../workspace{path}",
        f"\\workspace\\{below}",
        f"{root}{path}",
        f"{root}/.{path}",
        f"{root}/x/..{path}",
        f"/{root}{path}",
    ]


@settings(max_examples=share(60))
@given(
    path=PATHS,
    effect=st.sampled_from(("deny", "only")),
    pattern=PATTERNS,
    number=st.integers(0, len(CALLS) - 1),
    data=st.data(),
)
def test_a_policy_judges_every_form_of_a_path_alike(
    path: str, effect: Any, pattern: str, number: int, data: st.DataObject
) -> None:
    name, operation, arguments = CALLS[number]
    rule = PolicyRule(effect=effect, operations=[operation], paths=pattern, reason="no")
    files = InMemoryFilesystem(Session())
    files.write(path, "old\n")
    expected = Toolset(cast(Session, files.session), files, policy=Policy([rule])).call(
        name, {"path": path, **arguments}
    )
    with TemporaryDirectory() as root:
        host = HostFilesystem(root)
        mounted = MountedFilesystem(host, "/workspace")
        mounted.write(path[1:], "old\n")
        there = evolve(rule, paths=f"/workspace{pattern}" if pattern.startswith("/") else pattern)
        tools = Toolset(host.session, mounted, policy=Policy([there]))
        form = data.draw(st.sampled_from(forms(path, host.root)))
        result = tools.call(name, {"path": form, **arguments})
        assert (result.success, result.error_code) == (expected.success, expected.error_code), result.message
        content = host.read(path).content if host.exists(path) else None
        assert content == (files.read(path).content if files.exists(path) else None)

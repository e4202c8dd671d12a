"""Every way out of a root by links and names is tried: a secret outside is never read, listed, changed or deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.models.host import record
from tests.models.house import SECRET, TRIED, ContainerHouse, House, assert_no_secret
from weakfs.filesystem import SymlinkPolicy

POLICIES: tuple[SymlinkPolicy, ...] = ("deny", "within_root_only")


@pytest.fixture(params=["host", "container"])
def any_house(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[House]:
    """A house on the host, or in a container."""
    if request.param == "host":
        (tmp_path / "house").mkdir()
        house = House(tmp_path / "house")
    else:
        house = ContainerHouse(request.getfixturevalue("shared_container"), tmp_path / "store")
    yield house
    assert house.outside() == house.before


# Links to plant in the root, by the path that is then used. `{beside}` and `{root}` stand for these directories.
LINKS: dict[str, tuple[dict[str, str], str]] = {
    "a file outside, absolute": ({"l": "{beside}/secret"}, "/l"),
    "a file outside, relative": ({"l": "../beside/secret"}, "/l"),
    "a directory outside, absolute": ({"l": "{beside}"}, "/l/secret"),
    "a directory outside, relative": ({"l": "../beside"}, "/l/secret"),
    "a directory outside, itself": ({"l": "../beside"}, "/l"),
    "a directory outside, and below it": ({"l": "../beside"}, "/l/sub/secret"),
    "the parent of the root": ({"l": ".."}, "/l/secret"),
    "the parent, from a directory": ({"dir/l": "../.."}, "/dir/l/secret"),
    "a chain that ends outside": ({"l": "m", "m": "n", "n": "../secret"}, "/l"),
    "a chain through a directory": ({"l": "dir/m", "dir/m": "../../beside"}, "/l/secret"),
    "dangling, outside": ({"l": "../not there"}, "/l"),
    "dangling, outside, as a directory": ({"l": "../not there"}, "/l/new"),
    "dangling, absolute": ({"l": "{beside}/new"}, "/l"),
    "through a directory and back up": ({"l": "dir/../../secret"}, "/l"),
    "through a missing directory and up": ({"l": "none/../../secret"}, "/l"),
    "out and in and out": ({"l": "../root/../secret"}, "/l"),
    "absolute, by the root's own name": ({"l": "{root}/../secret"}, "/l"),
    "absolute, next to the root, with a name that begins like it": ({"l": "{root}-beside"}, "/l"),
    "absolute, with a doubled slash": ({"l": "//{beside}/secret"}, "/l"),
    "absolute, with dots": ({"l": "{root}/./dir/../../secret"}, "/l"),
    "the host's root": ({"l": "/"}, "/l{beside}/secret"),
    "upwards through a link to a link": ({"up": "..", "l": "up/beside"}, "/l/secret"),
    "upwards through two links": ({"dir/up": "..", "l": "dir/up/up2/beside", "up2": ".."}, "/l/secret"),
    "the store": ({"l": "../store"}, "/l/store.json"),
    "the process's root": ({"l": "/proc/self/root"}, "/l{beside}/secret"),
    "the process's directory": ({"l": "/proc/self/cwd"}, "/l/pyproject.toml"),
    "the process's environment": ({"l": "/proc/self/environ"}, "/l"),
    "a loop": ({"l": "l"}, "/l"),
    "a loop of two": ({"l": "m", "m": "l"}, "/l"),
    "a loop through a directory": ({"dir/l": "../dir/l/x"}, "/dir/l"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", LINKS)
def test_no_operation_goes_through_a_link_to_the_outside(any_house: House, case: str, policy: SymlinkPolicy) -> None:
    house = any_house
    links, path = LINKS[case]
    places = house.names
    for name, target in links.items():
        (house.root / name).symlink_to(target.format(**places))
    before = record(house.root)
    fs = house.open(policy)

    for what, attempt in TRIED.items():
        # The error depends on the case.
        with pytest.raises(OSError, match=r".") as caught:
            attempt(fs, path.format(**places))
        assert SECRET not in str(caught.value), what
        assert record(house.root) == before, what
        assert house.outside() == house.before, what


@pytest.mark.sampled
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", LINKS)
def test_inspecting_everything_shows_links_and_not_their_targets(
    any_house: House, case: str, policy: SymlinkPolicy
) -> None:
    house = any_house
    links, _ = LINKS[case]
    for name, target in links.items():
        (house.root / name).symlink_to(target.format(**house.names))
    fs = house.open(policy)
    snapshot = fs.snapshot()

    answers = (
        [entry.path for entry in fs.walk("/")],
        fs.glob("**", hidden=True),
        fs.grep("secret"),
        fs.statistics(),
        fs.tree(),
        fs.export_bytes(),
        {path: fs.stat("/" + path) for path in links},
    )
    assert fs.statistics().file_count == 1 + len(links)
    assert {entry.path for entry in fs.walk("/")} == {"/dir", "/dir/file", *("/" + name for name in links)}
    assert_no_secret(house, *answers)

    for name in links:
        fs.copy("/" + name, "/copied")
        fs.move("/copied", "/moved")
        fs.delete("/moved")
        fs.delete("/" + name)
    fs.restore(snapshot)
    assert_no_secret(house)
    fs.delete("/dir", recursive=True)
    assert_no_secret(house)


@pytest.mark.parametrize(
    "path",
    [
        *("..", "../secret", "/../secret", "dir/../../secret", "/dir/./../../secret", "./../secret", "//../secret"),
        *("\\..\\secret", "..\\secret", "dir\\..\\..\\secret", "/dir/\\../../..\\secret", "../root/../secret"),
        *("dir/file/../../../secret", "none/../../secret", "{root}/../secret", "{root}//..//secret"),
        "{root}/dir/../../secret",
    ],
)
def test_a_path_that_climbs_is_refused(house: House, path: str) -> None:
    fs = house.open("within_root_only")
    for what, attempt in TRIED.items():
        with pytest.raises(PermissionError):
            attempt(fs, path.format(root=house.root))
        assert_no_secret(house, what)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "{beside}/secret",
            "//{beside}/secret",
            "{root}-beside",
            "{root} /../x",
            "/proc/self/environ",
            "file://{beside}",
        ),
        *("~/secret", "$HOME", "\uf72e\uf72e/secret", "\uf72e\uf72e\uf72fsecret", "..\uf72fsecret", "%2e%2e/secret"),
        *(
            "\u2025/secret",
            "\uff0e\uff0e/secret",
            "..\n/secret",
            " ../secret",
            ".. /secret",
            ".../secret",
            "..\u2215secret",
        ),
        *("{root}\\..\\secret", "dir/file/..secret", "\uff0e\uff0e\uff0fsecret", "\uf700secret", "C:\\secret", "-"),
    ],
)
def test_a_path_that_only_looks_like_one_outside_is_a_name_inside(house: House, path: str) -> None:
    fs = house.open()
    path = path.format(root=house.root, beside=house.beside)
    with pytest.raises(OSError):  # noqa: PT011
        fs.read(path)

    with suppress(OSError):
        fs.write(path, "mine")
        assert fs.read(path).content == "mine"
        assert sum(seen.content == b"mine" for seen in record(house.root).values()) == 1
    assert_no_secret(house)


@pytest.mark.parametrize("path", ["\0", "a\0b", "../\0", "dir/\0/../..", "\udcff"])
def test_a_path_that_no_host_can_hold_is_refused(house: House, path: str) -> None:
    fs = house.open()
    for attempt in TRIED.values():
        with pytest.raises((ValueError, PermissionError)):
            attempt(fs, path)


@pytest.mark.parametrize("target", ["{beside}", "../beside", "..", "/", "../beside/secret", "../not there"])
def test_a_link_created_through_the_library_leads_nowhere_either(house: House, target: str) -> None:
    fs = house.open("within_root_only")
    fs.symlink(target.format(beside=house.beside), "/dir/../l")
    for attempt in TRIED.values():
        with pytest.raises(OSError):  # noqa: PT011
            attempt(fs, "/l")
    assert_no_secret(house)

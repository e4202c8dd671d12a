"""A patch that fails at any point changes nothing: in memory, on the host, and where there are no transactions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weakfs.backends import HostFilesystem, InMemoryFilesystem, OverlayFilesystem
from weakfs.editing import PatchError, apply_patch
from weakfs.filesystem import Filesystem, FilesystemPrimitives, Limits

PATCH = """*** Begin Patch
*** Delete File: gone
*** Update File: moved
*** Move to: new/place
@@
-1
+2
*** Update File: a
*** Move to: t
*** Update File: b
*** Move to: a
*** Update File: t
*** Move to: b
*** Update File: text
@@
 keep
-old
+new
*** Add File: text2
+replaced
*** Delete File: d/x
*** Add File: d
+was a directory
*** Add File: deep/er/file
+x
*** End Patch"""

# The changes of the filesystem that this patch makes.
STEPS = 9


class Plain:
    """A filesystem that shows no session, like the guards of tools."""

    def __init__(self, inner: Filesystem) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        if name == "session":
            raise AttributeError(name)
        return getattr(self._inner, name)


def filled(fs: Filesystem) -> Filesystem:
    for name, content in {
        "gone": "1\n",
        "moved": "1\n",
        "a": "a\n",
        "b": "b\n",
        "text": "keep\nold\n",
        "text2": "2\n",
    }.items():
        fs.write(name, content)
    fs.write("d/x", "1\n")
    fs.mkdir("d/empty")
    fs.chmod("d/empty", 0o700)
    fs.chmod("a", 0o755)
    fs.chmod("gone", 0o600)
    return fs


def in_memory(tmp_path: Path) -> Filesystem:
    return filled(InMemoryFilesystem())


def on_the_host(tmp_path: Path) -> Filesystem:
    (tmp_path / "root").mkdir()
    return filled(HostFilesystem(tmp_path / "root", store=tmp_path / "store"))


@contextmanager
def failing_at(monkeypatch: pytest.MonkeyPatch, fs: Filesystem, step: int) -> Iterator[list[int]]:
    """Make the change with this number fail. Whatever a rollback does succeeds."""
    assert isinstance(fs, FilesystemPrimitives)
    kind, seen = type(fs), [0]
    commit: Callable[[Filesystem, object], None] = kind.apply  # type: ignore[assignment]  # a primitive of the base

    def failing(self: Filesystem, event: object) -> None:
        seen[0] += 1
        if seen[0] == step:
            raise OSError("the disk is on fire")
        commit(self, event)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "apply", failing)
        yield seen


def outcome(fs: Filesystem, patch: str, *, dry_run: bool = False) -> OSError | None:
    try:
        apply_patch(fs, patch, dry_run=dry_run)
    except OSError as error:
        return error
    return None


@pytest.mark.parametrize("make", [in_memory, on_the_host])
@pytest.mark.parametrize("is_plain", [False, True])
def test_a_failure_at_any_point_leaves_everything_as_it_was(
    make: Callable[[Path], Filesystem], is_plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = make(tmp_path)
    before = fs.tree().fingerprint
    given: Filesystem = Plain(fs) if is_plain else fs  # type: ignore[assignment]  # it answers through __getattr__
    step = 0
    while True:
        step += 1
        with failing_at(monkeypatch, fs, step) as seen:
            failure = outcome(given, PATCH)
        if failure is None:
            break
        assert (str(failure), getattr(failure, "__notes__", [])) == ("the disk is on fire", [])
        assert seen[0] >= step
        assert fs.tree().fingerprint == before, f"after a failure at change {step}"
    assert step > STEPS
    after = {entry.path: fs.read(entry.path).content for entry in fs.walk() if entry.is_file}
    assert after == {
        "/a": "b\n",
        "/b": "a\n",
        "/d": "was a directory\n",
        "/deep/er/file": "x\n",
        "/new/place": "2\n",
        "/text": "keep\nnew\n",
        "/text2": "replaced\n",
    }
    assert [fs.stat(path).mode for path in ("/a", "/b")] == [0o644, 0o755]


# An operation that is refused, after and before others that are not.
REFUSED = {
    "a file that is missing": "*** Update File: no\n@@\n-1\n+2",
    "a file to delete that is missing": "*** Delete File: no",
    "a hunk that does not fit": "*** Update File: text2\n@@\n-no\n+2",
    "bytes that are not text": "*** Update File: bytes\n@@\n-1\n+2",
    "a file below a file": "*** Add File: text2/x\n+1",
    "a file in place of a directory": "*** Add File: d/empty\n+1",
    "a path outside": "*** Add File: ../../x\n+1",
    "a name that is too long": "*** Add File: " + "n" * 300 + "\n+1",
    "text that is not text": "*** Add File: s\n+\ud800",
    "a line of no operation": "*** Update File: text2\n@@\n-2\n+3\nno",
}


def on_disk(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return the mode, the time, the number of names and the contents of everything below a directory."""
    found: dict[str, tuple[int, int, int, bytes]] = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        names = status.st_nlink if path.is_file() else 0
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, names, content)
    return found


def aged(root: Path) -> None:
    """Give every entry the same old time, which a change that is undone must not lose."""
    for path in [*root.rglob("*"), root]:
        os.utime(path, ns=(10**18, 10**18))


@pytest.mark.parametrize("overlaid", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_change_leaves_contents_modes_and_times_on_the_disk(
    case: str, overlaid: bool, tmp_path: Path
) -> None:
    host = on_the_host(tmp_path)
    host.write_bytes("/bytes", b"\xff\n1\n")
    os.link(tmp_path / "root" / "text", tmp_path / "root" / "same")
    aged(tmp_path / "root")
    fs: Filesystem = OverlayFilesystem(host) if overlaid else host
    before, tree = on_disk(tmp_path / "root"), fs.tree().fingerprint
    first, rest = PATCH.split("*** Update File: a\n")

    with pytest.raises(PatchError):
        apply_patch(fs, f"{first}{REFUSED[case]}\n*** Update File: a\n{rest}")

    assert on_disk(tmp_path / "root") == before
    assert fs.tree().fingerprint == tree


@pytest.mark.parametrize("overlaid", [False, True])
def test_a_failure_at_any_point_leaves_modes_and_times_on_the_disk(
    overlaid: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = on_the_host(tmp_path)
    aged(tmp_path / "root")
    fs: Filesystem = OverlayFilesystem(host) if overlaid else host
    before = on_disk(tmp_path / "root")
    for step in range(1, STEPS + 1):
        with failing_at(monkeypatch, fs, step):
            assert outcome(fs, PATCH) is not None
        assert on_disk(tmp_path / "root") == before, f"after a failure at change {step}"


@pytest.mark.parametrize("make", [in_memory, on_the_host])
def test_a_patch_whose_last_line_is_wrong_writes_no_record(make: Callable[[Path], Filesystem], tmp_path: Path) -> None:
    fs = make(tmp_path)
    assert isinstance(fs, InMemoryFilesystem | HostFilesystem)
    assert fs.session is not None
    before, seq = fs.tree().fingerprint, fs.session.seq
    for wrong in ("*** Delete File: no\n*** End Patch", "*** End"):
        with pytest.raises(PatchError):
            apply_patch(fs, PATCH.replace("*** End Patch", wrong))
    assert (fs.tree().fingerprint, fs.session.seq) == (before, seq)


@pytest.mark.parametrize("make", [in_memory, on_the_host])
@pytest.mark.parametrize("is_plain", [False, True])
def test_a_dry_run_gives_the_same_report_and_writes_nothing(
    make: Callable[[Path], Filesystem], is_plain: bool, tmp_path: Path
) -> None:
    fs = make(tmp_path)
    assert isinstance(fs, InMemoryFilesystem | HostFilesystem)
    assert fs.session is not None
    given: Filesystem = Plain(fs) if is_plain else fs  # type: ignore[assignment]  # it answers through __getattr__
    before, seq = fs.tree().fingerprint, fs.session.seq

    planned = apply_patch(given, PATCH, dry_run=True)
    assert (fs.tree().fingerprint, fs.session.seq) == (before, seq)
    done = apply_patch(given, PATCH)

    assert planned.dry_run
    assert not done.dry_run
    assert (planned.changed_paths, planned.ops, planned.replaced, planned.hunks, planned.summary) == (
        done.changed_paths,
        done.ops,
        done.replaced,
        done.hunks,
        done.summary,
    )


def test_changes_that_cannot_be_undone_are_reported_in_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fs = in_memory(tmp_path)
    done = [0]

    def write_bytes(*arguments: object, **options: object) -> None:
        done[0] += 1
        raise OSError("full")

    monkeypatch.setattr(InMemoryFilesystem, "write_bytes", write_bytes)
    with pytest.raises(OSError, match="full") as caught:
        apply_patch(Plain(fs), "*** Begin Patch\n*** Delete File: gone\n*** Add File: n\n+x\n*** End Patch")  # type: ignore[arg-type]  # it answers through __getattr__
    assert caught.value.__notes__ == ["and it could not be undone: full"]


@pytest.mark.parametrize("most", range(9, 18))
@pytest.mark.parametrize("is_plain", [False, True])
def test_a_dry_run_checks_quotas_like_the_real_call(most: int, is_plain: bool) -> None:
    fs = filled(InMemoryFilesystem(limits=Limits(max_node_count=9)))
    tight = InMemoryFilesystem(fs.session, limits=Limits(max_node_count=most))  # type: ignore[attr-defined]  # it has one
    given: Filesystem = Plain(tight) if is_plain else tight  # type: ignore[assignment]  # it answers through __getattr__

    planned = outcome(given, PATCH, dry_run=True)
    done = outcome(given, PATCH)

    assert str(planned) == str(done)
    assert (done is None) == (most >= 10)

"""What programs do in a mount is done to the session's files, one event per change, as part of the running call."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.integrations.mount.conftest import Run
from weakfs import InMemoryFilesystem, Limits, OverlayFilesystem, Policy, PolicyRule, Session, Toolset
from weakfs.integrations.mount import MountError, mount
from weakfs.reducers import FileAppended, FileSpliced, FileWritten
from weakfs.tools import CONTENTS, ExternalCallFailed
from weakfs.tools.permissions.operations import Operation
from weakfs.tools.permissions.rules import Effect

OTHER_PROCESS = [sys.executable, "-c"]


def events(files: InMemoryFilesystem) -> list[object]:
    assert files.session is not None
    return [record.event for record in files.session.records]


def test_programs_see_the_files_and_change_them(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    files.write("/src/app.py", "port = 80\n")
    files.symlink("app.py", "/src/main.py")
    with mount(files, place):
        assert run("ls -F; cat src/main.py; readlink src/main.py") == "src/\nport = 80\napp.py\n"
        run("echo 'debug = 1' >> src/app.py; mkdir -p docs/a; mv src/main.py docs/a/; chmod 750 src/app.py; touch new")
        assert files.read("/src/app.py").content == "port = 80\ndebug = 1\n"
        assert files.stat("/src/app.py").mode == 0o750
        assert files.readlink("/docs/a/main.py") == "app.py"
        assert files.read("/new").content == ""
        run("rm -r docs src")
        assert [entry.path for entry in files.list()] == ["/new"]


def test_a_change_is_as_small_as_what_was_written(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    files.write_bytes("/f", b"0123456789")
    with mount(files, place):
        run("printf abc >> f")
        run("printf XY | dd of=f bs=1 seek=4 conv=notrunc 2>/dev/null")
        run("truncate -s 3 f")
        run("cat f > g")
    assert events(files)[1:5] == [
        FileAppended("/f", b"abc", events(files)[1].at),  # type: ignore[attr-defined]
        FileSpliced("/f", ((4, 6, b"XY"),), events(files)[2].at),  # type: ignore[attr-defined]
        FileSpliced("/f", ((3, 13, b""),), events(files)[3].at),  # type: ignore[attr-defined]
        FileWritten("/g", b"", events(files)[4].at),  # type: ignore[attr-defined]
    ]
    assert files.read_bytes("/g").content == b"012"


def test_times_and_odd_names_are_kept(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    name = b"\xff\\ \n\xc3\xa4"
    with mount(files, place):
        (Path(os.fsdecode(os.fsencode(place) + b"/" + name))).write_bytes(b"odd")
        run("echo 1 > a; touch -d @1000000000.123456789 a; cp -p a b; stat -c %.9Y b")
        assert run("stat -c %.9Y a b").split() == ["1000000000.123456789"] * 2
        assert os.listdir(os.fsencode(place)) == [b"a", b"b", name]
    assert files.stat("/b").modified_ns == 1_000_000_000_123_456_789
    with mount(files, place):
        assert run("cat ./?*odd* 2>/dev/null || cat [!ab]*") == "odd"


@pytest.mark.parametrize("seconds", [99_999_999_999, -99_999_999_999])
def test_a_time_beyond_64_bits_is_the_nearest_that_can_be_saved(
    files: InMemoryFilesystem, place: Path, run: Run, tmp_path: Path, seconds: int
) -> None:
    with mount(files, place):
        run(f"echo 1 > a; touch -d @{seconds} a")
    assert files.stat("/a").modified_ns == ((1 << 63) - 1 if seconds > 0 else -(1 << 63))
    assert files.session is not None
    files.session.save(tmp_path / "s.json")


def test_impossible_operations_are_refused_and_change_nothing(place: Path) -> None:
    files = InMemoryFilesystem(limits=Limits(max_file_size=1000, max_total_size=3000, max_path_depth=3))
    files.write("/a", "a")
    files.write("/d/b", "b")
    before = files.tree()
    with mount(files, place):
        for command, reason in [
            ("ln a c", "Operation not permitted"),
            ("mkfifo c", "Operation not permitted"),
            ("rmdir d", "not empty"),
            ("mkdir -p c/c/c/c/c || { rm -r c; false; }", "File name too long"),
            ("truncate -s 1001 a", "File too large"),
            ("truncate -s 100T a", "File too large"),
            ("mv -T a d", "directory"),
            ("mv d d/e", "subdirectory of itself"),
            ("chown 12345 a", "not permitted"),
        ]:
            done = subprocess.run(["sh", "-c", command], cwd=place, capture_output=True, text=True, timeout=300)
            assert done.returncode, command
            assert reason in done.stderr
        for number in range(4):
            with pytest.raises(OSError, match="quota") if number == 3 else open(os.devnull):
                (place / "d" / f"big{number}").write_bytes(bytes(990))
    for number in range(4):
        files.delete(f"/d/big{number}")
    assert files.tree().fingerprint == before.fingerprint


@pytest.mark.parametrize("how", ["option", "view", "filesystem"])
def test_a_read_only_mount(files: InMemoryFilesystem, place: Path, run: Run, how: str) -> None:
    session = files.session
    assert session is not None
    files.write("/a", "1")
    shown = {
        "option": files,
        "view": InMemoryFilesystem(session.at(session.seq)),
        "filesystem": InMemoryFilesystem(session, read_only=True),
    }[how]
    with mount(shown, place, read_only=how == "option"):
        assert run("cat a") == "1"
        for command in ("echo 2 > a", "rm a", "touch b", "chmod 600 a", "mkdir d", "mv a b"):
            done = subprocess.run(["sh", "-c", command], cwd=place, capture_output=True, text=True, timeout=300)
            assert "Read-only file system" in done.stderr
    assert session.seq == 1


def test_a_past_moment_stays_as_it_was(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    session = files.session
    assert session is not None
    files.write("/a", "before")
    past = InMemoryFilesystem(session.at(session.seq))
    files.write("/a", "after")
    with mount(past, place):
        assert run("cat a") == "before"


def test_changes_of_the_session_are_seen_at_once(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    session = files.session
    assert session is not None
    files.write("/a", "one")
    with mount(files, place):
        assert run("cat a") == "one"
        files.write("/a", "and two")
        assert run("cat a; stat -c %s a") == "and two7\n"
        session.undo()
        assert run("cat a; stat -c %s a") == "one3\n"


# Calls


def test_changes_by_a_program_belong_to_the_call(files: InMemoryFilesystem, place: Path) -> None:
    session = files.session
    assert session is not None
    with mount(files, place) as mounted:
        tools = Toolset(session, mounted.files)
        with tools.external_call("build", {}, call_id="c1") as call:
            subprocess.run("echo 1 > made; echo 2 > other", shell=True, cwd=call.directory, check=True)
        assert call.result is not None
        assert call.result.success
        assert call.result.value is not None
        assert call.result.value.changed_paths == ("/made", "/other")
        assert {record.cause for record in session.records if isinstance(record.event, FileWritten)} == {"c1"}
        session.revert("c1")
        assert list(place.iterdir()) == []


def test_a_failed_call_is_undone_with_its_unstored_writes(files: InMemoryFilesystem, place: Path) -> None:
    session = files.session
    assert session is not None
    files.write("/a", "kept")
    with mount(files, place) as mounted:
        tools = Toolset(session, mounted.files)
        with (
            (place / "a").open("ab", buffering=0) as opened,
            pytest.raises(RuntimeError, match="half-way"),
            tools.external_call("build", {}, call_id="c1") as call,
        ):
            subprocess.run("rm -rf *; echo 2 > other", shell=True, cwd=call.directory, check=True)
            opened.write(b"lost")
            raise RuntimeError("half-way")
        assert (place / "a").read_text() == "kept"
        assert os.listdir(place) == ["a"]


HIDDEN: list[tuple[Effect, tuple[Operation, ...]]] = [("deny", CONTENTS), ("blob", ("read",))]


@pytest.mark.parametrize(("effect", "operations"), HIDDEN)
def test_no_program_of_a_toolset_sees_files_in_a_mount_that_its_policy_hides(
    effect: Effect, operations: tuple[Operation, ...], files: InMemoryFilesystem, place: Path
) -> None:
    session = files.session
    assert session is not None
    files.write("/prod.key", "wombat\n")
    with mount(files, place) as mounted:
        rule = PolicyRule(effect=effect, operations=operations, paths=("*.key",), reason="a secret")
        tools = Toolset(session, mounted.files, policy=Policy([rule]))
        assert "wombat" not in tools.call("read_file", {"path": "/prod.key"}).message
        assert tools.call("shell", {"command": "cat *.key"}).error_code == "path_forbidden"
        with pytest.raises(ExternalCallFailed, match="cannot run a program"):
            tools.external_call("build", {}).begin()


def test_only_one_call_works_in_a_mount(files: InMemoryFilesystem, place: Path) -> None:
    session = files.session
    assert session is not None
    with mount(files, place) as mounted:
        tools = Toolset(session, mounted.files)
        with tools.external_call("one", {}) as first:
            second = tools.external_call("two", {})
            with pytest.raises(RuntimeError, match="another call is using it"):
                second.begin()
            (place / "a").write_text("1")
        assert first.result is not None
        assert first.result.success
        assert files.read("/a").content == "1"


def test_a_checkout_is_undone_as_one_operation(files: InMemoryFilesystem, place: Path) -> None:
    files.write("/a", "1")
    with mount(files, place) as mounted, mounted.files.checkout() as work:  # type: ignore[attr-defined]
        subprocess.run("echo 2 > a; mkdir d; echo 2 > d/b", shell=True, cwd=work.directory, check=True)
    assert files.session is not None
    files.session.undo()
    assert [entry.path for entry in files.walk()] == ["/a"]
    assert files.read("/a").content == "1"


def test_set_id_bits_do_not_survive_a_call(files: InMemoryFilesystem, place: Path) -> None:
    with mount(files, place) as mounted, mounted.files.checkout() as work:  # type: ignore[attr-defined]
        subprocess.run("echo > tool; chmod 4755 tool", shell=True, cwd=work.directory, check=True)
    assert work.set_id_removed == ("/tool",)
    assert files.stat("/tool").mode == 0o755


# Open files


def test_an_open_file_can_be_deleted_moved_or_replaced(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    for name in ("deleted", "moved", "replaced"):
        files.write(f"/d/{name}", "old ")
    with mount(files, place):
        opened = {name: (place / "d" / name).open("r+b", buffering=0) for name in ("deleted", "moved", "replaced")}
        run("rm d/deleted; mv d/moved d/here; echo new > n; mv n d/replaced; mv d e")
        for file in opened.values():
            file.seek(0, os.SEEK_END)
            file.write(b"end")
            file.seek(0)
            assert file.read() == b"old end"
            assert os.fstat(file.fileno()).st_size == 7
            file.truncate(3)
            file.close()
    assert sorted(entry.path for entry in files.list("/e")) == ["/e/here", "/e/replaced"]
    assert files.read("/e/here").content == "old"
    assert files.read("/e/replaced").content == "new\n"


def test_unstored_writes_are_visible_to_other_programs(files: InMemoryFilesystem, place: Path) -> None:
    with mount(files, place) as mounted, (place / "a").open("wb", buffering=0) as writer:
        writer.write(b"12345")
        assert (place / "a").read_bytes() == b"12345"
        assert (place / "a").stat().st_size == 5
        assert files.read_bytes("/a").content in (b"", b"12345")
        os.fsync(writer.fileno())
        assert files.read_bytes("/a").content == b"12345"
        writer.seek(10)
        writer.write(b"!")
        mounted.store()
        assert files.read_bytes("/a").content == b"12345\0\0\0\0\0!"


def test_a_program_that_writes_last_wins_over_the_session(files: InMemoryFilesystem, place: Path) -> None:
    with mount(files, place):
        with (place / "a").open("wb", buffering=0) as writer:
            writer.write(b"program")
            files.write("/a", "session")
        assert files.read("/a").content == "program"


def test_a_program_that_writes_last_wins_over_another_process(tmp_path: Path, place: Path, run: Run) -> None:
    where = f"folder:{tmp_path}/stored"
    opened = partial(Session.open, where, "main", on_conflict="merge")
    with opened() as session, opened() as other:
        theirs = InMemoryFilesystem(other)
        with mount(InMemoryFilesystem(session), place):
            run("echo one > a; echo one > b")
            other.refresh()
            with open(place / "a", "r+b", buffering=0) as first, open(place / "b", "r+b", buffering=0) as second:
                theirs.write("/a", "two\n")
                theirs.delete("/b")
                # Neither is an error when the file is closed: both are written.
                first.write(b"three\n")
                second.write(b"three\n")
            assert run("cat a b") == "three\nthree\n"
        other.refresh()
        assert theirs.read("/a").content == theirs.read("/b").content == "three\n"


@pytest.mark.parametrize("limits", [Limits(max_total_size=3_000_000), Limits(max_file_size=None)])
def test_unstored_writes_to_many_files_are_bounded_together(
    place: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weakfs.integrations.mount.open_files.LARGEST", 3_000_000)
    files = InMemoryFilesystem(Session(), limits=limits)
    with mount(files, place), ExitStack() as stack:
        opened = [stack.enter_context(open(place / str(number), "wb", buffering=0)) for number in range(4)]
        for one in opened[:3]:
            os.truncate(one.fileno(), 1_000_000)
        with pytest.raises(OSError, match="No space left"):
            opened[3].write(b"x")
        # There is room again when one of them is shorter, or stored.
        os.truncate(opened[0].fileno(), 0)
        opened[3].write(b"x")
        stack.close()
    assert files.read("/3").content == "x"
    assert files.stat("/1").size_bytes == 1_000_000


def test_a_file_too_large_to_be_written_can_still_be_read_emptied_and_removed(
    tmp_path: Path, place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weakfs import HostFilesystem

    monkeypatch.setattr("weakfs.integrations.mount.open_files.LARGEST", 1000)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "big").write_bytes(b"x" * 2000)
    (tmp_path / "work" / "other").write_bytes(b"x" * 2000)
    session = Session()
    files = HostFilesystem(
        tmp_path / "work", session=session, store=tmp_path / "store", limits=Limits(max_file_size=None)
    )
    with mount(files, place):
        assert run("wc -c < big") == "2000\n"
        with open(place / "big", "r+b", buffering=0) as stream, pytest.raises(OSError, match="too large"):
            stream.write(b"y")
        run("echo a > big; rm other")
        assert run("ls; cat big") == "big\na\n"
    assert (tmp_path / "work" / "big").read_text() == "a\n"


def test_an_open_file_is_moved_to_a_place_with_an_odd_name(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    with mount(files, place):
        run("echo a > a; mkdir .fuse_hidden_things")
        with open(place / "a"):
            run("mv a .fuse_hidden_things/a")
    assert files.read("/.fuse_hidden_things/a").content == "a\n"


@pytest.mark.parametrize("effect", ["deny", "blob", "only"])
def test_files_that_rules_hide_are_not_mounted(files: InMemoryFilesystem, place: Path, effect: Effect) -> None:
    from weakfs.tools.permissions import guarded

    files.write("/secret", "x")
    rule = PolicyRule(effect=effect, operations=["read"], paths="/secret", reason="a secret")
    inside = guarded(files, None, Policy([rule]), None)
    with pytest.raises(PermissionError, match="the policy has rules"), mount(inside, place):
        pass


def test_a_shared_mapping_works(files: InMemoryFilesystem, place: Path) -> None:
    files.write_bytes("/a", bytes(10_000))
    code = (
        "import mmap; f = open('a', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[5000:5003] = b'abc'; m.flush(); "
        "m[1:2] = b'x'; m.close(); f.close()"
    )
    with mount(files, place):
        subprocess.run([*OTHER_PROCESS, code], cwd=place, check=True, timeout=300)
    content = files.read_bytes("/a").content
    assert len(content) == 10_000
    assert (content[5000:5003], content[1:2], content.count(0)) == (b"abc", b"x", 9_996)


def test_random_programs_have_the_same_result_as_in_a_directory(
    files: InMemoryFilesystem, place: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    chance = random.Random(7)
    names = ["a", "b", "d", "d/a", "d/b", "e", "e/d"]

    def step(root: Path, seed: int) -> str:
        dice = random.Random(seed)
        one, other = root / dice.choice(names), root / dice.choice(names)
        try:
            match dice.randrange(9):
                case 0:
                    one.write_bytes(dice.randbytes(dice.randrange(20)))
                case 1:
                    with one.open("ab") as file:
                        file.write(b"more")
                case 2:
                    with one.open("r+b") as file:
                        file.seek(dice.randrange(30))
                        file.write(dice.randbytes(3))
                case 3:
                    os.truncate(one, dice.randrange(30))
                case 4:
                    one.mkdir()
                case 5:
                    one.unlink()
                case 6:
                    one.rmdir()
                case 7:
                    one.rename(other)
                case _:
                    one.symlink_to("a")
        except OSError as error:
            return type(error).__name__
        return ""

    with mount(files, place):
        for _ in range(400):
            seed = chance.randrange(1 << 30)
            assert step(place, seed) == step(plain, seed), seed
            assert shape(place) == shape(plain)
    session = files.session
    assert session is not None
    assert session.at(session.seq).seq == session.seq


def shape(root: Path) -> dict[str, object]:
    return {
        str(path.relative_to(root)): os.readlink(path) if path.is_symlink() else path.is_dir() or path.read_bytes()
        for path in sorted(root.rglob("*"))
    }


# Beginning and end


def test_an_error_says_why_nothing_can_be_mounted(files: InMemoryFilesystem, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    full = tmp_path / "full"
    full.mkdir()
    (full / "hidden").write_text("")
    for directory, problem in [
        (tmp_path / "none", FileNotFoundError),
        (tmp_path / "file", NotADirectoryError),
        (full, MountError),
    ]:
        with pytest.raises(problem), mount(files, directory):
            pass


def test_a_mount_unmounted_by_somebody_else_ends_cleanly(files: InMemoryFilesystem, place: Path) -> None:
    with mount(files, place) as mounted:
        (place / "a").write_text("1")
        subprocess.run(["fusermount3", "-u", str(place)], check=True)
        mounted.wait()
        assert not mounted.is_mounted
    assert files.read("/a").content == "1"


def test_a_program_that_keeps_running_does_not_keep_the_mount(files: InMemoryFilesystem, place: Path) -> None:
    with mount(files, place):
        stays = subprocess.Popen([*OTHER_PROCESS, "print(1, flush=True); input()"], cwd=place, stdin=-1, stdout=-1)
        assert stays.stdout is not None
        stays.stdout.readline()
    stays.communicate(b"\n")
    assert not os.path.ismount(place)


def test_a_mount_changes_neither_the_working_directory_nor_the_umask(
    files: InMemoryFilesystem, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.parent)
    before = os.umask(0o027)
    try:
        with mount(files, place.name):
            assert os.getcwd() == str(place.parent)
        assert os.getcwd() == str(place.parent)
    finally:
        assert os.umask(before) == 0o027


def test_an_exception_in_the_block_ends_the_mount(files: InMemoryFilesystem, place: Path) -> None:
    with pytest.raises(ZeroDivisionError), mount(files, place):
        (place / "a").write_text("1")
        raise ZeroDivisionError
    assert files.read("/a").content == "1"


def test_an_overlay_is_mounted(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    files.write("/a", "below")
    layer = OverlayFilesystem(files, Session())
    with mount(layer, place):
        assert run("cat a; echo above > a; rm -f b; mkdir c; cat a") == "belowabove\n"
    assert files.read("/a").content == "below"
    assert layer.read("/a").content == "above\n"


# Programs


@pytest.mark.exhaustive
def test_git_works_in_a_mount(files: InMemoryFilesystem, place: Path, run: Run, tmp_path: Path) -> None:
    made = "git -c init.defaultBranch=main"
    who = "-c user.name=n -c user.email=n@example.com"
    with mount(files, place):
        run(f"{made} init -q one; cd one; seq 1000 > f; mkdir d; echo 1 > d/g; git add .; git {who} commit -qm one")
        run(f"cd one; git mv f h; echo 2 > d/g; git {who} commit -qam two; git gc -q; git fsck --strict")
        run(f"{made} clone -q one two; cd two; git checkout -q HEAD~1; git status --short; test -f f")
        assert run("cd two; git log --format=%s --all").split() == ["two", "one"]
        run("rm -rf one two")
    assert [*files.walk()] == []


@pytest.mark.exhaustive
def test_a_database_and_a_test_run_work_in_a_mount(files: InMemoryFilesystem, place: Path, run: Run) -> None:
    code = """
import sqlite3
for mode in "wal", "delete":
    with sqlite3.connect("x.db") as db:
        db.execute(f"pragma journal_mode = {mode}")
        db.execute("create table if not exists t (a)")
        db.executemany("insert into t values (?)", [(n,) for n in range(500)])
    db.close()
"""
    with mount(files, place):
        subprocess.run([*OTHER_PROCESS, code], cwd=place, check=True, timeout=300)
        run("mkdir p; echo 'def test_it(): assert 1 + 1 == 2' > p/test_it.py")
        subprocess.run([sys.executable, "-m", "pytest", "-q", "p"], cwd=place, check=True, timeout=300)
    database = files.read_bytes("/x.db").content
    db = sqlite3.connect(":memory:")
    db.deserialize(database)
    assert db.execute("select count(*) from t").fetchone() == (1000,)
    db.close()


def test_concurrent_writers_lose_nothing(files: InMemoryFilesystem, place: Path) -> None:
    code = "import sys\nfor n in range(30): open('log', 'a').write(sys.argv[1] * 50 + '\\n')"
    with mount(files, place), ThreadPoolExecutor(4) as pool:
        done = pool.map(
            lambda name: subprocess.run([*OTHER_PROCESS, code, name], cwd=place, timeout=300).returncode, "abcd"
        )
        assert [*done] == [0] * 4
    lines = files.read("/log").content.splitlines()
    assert sorted(set(lines)) == [name * 50 for name in "abcd"]
    assert len(lines) == 120

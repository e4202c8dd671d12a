"""What programs do in a mount is done to the session's files, one event per change, as part of the running call."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integrations.mount.conftest import Run
from weakfs import HostFilesystem, InMemoryFilesystem, Limits, OverlayFilesystem, Policy, PolicyRule, Session
from weakfs.integrations.mount import MountError, mount
from weakfs.reducers import FileAppended, FileSpliced, FileWritten
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


def test_a_directory_in_the_mount_may_be_named_like_the_root_of_its_files(
    tmp_path: Path, place: Path, run: Run
) -> None:
    root = tmp_path / "root"
    inside = str(root)[1:]
    (root / inside).mkdir(parents=True)
    with mount(HostFilesystem(root), place):
        run(f"cd {inside}; echo new > made; echo moved > old; mv old {place}/here; cat made")
    assert (root / inside / "made").read_text() == "new\n"
    assert (root / "here").read_text() == "moved\n"
    assert sorted(os.listdir(root / inside)) == ["made"]


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

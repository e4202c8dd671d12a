"""The arguments of loading, what it leaves to the caller, and its errors for missing types."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT
from itertools import repeat
from pathlib import Path
from threading import Thread

import pytest
from attrs import frozen

from fixtures.sessions import story
from fixtures.sessions.kinds import Counted, Step, Total, registry
from weakfs import InMemoryFilesystem, Record, Registry, Session, SessionFileError, event
from weakfs.backends import HostMount
from weakfs.session import UnknownType
from weakfs.session.files import session_file


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    story.tell().save(tmp_path / "session.json")
    return tmp_path / "session.json"


@contextmanager
def piped(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the path of a pipe into which a thread writes pieces until there are no more, or nobody reads them."""
    reader, writer = os.pipe()

    def write() -> None:
        with suppress(BrokenPipeError), open(writer, "wb", buffering=0) as stream:
            for piece in pieces:
                stream.write(piece)

    thread = Thread(target=write)
    thread.start()
    try:
        yield f"/dev/fd/{reader}"
    finally:
        os.close(reader)
        thread.join()


class Listener:
    def __init__(self) -> None:
        self.heard: list[Record] = []

    def publish(self, record: Record) -> None:
        self.heard.append(record)


def test_subscribers_get_new_records_after_loading_but_no_old_ones(saved: Path) -> None:
    bus = Listener()
    session = Session.load(saved, registry=registry(), bus=bus)
    story.prepare(session)
    assert bus.heard == []
    record = session.dispatch(Counted(1))
    assert bus.heard == [record]


def test_the_error_for_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    where = tmp_path / "no" / "session.json"
    with pytest.raises(FileNotFoundError) as raised:
        Session.load(where)
    assert raised.value.errno == ENOENT
    assert raised.value.strerror == (
        f"cannot load {str(where)!r}: there is no such file; check the path, or begin a new session with Session()"
    )


def test_the_error_for_a_folder_names_the_way_to_open_it(tmp_path: Path) -> None:
    story.tell().copy_to(tmp_path / "work")
    with pytest.raises(IsADirectoryError, match=r"work': it is a directory; open .* with Session\.open"):
        Session.load(tmp_path / "work")


def test_a_device_is_refused_without_reading_it(tmp_path: Path) -> None:
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for path in ("/dev/zero", "/dev/null", tmp_path / "zeros"):
        with pytest.raises(SessionFileError, match="is a device and not a session file; check the path"):
            Session.load(path)


def test_a_huge_file_that_is_no_session_is_refused_without_reading_it(tmp_path: Path) -> None:
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 40)
    with pytest.raises(SessionFileError, match="this is not a session file"):
        Session.load(tmp_path / "sparse")


def test_a_session_is_loaded_from_a_pipe(saved: Path) -> None:
    with piped([saved.read_bytes()]) as path:
        session = Session.load(path, registry=registry())
    assert session.to_bytes() == Session.load(saved, registry=registry()).to_bytes()


@pytest.mark.parametrize("piece", [bytes(1 << 16), b'{"' * (1 << 15)])
def test_a_pipe_without_an_end_is_refused(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_file, "MOST_PIPED", 1 << 21)
    with piped(repeat(piece)) as path, pytest.raises(SessionFileError, match="has more than 2097152 bytes"):
        Session.load(path)


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot load .*: the name of a file cannot contain NUL; use another name"):
        Session.load("a\0b")
    with pytest.raises(ValueError, match=r"cannot save to .*: the name of a file cannot contain NUL; use another name"):
        Session(session_id="s").save("a\0b")


def test_the_error_for_a_looping_link_names_it_and_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match=f"cannot load '{tmp_path / 'loop'}': .*; check the path and its permissions"):
        Session.load(tmp_path / "loop")


def test_loading_reads_no_clock_and_generates_no_id(saved: Path) -> None:
    def never() -> str:
        raise AssertionError("an id was asked for")

    clock = story.Clock(0)
    session = Session.load(saved, registry=registry(), clock=clock, new_id=never)
    assert clock.now == 0
    assert session.session_id == "story"
    assert session.dispatch(Step("later")).at == story.STEP


def test_loading_runs_no_reducer(saved: Path) -> None:
    ran: list[Counted] = []

    def spy(value: Step | None, event: Counted) -> Step | None:
        ran.append(event)
        return value

    known = registry()
    session = Session.load(saved, registry=known)
    session[Step].register(Counted, spy)
    assert ran == []
    session.dispatch(Counted(1))
    assert len(ran) == 1


def test_two_sessions_loaded_from_one_file_are_independent(saved: Path) -> None:
    one, other = (Session.load(saved, registry=registry()) for _ in range(2))
    InMemoryFilesystem(one).write("/only/in/one", "x")
    assert not InMemoryFilesystem(other).exists("/only/in/one")
    assert other.seq == one.seq - 1


def test_a_path_may_be_text_or_a_path_and_go_through_a_link(saved: Path) -> None:
    link = saved.parent / "link"
    link.symlink_to(saved)
    for path in (saved, str(saved), link):
        assert Session.load(path, registry=registry()).session_id == "story"


def test_the_error_for_an_incomplete_registry_names_the_missing_type(saved: Path) -> None:
    with pytest.raises(UnknownType, match=r"^\$\.\w+.*'story/\w+'.*with_types") as refusal:
        Session.load(saved)
    assert isinstance(refusal.value, SessionFileError)


@event("elsewhere/step")
@frozen
class Moved:
    """The type of another program, or of this one after it was renamed."""

    name: str
    receipt: dict[str, object]
    output: bytes


def test_a_renamed_type_can_keep_its_old_tag(tmp_path: Path) -> None:
    session = Session(session_id="s", registry=registry())
    session.install(Step, kind="log")
    session[Step].append(Step("first", {"n": 1}, b"out"))
    session.save(tmp_path / "s.json")
    back = Session.load(tmp_path / "s.json", registry=Registry.standard().with_tags({"story/step": Moved}))
    assert back[Moved].all() == (Moved("first", {"n": 1}, b"out"),)


def test_a_slice_installed_under_a_custom_tag_is_loaded_under_it(tmp_path: Path) -> None:
    session = Session(session_id="s")
    session.install(Total, tag="mine", initial=Total(3))
    session.dispatch(Counted(4))
    session.save(tmp_path / "s.json")
    known = Registry.standard().with_tags({"mine": Total, "story/counted": Counted})
    back = Session.load(tmp_path / "s.json", registry=known)
    back.install(Total, tag="mine", initial=Total(3))
    assert back[Total].latest() == back.at(1)[Total].latest() == Total(7)
    assert back.at(0)[Total].latest() == Total(3)


@frozen
class Version1:
    name: str
    count: int


@frozen
class Version2:
    name: str
    count: int
    colour: str = "grey"
    sizes: tuple[int, ...] = ()


@frozen
class Version3:
    name: str


def known_as(kind: type) -> Registry:
    return Registry.standard().with_tags({"thing": kind})


def test_a_type_that_gained_fields_with_defaults_still_loads(tmp_path: Path) -> None:
    session = Session(session_id="s", registry=known_as(Version1))
    session.install(Version1, tag="thing")
    session[Version1].append(Version1("a", 1))
    session.dispatch(Version1("b", 2))
    session.save(tmp_path / "s.json")
    back = Session.load(tmp_path / "s.json", registry=known_as(Version2))
    assert back[Version2].all() == (Version2("a", 1),)
    assert back.records[1].event == Version2("b", 2)


def test_a_type_that_lost_a_field_says_so(tmp_path: Path) -> None:
    session = Session(session_id="s", registry=known_as(Version1))
    session.install(Version1, tag="thing")
    session[Version1].append(Version1("a", 1))
    session.save(tmp_path / "s.json")
    with pytest.raises(SessionFileError, match="Version3 has no field 'count'"):
        Session.load(tmp_path / "s.json", registry=known_as(Version3))


def test_a_default_that_changed_does_not_change_old_files(tmp_path: Path) -> None:
    @frozen
    class Before:
        colour: str = "grey"

    @frozen
    class After:
        colour: str = "red"

    session = Session(session_id="s", registry=known_as(Before))
    session.install(Before, tag="thing")
    session[Before].append(Before())
    session.dispatch(Before())
    session.save(tmp_path / "s.json")
    back = Session.load(tmp_path / "s.json", registry=known_as(After))
    assert back[After].all() == (After("grey"),)
    assert back.records[1].event == After("grey")


def test_opening_a_mount_on_a_loaded_session_does_not_repeat_it(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "a").write_text("first")
    session = Session(session_id="s")
    InMemoryFilesystem(session, mounts=[HostMount(str(tmp_path / "host"), "/m")])
    session.save(tmp_path / "s.json")
    (tmp_path / "host" / "a").write_text("second")
    back = Session.load(tmp_path / "s.json")
    filesystem = InMemoryFilesystem(back, mounts=[HostMount(str(tmp_path / "host"), "/m")])
    assert filesystem.read("/m/a").content == "first"
    assert len(back.records) == len(session.records)


def test_a_local_class_says_that_it_cannot_be_resolved() -> None:
    @frozen
    class Inner:
        number: int

    @frozen
    class Local:
        inner: Inner

    session = Session(session_id="s")
    with pytest.raises(TypeError, match=r"'Inner' is not defined\); define it at module level"):
        session[Local].append(Local(Inner(1)))


@frozen
class Point:
    x: int
    y: int


def test_the_error_for_several_wrong_fields_names_the_first_and_their_number(tmp_path: Path) -> None:
    session = Session(session_id="s", registry=known_as(Point), clock=lambda: 0)
    session.install(Point, tag="thing")
    session[Point].seed(Point(111, 222))
    path = tmp_path / "s.json"
    session.save(path)
    path.write_bytes(path.read_bytes().replace(b"111", b'"x"').replace(b"222", b'"y"'))
    with pytest.raises(SessionFileError, match=r"\(and 1 more\)"):
        Session.load(path, registry=known_as(Point))

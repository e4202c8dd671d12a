"""Opening the container of a session: with names of any kind, by one process at a time, and over its own image only."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from errno import EBUSY
from pathlib import Path

import pytest

from tests.containers import IMAGE, image_archive
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, ImageNotFound, Podman, containers, remove_unused
from weakfs.backends.container.lifecycle import find_or_create, replacement
from weakfs.backends.container.lifecycle.podman import labelled

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("never_hung")]

TOP = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _nothing_is_left(podman: Podman) -> Iterator[None]:
    others = set(labelled(podman, "weakfs.session"))
    yield
    for one in set(labelled(podman, "weakfs.session")) - others:
        podman.remove(one)


def opened(podman: Podman, session: Session, store: str | Path, **options: object) -> ContainerFilesystem:
    return ContainerFilesystem(
        session,
        **{"image": IMAGE, "store": store, "runtime": podman, **options},  # type: ignore[arg-type]  # by name
    )


def test_a_container_whose_reopening_fails_is_released(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = opened(podman, session, tmp_path / "store")
    files.exec("echo kept > kept")
    files.close()
    with pytest.raises(ValueError, match="its session already keeps snapshots of it in"):
        opened(podman, session, tmp_path / "another store")
    files = opened(podman, session, tmp_path / "store")
    assert files.exec("cat kept").stdout == "kept\n"
    files.container.remove()


# Names


@pytest.mark.parametrize("text", ["a,b", "a\nb", "-x", 'a"b', "\N{SNOWMAN} =:"])
def test_sessions_containers_and_stores_may_have_any_name(podman: Podman, tmp_path: Path, text: str) -> None:
    session = Session(session_id=text)
    files = opened(podman, session, tmp_path / f"{text}:", name=text, variables={"TEXT": text})
    assert files.exec('echo kept > kept; echo "$TEXT $MORE"', environment={"MORE": text}).stdout == f"{text} {text}\n"
    session.save(tmp_path / "session.json")
    files.close()
    again = opened(podman, Session.load(tmp_path / "session.json"), tmp_path / f"{text}:", name=text)
    assert again.container.name == files.container.name
    assert again.read("kept").content == "kept\n"
    assert [one.name for one in containers(podman, session_id=text)] == [text]
    assert containers(podman, session_id=text[:-1]) == ()


def test_a_container_is_found_from_another_working_directory(
    podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session()
    files = opened(podman, session, "store")
    files.exec("echo kept > kept")
    files.close()
    monkeypatch.chdir("/")
    assert opened(podman, session, tmp_path / "store").container.name == files.container.name


@pytest.mark.parametrize(
    "options",
    [
        {"image": "a\0b"},
        {"user": "a\0b"},
        {"network": "a\ud800"},
        {"capabilities": ["a\0b"]},
        {"name": "a\0b"},
        {"variables": {"A=B": "c"}},
        {"variables": {"": "c"}},
        {"variables": {"A": "\0"}},
    ],
)
def test_arguments_that_no_command_can_take_are_refused(
    podman: Podman, tmp_path: Path, options: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"leave out NUL|use another name"):
        opened(podman, Session(), tmp_path, **options)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("image", ["--help", "-x", "--", "a b"])
def test_the_name_of_an_image_is_never_parsed_as_an_option(podman: Podman, tmp_path: Path, image: str) -> None:
    with pytest.raises(OSError, match="the image"):
        opened(podman, Session(), tmp_path, image=image)


def test_variables_that_no_shell_can_set_are_refused(podman: Podman, tmp_path: Path) -> None:
    files = opened(podman, Session(), tmp_path)
    for name in ("", "A B", "A;echo x", "A=B", "1A", "-x"):
        with pytest.raises(ValueError, match="cannot set the variable"):
            files.exec("echo x > new", environment={name: "x"})
    with pytest.raises(ValueError, match="cannot set the variable A"):
        files.exec("echo x > new", environment={"A": "x\0"})
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="timeout is"):
            files.exec("echo x > new", timeout=timeout)
    with pytest.raises(ValueError, match="max_output is"):
        files.exec("echo x > new", max_output=-1)
    assert not files.exists("new")


# Processes


OPENING = """
import sys
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, Podman

image, folder, *options = sys.argv[1:]
session = Session.load(f"{folder}/session.json")
sys.stdin.readline()
try:
    files = ContainerFilesystem(session, image=image, store=f"{folder}/store", runtime=Podman(options=tuple(options)))
    files.exec("echo $$ > pid")
    print("opened", flush=True)
    sys.stdin.readline()
    files.close()
except OSError as error:
    print(error, flush=True)
"""


def test_only_one_of_the_processes_that_open_a_session_gets_its_container(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    session.save(tmp_path / "session.json")
    words = [sys.executable, "-c", OPENING, IMAGE, str(tmp_path), *podman.options]
    runtimes = [
        subprocess.Popen(words, cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    try:
        for one in runtimes:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        said = []
        for one in runtimes:
            assert one.stdout is not None
            said.append(one.stdout.readline())
        assert said.count("opened\n") == 1
        assert sum("another process uses it" in line for line in said) == 2
        assert len(containers(podman, session_id=session.session_id)) == 1
    finally:
        for one in runtimes:
            one.communicate()


@pytest.mark.parametrize("is_in_use", [True, False])
def test_processes_with_separate_stores_create_one_container_for_a_session(
    podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_use: bool
) -> None:
    session = Session()
    session.save(tmp_path / "session.json")
    find = find_or_create._find

    def find_and_be_overtaken(*words: object, **named: object) -> None:
        monkeypatch.setattr(find_or_create, "_find", find)
        assert find(*words, **named) is None  # type: ignore[arg-type]  # as they are
        files = opened(podman, Session.load(tmp_path / "session.json"), tmp_path / "other store")
        files.exec("echo kept > kept")
        if is_in_use:
            others.append(files)
        else:
            files.close()

    others: list[ContainerFilesystem] = []
    monkeypatch.setattr(find_or_create, "_find", find_and_be_overtaken)
    if is_in_use:
        with pytest.raises(OSError, match="another process uses it") as caught:
            opened(podman, session, tmp_path / "store")
        assert caught.value.errno == EBUSY
        assert others[0].exec("cat kept").stdout == "kept\n"
    else:
        assert opened(podman, session, tmp_path / "store").exec("cat kept").stdout == "kept\n"
    assert len(containers(podman, session_id=session.session_id)) == 1
    assert [one for one in os.listdir(tmp_path / "store/containers") if one.startswith("weakfs")] == []


def test_leftovers_of_a_killed_creation_under_the_same_name_are_removed(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    root = podman.options[podman.options.index("--root") + 1]
    state = f"{root}/libpod/bolt_state.db"
    shutil.copy(state, tmp_path / "before")
    opened(podman, session, tmp_path / "store").close()
    # As if the call had been killed before it recorded the container: its files and its name exist.
    shutil.copy(tmp_path / "before", state)
    assert containers(podman, session_id=session.session_id) == ()
    again = opened(podman, session, tmp_path / "store")
    assert again.exec("echo on").stdout == "on\n"
    assert len(containers(podman, session_id=session.session_id)) == 1


def test_a_process_that_opens_a_session_leaves_a_replacement_in_progress_alone(
    podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session()
    files = opened(podman, session, tmp_path / "store")
    files.exec("echo kept > kept")
    session.save(tmp_path / "session.json")
    inspected = files.container._inspect()
    for pid in (inspected.monitor, inspected.pid):
        os.kill(pid, signal.SIGKILL)
    layer, refused = replacement._layer, []

    def open_meanwhile(*words: object) -> str:
        monkeypatch.setattr(replacement, "_layer", layer)
        for remove in (False, True):
            if remove:
                refused.append(remove_unused(podman, session_id=session.session_id))
                continue
            with pytest.raises(OSError, match="another process uses it"):
                opened(podman, Session.load(tmp_path / "session.json"), tmp_path / "store")
            assert len(containers(podman, session_id=session.session_id)) == 2
        return layer(*words)  # type: ignore[arg-type]  # as they are

    monkeypatch.setattr(replacement, "_layer", open_meanwhile)
    while files.container.is_running:
        pass
    assert files.exec("cat kept").stdout == "kept\n"
    assert refused == [()]
    assert len(containers(podman, session_id=session.session_id)) == 1


def test_a_session_opens_its_container_again_after_closing_it(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = opened(podman, session, tmp_path)
    files.exec("echo before > a")
    session.snapshot("before")
    files.exec("echo after > a")
    files.close()
    again = opened(podman, session, tmp_path)
    assert again.read("a").content == "after\n"
    session.rollback("before")
    assert again.exec("cat a").stdout == "before\n"
    with pytest.raises(ValueError, match="it is closed"):
        files.read("a")
    again.container.remove()
    assert opened(podman, session, tmp_path).read("a").content == "before\n"


# Images


def test_a_container_is_not_recreated_over_another_image(podman: Podman, tmp_path: Path) -> None:
    image = "localhost/weakfs-tagged:latest"
    podman.run("tag", IMAGE, image)
    session = Session()
    files = opened(podman, session, tmp_path, image=image)
    files.exec("echo x >> /usr/lib/pkg/a")
    session.save(tmp_path / "session.json")
    files.container.remove()
    podman.run("import", "--quiet", "-", image, input=image_archive(files=1))
    try:
        with pytest.raises(ValueError, match="cannot recreate the container 'container' of the session: its"):
            opened(podman, Session.load(tmp_path / "session.json"), tmp_path, image=image)
        assert containers(podman, session_id=session.session_id) == ()
        again = opened(podman, Session.load(tmp_path / "session.json"), tmp_path)
        assert again.read("/usr/lib/pkg/a").content == "a of the image\nx\n"
        again.session.rollback(0)
        again.exec("echo y > y")
        again.session.save(tmp_path / "session.json")
        again.container.remove()
        with pytest.raises(ValueError, match="its image had the layers"):
            opened(podman, Session.load(tmp_path / "session.json"), tmp_path, image=image)
    finally:
        podman.run("rmi", "--force", image)
    with pytest.raises(ImageNotFound):
        opened(podman, Session.load(tmp_path / "session.json"), tmp_path, image=image)


def test_a_container_keeps_its_image_when_the_tag_is_moved(podman: Podman, tmp_path: Path) -> None:
    image = "localhost/weakfs-moved:latest"
    podman.run("tag", IMAGE, image)
    session = Session()
    files = opened(podman, session, tmp_path, image=image)
    files.exec("echo kept > kept")
    session.save(tmp_path / "session.json")
    files.close()
    podman.run("import", "--quiet", "-", image, input=image_archive(files=1))
    try:
        again = opened(podman, Session.load(tmp_path / "session.json"), tmp_path, image=image)
        assert again.read("kept").content == "kept\n"
        assert not again.exists("/usr/lib/files")
        again.restore(again.snapshot())
    finally:
        podman.run("rmi", "--force", image)

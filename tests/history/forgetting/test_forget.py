"""Forgetting: nothing of the text is left in any file, and everything else is unchanged."""

from __future__ import annotations

import base64
import gzip
import json
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest

from fixtures.sessions import story
from tests.history.forgetting.files import files_with
from tests.models.cost import peak_memory
from weakfs import HostFilesystem, InMemoryFilesystem, Session, SessionClosed, SessionError, Toolset
from weakfs.history import forget
from weakfs.history.forgetting import search
from weakfs.history.forgetting.history_rewrite import applied_if_possible
from weakfs.history.forgetting.text_redaction import forms_of, placeholder
from weakfs.history.record_states import row_states
from weakfs.reducers import FileTree
from weakfs.reducers.tree.node import entries
from weakfs.session.durable import replacement_workplaces
from weakfs.session.slices.tags import tag_of
from weakfs.storage.errors import StorageError
from weakfs.tools import ToolCall
from weakfs.tools.blobs import Blobs

SECRET = "sk-live-9f8e7d6c"


def busy(session: Session) -> Session:
    """Write the secret with calls, appends, edits, copies, a fork and a snapshot."""
    tools, fs = Toolset(session), InMemoryFilesystem(session)
    tools.call("write_file", {"path": "/a.txt", "content": f"one\nkey={SECRET}\ntwo\n"})
    fs.write("/b.txt", "key=sk-li")
    fs.append("/b.txt", "ve-9f8e7d6c")
    fs.append("/b.txt", " tail")
    session.snapshot("before")
    tools.call("edit_file", {"path": "/a.txt", "old_string": "9f8e", "new_string": "XXXX"})
    tools.call("read_file", {"path": "/b.txt"})
    tools.call("write_file", {"path": "/big.txt", "content": f"{SECRET}\n" * 200})
    fs.copy("/b.txt", "/c.txt")
    fork = session.fork()
    InMemoryFilesystem(fork).write("/f.txt", f"in a fork {SECRET}")
    session.merge(fork)
    fork.close()
    session.rollback("before")
    return session


def texts(session: Session, seq: int) -> dict[str, str]:
    tree = session.at(seq)[FileTree].latest()
    held = Session(session_id="shown")
    held[FileTree].seed(tree if tree is not None else FileTree())
    fs = InMemoryFilesystem(held)
    return {match.path: fs.read(match.path).content for match in fs.glob("**")}


@pytest.mark.parametrize("url", ["folder:{}/store", "sqlite:{}/sessions.db"])
def test_storage_contains_nothing_of_a_forgotten_text(tmp_path: Path, url: str) -> None:
    where = url.format(tmp_path)
    session = busy(Session.open(where, "mine"))
    before = [texts(session, seq) for seq in range(session.seq + 1)]
    session.checkpoint()
    assert files_with(SECRET, tmp_path)

    report = forget(session, text=SECRET)

    assert report.found_in == ()
    assert files_with(SECRET, tmp_path) == ()
    made = placeholder(SECRET.encode()).decode()
    with Session.open(where, "mine") as again:
        after = [texts(again, seq) for seq in range(again.seq + 1)]
        assert after == [{path: text.replace(SECRET, made) for path, text in files.items()} for files in before]
        again.rollback("before")
        InMemoryFilesystem(again).write("/later.txt", "still works")


def test_a_saved_session_contains_nothing_of_a_forgotten_text(tmp_path: Path) -> None:
    session = busy(Session(session_id="mine"))

    report = forget(session, text=SECRET)
    session.save(tmp_path / "mine.json")

    assert len(report.calls) >= 2
    assert len(report.snapshots) == 1
    assert report.search(str(tmp_path)) == ()
    loaded = Session.load(tmp_path / "mine.json")
    assert InMemoryFilesystem(loaded).read("/b.txt").content == "key=[forgotten.....] tail"
    assert loaded.replayed()[FileTree].latest().fingerprint == session[FileTree].latest().fingerprint  # type: ignore[union-attr]
    assert session.blame("/b.txt")[0].text == "key=[forgotten.....] tail"
    assert json.loads(loaded[ToolCall].all()[0].arguments)["content"] == "one\nkey=[forgotten.....]\ntwo\n"


def test_a_preview_changes_nothing() -> None:
    session = busy(Session(session_id="mine"))
    before = session.to_bytes()

    report = forget(session, text=SECRET, preview=True)

    assert report.preview
    assert report.records
    assert session.to_bytes() == before


def test_forgetting_twice_finds_nothing_the_second_time() -> None:
    session = busy(Session(session_id="mine"))
    forget(session, text=SECRET)
    before = session.to_bytes()

    assert forget(session, text=SECRET).is_empty
    assert session.to_bytes() == before


def test_references_to_blobs_follow_their_new_digests() -> None:
    session = Session(session_id="mine")
    reference = Blobs(session).keep(f"{SECRET} in a blob".encode())
    InMemoryFilesystem(session).write("/note.txt", f"see {reference.digest}")

    forget(session, text=SECRET)

    digest = InMemoryFilesystem(session).read("/note.txt").content.removeprefix("see ")
    assert digest != reference.digest
    assert Blobs(session).get(digest) == b"[forgotten.....] in a blob"


def test_a_text_with_line_ends_and_quotes_is_found_in_the_json_of_calls() -> None:
    secret = 'BEGIN "KEY"\nabcdef\n\tü END'
    session = Session(session_id="mine")
    Toolset(session).call("write_file", {"path": "/key.pem", "content": f"x\n{secret}\n" * 60})

    report = forget(session, text=secret)

    assert report.calls
    data = session.to_bytes()
    assert not any(form in data for form in forms_of(secret))


def test_base64_and_hexadecimal_of_a_text_are_forgotten() -> None:
    session = Session(session_id="mine")
    fs = InMemoryFilesystem(session)
    for before in range(3):
        fs.write_bytes(f"/{before}.b64", base64.b64encode(b"x" * before + SECRET.encode() + b"tail"))
    fs.write("/hex", SECRET.encode().hex())

    forget(session, text=SECRET)

    for before in range(3):
        whole = base64.b64decode(fs.read_bytes(f"/{before}.b64").content)
        assert SECRET.encode()[2:-2] not in whole
    assert SECRET.encode().hex() not in fs.read("/hex").content


def test_a_forgotten_path_is_forgotten_at_all_moments_and_in_its_copies() -> None:
    session = Session(session_id="mine")
    tools, fs = Toolset(session), InMemoryFilesystem(session)
    tools.call("write_file", {"path": "/secrets.env", "content": "TOKEN=first-value\nimport os\n"})
    fs.write("/other.py", "import os\n")
    fs.append("/secrets.env", "TOKEN2=second-value\n")
    fs.copy("/secrets.env", "/copy.env")
    tools.call("read_file", {"path": "/secrets.env"})
    fs.delete("/secrets.env")

    report = forget(session, "/secrets.env")

    data = session.to_bytes()
    assert b"first-value" not in data
    assert b"second-value" not in data
    assert fs.read("/other.py").content == "import os\n"
    assert fs.read("/copy.env").content.startswith("[forgotten]\n")
    assert len(report.calls) == 2
    assert texts(session, 1)["/secrets.env"].startswith("[forgotten]\n")


def test_a_path_that_never_existed_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="never existed"):
        forget(Session(session_id="mine"), "/nothing")


def test_forgetting_is_refused_in_a_transaction_and_while_a_fork_is_open() -> None:
    session = busy(Session(session_id="mine"))
    with session.transaction(), pytest.raises(SessionError, match="transaction"):
        forget(session, text=SECRET)
    fork = session.fork()
    with pytest.raises(SessionError, match="is open"):
        forget(session, text=SECRET)
    with pytest.raises(SessionError, match="in a fork"):
        forget(fork, text=SECRET)
    fork.close()
    assert forget(session, text=SECRET).records


@pytest.mark.parametrize("text", ["", "abc"])
def test_a_text_that_occurs_by_chance_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="fewer than"):
        forget(Session(session_id="mine"), text=text)


def test_storage_that_cannot_be_erased_is_refused_before_anything_changes() -> None:
    session = Session.open("memory:", "mine")
    InMemoryFilesystem(session).write("/a", SECRET)
    with pytest.raises(SessionError, match="cannot erase"):
        forget(session, text=SECRET)
    assert InMemoryFilesystem(session).read("/a").content == SECRET


def test_the_search_looks_into_compressed_data(tmp_path: Path) -> None:
    (tmp_path / "packed.gz").write_bytes(b"head" + gzip.compress(f"deep {SECRET}".encode()))
    assert files_with(SECRET, tmp_path) == (str(tmp_path / "packed.gz"),)


@pytest.mark.parametrize("size", [1, 20, 5_000_000])
def test_the_search_finds_what_is_at_the_end_of_compressed_data(tmp_path: Path, size: int) -> None:
    random = b"".join(number.to_bytes(3, "big") for number in range(size // 3))
    (tmp_path / "packed").write_bytes(b"head x\x9c" + zlib.compress(random + SECRET.encode()) + b"tail")
    assert files_with(SECRET, tmp_path) == (str(tmp_path / "packed"),)


@pytest.mark.parametrize("unit", [b"x\x9c", b"\x78\x01\x00\x02\x00\xfd\xff"])
def test_the_search_reads_data_that_only_looks_compressed_a_bounded_number_of_times(
    unit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = unit * 10_000
    read = 0

    class Counted:
        def __init__(self, wbits: int) -> None:
            self.reader = zlib.decompressobj(wbits)
            self.eof, self.unconsumed_tail = False, b""

        def decompress(self, piece: bytes, most: int) -> bytes:
            nonlocal read
            read += len(piece)
            found = self.reader.decompress(piece, most)
            self.eof, self.unconsumed_tail = self.reader.eof, self.reader.unconsumed_tail
            return found

    monkeypatch.setattr(search, "zlib", SimpleNamespace(decompressobj=Counted, MAX_WBITS=15, error=zlib.error))
    monkeypatch.setattr(search, "MOST", 1 << 16)
    assert not search.is_in_bytes(data, (b"secret",))
    assert read < 1000 * len(data)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("at", [(1 << 20) - 2, (3 << 20) - 1, 1 << 26])
def test_the_search_reads_a_large_file_in_pieces(tmp_path: Path, at: int, pack: Callable[[bytes], bytes]) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.seek(at)
        file.write(pack(f"deep {SECRET}".encode()))
        file.truncate(1 << 27)

    def search_all() -> None:
        assert files_with(SECRET, tmp_path) == (str(tmp_path / "large"),)

    assert peak_memory(search_all) < 1 << 23


KILLED = """
import os, signal, sys
from weakfs import Session
from weakfs.history import forget
from weakfs.session.durable import stream_replacement
from weakfs.session.slices.tags import tag_of
from weakfs.storage.errors import StorageError

def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)

where, moment = sys.argv[1:]
real = getattr(stream_replacement, moment)
def after(*values):
    real(*values)
    die()
setattr(stream_replacement, moment, die if moment != "_exchange" else after)
forget(Session.open(where, "mine"), text="sk-live-9f8e7d6c")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "moment", "is_done"),
    [
        ("folder:{}/store", "_exchange", True),
        ("folder:{}/store", "erase", True),
        ("sqlite:{}/sessions.db", "_exchange_rows", False),
        ("sqlite:{}/sessions.db", "erase", True),
    ],
)
def test_a_killed_forgetting_leaves_the_old_history_or_the_new_one(
    tmp_path: Path, url: str, moment: str, is_done: bool
) -> None:
    where = url.format(tmp_path)
    with busy(Session.open(where, "mine")) as session:
        count = session.seq

    done = subprocess.run([sys.executable, "-c", KILLED, where, moment], check=False)

    assert done.returncode == -signal.SIGKILL
    with Session.open(where, "mine") as again:
        assert again.seq == count
        assert (SECRET in InMemoryFilesystem(again).read("/b.txt").content) is not is_done
    if not is_done:
        # As if the killed process's lease had expired.
        with sqlite3.connect(tmp_path / "sessions.db") as database:
            database.execute("UPDATE streams SET expires = 0")
    assert forget(Session.open(where, "mine"), text=SECRET).found_in == ()
    assert files_with(SECRET, tmp_path) == ()
    assert [*tmp_path.rglob(f"{replacement_workplaces.NAME}*")] == []


@pytest.mark.parametrize("url", ["folder:{}/store", "sqlite:{}/sessions.db"])
def test_another_process_that_has_the_session_open_cannot_restore_the_text(tmp_path: Path, url: str) -> None:
    where = url.format(tmp_path)
    session = busy(Session.open(where, "mine"))
    other = Session.open(where, "mine")
    forget(session, text=SECRET)

    with pytest.raises((StorageError, SessionError)):
        InMemoryFilesystem(other).write("/again.txt", "from the old history")

    with pytest.raises(SessionClosed, match="was replaced; open or load it again"):
        InMemoryFilesystem(session).write("/again.txt", "through the closed session")
    assert files_with(SECRET, tmp_path) == ()


def test_other_sessions_of_the_storage_stay_as_they_are(tmp_path: Path) -> None:
    where = f"sqlite:{tmp_path}/sessions.db"
    with Session.open(where, "other") as other:
        InMemoryFilesystem(other).write("/a.txt", "of another session")
        before = other.to_bytes()
    forget(busy(Session.open(where, "mine")), text=SECRET)

    with Session.open(where, "other") as other:
        assert other.to_bytes() == before


@pytest.mark.parametrize("kind", ["tree", "tar", "git"])
def test_a_rollback_of_a_host_directory_puts_back_the_placeholder(
    tmp_path: Path, kind: Literal["tree", "tar", "git"]
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "old.txt").write_text(f"was {SECRET}")
    session = Session(session_id="mine")
    files = HostFilesystem(root, session=session, snapshots=kind, store=tmp_path / "store")
    session.snapshot("before")
    Toolset(session, files).call("edit_file", {"path": "/old.txt", "old_string": "was", "new_string": "later"})

    report = forget(session, text=SECRET)

    assert (root / "old.txt").read_text() == f"later {SECRET}"
    assert any("snapshots in its store" in one for one in report.unreached)
    assert not any(form in session.to_bytes() for form in forms_of(SECRET))
    session.rollback("before")
    assert (root / "old.txt").read_text() == "was [forgotten.....]"
    # The rollback recorded the file that it replaced, which still had the text, so it has to be removed from there
    # first.
    assert SECRET.encode() in session.to_bytes()
    forget(session, text=SECRET)
    assert SECRET.encode() not in session.to_bytes()


def test_the_records_of_a_fork_in_a_file_of_the_first_version_have_the_files_of_that_fork() -> None:
    """There, the numbers in a fork's records are those of the fork: its own fork left it at its record 4."""
    session = Session.load(Path(story.__file__).parent / "v1-merges.json")
    walked = {one.seq: one for one in row_states(session._trunk, session._rules, "merges", applied_if_possible)}
    before = walked[13].before
    assert before is not None
    assert [name for name, _ in entries(before[tag_of(FileTree)][-1])] == ["a", "shared"]

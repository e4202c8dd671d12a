"""Property: after forgetting, every state is the old one with the text replaced, and no file holds the text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.forgetting.files import files_with
from tests.sampling import share
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.history import forget
from weakfs.history.forgetting.text_redaction import placeholder
from weakfs.reducers import FileTree

SECRET = "tok-77aa77aa"
PATHS = ("/a", "/b", "/d/c")
# Pieces that edits and appends may combine into the secret.
TEXTS = st.sampled_from([SECRET, f"x{SECRET}y{SECRET}", SECRET[:5], SECRET[5:], f"{SECRET}{SECRET[:4]}", "plain\n", ""])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "write",
                "append",
                "call",
                "edit",
                "copy",
                "move",
                "delete",
                "snapshot",
                "rollback",
                "fork",
                "grow",
                "mend",
            ]
        ),
        st.sampled_from(PATHS),
        st.sampled_from(PATHS),
        TEXTS,
        st.integers(0, 20),
    ),
    max_size=14,
)
Step = tuple[str, str, str, str, int]


def perform(session: Session, steps: Sequence[Step]) -> None:
    tools, fs = Toolset(session), InMemoryFilesystem(session)
    for what, path, other, text, number in steps:
        exists = fs.exists(path)
        if what == "write":
            fs.write(path, text)
        elif what == "append":
            fs.append(path, text)
        elif what == "grow":
            # Appends produce the secret, and an edit breaks it up again.
            cut = number % (len(SECRET) - 1) + 1
            fs.write(path, f"{text}{SECRET[:cut]}")
            fs.append(path, SECRET[cut:])
            fs.append(path, text)
            tools.call(
                "edit_file", {"path": path, "old_string": SECRET[:6], "new_string": "pulled", "replace_all": True}
            )
        elif what == "mend":
            # An edit produces the secret, and a splice next to it follows.
            fs.write(path, f"begin {SECRET[:4]}HERE{SECRET[6:]} end {text}")
            tools.call("edit_file", {"path": path, "old_string": "HERE", "new_string": SECRET[4:6]})
            tools.call("edit_file", {"path": path, "old_string": "begin", "new_string": "started"})
        elif what == "call":
            tools.call("write_file", {"path": path, "content": text * 90})
        elif what == "edit":
            tools.call("edit_file", {"path": path, "old_string": "77aa77", "new_string": text, "replace_all": True})
        elif what == "snapshot":
            session.snapshot(text or None)
        elif what == "rollback":
            session.rollback(number % (session.seq + 1))
        elif what == "fork":
            fork = session.fork()
            perform(fork, [("write", path, other, text, number), ("append", path, other, SECRET[5:], number)])
            session.merge(fork)
            fork.close()
        elif exists and path != other:
            {"copy": fs.copy, "move": fs.move}.get(what, lambda one, _: fs.delete(one))(path, other)


def files_at(session: Session, seq: int) -> dict[str, str]:
    held = Session(session_id="shown")
    held[FileTree].seed(session.at(seq)[FileTree].latest() or FileTree())
    fs = InMemoryFilesystem(held)
    return {match.path: fs.read(match.path).content for match in fs.glob("**", max_results=1000)}


@settings(max_examples=share(60))
@given(STEPS, st.sampled_from(["file", "folder", "sqlite"]))
def test_every_state_is_the_old_one_with_the_text_replaced(steps: list[Step], kind: str) -> None:
    made = placeholder(SECRET.encode()).decode()
    with TemporaryDirectory() as folder:
        where = {"folder": f"folder:{folder}/s", "sqlite": f"sqlite:{folder}/s.db"}.get(kind)
        session = Session(session_id="mine") if where is None else Session.open(where, "mine")
        perform(session, steps)
        before = [files_at(session, seq) for seq in range(session.seq + 1)]

        report = forget(session, text=SECRET)

        if where is not None:
            session.close()
            assert report.found_in == ()
            session = Session.open(where, "mine")
        session.save(Path(folder, "mine.json"))
        assert files_with(SECRET, Path(folder)) == ()
        loaded = Session.load(Path(folder, "mine.json"))
        wanted = [{path: text.replace(SECRET, made) for path, text in files.items()} for files in before]
        for one in (session, loaded, loaded.replayed()):
            assert [files_at(one, seq) for seq in range(one.seq + 1)] == wanted
        session.close()

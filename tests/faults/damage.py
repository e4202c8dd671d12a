"""Damaged session files: how they are created, and which outcomes of loading them are allowed."""

from __future__ import annotations

import copy
import random
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import orjson

from fixtures.sessions import story
from fixtures.sessions.kinds import Counted, Note, Person, Step, Total, registry
from fixtures.sessions.portrait import Painter, portrait
from tests.faults.watchdog import watched
from weakfs import InMemoryFilesystem, Session, SessionError, SessionFileError

HEAD = re.compile(rb'\{"format":"weakfs-session","version":(\d),"sha256":"[0-9a-f]{64}",')

# A place in a document: keys and positions from the top.
Place = tuple[str | int, ...]

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    3,
    511,
    2**31,
    -(2**63),
    2**64 - 1,
    0.5,
    1e300,
    "",
    "x",
    "/",
    "..",
    "a/b",
    "\x00",
    "os.system",
    "weakfs.session.session.Session",
    "builtins",
    "fs/tree",
    "story/person",
    "session/merged",
    [],
    [0],
    [[]],
    {},
    {"blob": 0},
    {"blob": -1},
    {"tree": 0},
    {"tuple": []},
    {"map": {}},
    {"map": {"": None}},
    {"type": "story/person", "value": {}},
    {"type": "fs/tree", "value": {"children": {}}},
    {"type": "posix.system", "value": {"command": "true"}},
    {"base64": "AA=="},
    {"parent": 0, "tail": ""},
)


def small_story() -> Session:
    """Return a session whose file has a section of every kind."""
    session = story.opened()
    filesystem = InMemoryFilesystem(session)
    filesystem.write("/gone", "dropped by the compaction")
    session.dispatch(Counted(1))
    session.compact(keep=1)
    filesystem.write_bytes("/d/bytes", b"\xff\x00")
    filesystem.write("/d/log", "a line that is long enough for the next to be told as its tail, or so one hopes\n")
    session.snapshot("one")
    filesystem.append("/d/log", "tail\n")
    session.snapshot("appended")
    filesystem.symlink("d", "/link")
    filesystem.chmod("/d", 0o700)
    filesystem.splice("/d/log", [(0, 1, b"A"), (5, 6, b"")])
    filesystem.move("/d/log", "/log")
    filesystem.copy("/d", "/e")
    session.attach(story.Outside())
    session.snapshot()
    session.dispatch(Note("note", Person("Ada", badge=b"\xfe"), ("l",), (1, {"k": [2.5]}), {"n": 1}), cause="ada")
    session[Total].seed(Total(5, (0.5,)))
    session[Step].append(Step("step", {"a": b"b"}))
    session.rollback("one", cause="undo")
    fork = session.fork()
    fork.dispatch(Counted(3))
    InMemoryFilesystem(fork).write("/forked", "f")
    fork.snapshot("forked")
    session.merge(fork)
    filesystem.delete("/d", recursive=True)
    story.trees_from_outside(session)
    session.dispatch(Note("late", Person("Bob"), ("a", "b"), links={"m": 3}))
    session.snapshot("end")
    return session


def document_of(session: Session, folder: Path) -> dict[str, Any]:
    """Return the document of a session's file."""
    session.save(folder / "document.json")
    return cast(dict[str, Any], orjson.loads((folder / "document.json").read_bytes()))


def in_rows(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with one row for each record, as versions 1 to 3 wrote them."""
    rows: list[dict[str, Any]] = []
    for stretch in document["records"]:
        count = len(stretch["at"])
        tags = stretch["type"] if isinstance(stretch["type"], list) else [stretch["type"]] * count
        events = {tag: iter(events_of(written)) for tag, written in stretch["events"].items()}
        for place, tag in enumerate(tags):
            row = {"seq": stretch["seq"] + place, "at": stretch["at"][place], "type": tag}
            cause = stretch["cause"][place] if "cause" in stretch else None
            rows.append({**row, **({} if cause is None else {"cause": cause}), "event": next(events[tag])})
    return {**document, "version": 3, "records": rows}


def events_of(written: Any) -> list[dict[str, Any]]:
    """Return the events of one type in a stretch, each as an object."""
    if isinstance(written, list):
        return cast("list[dict[str, Any]]", written)
    columns: dict[str, list[Any]] = {
        name: [{"blob": number} for number in values["blobs"]] if isinstance(values, dict) else values
        for name, values in written.items()
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def sealed(document: dict[str, Any]) -> bytes:
    """Return a document as a file with its checksum, as saving writes it."""
    rest = {key: value for key, value in document.items() if key not in ("format", "version", "sha256")}
    body = orjson.dumps(rest)[1:] if rest else b"}"
    own = {"format": document.get("format"), "version": document.get("version"), "sha256": sha256(body).hexdigest()}
    return orjson.dumps(own)[:-1] + b"," + body


def resealed(data: bytes) -> bytes:
    """Return a file with its checksum adapted to the rest of its content."""
    head = HEAD.match(data)
    if head is None:
        return data
    body = data[head.end() :]
    told = (head[1], sha256(body).hexdigest().encode())
    return b'{"format":"weakfs-session","version":%s,"sha256":"%s",' % told + body


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Iterate over every place in a document, except its top."""
    steps: Iterable[Any] = ()
    if isinstance(value, dict):
        steps = cast(dict[str, Any], value)
    elif isinstance(value, list):
        steps = range(len(cast(Any, value)))
    for step in steps:
        yield (*at, step)
        yield from places(cast(Any, value)[step], (*at, step))


def at(document: Any, place: Place) -> Any:
    """Return the value at a place."""
    for step in place:
        document = document[step]
    return document


def changed(document: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    """Return a document with another value at a place."""
    own = copy.deepcopy(document)
    at(own, place[:-1])[place[-1]] = value
    return own


def mutated(document: dict[str, Any], chance: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a damaged document, and a description of the damage."""
    own = copy.deepcopy(document)
    everywhere = list(places(own))
    place = chance.choice(everywhere)
    parent, step = at(own, place[:-1]), place[-1]
    value = parent[step]
    act = chance.choice(["odd", "other", "delete", "twice", "swap", "number", "text", "rename"])
    if act == "odd":
        parent[step] = copy.deepcopy(chance.choice(ODD_VALUES))
    elif act == "other":
        parent[step] = copy.deepcopy(at(own, chance.choice(everywhere)))
    elif act == "delete":
        del parent[step]
    elif act in ("twice", "swap") and isinstance(step, int):
        other = chance.randrange(len(parent))
        if act == "twice":
            parent.insert(other, copy.deepcopy(value))
        else:
            parent[step], parent[other] = parent[other], parent[step]
    elif act == "number" and type(value) is int:
        parent[step] = value + chance.choice([-1, 1, 2, -1000, 10**6, 2**62])
    elif act == "text" and isinstance(value, str):
        spot = chance.randrange(len(value) + 1)
        parent[step] = value[:spot] + chance.choice(["/", "\x00", "..", "x", "\u2028", "\uf75c"]) + value[spot:]
    elif act == "rename" and isinstance(step, str):
        parent[chance.choice(["", "type", "value", "base", "after", "cause", f"{step}x"])] = parent.pop(step)
    else:
        return mutated(document, chance)
    return f"{act} at {shown(place)}", own


def shown(place: Place) -> str:
    """Return a place in the notation of the library."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)


class Court:
    """Loads one damaged file after another, and judges the outcome."""

    def __init__(self, folder: Path, session: Session) -> None:
        self.path = folder / "damaged.json"
        session.save(self.path)
        self.whole = self.path.read_bytes()
        self.load(self.whole)
        self.expected = portrait(self.load(self.whole))
        self.judge(self.whole)
        self.modules = set(sys.modules)

    def load(self, data: bytes) -> Session:
        """Load a file."""
        self.path.write_bytes(data)
        session = Session.load(self.path, registry=registry(), clock=story.Clock(0))
        story.prepare(session)
        session.attach(story.Outside())
        return session

    def judge(self, data: bytes) -> str:
        """Return whether a file is refused, the same as the whole one, or another; anything else is an error."""
        with watched():
            try:
                session = self.load(data)
            except SessionFileError as refusal:
                self._check(refusal)
                return "refused"
            return "same" if self.use(session) == self.expected else "different"

    def _check(self, refusal: SessionFileError) -> None:
        message = str(refusal)
        assert message.startswith(f"{refusal.where}: "), message
        assert refusal.where.startswith("$"), message
        assert len(refusal.where) + 10 < len(message) < 2000, message

    def check_modules(self) -> None:
        """Check that loading has imported nothing."""
        assert set(sys.modules) == self.modules

    def use(self, session: Session) -> dict[str, object] | None:
        """Use a loaded session in every way; return `None` if its history cannot be read."""
        painter = Painter()
        kinds = list(session._parts()[0].by_type)
        painter.slices(session, kinds)
        history = True
        for seq in range(session.seq - len(session.records), session.seq + 1):
            try:
                painter.slices(session.at(seq), kinds)
            except SessionError:
                history = False
        for record in session.records:
            painter.value(record)
        filesystem = InMemoryFilesystem(session)
        for entry in filesystem.walk():
            assert entry.path.startswith("/")
            assert entry.name not in ("", ".", "..")
            assert "/" not in entry.name
        assert filesystem.tree().fingerprint
        shown = portrait(session) if history else None
        session.save(self.path)
        again = self.load(self.path.read_bytes())
        if shown is not None:
            assert portrait(again) == shown
        for snapshot in session.snapshots:
            with suppress(SessionError):
                session.rollback(snapshot)
        session.save(self.path)
        return shown

"""Documents with wrong values under a matching checksum: refused with the place, or loaded as a working session."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faults.damage import (
    ODD_VALUES,
    Court,
    Place,
    at,
    changed,
    document_of,
    in_rows,
    mutated,
    places,
    sealed,
    shown,
    small_story,
)
from tests.sampling import sample, share
from weakfs import SessionFileError
from weakfs.session import UnknownType, UnsupportedVersion

RANDOM_MUTATIONS = share(80)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return document_of(small_story(), tmp_path_factory.mktemp("document"))


def test_a_sealed_document_is_the_file_that_was_saved(court: Court, document: dict[str, Any]) -> None:
    assert sealed(document) == court.whole


@pytest.mark.parametrize("seed", range(5))
def test_random_changes_are_refused_or_give_a_working_session(
    court: Court, document: dict[str, Any], seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(RANDOM_MUTATIONS):
        what, other = mutated(document, chance)
        try:
            court.judge(sealed(other))
        except BaseException as error:
            error.add_note(what)
            raise
    court.check_modules()


def test_random_changes_without_a_new_checksum_are_refused_or_change_nothing(
    court: Court, document: dict[str, Any]
) -> None:
    chance = random.Random("unsealed")
    for _ in range(share(250)):
        what, other = mutated(document, chance)
        assert court.judge(orjson.dumps(other)) in ("refused", "same"), what


# In two halves, so that two processes can share the work.
@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("turn", [0, 1])
def test_a_changed_value_anywhere_is_refused_or_gives_a_working_session(
    court: Court, document: dict[str, Any], turn: int
) -> None:
    for number, place in sample(list(enumerate(places(document)))[turn::2]):
        value = ODD_VALUES[number * 7 % len(ODD_VALUES)]
        try:
            court.judge(sealed(changed(document, place, value)))
        except BaseException as error:
            error.add_note(f"{value!r} at {shown(place)}")
            raise


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("turn", [0, 1])
def test_a_missing_value_anywhere_is_refused_or_gives_a_working_session(
    court: Court, document: dict[str, Any], turn: int
) -> None:
    for place in sample(list(places(document))[turn::2]):
        other = copy.deepcopy(document)
        del at(other, place[:-1])[place[-1]]
        try:
            court.judge(sealed(other))
        except BaseException as error:
            error.add_note(f"{shown(place)} deleted")
            raise


@pytest.mark.parametrize("section", ["state", "logs", "slices", "snapshots", "dropped", "records", "blobs"])
@pytest.mark.parametrize("value", [None, {}, "x", 1.5, [[]], [None], -1], ids=repr)
def test_a_malformed_section_is_named(court: Court, document: dict[str, Any], section: str, value: object) -> None:
    if section == "dropped" and value == -1:
        with pytest.raises(SessionFileError):
            court.load(sealed({**document, section: value}))
        return
    with pytest.raises(SessionFileError) as refusal:
        court.load(sealed({**document, section: value}))
    assert refusal.value.where.startswith(f"$.{section}")


def find(document: dict[str, Any], wanted: str) -> Place:
    """Return a place by what is there: `records/story/note` is the first record of that type."""
    section, _, tag = wanted.partition("/")
    for index, row in enumerate(document[section]):
        # A blob may be plain text, in which `in` would search for letters.
        fields: dict[str, Any] = {} if isinstance(row, str) else row
        if not tag or tag in fields or tag in (fields.get("type"), fields.get("tag")):
            return (section, index)
    raise LookupError(wanted)


@pytest.mark.parametrize(
    ("section", "inside", "value", "where"),
    [
        ("slices/story/note", ("items", 0, "text"), 5, ".items[0].text"),
        ("slices/story/note", ("items", 0, "author", "name"), None, ".items[0].author.name"),
        ("slices/story/note", ("items", 0, "labels", 0), 5, ".items[0].labels[0]"),
        ("slices/story/note", ("kind",), "log", ".kind"),
        ("slices/story/note", ("kind",), "other", ".kind"),
        ("slices/story/note", ("tag",), "story/nothing", ".tag"),
        ("slices/story/note", ("items",), {}, ".items"),
        ("records/story/note", ("at",), "now", ".at"),
        ("records/story/note", ("cause",), 5, ".cause"),
        ("records/story/note", ("seq",), 1, ".seq"),
        ("records/story/note", ("type",), "story/nothing", ".type"),
        ("records/story/note", ("type",), ["story/note"], ".type"),
        ("records/story/note", ("event",), [], ".event"),
        ("records/story/note", ("event", "text"), 5, ".event.text"),
        ("records/story/counted", ("event", "by"), "1", ".event.by"),
        ("records/story/counted", ("event", "by"), True, ".event.by"),
        ("records/fs/file_written", ("event", "path"), "a/b", ".event.path"),
        ("records/fs/file_written", ("event", "path"), "/a/../b", ".event.path"),
        ("records/fs/file_written", ("event", "path"), "/", ".event.path"),
        ("records/fs/file_written", ("event", "content"), "text", ".event.content"),
        ("records/fs/file_written", ("event", "content", "blob"), 10**6, ""),
        ("records/fs/mode_changed", ("event", "mode"), -1, ".event.mode"),
        ("records/fs/mode_changed", ("event", "mode"), 0o10000, ".event.mode"),
        ("records/fs/link_made", ("event", "target"), "", ".event.target"),
        ("records/fs/file_spliced", ("event", "pieces", 0), [1], ".event.pieces[0]"),
        ("records/session/slice_seeded", ("event", "items", 0, "type"), "story/nothing", ".event.items[0]"),
        ("records/session/rolled_back", ("event", "state", 0), 10**6, ""),
        ("snapshots", ("seq",), 10**6, ".seq"),
        ("snapshots", ("tag",), 5, ".tag"),
        ("snapshots", ("state", 0), -1, ".state[0]"),
        ("trees", ("mode",), 0o10000, ""),
        ("trees", ("times",), [1], ""),
        ("trees/files", ("files", 0, 0), "..", ""),
        ("trees/files", ("files", 0, 1), -1, ""),
        ("trees/directories", ("directories", 0, 1), 10**6, ""),
        ("blobs/base64", ("base64",), "***", ".base64"),
        ("blobs/parent", ("parent",), 10**6, ".parent"),
        ("blobs/parent", ("tail",), 5, ""),
    ],
)
def test_an_error_names_the_problem_and_its_place(
    court: Court, document: dict[str, Any], section: str, inside: Place, value: object, where: str
) -> None:
    document = in_rows(document)
    place = find(document, section)
    with pytest.raises(SessionFileError) as refusal:
        court.load(sealed(changed(document, (*place, *inside), value)))
    assert str(refusal.value).startswith(shown(place) + where)


IN_STRETCH = ("records", 0)
OF_NOTE = (*IN_STRETCH, "events", "story/note")
OF_COUNTED = (*IN_STRETCH, "events", "story/counted")
OF_WRITE = (*IN_STRETCH, "events", "fs/file_written")


@pytest.mark.parametrize(
    ("place", "value", "where"),
    [
        ((*IN_STRETCH, "seq"), 1, "$.records[0].seq"),
        ((*IN_STRETCH, "seq"), "2", "$.records[0].seq"),
        ((*IN_STRETCH, "at", 3), "now", "$.records[0].at[3]"),
        ((*IN_STRETCH, "at", 3), True, "$.records[0].at[3]"),
        ((*IN_STRETCH, "at"), [], "$.records[0].at"),
        ((*IN_STRETCH, "type", 3), 5, "$.records[0].type[3]"),
        ((*IN_STRETCH, "type", 3), "story/nothing", "$.records[0].type[3]"),
        ((*IN_STRETCH, "type"), "story/nothing", "$.records[0].type"),
        ((*IN_STRETCH, "type"), "story/note", "$.records[0].events.story/note"),
        ((*IN_STRETCH, "type"), ["story/note"], "$.records[0].type"),
        ((*IN_STRETCH, "cause", 3), 5, "$.records[0].cause[3]"),
        ((*IN_STRETCH, "cause"), ["ada"], "$.records[0].cause"),
        ((*IN_STRETCH, "cause"), None, "$.records[0].cause"),
        ((*IN_STRETCH, "events"), {}, "$.records[0].events"),
        ((*IN_STRETCH, "events", "story/step"), [], "$.records[0].events"),
        ((*IN_STRETCH, "events", "story/note"), 5, "$.records[0].events.story/note"),
        ((*OF_NOTE, 1), [], "$.records[0].events.story/note[1]"),
        ((*OF_NOTE, 1, "text"), 5, "$.records[0].events.story/note[1].text"),
        ((*OF_COUNTED, "by", 0), "1", "$.records[0].events.story/counted.by[0]"),
        ((*OF_COUNTED, "by", 0), True, "$.records[0].events.story/counted.by[0]"),
        ((*OF_COUNTED, "by"), [1], "$.records[0].events.story/counted.by"),
        ((*OF_COUNTED, "by"), {"blobs": [0, 0]}, "$.records[0].events.story/counted.by[0]"),
        ((*OF_COUNTED, "more"), [1, 2], "$.records[0].events.story/counted"),
        ((*OF_WRITE, "path", 1), "a/b", "$.records[0].events.fs/file_written.path[1]"),
        ((*OF_WRITE, "path", 1), "/a/../b", "$.records[0].events.fs/file_written.path[1]"),
        ((*OF_WRITE, "path", 2), "/", "$.records[0].events.fs/file_written.path[2]"),
        ((*OF_WRITE, "path", 2), None, "$.records[0].events.fs/file_written.path[2]"),
        ((*OF_WRITE, "content"), [0, 0, 0], "$.records[0].events.fs/file_written.content[0]"),
        ((*OF_WRITE, "content", "blobs", 2), -1, "$.records[0].events.fs/file_written.content[2]"),
        ((*OF_WRITE, "content", "blobs", 2), 10**6, "$.records[0].events.fs/file_written.content[2]"),
        ((*OF_WRITE, "content", "blobs", 2), True, "$.records[0].events.fs/file_written.content[2]"),
        ((*OF_WRITE, "content", "blobs"), [0], "$.records[0].events.fs/file_written.content"),
        ((*OF_WRITE, "content", "blobs"), 0, "$.records[0].events.fs/file_written.content"),
        ((*OF_WRITE, "at", 1), 1.5, "$.records[0].events.fs/file_written.at[1]"),
        ((*IN_STRETCH, "events", "fs/mode_changed", "mode", 0), 0o10000, "$.records[0].events.fs/mode_changed.mode[0]"),
        ((*IN_STRETCH, "events", "fs/file_spliced", "pieces", 0, 0), [1], "$.records[0].events.fs/file_spliced.pieces"),
        ((*IN_STRETCH, "events", "session/rolled_back", 0, "state", 0), 10**6, "$.records[0].events.session/rolled_b"),
    ],
)
def test_an_error_in_a_stretch_of_records_is_named_with_its_place(
    court: Court, document: dict[str, Any], place: Place, value: object, where: str
) -> None:
    with pytest.raises(SessionFileError) as refusal:
        court.load(sealed(changed(document, place, value)))
    assert refusal.value.where.startswith(where)


def test_records_in_rows_and_in_stretches_are_equivalent(court: Court, document: dict[str, Any]) -> None:
    assert in_rows(document)["records"] != document["records"]
    assert court.judge(sealed(in_rows(document))) == "same"
    assert court.judge(sealed({**in_rows(document), "version": 4})) == "same"


@pytest.mark.parametrize("version", [0, 5, -1, 10**9, "1", 1.5, None, [1], {}, True])
def test_another_version_is_refused_by_number(court: Court, document: dict[str, Any], version: object) -> None:
    with pytest.raises(SessionFileError, match=r"^\$\.version: ") as refusal:
        court.load(sealed({**document, "version": version}))
    if type(version) is int:
        assert isinstance(refusal.value, UnsupportedVersion)
        assert str(version) in str(refusal.value)


@pytest.mark.parametrize("tag", ["story/nothing", "os.system", "builtins.eval", "subprocess", "weakfs.cli", "", "\x00"])
def test_an_unknown_tag_is_refused_and_says_how_to_register_it(
    court: Court, document: dict[str, Any], tag: str
) -> None:
    rows = in_rows(document)
    for own, place in (
        (rows, (*find(rows, "records/story/note"), "type")),
        (document, (*IN_STRETCH, "type", 3)),
        (document, (*IN_STRETCH, "type")),
    ):
        with pytest.raises(UnknownType, match="with_types") as refusal:
            court.load(sealed(changed(own, place, tag)))
        assert isinstance(refusal.value, SessionFileError)
        assert repr(tag) in str(refusal.value)
    court.check_modules()


def test_an_unknown_field_is_refused(court: Court, document: dict[str, Any]) -> None:
    rows = in_rows(document)
    for own, place in ((document, ()), (rows, find(rows, "records"))):
        other = copy.deepcopy(own)
        at(other, place)["__class__"] = "x"
        with pytest.raises(SessionFileError, match="__class__") as refusal:
            court.load(sealed(other))
        assert refusal.value.where == shown(place)
    for place in (("base",), find(document, "records"), find(document, "snapshots"), find(document, "slices")):
        other = copy.deepcopy(document)
        at(other, place)["__class__"] = "x"
        with pytest.raises(SessionFileError, match="__class__") as refusal:
            court.load(sealed(other))
        assert refusal.value.where == shown(place)


def test_the_saved_file_names_no_module(tmp_path: Path) -> None:
    small_story().save(tmp_path / "s.json")
    data = (tmp_path / "s.json").read_bytes()
    for name in (b"fixtures", b"attrs", b"weakfs.", b"__main__"):
        assert name not in data

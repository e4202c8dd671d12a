"""Random sessions of Codex: our tools do what is recorded, and no line makes the importer raise."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sampling import share
from tests.transcripts.codex_lines import applied, meta, output, patch_call, shell_call
from tests.transcripts.codex_model import ROOT, Add, Chunk, Codex, Delete, Form, Operation, Update
from tests.transcripts.imported import Import

FORMS: tuple[Form, ...] = get_args(Form)


WORDS = st.sampled_from(["", "a", "b", "c", "  a", "a  ", "\tb", "say \u201ca\u201d", "x\u2014y", "\u00e9", "{", "}"])
NAMES = st.sampled_from(["a", "src/b.py", "c"])


@st.composite
def chunks(draw: st.DrawFn, lines: list[str]) -> Chunk:
    """Draw a chunk that mostly fits somewhere."""
    start = draw(st.integers(0, len(lines)))
    part = lines[start : start + draw(st.integers(0, 4))]
    marked: list[str] = []
    for line in part:
        if draw(st.integers(0, 6)) == 0:
            line = draw(st.sampled_from([line.strip(), line + " ", line.replace("\u2014", "-"), "other"]))
        kind = draw(st.sampled_from([" ", " ", "-", "+-", "-+"]))
        marked += [mark + (line if mark != "+" else draw(WORDS)) for mark in kind]
    if not marked or draw(st.integers(0, 3)) == 0:
        marked.append("+" + draw(WORDS))
    anchor = draw(st.none() | st.none() | st.sampled_from([line for line in lines if line.strip()] or ["none"]))
    return Chunk(tuple(marked), anchor, draw(st.integers(0, 9)) == 0)


@st.composite
def operations(draw: st.DrawFn, program: Codex) -> list[Operation]:
    """Draw the operations of one patch, each on another file."""
    made: list[Operation] = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=2, unique=True)):
        text = program.disk.get(name)
        kind = draw(st.sampled_from(["add", "update", "update", "update", "delete", "move"]))
        if kind == "add" or (text is None and draw(st.integers(0, 3))):
            made.append(Add(name, tuple(draw(st.lists(WORDS, min_size=1, max_size=8)))))
        elif kind == "delete":
            made.append(Delete(name))
        else:
            lines = (text or b"").decode().split("\n")
            many = draw(st.lists(chunks(lines), min_size=1, max_size=2))
            made.append(Update(name, tuple(many), f"moved/{name}" if kind == "move" else None))
    return made


@st.composite
def sessions(draw: st.DrawFn) -> Codex:
    """Draw a session, perhaps with commands that show files, and files that something else changed."""
    program = Codex(with_event=draw(st.integers(0, 3)) > 0)
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.integers(0, 9))
        if kind == 0:
            lines = draw(st.lists(WORDS, max_size=6))
            end = draw(st.sampled_from(["\n", "\r\n"]))
            program.disk[draw(NAMES)] = (end.join(lines) + draw(st.sampled_from(["", end]))).encode()
        elif kind < 4:
            program.show(draw(NAMES))
        else:
            program.apply(draw(operations(program)), draw(st.sampled_from(FORMS)))
    return program


ANY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=share(400),
)


@ANY
@given(sessions())
def test_no_recorded_success_differs(imported: Import, program: Codex) -> None:
    done = imported(*program.lines)

    for verdict in done.verdicts:
        allowed = {"agreed", "not_checked", "no_counterpart"}
        if verdict.recorded_success is False:
            allowed.add("ours_succeeded")
        assert verdict.agreement in allowed


@pytest.mark.slow
@ANY
@given(st.data())
def test_everything_agrees_if_every_file_was_created_by_a_patch(imported: Import, data: st.DataObject) -> None:
    program = Codex()
    for _ in range(data.draw(st.integers(1, 6))):
        program.apply(data.draw(operations(program)), data.draw(st.sampled_from(FORMS)))

    done = imported(*program.lines)

    for succeeded, verdict in zip(program.outcomes, done.verdicts, strict=True):
        if succeeded:
            assert verdict.agreement == "agreed"
        else:
            assert verdict.agreement in ("agreed", "not_checked", "ours_succeeded")
    files = {entry.path[1:]: done.files.read_bytes(entry.path).content for entry in done.files.walk() if entry.is_file}
    assert files == program.disk


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from(["", "x", "{", "*** Begin Patch", f"{ROOT}/a", "\0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "call_id", "output", "command", "add", "unified_diff", f"{ROOT}/a"]), inner
        )
    ),
    max_leaves=6,
)


@ANY
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["type", "payload", "timestamp"]), ANYTHING)), st.data())
def test_no_value_anywhere_makes_the_importer_raise(
    imported: Import, spoilt: list[tuple[int, str, object]], data: st.DataObject
) -> None:
    lines: list[dict[str, Any]] = [
        meta(),
        shell_call("1", ["bash", "-lc", "cat a"]),
        output("1", "one\n"),
        patch_call("2", "*** Update File: a", "@@", "-one", "+two"),
        applied("2", a={"type": "update", "unified_diff": "@@ -1 +1 @@\n-one\n+two\n"}),
        output("2"),
    ]
    for at, name, value in spoilt[:2]:
        lines[at][name] = value
    at = data.draw(st.integers(0, 5))
    payload = lines[at].get("payload")
    if isinstance(payload, dict) and payload:
        name = data.draw(st.sampled_from(sorted(payload)))
        payload[name] = data.draw(ANYTHING)

    imported(*lines)

"""Artifacts of Google's ADK as files of a session, compared with the ADK's own service in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs import InMemoryFilesystem, Session

NAMES = ["a.txt", "dir/a.txt", "user:b.png", "..", "a b%2F", "é", "7", "x.json"]
SESSIONS = ["one", "two"]
KEYS = {"app_name": "app", "user_id": "ann"}


def service(session: Session) -> Any:
    from weakfs.integrations.google_adk import WeakfsArtifactService

    return WeakfsArtifactService(session)


def text(content: str) -> Any:
    from google.genai import types

    return types.Part(text=content)


def png(content: bytes) -> Any:
    from google.genai import types

    return types.Part.from_bytes(data=content, mime_type="image/png")


def link(uri: str) -> Any:
    from google.genai import types

    return types.Part(file_data=types.FileData(file_uri=uri, mime_type="text/plain"))


def test_versions_are_saved_and_loaded() -> None:
    session = Session()
    artifacts = service(session)

    async def work() -> None:
        where = {**KEYS, "session_id": "one", "filename": "plan.md"}
        assert await artifacts.save_artifact(artifact=text("first é"), **where) == 0
        assert await artifacts.save_artifact(artifact=png(b"\x00\x01"), custom_metadata={"by": "me"}, **where) == 1
        assert await artifacts.load_artifact(**where) == png(b"\x00\x01")
        assert await artifacts.load_artifact(version=0, **where) == text("first é")
        assert await artifacts.load_artifact(version=7, **where) is None
        found = await artifacts.get_artifact_version(**where)
        assert (found.version, found.mime_type, found.custom_metadata) == (1, "image/png", {"by": "me"})

    asyncio.run(work())
    assert InMemoryFilesystem(session).read("/artifacts/app/ann/sessions/one/plan.md/0").content == "first é"


def test_a_saved_version_is_one_operation_and_survives_the_process(tmp_path: Path) -> None:
    where = {**KEYS, "session_id": "one", "filename": "plan.md"}
    with Session.open(tmp_path / "store", "artifacts") as session:
        for content in ("first", "second"):
            asyncio.run(service(session).save_artifact(artifact=text(content), **where))
        session.undo()
        assert asyncio.run(service(session).list_versions(**where)) == [0]
        session.redo()
    with Session.open(tmp_path / "store", "artifacts") as session:
        assert asyncio.run(service(session).load_artifact(**where)) == text("second")
        asyncio.run(service(session).delete_artifact(**where))
        assert asyncio.run(service(session).list_artifact_keys(**KEYS, session_id="one")) == []
        session.undo()
        assert asyncio.run(service(session).list_artifact_keys(**KEYS, session_id="one")) == ["plan.md"]


def test_versions_saved_concurrently_have_different_numbers() -> None:
    artifacts = service(Session())
    where = {**KEYS, "session_id": "one", "filename": "a"}

    async def work() -> list[int]:
        return list(await asyncio.gather(*(artifacts.save_artifact(artifact=text(str(n)), **where) for n in range(8))))

    assert sorted(asyncio.run(work())) == list(range(8))


async def test_references_are_followed_within_their_scope() -> None:
    artifacts = service(Session())
    uri = "artifact://apps/app/users/ann/sessions/one/artifacts/a/versions/0"
    where = {**KEYS, "session_id": "one"}

    await artifacts.save_artifact(filename="a", artifact=text("the text"), **where)
    await artifacts.save_artifact(filename="b", artifact=link(uri), **where)
    assert await artifacts.load_artifact(filename="b", **where) == text("the text")
    await artifacts.save_artifact(filename="c", artifact=link(uri.replace("/a/", "/c/")), **where)
    with pytest.raises(ValueError, match="more than 5"):
        await artifacts.load_artifact(filename="c", **where)
    before = await artifacts.list_artifact_keys(**where)
    for bad in (uri.replace("/one/", "/two/"), uri.replace("/ann/", "/bob/"), "artifact://nothing"):
        with pytest.raises(ValueError, match=r"[Aa]rtifact"):
            await artifacts.save_artifact(filename="d", artifact=link(bad), **where)
    assert await artifacts.list_artifact_keys(**where) == before


@pytest.mark.parametrize("bad", ["", "..", "a/../b", "/etc", "a\x00b", "C:x"])
def test_names_of_scopes_that_lead_elsewhere_are_refused(bad: str) -> None:
    session = Session()
    artifacts = service(session)
    for key in ("app_name", "user_id", "session_id"):
        where = {**KEYS, "session_id": "one", key: bad}
        with pytest.raises(ValueError, match=key):
            asyncio.run(artifacts.save_artifact(filename="a", artifact=text("x"), **where))
    assert not InMemoryFilesystem(session).exists("/artifacts")


def test_an_artifact_without_content_or_session_is_refused() -> None:
    from google.genai import types

    artifacts = service(Session())
    with pytest.raises(ValueError, match="neither text"):
        asyncio.run(artifacts.save_artifact(filename="a", artifact=types.Part(), **KEYS, session_id="one"))
    with pytest.raises(ValueError, match="give session_id"):
        asyncio.run(artifacts.save_artifact(filename="a", artifact=text("x"), **KEYS))


def test_an_artifact_without_a_name_is_refused_and_damaged_metadata_is_named() -> None:
    session = Session()
    artifacts = service(session)
    with pytest.raises(ValueError, match="without a name"):
        asyncio.run(artifacts.save_artifact(filename="", artifact=text("x"), **KEYS, session_id="one"))
    assert not InMemoryFilesystem(session).exists("/artifacts")
    asyncio.run(artifacts.save_artifact(filename="a", artifact=text("x"), **KEYS, session_id="one"))
    (metadata,) = InMemoryFilesystem(session).glob("/artifacts/**/0.json")
    InMemoryFilesystem(session).write(metadata.path, "{")
    with pytest.raises(ValueError, match=r"0\.json', is not JSON"):
        asyncio.run(artifacts.load_artifact(filename="a", **KEYS, session_id="one"))


Step = tuple[str, str, str, bytes]
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(
        st.sampled_from(["text", "bytes", "delete", "empty"]),
        st.sampled_from(NAMES),
        st.sampled_from(SESSIONS),
        st.binary(max_size=3),
    ),
    max_size=12,
)


@settings(max_examples=share(100), deadline=None)
@given(STEPS)
def test_random_operations_give_the_answers_of_the_adk_service(steps: list[Step]) -> None:
    from google.adk.artifacts import InMemoryArtifactService
    from google.genai import types

    ours, theirs = service(Session()), InMemoryArtifactService()

    async def both(method: str, **arguments: Any) -> None:
        mine, other = [await getattr(one, method)(**KEYS, **arguments) for one in (ours, theirs)]
        assert mine == other

    async def work() -> None:
        for kind, filename, session_id, content in steps:
            where = {"filename": filename, "session_id": session_id}
            if kind == "delete":
                await both("delete_artifact", **where)
            elif kind == "empty":
                # What a rewind saves in place of an artifact that did not exist.
                blob = types.Blob(data=b"", mime_type="application/octet-stream")
                await both("save_artifact", artifact=types.Part(inline_data=blob), **where)
            else:
                part = png(content) if kind == "bytes" else text(content.hex() or "-")
                await both("save_artifact", artifact=part, **where)
        for session_id in SESSIONS:
            await both("list_artifact_keys", session_id=session_id)
            for filename in NAMES:
                await both("list_versions", filename=filename, session_id=session_id)
                for version in (None, 0, 1):
                    await both("load_artifact", filename=filename, session_id=session_id, version=version)

    asyncio.run(work())

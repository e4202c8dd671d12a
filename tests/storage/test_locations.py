"""Opening storage by its location, and the errors if that fails."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import sys
import traceback
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from weakfs import Session, storage
from weakfs.storage.engines.urls import redacted, take_options, without_secrets
from weakfs.storage.locations import local_path


def test_a_path_is_a_folder(tmp_path: Path) -> None:
    kept = storage.open(tmp_path / "a b")
    kept.set("k", b"1")
    for location in (str(tmp_path / "a b"), f"folder:{tmp_path}/a b", f"file://{tmp_path}/a%20b"):
        assert storage.open(location).get("k") == b"1"


def test_storage_in_memory_is_empty_whenever_it_is_opened() -> None:
    storage.open("memory:").set("a", b"1")
    assert storage.open("memory:").keys() == []


def test_the_error_for_an_unknown_scheme_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no engine with that name; use one of folder:, .*sqlite:.*, or begin a path"):
        storage.open("ftp://me:hunter2@host/")


@pytest.mark.parametrize(
    ("location", "package", "extra"),
    [
        ("postgresql://host/", "psycopg", "postgresql"),
        ("redis://host/", "redis", "redis"),
        ("s3://bucket", "obstore", "s3"),
    ],
)
def test_a_missing_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, location: str, package: str, extra: str
) -> None:
    for name in list(sys.modules):
        if name.startswith(("weakfs.storage.engines.", package)):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{package} is not installed; run: pip install 'weakfs\[{extra}\]'"):
        storage.open(location)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:a%40b@host:1/db?sslmode=require", "postgresql://me@host:1/db?sslmode=require"),
        ("postgresql:///db?host=/run&password=x&user=me", "postgresql:///db?host=/run&user=me"),
        ("redis://:secret@host", "redis://@host"),
        ("s3://bucket/p?secret_access_key=x&region=r&aws_session_token=y", "s3://bucket/p?region=r"),
        ("sqlite:a.db", "sqlite:a.db"),
        ("postgresql:///db?host=/run&pass%77ord=x", "postgresql:///db?host=/run"),
        ("s3://bucket/p@q?region=r&proxy_url=http://me:pw@proxy", "s3://bucket/p@q?region=r"),
        ("postgresql://h1:1,[::1]:2/db?application_name=a@b", "postgresql://h1:1,[::1]:2/db?application_name=a@b"),
        # Invalid, since the password is not escaped; what a client would make of it differs.
        ("postgresql://me:a?b#c@host/db", "postgresql://me@host/db"),
        ("postgresql://me:a/b@host/db", "postgresql://me@host/db"),
        ("postgresql://me:1/b@host/db", "postgresql://me@host/db"),
        ("redis://me:a@b@host", "redis://me@host"),
    ],
)
def test_a_url_is_shown_without_passwords(url: str, shown: str) -> None:
    assert redacted(url) == shown


def test_a_message_is_shown_without_passwords() -> None:
    url = "postgresql://me:a%40b@host/db?sslpassword=pw1"
    assert without_secrets("wrong a@b, a%40b, pw1 of me", url) == "wrong ***, ***, *** of me"


PASSWORDS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Z"]), min_size=1)


@given(PASSWORDS, st.sampled_from(["postgresql://me:{}@host:5432/db?sslmode=require", "redis://:{}@[::1]/0"]))
def test_only_an_escaped_password_is_left_out(password: str, url: str) -> None:
    given = url.format(quote(password, safe=""))
    assert redacted(given) == url.replace(":{}@", "@")
    assert take_options(given, set()) == (given, {})
    # The text around the passwords occurs in no password, because all occurrences of a password are left out.
    message = "\x01{}\x02{}\x03"
    assert without_secrets(message.format(password, quote(password, safe="")), given) == message.format("***", "***")


@given(PASSWORDS, st.sampled_from(["", "/db", "?sslmode=require", "/db?sslmode=require"]))
def test_a_password_that_is_not_escaped_is_left_out_too(password: str, rest: str) -> None:
    """Except one that looks like a port followed by a path and options."""
    assume(not re.fullmatch(r"\d*(/.*)?[?#].*=.*", password))
    url = f"postgresql://me:{password}@host{rest}"
    assert redacted(url) == f"postgresql://me@host{rest}"
    if re.search("[/?#@]", password):
        with pytest.raises(ValueError, match="write %2F, %3F, %23 or %40") as caught:
            take_options(url, set())
        assert repr(redacted(url)) in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        # What libpq, redis-py and obstore cannot read, with the password where they would quote it.
        "postgresql://me:hunter2%zz@host/db",
        "postgresql://me:hunter2@host:port/db",
        "postgresql://me:hunter2?@host/db",
        "postgresql://me:x@host/db?sslpassword=hunter2&colour=red",
        "redis://me:hunter2@host:port",
        "redis://me:hunter2@host/db",
        "redis://me:hunter2@host/0?colour=red",
        "redis://host:hunter2/3@x",
        "s3://me:hunter2@bucket/p",
        "s3://bucket/p?secret_access_key=hunter2&region=r&colour=red",
        "s3://bucket/p//q?secret_access_key=hunter2&access_key_id=x&region=r",
        "az://container?sas_token=hunter2&account_name=x&colour=red",
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_url_that_cannot_be_used_shows_no_password(
    url: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises((ValueError, storage.StorageError)) as caught:
        asyncio.run(storage.aopen_event_store(url)) if is_async else storage.open_event_store(url)
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in shown + repr(caught.value) + caplog.text


@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        *itertools.product(["folder", "sqlite"], ["a?b", "a#b", "a%20b", "a b", "a&b=c", "%", "ä\n", "file:x"]),
        *itertools.product(["folder", "sqlite"], ["?durability=power", "a?durability="]),
    ],
)
def test_a_path_may_have_any_name(tmp_path: Path, scheme: str, name: str) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / name
    location = f"file://{quote(str(path))}" if scheme == "folder" else f"sqlite://{quote(str(path))}"
    with closing(storage.open_event_store(location)) as store:
        store.append("s", 0, [b"a"])
        with closing(storage.open_event_store(store.url)) as again:
            assert (again.head("s"), again.url) == (1, store.url)
        assert local_path(store.url) == local_path(location) == str(path)
    assert {found.name.removesuffix("-wal").removesuffix("-shm") for found in (tmp_path / "in").iterdir()} == {name}


def test_a_location_on_a_server_has_no_local_path() -> None:
    for location in ("memory:", "sqlite::memory:", "redis://host", "postgresql://host/db", "s3://bucket"):
        assert local_path(location) is None


def test_weakfs_options_are_removed_from_a_url() -> None:
    assert take_options("redis://h/0?namespace=a%20b&x=1", {"namespace"}) == ("redis://h/0?x=1", {"namespace": "a b"})
    assert take_options("redis://h/0", {"namespace"}) == ("redis://h/0", {})


@pytest.mark.parametrize("location", ["a\0b", "folder:a\0b", "sqlite:a\0b", Path("a\0b")])
def test_a_nul_in_a_location_is_refused(location: str | Path) -> None:
    with pytest.raises(ValueError, match="its location has a NUL character; leave it out"):
        storage.open(location)
    with pytest.raises(ValueError, match="its location has a NUL character; leave it out"):
        Session.open(location)

"""Opening storage by its location, and what is said where that fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from weakfs import storage
from weakfs.storage.engines.urls import redacted, take_options, without_secrets


def test_a_path_is_a_folder(tmp_path: Path) -> None:
    kept = storage.open(tmp_path / "a b")
    kept.set("k", b"1")
    for location in (str(tmp_path / "a b"), f"folder:{tmp_path}/a b", f"file://{tmp_path}/a%20b"):
        assert storage.open(location).get("k") == b"1"


def test_memory_is_empty_whenever_it_is_opened() -> None:
    storage.open("memory:").set("a", b"1")
    assert storage.open("memory:").keys() == []


def test_an_unknown_scheme_names_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"no engine of that name; use one of folder:, .*sqlite:.*, or begin a path"):
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
    ],
)
def test_a_url_is_shown_without_passwords(url: str, shown: str) -> None:
    assert redacted(url) == shown


def test_a_message_is_shown_without_passwords() -> None:
    url = "postgresql://me:a%40b@host/db?sslpassword=pw1"
    assert without_secrets("wrong a@b, a%40b, pw1 of me", url) == "wrong ***, ***, *** of me"


def test_options_of_ours_are_taken_out_of_a_url() -> None:
    assert take_options("redis://h/0?namespace=a%20b&x=1", {"namespace"}) == ("redis://h/0?x=1", {"namespace": "a b"})
    assert take_options("redis://h/0", {"namespace"}) == ("redis://h/0", {})

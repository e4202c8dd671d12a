"""The location of a store, as journals of the host record it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from weakfs.session.durable.commits.uncertain_commits import lasting_url
from weakfs.storage import open_event_store


@pytest.mark.parametrize("name", ["a.db", "a?b.db", "a#%20.db"])
def test_a_location_means_the_same_in_every_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    quoted = name.replace("%", "%25").replace("?", "%3F")
    location = f"sqlite:{name}" if "?" not in name else f"sqlite://{tmp_path}/{quoted}"
    with closing(open_event_store(location)) as store:
        store.append("s", 0, [b"a"])
        lasting = lasting_url(store.url)
    assert [found.name for found in tmp_path.iterdir()] == [name]
    monkeypatch.chdir("/")
    with closing(open_event_store(lasting)) as store:
        assert store.head("s") == 1


@pytest.mark.parametrize(
    ("url", "lasting"),
    [
        ("memory:", "memory:"),
        ("sqlite::memory:", "memory:"),
        ("folder:/a?b", "folder:/a?b"),
        ("redis://host/0?namespace=a", "redis://host/0?namespace=a"),
    ],
)
def test_other_locations_stay_as_they_are(url: str, lasting: str) -> None:
    assert lasting_url(url) == lasting

"""Servers that the tests of a worker share, each started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.storage import servers
from tests.storage.servers import Server


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    with servers.postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Server]:
    with servers.s3() as server:
        yield server

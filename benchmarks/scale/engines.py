"""The measured engines: starting a server, the size of the stored data, and the number of requests."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from urllib.parse import quote
from urllib.request import Request, urlopen

from attrs import frozen

from tests.storage import servers

BUCKET = "weakfs"


@frozen
class Engine:
    """A place for sessions. `usage` returns totals, whose difference before and after some work is its cost."""

    location: str
    usage: Callable[[], Counter[str]]


def bytes_below(folder: Path) -> Counter[str]:
    return Counter({"stored": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())})


@contextmanager
def folder() -> Iterator[Engine]:
    with tempfile.TemporaryDirectory() as place:
        yield Engine(f"folder:{Path(place).resolve()}/store", lambda: bytes_below(Path(place)))


@contextmanager
def sqlite() -> Iterator[Engine]:
    with tempfile.TemporaryDirectory() as place:
        yield Engine(f"sqlite:{Path(place).resolve()}/sessions.db", lambda: bytes_below(Path(place)))


@contextmanager
def postgresql() -> Iterator[Engine]:
    with servers.postgresql(fsync=True) as server:
        yield Engine(server.url, lambda: _postgresql_usage(server.url))


def _postgresql_usage(url: str) -> Counter[str]:
    import psycopg

    found: Counter[str] = Counter()
    questions = {
        # Each statement is a separate transaction.
        "requests": "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()",
        "rows": "SELECT coalesce(sum(n_tup_ins + n_tup_upd), 0)::int8 FROM pg_stat_user_tables",
        "stored": "SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::int8 FROM pg_stat_user_tables",
        "WAL": "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8",
    }
    with psycopg.connect(url, autocommit=True) as connection:
        for name, question in questions.items():
            row = connection.execute(question.encode()).fetchone()
            assert row is not None
            found[name] = int(row[0])
    return found


@contextmanager
def redis() -> Iterator[Engine]:
    with tempfile.TemporaryDirectory() as place, servers.redis(Path(place).resolve()) as server:
        yield Engine(server.url, lambda: _redis_usage(server.url))


def _redis_usage(url: str) -> Counter[str]:
    import redis as client

    with client.Redis.from_url(url) as connection:
        info = cast("dict[str, int]", connection.info())
        # A request that is longer than 16 KiB is read in several parts.
        found = {"requests": info["total_reads_processed"], "stored": info["used_memory"]}
        return Counter(found | ({"append-only file": info["aof_current_size"]} if "aof_current_size" in info else {}))


@contextmanager
def s3() -> Iterator[Engine]:
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "requests"
        with servers.s3(log=log) as server:
            with urlopen(Request(f"{server.url}/{BUCKET}", method="PUT")):
                pass
            options = f"endpoint={server.url}&access_key_id=id&secret_access_key=key&region=us-east-1"
            yield Engine(f"s3://{BUCKET}/sessions?{options}", lambda: _s3_usage(server.url, log))


def _s3_usage(server: str, log: Path) -> Counter[str]:
    requests = re.findall(r'"([A-Z]+) /' + BUCKET, log.read_text(errors="replace"))
    found: Counter[str] = Counter(requests)
    found["requests"] = len(requests)
    token = ""
    while True:
        with urlopen(f"{server}/{BUCKET}?list-type=2{token}") as answer:
            page = answer.read().decode()
        sizes = [int(size) for size in re.findall(r"<Size>(\d+)</Size>", page)]
        found["stored"] += sum(sizes)
        found["objects"] += len(sizes)
        more = re.search(r"<NextContinuationToken>(.*?)</", page)
        if more is None:
            return found
        token = f"&continuation-token={quote(more[1])}"


ENGINES = {"folder": folder, "sqlite": sqlite, "postgresql": postgresql, "redis": redis, "s3": s3}


@contextmanager
def opened(name: str, url: str | None) -> Iterator[Engine]:
    """Start an engine with this name, or use the one at a URL, whose usage is not measured."""
    if url is not None:
        yield Engine(url, Counter)
        return
    with ENGINES[name]() as engine:
        yield engine

"""Servers for tests: PostgreSQL, Redis and S3, each in a directory of its own, on a socket or a port that is free."""

from __future__ import annotations

import hmac
import importlib.util
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest

# The kinds of locations that other processes can open too.
ENGINES = ("folder", "sqlite", "postgresql", "redis", "s3")
# Further object stores, whose simulators are often missing: tests with them are skipped then.
OBJECT_STORES = ("azure", "google")

# The user nobody: PostgreSQL refuses to run as root.
NOBODY = 65534


def need(what: str, *, is_there: bool) -> None:
    """Skip the test if something is missing, or fail it if everything should be installed."""
    if not is_there:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{what} is not installed")


def need_package(name: str) -> None:
    need(f"the package {name}", is_there=importlib.util.find_spec(name) is not None)


def free_port() -> int:
    """Return a port that no server listens on, and that no other tests on this machine use while this process lives.

    It is below the ports that the kernel assigns to connections, so a server that is restarted gets it again.
    """
    for port in random.SystemRandom().sample(range(20_000, 32_000), 1000):
        reserved = socket.socket(socket.AF_UNIX)
        with socket.socket() as free:
            try:
                # A name on this machine, not a file; the kernel releases it when this process ends.
                reserved.bind(f"\0weakfs-test-port-{port}")
                free.bind(("127.0.0.1", port))
            except OSError:
                reserved.close()
                continue
        reserved.detach()
        return port
    raise RuntimeError("cannot find a free port")


class Server:
    """A program that runs until it is stopped, or until the tests are killed."""

    def __init__(
        self, url: str, command: Sequence[str], is_ready: Callable[[], bool], *, log: Path | None = None
    ) -> None:
        """`log` is a file for the server's output."""
        self.url, self._command, self._is_ready, self._log = url, command, is_ready, log or Path(os.devnull)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # The resources of a crashed server are only free after some time.
        for _ in range(20):
            if self._is_started():
                return
        raise RuntimeError(f"cannot start {self._command}: it ended, or did not answer")

    def _is_started(self) -> bool:
        # A server does not outlive the tests, however they end.
        command = ["setpriv", "--pdeathsig", "KILL", *self._command]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(6000):
            if self._process.poll() is not None:
                break
            if self._is_ready():
                return True
            time.sleep(0.05)
        self.kill()
        return False

    def stop(self) -> None:
        """Stop the server as an administrator would."""
        if self._process is not None:
            # A fast shutdown for PostgreSQL; the others treat it like an interrupt from the keyboard.
            self._process.send_signal(2)
            try:
                self._process.wait(120)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """Kill the server, as a crash of the machine would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self, *, crash: bool = False) -> None:
        (self.kill if crash else self.stop)()
        self.start()


@contextmanager
def postgresql(*, fsync: bool = False) -> Iterator[Server]:
    need_package("psycopg")
    programs = next((path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")), None)
    need("PostgreSQL", is_there=programs is not None)
    assert programs is not None
    import psycopg

    # Not below pytest's directory, which only its owner may enter, and whose name is too long for a socket.
    place = Path(tempfile.mkdtemp(prefix="w.", dir="/tmp"))
    user: list[str] = []
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    try:
        data, name = place / "data", "weakfs"
        initialize = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            name,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run([*user, *map(str, initialize)], check=True, capture_output=True, cwd=place)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": place,
            "fsync": "on" if fsync else "off",
            "full_page_writes": "on" if fsync else "off",
            "shared_buffers": "16MB",
            "max_connections": "60",
        }
        command = [programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in settings.items())]
        url = f"postgresql://{name}@/postgres?host={place}"

        def is_ready() -> bool:
            try:
                psycopg.connect(url).close()
            except psycopg.OperationalError:
                return False
            return True

        server = Server(url, [*user, *map(str, command)], is_ready)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(place)


@contextmanager
def redis(place: Path, *, fsync: str = "always") -> Iterator[Server]:
    need_package("redis")
    program = shutil.which("redis-server")
    need("Redis", is_there=program is not None)
    assert program is not None
    port = free_port()

    def is_ready() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
        except OSError:
            return False

    settings = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(place),
        "save": "",
        "appendonly": "yes",
        "appendfsync": fsync,
    }
    command = [program, *(word for name, value in settings.items() for word in (f"--{name}", value))]
    server = Server(f"redis://127.0.0.1:{port}/0", command, is_ready)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def s3(*, log: Path | None = None) -> Iterator[Server]:
    need_package("obstore")
    need_package("moto")
    port = free_port()

    def is_ready() -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5):
                return True
        except (URLError, OSError):
            return False

    script = str(Path(__file__).with_name("s3_server.py"))
    command = [sys.executable, "-W", "ignore", script, str(port)]
    server = Server(f"http://127.0.0.1:{port}", command, is_ready, log=log)
    server.start()
    try:
        yield server
    finally:
        server.kill()


# The account and the key of Azurite.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextmanager
def azure() -> Iterator[Server]:
    """Start Azurite, which simulates Azure's storage (`npm install azurite`); skip the test if it is missing."""
    need_package("obstore")
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("Azurite is not installed")
    port = free_port()
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"

    def is_ready() -> bool:
        try:
            urlopen(url, timeout=5).close()
        except HTTPError:
            return True
        except OSError:
            return False
        return True

    command = [program, "--blobPort", str(port), "--inMemoryPersistence", "--skipApiVersionCheck", "--silent"]
    server = Server(url, command, is_ready)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def container(server: Server, name: str) -> str:
    """Make a container of Azurite, and return its URL."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in headers.items())]
    text = "\n".join([*lines, f"/{ACCOUNT}/{ACCOUNT}/{name}", "restype:container"])
    signature = b64encode(hmac.digest(b64decode(KEY), text.encode(), "sha256")).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    with urlopen(Request(f"{server.url}/{name}?restype=container", method="PUT", headers=headers)):
        pass
    options = {"account_name": ACCOUNT, "account_key": KEY, "endpoint": server.url}
    return f"az://{name}/some/prefix?{urlencode(options)}"


@contextmanager
def gcs() -> Iterator[Server]:
    """Start fake-gcs-server behind `gcs_server.py`; skip the test if it is missing."""
    need_package("obstore")
    program = shutil.which("fake-gcs-server")
    if program is None:
        pytest.skip("fake-gcs-server is not installed")
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    def is_ready() -> bool:
        try:
            urlopen(f"{url}/storage/v1/b?project=test", timeout=5).close()
        except OSError:
            return False
        return True

    script = str(Path(__file__).with_name("gcs_server.py"))
    server = Server(url, [sys.executable, script, str(port), str(free_port()), program], is_ready)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def gcs_bucket(server: Server, name: str) -> str:
    """Make a bucket of Google Cloud Storage, and return its URL."""
    with urlopen(Request(f"{server.url}/{name}", method="PUT")):
        pass
    account = {"client_email": "", "private_key": "", "private_key_id": ""}
    key = json.dumps({"gcs_base_url": server.url, "disable_oauth": True, **account}, separators=(",", ":"))
    return f"gs://{name}/some/prefix?{urlencode({'service_account_key': key, 'allow_http': 'true'})}"


def empty_location(engine: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """Return the URL of an empty location on an engine, whose server is started if necessary."""
    name = f"place_{uuid4().hex[:12]}"
    if engine in ("folder", "sqlite"):
        return f"{engine}:{folder}/{name}"
    if engine == "postgresql":
        return f"{request.getfixturevalue('postgresql_server').url}&schema={name}"
    if engine == "redis":
        return f"{request.getfixturevalue('redis_server').url}?namespace={name}"
    need_package("obstore")
    name = name.replace("_", "-")
    if engine == "azure":
        return container(request.getfixturevalue("azure_server"), name)
    if engine == "google":
        return gcs_bucket(request.getfixturevalue("gcs_server"), name)
    return bucket(request.getfixturevalue("s3_server"), name)


def bucket(server: Server, name: str) -> str:
    """Make a bucket, and return its URL."""
    with urlopen(Request(f"{server.url}/{name}", method="PUT")):
        pass
    return f"s3://{name}/some/prefix?endpoint={server.url}&access_key_id=id&secret_access_key=hunter2&region=us-east-1"

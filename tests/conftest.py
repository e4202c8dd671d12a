"""What applies to all tests: how thorough they are, and that they leave nothing in the user's own directories."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.containers import podman, shared_container
from tests.faults.watchdog import watched
from tests.sampling import is_left_out, left_out_marks, load_profile, sample_parameters
from tests.storage import servers
from tests.storage.servers import Server

# One Podman and one container for all tests of a worker.
__all__ = ["podman", "shared_container"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="try all cases of each rule, not a sample of them")
    parser.addoption("--slow", action="store_true", help="run the slow tests too; --exhaustive does so as well")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "exhaustive: only run with --exhaustive")
    config.addinivalue_line("markers", "slow: takes about a second or more; only run with --slow or --exhaustive")
    config.addinivalue_line("markers", "sampled: without --exhaustive each value of each parameter is tried once")
    config.addinivalue_line("markers", "thinned: with --exhaustive one combination of parameters is tried")
    load_profile(exhaustive=bool(config.getoption("--exhaustive")), slow=bool(config.getoption("--slow")))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts background processes like this, and the processes that tests interrupt would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # nohup does the same to SIGHUP.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run more workers than there are processors: tests spend a third of their time waiting."""
    return (os.cpu_count() or 1) * 3 // 2


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, object, object]:
    """Keep only the combinations of parameters in the run: creating tests and dropping them takes seconds."""
    result = yield
    sample_parameters(metafunc)
    return result


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [item for item in items if any(item.get_closest_marker(name) for name in left_out_marks())]
    if left:
        config.hook.pytest_deselected(items=left)
        dropped = {*left}
        items[:] = [item for item in items if item not in dropped]


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(obj: object) -> list[pytest.Item] | None:
    """Collect nothing from a class or function that is left out: creating its tests and dropping them takes seconds."""
    return [] if is_left_out(obj) else None


def pytest_collection_finish() -> None:
    """Freeze all modules and tests, a million objects: otherwise every full garbage collection visits them."""
    gc.collect()
    gc.freeze()


_module: object = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Also freeze what the tests of other modules have imported and left, after collecting what they dropped."""
    global _module
    module = getattr(item, "module", None)
    if module is not _module:
        _module = module
        gc.collect()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session", autouse=True)
def _state_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Put the stores of all tests, and of the processes that they start, into a directory of the test run."""
    with pytest.MonkeyPatch.context() as patch:
        state = tmp_path_factory.mktemp("state")
        patch.setenv("XDG_STATE_HOME", str(state))
        yield state


_numbers = count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a directory for a test. To find a free name, pytest's own fixture looks at those of all earlier tests."""
    return tmp_path_factory.mktemp(f"test{next(_numbers)}", numbered=False)


@pytest.fixture
def never_hung() -> Iterator[None]:
    """Fail a test that hangs."""
    with watched():
        yield


# Servers that the tests of a worker share, each started when the first test asks for it.


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    with servers.postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def azure_server() -> Iterator[Server]:
    with servers.azure() as server:
        yield server


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[Server]:
    with servers.gcs() as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Server]:
    with servers.s3() as server:
        yield server

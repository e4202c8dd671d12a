"""Packages of other projects that integrations need: the error if one is missing or too old."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager


@contextmanager
def needed(
    integration: str, *, package: str = "", modules: Collection[str] = (), at_least: str | None = None
) -> Iterator[None]:
    """Import from the package that an integration needs; if that fails, the error names the extra to install.

    `modules` are the top-level modules that may be missing, or too old to define an imported name. The package, its
    module and the extra have the integration's name unless they are given. With `at_least`, the error says that an
    older version does not work.
    """
    extra = integration.replace("_", "-")
    try:
        yield
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in (modules or [integration]):
            raise
        age = "" if at_least is None else f", or is older than {at_least}"
        raise ModuleNotFoundError(
            f"cannot use weakfs.integrations.{integration}: the package {package or extra} is not installed{age}; "
            f"run: pip install 'weakfs[{extra}]'"
        ) from error

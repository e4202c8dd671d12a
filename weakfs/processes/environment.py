"""The variables of the runtime's environment that a command sees: only those listed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

# What programs need to find other programs, use the user's language and lay out text. A name that ends in a star
# matches any ending. Keys, tokens and variables that redirect git are not included.
ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TERM", "TMPDIR", "TZ")


def select(environment: Mapping[str, str], allow: Iterable[str]) -> dict[str, str]:
    """Return the variables whose names are allowed; PATH is always included."""
    names = set(allow)
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    chosen = {"PATH": os.defpath}
    for name, value in environment.items():
        if name in names or (prefixes and name.startswith(prefixes)):
            chosen[name] = value
    return chosen

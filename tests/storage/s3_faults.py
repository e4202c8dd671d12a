"""The faults of an object store that the server of the tests, `s3_server.py`, produces on demand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal, get_args
from urllib.request import Request, urlopen

Fault = Literal[
    # Nothing is done, and the answer says so.
    "failed",
    "throttled",
    "conflict",
    "expired",
    # The request is performed, and the answer says that it failed.
    "failed after",
    # The connection ends without an answer, and the request is never performed, already performed, or performed later.
    "request lost",
    "answer lost",
    "late",
    # The request is performed after a pause.
    "slow",
    # An object arrives incomplete.
    "cut",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)


def set_faults(
    server: str, *, rate: float = 1, seed: int = 0, kinds: Iterable[Fault] = FAULTS, limit: int = 1_000_000
) -> None:
    """Make this share of all requests to a server meet one of these faults from now on, up to a number of them."""
    body = json.dumps({"rate": rate, "seed": seed, "kinds": list(kinds), "limit": limit}).encode()
    with urlopen(Request(f"{server}/faults", method="POST", data=body)):
        pass

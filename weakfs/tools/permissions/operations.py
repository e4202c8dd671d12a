"""The operations that capabilities and policies check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, cast, get_args

Operation = Literal["read", "write", "edit", "patch", "search", "list", "stat", "shell"]

OPERATIONS: tuple[Operation, ...] = get_args(Operation)

# The operations that reveal contents: to hide a file, deny all of them.
CONTENTS: tuple[Operation, ...] = ("read", "edit", "patch", "search", "shell")

# A method that is part of a tool's own operation is judged as that operation: an edit also reads the file.
COVERED: dict[Operation, tuple[Operation, ...]] = {
    "read": ("stat",),
    "write": ("stat",),
    "edit": ("read", "write", "stat"),
    "patch": ("read", "write", "list", "stat"),
    "search": ("list", "stat"),
    "list": ("stat",),
    "stat": (),
    "shell": ("list", "stat"),
}


# The operation that a method is judged as, by the tool's operation (or none) and the method's own.
JUDGED_AS: dict[Operation | None, dict[Operation, Operation]] = {
    own: {one: own if own is not None and one in COVERED[own] else one for one in OPERATIONS}
    for own in (None, *OPERATIONS)
}


def checked(operations: str | Iterable[str]) -> frozenset[Operation]:
    """Return operations as a set; raises `ValueError` for an unknown name."""
    named = frozenset((operations,) if isinstance(operations, str) else operations)
    unknown = sorted(repr(name) for name in named if name not in OPERATIONS)
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0].strip("'"), OPERATIONS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"there is no operation {', '.join(unknown)}; {hint}use one of {', '.join(OPERATIONS)}")
    return cast("frozenset[Operation]", named)

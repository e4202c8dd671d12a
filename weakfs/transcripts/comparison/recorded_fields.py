"""The fields of a recorded call, whose types are anybody's guess."""

from __future__ import annotations

from typing import cast

from attrs import define

from weakfs.transcripts import Source, TranscriptCall
from weakfs.transcripts.comparison.path_mapping import Outside, below_root
from weakfs.transcripts.comparison.steps import NotPerformed


class OutsideRoot(NotPerformed):
    """A call about a path outside the session's directory."""


@define
class Recorded:
    """A call whose fields are read by name; what is missing or of another type is `NotPerformed`."""

    call: TranscriptCall
    source: Source

    @property
    def arguments(self) -> dict[str, object]:
        if self.call.arguments is None:
            raise NotPerformed(self.call.problem or "its arguments cannot be read")
        return self.call.arguments

    @property
    def result(self) -> dict[str, object]:
        """What stands beside the answer; empty where that is nothing or text."""
        return fields_of(self.call.result)

    def text(self, name: str) -> str:
        value = self.arguments.get(name)
        if not isinstance(value, str):
            raise NotPerformed(f"{name!r} of its arguments is not text")
        return value

    def optional_text(self, name: str) -> str | None:
        value = self.arguments.get(name)
        return value if isinstance(value, str) and value else None

    def path(self, value: str, *, workdir: str | None = None) -> str:
        try:
            return below_root(value, self.source, workdir=workdir)
        except Outside as error:
            raise OutsideRoot(str(error)) from None


def fields_of(value: object) -> dict[str, object]:
    """Give an object of JSON, an empty one for anything else."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[object]:
    """Give a list of JSON, an empty one for anything else."""
    return cast("list[object]", value) if isinstance(value, list) else []


def whole(value: object) -> int | None:
    """Give a number from 1 on, also one that was sent as text; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

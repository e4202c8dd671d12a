"""The fields of a recorded call, whose types cannot be relied on."""

from __future__ import annotations

from weakfs.class_decorators import define
from weakfs.transcripts import Source, TranscriptCall
from weakfs.transcripts.json_lines import fields_of
from weakfs.transcripts.path_mapping import Outside, below_root
from weakfs.transcripts.reconstruction.recorded_calls import NotPerformed


class OutsideRoot(NotPerformed):
    """A call on a path outside the session's directory."""


@define
class Recorded:
    """A recorded call, with fields looked up by name.

    A field that is missing or has the wrong type raises `NotPerformed`.
    """

    call: TranscriptCall
    source: Source

    @property
    def arguments(self) -> dict[str, object]:
        if self.call.arguments is None:
            raise NotPerformed(self.call.problem or "its arguments cannot be read")
        return self.call.arguments

    @property
    def result(self) -> dict[str, object]:
        """The data recorded with the answer; empty if there is none or it is text."""
        return fields_of(self.call.result)

    def text(self, name: str) -> str:
        value = self.arguments.get(name)
        if not isinstance(value, str):
            raise NotPerformed(f"its argument {name!r} is not text")
        return value

    def optional_text(self, name: str) -> str | None:
        value = self.arguments.get(name)
        return value if isinstance(value, str) and value else None

    def path(self, value: str, *, workdir: str | None = None) -> str:
        try:
            return below_root(value, self.source, workdir=workdir)
        except Outside as error:
            raise OutsideRoot(str(error)) from None


def whole(value: object) -> int | None:
    """Return an integer of at least 1, even if it was sent as text; `None` for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

"""What a recorded call amounts to: a call of ours, and what the recording says of files before and after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen

from weakfs.transcripts.programs.claude_edits import Edit
from weakfs.transcripts.reconstruction.assembled_text import Part
from weakfs.transcripts.reconstruction.changed_lines import Skeleton
from weakfs.transcripts.reconstruction.file_text import Text
from weakfs.transcripts.reconstruction.recorded_hunks import Hunk

Texts = Mapping[str, Text]


def _unchanged(texts: Texts) -> Texts:
    return texts


@frozen
class Step:
    """One call as we make it.

    `succeeded` is None where the recording does not say. `before` has each file whose text matters to the call,
    `UNKNOWN` where the recording does not say what it held; `after` gives what files hold if it succeeds, and
    `is_silent` says that the recording does not tell that of all. `arguments_for` gives other arguments where they
    depend on what the files hold. `shown` is the text that a read gave, and `is_told` is False where `before` is only
    told by an answer in which something may be left out. `unchecked` says why the answer cannot be compared, `needs`
    names what must be there. `part` is what a read gave of a file that it did not give whole,
    `skeletons` what the recording of a change shows of files, `hunks` and `edits` how it changed them.
    `runs_program` tells that it may have changed any file besides.
    """

    tool: str
    arguments: dict[str, object] = field(repr=False)
    succeeded: bool | None
    before: Texts = field(factory=dict[str, Text], repr=False)
    after: Callable[[Texts], Texts] = field(default=_unchanged, repr=False)
    arguments_for: Callable[[Texts], dict[str, object]] | None = field(default=None, repr=False)
    shown: str | None = field(default=None, repr=False)
    is_told: bool = True
    part: Part | None = field(default=None, repr=False)
    is_silent: bool = False
    skeletons: Mapping[str, Skeleton] = field(factory=dict[str, Skeleton], repr=False)
    hunks: Mapping[str, tuple[Hunk, ...]] = field(factory=dict[str, tuple[Hunk, ...]], repr=False)
    edits: tuple[Edit, ...] = field(default=(), repr=False)
    runs_program: bool = False
    unchecked: str = ""
    needs: str | None = None


class NotPerformed(Exception):
    """A recorded call that we do not make; the message says why.

    `after` is what the recording nevertheless says of files, `UNKNOWN` for those that it changed in a way that is
    not recorded.
    """

    def __init__(self, reason: str, after: Texts | None = None) -> None:
        self.after: Texts = {} if after is None else after
        super().__init__(reason)


class NoCounterpart(NotPerformed):
    """A call of a tool of which we have none like it; `runs_program` tells that it may have changed any file."""

    def __init__(self, reason: str, *, runs_program: bool) -> None:
        self.runs_program = runs_program
        super().__init__(reason)

"""Recorded calls in terms of our tools, with what the recording says about files before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.transcripts.reconstruction.changed_lines import Skeleton
from weakfs.transcripts.reconstruction.claude_edit_rules import Edit
from weakfs.transcripts.reconstruction.file_text import Text
from weakfs.transcripts.reconstruction.partial_text import Part
from weakfs.transcripts.reconstruction.recorded_hunks import Hunk

Texts = Mapping[str, Text]


def _unchanged(texts: Texts) -> Texts:
    return texts


@frozen
class Step:
    """One call in terms of our tools.

    `succeeded` is `None` if the recording does not say. `before` has each file whose text matters to the call,
    `UNKNOWN` if its contents are not recorded; `after` computes the files' contents if the call succeeds, and
    `is_silent` is `True` if the recording does not show all of them. `arguments_for` computes other arguments if they
    depend on the contents of the files. `shown` is the text returned by a read, and `is_before_exact` is `False` if
    `before` is known only from an answer that may omit something. `unchecked` says why the answer cannot be compared,
    and `needs` names a path that must exist. `part` is the result of a read that did not return the whole file,
    `skeletons` are what the recording of a change shows of files, `hunks` and `edits` how it changed them.
    `runs_program` is true if the call may have changed any other file too.
    """

    tool: str
    arguments: dict[str, object] = field(repr=False)
    succeeded: bool | None
    before: Texts = field(factory=dict[str, Text], repr=False)
    after: Callable[[Texts], Texts] = field(default=_unchanged, repr=False)
    arguments_for: Callable[[Texts], dict[str, object]] | None = field(default=None, repr=False)
    shown: str | None = field(default=None, repr=False)
    is_before_exact: bool = True
    part: Part | None = field(default=None, repr=False)
    is_silent: bool = False
    skeletons: Mapping[str, Skeleton] = field(factory=dict[str, Skeleton], repr=False)
    hunks: Mapping[str, tuple[Hunk, ...]] = field(factory=dict[str, tuple[Hunk, ...]], repr=False)
    edits: tuple[Edit, ...] = field(default=(), repr=False)
    runs_program: bool = False
    unchecked: str = ""
    needs: str | None = None


class NotPerformed(Exception):
    """A recorded call is not run; the message says why.

    `after` has what the recording nevertheless says about files, `UNKNOWN` for those that changed in a way that is not
    recorded. `runs_program` is true if the call may have changed any other file too.
    """

    runs_program = False

    def __init__(self, reason: str, after: Texts | None = None) -> None:
        self.after: Texts = {} if after is None else after
        super().__init__(reason)


class NoCounterpart(NotPerformed):
    """A call to a tool without a counterpart."""

    def __init__(self, reason: str, *, runs_program: bool) -> None:
        self.runs_program = runs_program
        super().__init__(reason)

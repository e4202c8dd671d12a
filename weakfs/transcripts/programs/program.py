"""How to interpret the calls of a program, and the steps that several programs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from weakfs.class_decorators import frozen
from weakfs.transcripts.programs.recorded_fields import Recorded, whole
from weakfs.transcripts.programs.shell_commands import is_reading
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Text
from weakfs.transcripts.reconstruction.recorded_calls import NoCounterpart, NotPerformed, Step

# How many characters of an answer are searched for the reason of a failure.
_ABOUT = 1000


def _recorded_name(recorded: Recorded) -> str:
    return recorded.call.tool


@frozen
class Program:
    """The tools of one program, and our equivalent of each.

    `succeeded` returns whether a call succeeded, `None` if the recording does not say. `without_files` are the tools
    that change no file and start nothing that does; for any other tool without a counterpart this is unknown.
    `name_of` returns the name of the tool of a call.
    """

    tools: Mapping[str, Callable[[Recorded], Step]]
    succeeded: Callable[[Recorded], bool | None]
    without_files: frozenset[str]
    name_of: Callable[[Recorded], str] = _recorded_name

    def step_of(self, recorded: Recorded) -> Step:
        """Return our equivalent of a recorded call; raise `NotPerformed` with the reason if there is none."""
        tool = self.name_of(recorded)
        make = self.tools.get(tool)
        if make is None:
            raise NoCounterpart(f"{tool!r} has no counterpart", runs_program=tool not in self.without_files)
        return make(recorded)


def said_in(*texts: object) -> str:
    """Return the beginnings of the texts among these values, in lower case."""
    return " ".join(text[:_ABOUT] for text in texts if isinstance(text, str)).lower()


def text_before_failure(said: str, *, refusals: Iterable[str], missing: Iterable[str]) -> Text:
    """Return what the answer to a failed call says about its file; raise `NotPerformed` if the call was refused."""
    if any(refusal in said for refusal in refusals):
        raise NotPerformed("it was refused before it was carried out")
    return None if any(one in said for one in missing) else UNKNOWN


def read_arguments(recorded: Recorded, path: str) -> dict[str, object]:
    """Return the arguments of a read of a file, with the recorded `offset` and `limit`."""
    found = {name: whole(recorded.arguments.get(name)) for name in ("offset", "limit")}
    return {"path": path, **{name: value for name, value in found.items() if value is not None}}


def search_step(
    recorded: Recorded, tool: str, done: bool | None, renamed: Mapping[str, str], *, place: str = "path"
) -> Step:
    """Map a search call; its answer depends on files that the recording does not show."""
    arguments = {ours: recorded.arguments.get(theirs) for theirs, ours in renamed.items()}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    path = arguments["path"] = recorded.path(recorded.optional_text(place) or ".")
    return Step(tool, arguments, done, unchecked="the other files in the directory are not recorded", needs=path)


def shell_step(
    command: str, workdir: str, done: bool | None, *, timeout: float | None, is_reader: bool | None = None
) -> Step:
    """Map a shell command; `is_reader` is true if it changes no file; by default, its text determines that."""
    arguments: dict[str, object] = {"command": command, "workdir": workdir}
    if timeout is not None:
        arguments["timeout"] = timeout
    is_reader = is_reading(command) if is_reader is None else is_reader
    unchecked = "the other contents of the machine are not recorded"
    return Step("shell", arguments, done, unchecked=unchecked, runs_program=not is_reader)

"""Working trees that a session creates with `git worktree add` in the commands of its calls."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from posixpath import join

from weakfs.transcripts.json_lines import as_list

_ADD = re.compile(r"\bgit\b(?P<options>[^;&|\n]*?)\sworktree\s+add\s(?P<rest>[^;&|\n]+)")
_INTO = re.compile(r"-C\s+(\S+)")
_MOVED = re.compile(r"(?:^|&&|;|\n)\s*cd\s+([^\s;&|]+)")
# Options that take an argument.
_WITH_ARGUMENT = frozenset({"-b", "-B", "--reason"})


def made_worktrees(arguments: Mapping[str, object]) -> Iterator[str]:
    """Yield the paths at which the command in a call's arguments creates working trees, as it names them."""
    for name in ("command", "cmd", "script"):
        value = arguments.get(name)
        words = [word for word in as_list(value) or () if isinstance(word, str)]
        for script in [value] if isinstance(value, str) else [shlex.join(words), *words]:
            if "worktree" in script:
                yield from _made(script)


def _made(script: str) -> Iterator[str]:
    for found in _ADD.finditer(script):
        base = ""
        for moved in (*_MOVED.finditer(script, 0, found.start()), *_INTO.finditer(found["options"])):
            base = join(base, moved[1].strip("'\""))
        path = _first_word(found["rest"])
        if path:
            yield join(base, path)


def _first_word(rest: str) -> str | None:
    try:
        words = iter(shlex.split(rest))
    except ValueError:
        return None
    for word in words:
        if word in _WITH_ARGUMENT:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None

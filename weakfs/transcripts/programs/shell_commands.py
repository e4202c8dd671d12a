"""Shell commands that apply a patch or print a file; all others are opaque."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from posixpath import join

from weakfs.class_decorators import frozen
from weakfs.transcripts.json_lines import items_of

_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_PATCHERS = frozenset({"apply_patch", "applypatch"})
_HEREDOC = re.compile(
    r"(?:^|[\s;&|(])(?:apply_patch|applypatch)\s*<<-?\s*(?P<quote>['\"]?)(?P<tag>\w+)(?P=quote)[ \t]*(?=\n)"
)
_CHANGE_DIRECTORY = re.compile(r"\s*cd\s+(?P<where>'[^'\n]*'|\"[^\"\n]*\"|[^\s;&|'\"]+)\s*(?:&&|;|\n)\s*")
# Characters that make a command more than a list of words.
_SPECIAL = re.compile(r"[|;&<>$`*?(){}\[\]\n\\~!]")
_RANGE = re.compile(r"([1-9]\d{0,8}),([1-9]\d{0,8})p")

# Programs that change no file, whatever their arguments, and programs that change files only with one of these options.
_READERS = frozenset(
    {"cat", "cut", "df", "du", "egrep", "fgrep", "grep", "head", "ls", "nl", "stat", "tail", "tr", "wc"}
)
_READERS |= {"basename", "cd", "date", "diff", "dirname", "echo", "file", "id", "pwd", "realpath", "test", "true"}
_READERS |= {"uname", "which", "whoami"}
_GIT_READERS = frozenset({"blame", "diff", "grep", "log", "ls-files", "rev-parse", "show", "status"})
_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "find": ("-delete", "-exec", "-ok", "-fprint", "-fls"),
    "rg": ("--pre",),
    "sort": ("-o", "--output"),
}
# `sed` scripts that print some lines; other scripts can write.
_SED = re.compile(r"\bsed\s+-n\s+(['\"]?)[\d,$]+p\1(?=\s)")
# Quoted words in which a shell expands nothing.
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\`$]|\\.)*\"")
# Output redirections, nested commands, and separators between commands.
_WRITING = re.compile(r">(?!\s*/dev/null\b|&[12]\b)|`|\$\(|<\(|--output|--ext-diff")
_TARGET = re.compile(r"(?<![>&\d<])1?>\|?[ \t]*(?P<where>'[^'\n]+'|\"[^\"\n$`]+\"|[^\s;&|<>()'\"$`*?]+)")
_BETWEEN = re.compile(r"\|\||&&|[|;\n]|(?<!>)&")


@frozen
class PatchCommand:
    """A command that applies a patch; `is_all` is true if it does nothing else."""

    patch: str
    workdir: str | None
    is_all: bool


@frozen
class ShowCommand:
    """A command that prints a file: all of it, or the lines from `first` to `last`, optionally numbered."""

    path: str
    workdir: str | None
    first: int = 1
    last: int | None = None
    is_numbered: bool = False


def script_of(arguments: Mapping[str, object]) -> str | list[str] | None:
    """Return the command in a call's arguments: a list of words, or a shell script."""
    for name in ("cmd", "command", "script"):
        value = arguments.get(name)
        if isinstance(value, str):
            return value
        words = [word for word in items_of(value) if isinstance(word, str)]
        if words and len(words) == len(items_of(value)):
            program = words[0].rpartition("/")[2]
            if program in _SHELLS and len(words) == 3 and words[1].startswith("-") and words[1].endswith("c"):
                return words[2]
            return words
    return None


def read_command(command: str | list[str]) -> PatchCommand | ShowCommand | None:
    """Return what a command does with a file, or `None` if it cannot be fully understood."""
    if isinstance(command, list):
        if command[0] in _PATCHERS and len(command) == 2:
            return PatchCommand(command[1], None, True)
        return _show(command, None)
    rest, workdir = command, None
    moved = _CHANGE_DIRECTORY.match(command)
    if moved is not None:
        rest, workdir = command[moved.end() :], moved["where"].strip("'\"")
    return _heredoc(rest, workdir) or _quoted_patch(rest, workdir) or _shown(rest, workdir)


def _heredoc(script: str, workdir: str | None) -> PatchCommand | None:
    found = _HEREDOC.search(script)
    if found is None:
        return None
    body = script[found.end() + 1 :]
    tag = found["tag"]
    lines = body.split("\n")
    end = next((at for at, line in enumerate(lines) if line.strip() == tag), None)
    if end is None:
        # The command was cut off.
        end = len(lines)
    patch = "\n".join(lines[:end]) + "\n"
    is_all = not script[: found.start()].strip() and not "".join(lines[end + 1 :]).strip()
    return PatchCommand(patch, workdir, is_all)


def _quoted_patch(script: str, workdir: str | None) -> PatchCommand | None:
    """Find a patch that is given as a word: `apply_patch '...'`."""
    start = script.lstrip()
    if not start.startswith(tuple(_PATCHERS)) or "*** Begin Patch" not in start:
        return None
    try:
        words = shlex.split(start)
    except ValueError:
        return None
    return PatchCommand(words[1], workdir, True) if len(words) == 2 and words[0] in _PATCHERS else None


def _shown(script: str, workdir: str | None) -> ShowCommand | None:
    script = script.strip()
    if len(script) > 4096 or _SPECIAL.search(script):
        return None
    try:
        return _show(shlex.split(script), workdir)
    except ValueError:
        return None


def _show(words: list[str], workdir: str | None) -> ShowCommand | None:
    match words:
        case ["cat", path] if not path.startswith("-"):
            return ShowCommand(path, workdir)
        case ["nl", "-ba", path]:
            return ShowCommand(path, workdir, is_numbered=True)
        case ["sed", "-n", lines, path] if found := _RANGE.fullmatch(lines):
            return ShowCommand(path, workdir, int(found[1]), int(found[2]))
        case ["head", "-n", count, path] if count.isascii() and count.isdigit() and len(count) < 10:
            return ShowCommand(path, workdir, 1, int(count))
        case _:
            return None


def in_directory(workdir: str | None, inner: str | None) -> str | None:
    """Return the directory that a command works in: its own, then the one that it changes to."""
    if inner is None or workdir is None:
        return workdir if inner is None else inner
    return join(workdir, inner)


def is_reading(script: str) -> bool:
    """Return whether a command only reads: all its programs are known to change no file, and nothing is redirected."""
    script = _QUOTED.sub("_", _SED.sub("cat", script))
    return not _WRITING.search(script) and all(_is_reader(part.split()) for part in _BETWEEN.split(script))


def _is_reader(words: list[str]) -> bool:
    if not words:
        return True
    program, *rest = words
    if program == "git":
        return bool(rest) and rest[0] in _GIT_READERS
    if program in _ACTIONS:
        return not any(word.startswith(_ACTIONS[program]) for word in rest)
    return program in _READERS


def redirect_targets(script: str) -> list[str]:
    """Return the files to which a command redirects its output, as it names them, except those it only appends to."""
    before, _, behind = script.partition("<<")
    # What follows the line with `<<` is treated as text.
    line = f"{before} {behind.partition(chr(10))[0]}"
    named = (found["where"].strip("'\"") for found in _TARGET.finditer(line))
    return [name for name in named if not name.startswith(("/dev/", "~"))]

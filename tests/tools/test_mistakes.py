"""Mistakes that newcomers make: each error says what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from weakfs import (
    Capability,
    HostFilesystem,
    HostMount,
    InMemoryFilesystem,
    OverlayFilesystem,
    Policy,
    PolicyRule,
    Session,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
)
from weakfs.editing import replace
from weakfs.tools.handlers import ShellOptions, shell_tool
from weakfs.tools.sections import Prompt


@frozen
class Nothing:
    pass


def with_file() -> InMemoryFilesystem:
    files = InMemoryFilesystem()
    files.write("/a", "one\n")
    return files


def without_context(params: Nothing) -> ToolResult[object]:
    return ToolResult("", None)


def with_positional_context(params: Nothing, context: ToolContext) -> ToolResult[object]:
    return ToolResult("", None)


RULE = PolicyRule(effect="deny", operations=["read"], paths="/a", reason="private")

# What a programmer writes, and the remedy in the error. `Any` stands for a caller without a type checker.
CASES: dict[str, tuple[Callable[[Any], object], type[Exception], str]] = {
    "a directory as a session": (
        lambda any: any(InMemoryFilesystem)("dir"),
        TypeError,
        "use HostFilesystem('dir') for a host directory, or mounts=[HostMount('dir')]",
    ),
    "a toolset as a session": (
        lambda any: any(InMemoryFilesystem)(any(InMemoryFilesystem())),
        TypeError,
        "cannot keep files in an InMemoryFilesystem: an InMemoryFilesystem takes a Session",
    ),
    "a directory as a mount": (
        lambda any: any(InMemoryFilesystem)(mounts=["."]),
        TypeError,
        "cannot mount '.': it is a str; pass HostMount('.')",
    ),
    "a directory as the list of mounts": (
        lambda any: any(InMemoryFilesystem)(mounts="src"),
        TypeError,
        "mounts is a str; pass a list, mounts=[HostMount('src')]",
    ),
    "a number as a mount": (
        lambda any: any(InMemoryFilesystem)(mounts=[5]),
        TypeError,
        "cannot mount 5: it is an int; pass a HostMount",
    ),
    "one mount": (
        lambda any: any(InMemoryFilesystem)(mounts=HostMount(".")),
        TypeError,
        "mounts is a HostMount; pass a list, mounts=[mount]",
    ),
    "a mount of no directory": (
        lambda any: any(InMemoryFilesystem)(mounts=[HostMount("/no/such/directory")]),
        FileNotFoundError,
        "cannot mount '/no/such/directory': there is no such directory; name a host directory",
    ),
    "a filesystem without its session": (
        lambda any: any(Toolset)(InMemoryFilesystem()),
        TypeError,
        "cannot make a Toolset from an InMemoryFilesystem: the session comes first; use Toolset(session, filesystem)",
    ),
    "no session at all": (
        lambda any: any(Toolset)(None),
        TypeError,
        "cannot make a Toolset from None: it takes a Session; use Toolset(Session())",
    ),
    "a directory as a filesystem": (
        lambda any: any(Toolset)(Session(), "dir"),
        TypeError,
        "cannot use 'dir' as a filesystem: its type is str; give a filesystem, such as HostFilesystem(...)",
    ),
    "a function as a tool": (
        lambda any: any(Toolset)(Session(), tools=[without_context]),
        TypeError,
        "use Tool('without_context', 'what it does', Params, without_context)",
    ),
    "a function as the list of tools": (
        lambda any: any(Toolset)(Session(), tools=without_context),
        TypeError,
        "tools is a function; give a list of Tool objects, tools=[...]",
    ),
    "a name as a tool": (
        lambda any: any(Toolset)(Session(), tools=["ls"]),
        TypeError,
        "cannot use 'ls' as a tool: it is a str; give Tool objects, such as weakfs.tools.READ_FILE",
    ),
    "a pattern as a rule": (
        lambda any: any(Policy)(["x"]),
        TypeError,
        "cannot use 'x' as a rule of a policy: it is a str; give PolicyRule(effect=...,",
    ),
    "a rule as a policy": (
        lambda any: any(Toolset)(Session(), policy=RULE),
        TypeError,
        "policy is a PolicyRule; give a Policy, or leave it out",
    ),
    "a dictionary as a capability": (
        lambda any: any(Toolset)(Session(), capability={"max_read_bytes": 5}),
        TypeError,
        "capability is a dict; give a Capability, or leave it out",
    ),
    "a capability with a misspelled argument": (
        lambda any: any(Capability)(max_write=5),
        TypeError,
        "a Capability has no 'max_write'; did you mean max_write_bytes?",
    ),
    "a capability with an unknown argument": (
        lambda any: any(Capability)(zzz=5),
        TypeError,
        "a Capability has no 'zzz'; use one of allowed_fs_ops, fs_roots, ",
    ),
    "a misspelled operation": (
        lambda any: any(Capability)(allowed_fs_ops=["raed"]),
        ValueError,
        "there is no operation 'raed'; did you mean 'read'? use one of read, write, ",
    ),
    "a handler without a context": (
        lambda any: any(Tool)("probe", "", Nothing, without_context),
        TypeError,
        "declare it as def without_context(params: Nothing, *, context: ToolContext) -> ToolResult",
    ),
    "a text as a handler": (
        lambda any: any(Tool)("probe", "", Nothing, "ls"),
        TypeError,
        "cannot make the tool 'probe': its handler is a str; give a function",
    ),
    "a session as a directory": (
        lambda any: any(HostFilesystem)(Session(session_id="s")),
        TypeError,
        "cannot open <Session 's' at record 0> as a HostFilesystem: it takes the path of a directory; pass a "
        "session as HostFilesystem(path, session=...)",
    ),
    "a text as the session of a directory": (
        lambda any: any(HostFilesystem)(".", session="s"),
        TypeError,
        "session is a str; pass a Session",
    ),
    "a text as the session of an overlay": (
        lambda any: any(OverlayFilesystem)(InMemoryFilesystem(), "s"),
        TypeError,
        "session is a str; pass a Session",
    ),
    "a number as limits": (
        lambda any: any(InMemoryFilesystem)(limits=10),
        TypeError,
        "limits is an int; pass Limits, such as Limits(max_file_size=10_000)",
    ),
    "a number as limits of a directory": (
        lambda any: any(HostFilesystem)(".", limits=10),
        TypeError,
        "limits is an int; pass Limits",
    ),
    "a number as limits of a toolset": (
        lambda any: any(Toolset)(Session(), InMemoryFilesystem(), limits=10),
        TypeError,
        "limits is an int; pass Limits",
    ),
    "a dictionary as text": (
        lambda any: any(InMemoryFilesystem().write)("/a", {"a": 1}),
        TypeError,
        "cannot write '/a': expected text, not a dict; convert it first",
    ),
    "bytes as text": (
        lambda any: any(InMemoryFilesystem().write)("/a", b"1"),
        TypeError,
        "cannot write '/a': expected text, not bytes; use write_bytes",
    ),
    "text as bytes": (
        lambda any: any(InMemoryFilesystem().write_bytes)("/a", "1"),
        TypeError,
        "cannot write '/a': expected bytes, not a str; use write",
    ),
    "a list as bytes": (
        lambda any: any(InMemoryFilesystem().write_bytes)("/a", [1]),
        TypeError,
        "cannot write '/a': expected bytes, not a list; convert it first",
    ),
    "bytes to append as text": (
        lambda any: any(InMemoryFilesystem().append)("/a", b"1"),
        TypeError,
        "cannot write '/a': expected text, not bytes; use write_bytes(path, content, mode='append')",
    ),
    "text as lines": (
        lambda any: any(InMemoryFilesystem().write_lines)("/a", "one"),
        TypeError,
        "cannot write '/a': expected lines, not a str; use write, or pass a list of lines",
    ),
    "numbers as lines": (
        lambda any: any(InMemoryFilesystem().write_lines)("/a", ["one\n", 2]),
        TypeError,
        "cannot write '/a': a line is text, not an int; convert it first",
    ),
    "bytes as a path": (
        lambda any: any(InMemoryFilesystem().exists)(b"/a"),
        TypeError,
        "a path is text such as '/src/app.py', not bytes: b'/a'",
    ),
    "text as permission bits": (
        lambda any: any(InMemoryFilesystem().chmod)("/", "755"),
        ValueError,
        "use permission bits from 0 to 0o7777, such as 0o755",
    ),
    "no encoding": (
        lambda any: any(with_file().read)("/a", encoding=None),
        ValueError,
        "cannot open '/a' as text: None is not an encoding; use one such as 'utf-8'",
    ),
    "no encoding of a stream": (
        lambda any: any(with_file().open)("/a", encoding=None),
        ValueError,
        "cannot open '/a' as text: None is not an encoding; use one such as 'utf-8'",
    ),
    "text as a number of lines": (
        lambda any: any(with_file().read)("/a", limit="5"),
        ValueError,
        "cannot read '5' lines of '/a'; use a number of 0 or more, or -1 for all",
    ),
    "text as the first line": (
        lambda any: any(with_file().read)("/a", offset="5"),
        ValueError,
        "cannot read '/a' from line '5'; use an offset of 0 or more",
    ),
    "text as the first byte": (
        lambda any: any(with_file().read_bytes)("/a", offset="5"),
        ValueError,
        "cannot read None bytes of '/a' from '5'; use numbers of 0 or more",
    ),
    "text as a number of bytes": (
        lambda any: any(with_file().read_bytes)("/a", limit="5"),
        ValueError,
        "cannot read '5' bytes of '/a' from 0; use numbers of 0 or more",
    ),
    "several patterns to find": (
        lambda any: any(InMemoryFilesystem().glob)(["*.py"]),
        TypeError,
        "a glob pattern is text, not a list; write several as one, '*.{py,md}'",
    ),
    "several patterns of files to search": (
        lambda any: any(InMemoryFilesystem().grep)("x", glob=["*.py"]),
        TypeError,
        "a glob pattern is text, not a list; write several as one, '*.{py,md}'",
    ),
    "text as a number of matches": (
        lambda any: any(InMemoryFilesystem().grep)("x", max_matches="5"),
        ValueError,
        "cannot return '5' matches; use a number of 0 or more, or -1 for all",
    ),
    "a number as a mounted directory": (
        lambda any: any(HostMount)(5),
        TypeError,
        "host_path is 5; pass the path of a host directory",
    ),
    "text as the size of a mount": (
        lambda any: any(HostMount)(".", max_bytes="5"),
        ValueError,
        "max_bytes is '5'; pass a number of bytes, or None for no limit",
    ),
    "a number as a pattern of a mount": (
        lambda any: any(HostMount)(".", exclude=[5]),
        TypeError,
        "cannot use 5 as a glob pattern: it is an int; pass text",
    ),
    "another policy for the links of a mount": (
        lambda any: any(HostMount)(".", follow_symlinks=True),
        ValueError,
        "follow_symlinks is True; use 'deny', 'within_root_only' or 'allow'",
    ),
    "another policy for links in a capability": (
        lambda any: any(Capability)(follow_symlinks="yes"),
        ValueError,
        "follow_symlinks is 'yes'; use 'deny', 'within_root_only' or 'allow'",
    ),
    "a number as a directory": (
        lambda any: any(Capability)(fs_roots=[5]),
        TypeError,
        "fs_roots contains 5; give paths such as '/src'",
    ),
    "an effect that allows": (
        lambda any: any(PolicyRule)(effect="allow", operations="write", paths="/src", reason="sources"),
        ValueError,
        "effect is 'allow'; give 'deny', 'only' or 'blob', since rules only restrict",
    ),
    "a number as a path of a rule": (
        lambda any: any(PolicyRule)(effect="deny", operations="write", paths=[5], reason="no"),
        TypeError,
        "paths contains 5; give glob patterns such as '/src' or '*.key'",
    ),
    "no reason": (
        lambda any: any(PolicyRule)(effect="deny", operations="write", paths="/src", reason=None),
        TypeError,
        "reason is None; give the text that the model reads",
    ),
    "a rule in place of a function": (
        lambda any: any(Policy)(check=RULE),
        TypeError,
        "check is a PolicyRule; pass a function that returns None or the reason for a refusal",
    ),
    "a dictionary as parameters": (
        lambda any: any(Tool)("probe", "", {"type": "object"}, with_positional_context),
        TypeError,
        "cannot use a dict for parameters: it declares no fields",
    ),
    "a value in place of the message": (
        lambda any: any(ToolResult)(5, "five"),
        TypeError,
        "message is 5; give the text that the model reads, then the value",
    ),
    "a call in one part": (
        lambda any: any(Toolset(Session()).call)({"name": "ls"}, {}),
        TypeError,
        "name is a mapping; pass a call in two parts: call(name, arguments)",
    ),
    "text as a time limit": (
        lambda any: any(ShellOptions)(timeout="60"),
        ValueError,
        "timeout is '60'; give a number of seconds above 0",
    ),
    "text as the size of an output": (
        lambda any: any(ShellOptions)(max_output="60"),
        ValueError,
        "max_output is '60'; give a number of at least 0 bytes",
    ),
    "a sandbox as options": (
        lambda any: any(shell_tool)("required"),
        TypeError,
        "options is a str; give ShellOptions, such as ShellOptions(timeout=60)",
    ),
    "text as a section": (
        lambda any: any(Prompt)(sections=["Write a poem."]),
        TypeError,
        "cannot use 'Write a poem.' as a section: it is a str; give a Section",
    ),
    "bytes to replace": (
        lambda any: any(replace)(b"one", b"o", b"0"),
        TypeError,
        "cannot replace b'one': it is bytes; pass text",
    ),
    "a name as a slice": (
        lambda any: any(Session().install)("plan"),
        TypeError,
        "cannot install 'plan': it is a str; pass the class of the slice",
    ),
    "an instance as a slice": (
        lambda any: any(Session().install)(Nothing()),
        TypeError,
        "cannot install Nothing(): it is a Nothing; pass the class of the slice",
    ),
    "a tag when there are no snapshots": (
        lambda any: Session().rollback("before"),
        LookupError,
        "no snapshots are kept; take one with snapshot(tag) first, or pass a record number",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_error_says_what_to_do(case: str) -> None:
    do, kind, says = CASES[case]

    def untyped(given: Any) -> Any:
        return given

    with pytest.raises(kind) as raised:
        do(untyped)
    assert says in str(raised.value)


def test_a_single_rule_is_accepted_as_a_policy() -> None:
    assert Policy(RULE).rules == (RULE,)


def test_a_missing_host_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such directory; create it first"):
        HostFilesystem(tmp_path / "none")


def test_a_handler_may_accept_the_context_by_position_or_as_a_keyword() -> None:
    Tool("probe", "", Nothing, with_positional_context)
    Tool("probe", "", Nothing, lambda params, **more: ToolResult("", None))


def test_a_tag_used_twice_refers_to_the_newer_snapshot() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    session.snapshot("here")
    fs.write("/a", "1")
    session.snapshot("here")
    fs.write("/a", "2")

    session.rollback("here")

    assert fs.read("/a").content == "1"
    with pytest.raises(LookupError, match=r"it may have been dropped; the newest are 'here'$"):
        session.rollback("there")

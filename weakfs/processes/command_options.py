"""Options for commands of any tool, set by the runtime and never by a model; the environment variables they see."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import get_args

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.processes.resource_limits import CommandLimits
from weakfs.processes.sandbox import Bubblewrap, SandboxMode

# What programs need to find other programs, use the user's language and lay out text. A name that ends in a star
# matches any ending. Keys, tokens and variables that redirect git are not included.
ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TERM", "TMPDIR", "TZ")


def _read_only(environment: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(environment))


@frozen(kw_only=True)
class CommandOptions:
    """How a command runs.

    `sandbox` is "required" (refuse to run without a sandbox), "auto" (run without one if there is none, and report
    that), or "off". `environment_allow` names the variables of the runtime's environment that a command sees;
    `environment` adds others. `readable` are host directories that the sandbox shows read-only, such as a toolchain's.
    `limits` apply to sandboxed commands. A container is a sandbox itself: `sandbox`, `readable` and `bubblewrap` are
    ignored there, and by default the allowed variables are those of its image.
    """

    sandbox: SandboxMode = "required"
    environment_allow: tuple[str, ...] = ENVIRONMENT
    environment: Mapping[str, str] = field(factory=dict[str, str], converter=_read_only, repr=False)
    readable: tuple[str, ...] = ()
    shell: str = "/bin/sh"
    bubblewrap: Bubblewrap = field(factory=Bubblewrap, repr=False)
    limits: CommandLimits = field(factory=CommandLimits)

    def __attrs_post_init__(self) -> None:
        if self.sandbox not in get_args(SandboxMode):
            raise ValueError(f"sandbox is {self.sandbox!r}; use 'auto', 'required' or 'off'")


def select(environment: Mapping[str, str], allow: Iterable[str]) -> dict[str, str]:
    """Return the variables whose names are allowed; PATH is always included."""
    names = set(allow)
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    chosen = {"PATH": os.defpath}
    for name, value in environment.items():
        if name in names or (prefixes and name.startswith(prefixes)):
            chosen[name] = value
    return chosen

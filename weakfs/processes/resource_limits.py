"""Resource limits of a sandboxed command: setting them, and guessing which of them were reached."""

from __future__ import annotations

from attrs import field, fields

from weakfs.class_decorators import frozen

GIB = 1 << 30

# Sets the limit on processes, then executes the command. It runs inside the sandbox, because the kernel compares the
# limit with the processes of the user namespace in which it is set: if it were set outside, it would count all of the
# user's processes on the machine. bash and zsh call the limit -u, dash and ash -p.
_SET_PROCESSES = 'ulimit -u "$1" 2>/dev/null || ulimit -p "$1" 2>/dev/null; shift; exec "$@"'

# The words with which programs report that a limit was reached, and the signals that the kernel sends.
_SIGNS: dict[str, tuple[str, ...]] = {
    "max_processes": ("resource temporarily unavailable", "cannot fork", "can't start new thread"),
    "max_memory": ("cannot allocate memory", "memoryerror", "out of memory", "bad_alloc", "memory exhausted"),
    "max_file_size": ("file too large", "file size limit exceeded"),
    "max_tmp_size": ("no space left on device",),
    "max_open_files": ("too many open files",),
    "max_cpu_seconds": ("cpu time limit exceeded",),
}
_SIGNALS = {128 + 24: "max_cpu_seconds", 128 + 25: "max_file_size"}


def _at_least_one(instance: object, attribute: object, value: int | None) -> None:
    if value is not None and (type(value) is not int or value < 1):
        name = getattr(attribute, "name", "a limit")
        raise ValueError(f"{name} is {value!r}; give a whole number of at least 1, or None for no limit")


@frozen(kw_only=True)
class CommandLimits:
    """Limits of one sandboxed command; `None` means no limit. Sizes are in bytes.

    `max_processes` is for all processes of the command together, and counts threads as well unless the runtime runs as
    root. `max_tmp_size` applies to each of /tmp and /dev/shm, which are in memory (bubblewrap 0.7 or later). The others
    apply to each process: `max_memory` limits its private writable memory, so a command may use `max_processes` times
    as much; only a cgroup around the runtime bounds the sum.
    """

    max_processes: int | None = field(default=1024, validator=_at_least_one)
    max_memory: int | None = field(default=4 * GIB, validator=_at_least_one)
    max_file_size: int | None = field(default=GIB, validator=_at_least_one)
    max_tmp_size: int | None = field(default=GIB // 2, validator=_at_least_one)
    max_open_files: int | None = field(default=4096, validator=_at_least_one)
    max_cpu_seconds: int | None = field(default=None, validator=_at_least_one)

    def resources(self) -> dict[str, int]:
        """Return the limits that `setrlimit` sets, under their names in the module `resource`."""
        found = {
            "RLIMIT_DATA": self.max_memory,
            "RLIMIT_FSIZE": self.max_file_size,
            "RLIMIT_NOFILE": self.max_open_files,
            "RLIMIT_CPU": self.max_cpu_seconds,
        }
        return {name: value for name, value in found.items() if value is not None}

    def wrapped(self, arguments: list[str]) -> list[str]:
        """Return a command line that limits the number of processes and then runs `arguments`."""
        if self.max_processes is None:
            return arguments
        return ["/bin/sh", "-c", _SET_PROCESSES, "sh", str(self.max_processes), *arguments]

    def likely_hit(self, exit_code: int | None, stderr: str, exceeded: str | None) -> tuple[str, ...]:
        """Return the limits that a command seems to have reached, each as `name=value`.

        `exceeded` is the name of the limit for which it was killed, if any. Otherwise they are guessed from the signal
        that ended it and from its error messages. Messages of a command that is being killed prove nothing, because
        the kernel refuses a fork in a dying sandbox for lack of memory.
        """
        if exceeded is not None:
            return (f"{exceeded}={getattr(self, exceeded)}",)
        said = stderr.lower()
        found: list[str] = []
        for one in fields(CommandLimits):
            value: int | None = getattr(self, one.name)
            if value is None:
                continue
            if one.name == _SIGNALS.get(exit_code or 0) or any(words in said for words in _SIGNS[one.name]):
                found.append(f"{one.name}={value}")
        return tuple(found)

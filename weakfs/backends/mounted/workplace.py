"""Programs that work on mounted files: they see the mounted paths, and their changes are reported by these paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from weakfs.backends.mounted.mount_point import MountPoint
from weakfs.class_decorators import frozen
from weakfs.filesystem.checkout import Checkout
from weakfs.processes import ENVIRONMENT, CommandLimits, CommandOptions, CompletedCommand, RunsCommands, StopEvent
from weakfs.processes.background import HostLauncher, Launcher, Program, Workplace
from weakfs.processes.runner import MAX_OUTPUT, TIMEOUT
from weakfs.session import Session


@frozen(eq=False)
class MountedCheckout:
    """A checkout of mounted files: a sandbox shows `directory` at the mount point, and paths start there."""

    checkout: Checkout
    point: MountPoint

    @property
    def directory(self) -> str:
        """The host directory that a command has to see at the mount point."""
        return self.checkout.directory

    @property
    def changed(self) -> tuple[str, ...]:
        """The mounted paths that were added, changed, moved or removed."""
        return tuple(map(self.point.mounted, self.checkout.changed))

    @property
    def set_id_removed(self) -> tuple[str, ...]:
        """The mounted paths of entries that lost set-uid or set-gid bits."""
        return tuple(map(self.point.mounted, self.checkout.set_id_removed))


@frozen(eq=False)
class MountedPlaceCheckout(MountedCheckout):
    """A checkout in a place that runs commands itself, such as a container."""

    runner: RunsCommands

    def run_command(
        self,
        command: str,
        *,
        workdir: str,
        timeout: float = TIMEOUT,
        max_output: int = MAX_OUTPUT,
        environment_allow: Iterable[str] = ENVIRONMENT,
        environment: Mapping[str, str] | None = None,
        limits: CommandLimits = CommandLimits(),  # noqa: B008  # frozen
        stop: StopEvent | None = None,
    ) -> CompletedCommand:
        """Run a line of shell in a directory given by its mounted path; see `weakfs.processes.RunsCommands`."""
        return self.runner.run_command(
            command,
            workdir=self.point.own(workdir) or "/",
            timeout=timeout,
            max_output=max_output,
            environment_allow=environment_allow,
            environment=environment,
            limits=limits,
            stop=stop,
        )


def mounted_checkout(checkout: Checkout, point: MountPoint) -> MountedCheckout:
    """Return a checkout whose paths are the mounted ones."""
    if isinstance(checkout, RunsCommands):
        return MountedPlaceCheckout(checkout, point, checkout)
    return MountedCheckout(checkout, point)


@frozen(eq=False)
class MountedWorkplace:
    """A place where background processes work on mounted files; see `weakfs.processes.background.Workplace`."""

    place: Workplace
    point: MountPoint

    @property
    def session(self) -> Session:
        """The session that the filesystem is bound to."""
        return self.place.session

    @property
    def filesystem_id(self) -> str:
        """The id of the files in sessions."""
        return self.place.filesystem_id

    def lock(self) -> AbstractContextManager[None]:
        """Keep others from changing the session and the files."""
        return self.place.lock()

    def launcher(self, options: CommandOptions) -> Launcher:
        """Return the launcher of programs that see the files at the mount point."""
        launcher = self.place.launcher(options)
        if isinstance(launcher, HostLauncher):
            launcher = launcher.mounted(self.point.path)
        return MountedLauncher(launcher, self.point)

    def refuse_exclusive(self) -> None:
        """Raise `OSError` (EBUSY) while another call has exclusive use of the files."""
        self.place.refuse_exclusive()

    def scan_changes(self, cause: str | None) -> tuple[str, ...]:
        """Scan the files, and return the mounted paths that changed."""
        return tuple(map(self.point.mounted, self.place.scan_changes(cause)))

    def at_end(self, commit: Callable[[], object], undo: Callable[[], object]) -> bool:
        """Call one of the two functions when the transaction of the running code ends."""
        return self.place.at_end(commit, undo)


@frozen(eq=False)
class MountedLauncher:
    """Launches programs in directories given by their mounted paths."""

    inner: Launcher
    point: MountPoint

    def launch(self, arguments: Sequence[str], *, directory: str) -> Program:
        """Launch a program; see `weakfs.processes.background.Launcher`."""
        return self.inner.launch(arguments, directory=self.point.own(directory) or "/")

"""Options for creating a container, and limits on what it may use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from attrs import field
from attrs.validators import optional

from weakfs.class_decorators import frozen

# Characters that no word of a command may contain.
UNFIT = re.compile("[\0\ud800-\udfff]")

# The default limits: the size of a layer in bytes, and the seconds for which a container may be idle.
MAX_LAYER_SIZE = 8 << 30
IDLE_AFTER = 900.0


def _above_zero(instance: object, attribute: object, value: float | None) -> None:
    if value is not None and (isinstance(value, bool) or not value > 0):
        raise ValueError(f"{getattr(attribute, 'name', 'a limit')} is {value!r}; pass a number above 0, or None")


def _check_text(instance: object, attribute: object, value: str) -> None:
    check_text(getattr(attribute, "name", "an option"), value)


def _check_texts(instance: object, attribute: object, values: Iterable[str]) -> None:
    for value in values:
        check_text(getattr(attribute, "name", "an option"), value)


def _check_variables(instance: object, attribute: object, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        if not name or "=" in name:
            raise ValueError(
                f"cannot set the variable {name!r}: a name must not be empty or contain '='; use another name"
            )
        check_text("the name of a variable", name)
        check_text(f"the variable {name}", value)


def check_text(what: str, value: str) -> None:
    """Raise `ValueError` for text that cannot be a word of a command."""
    if UNFIT.search(value):
        raise ValueError(f"{what} is {value!r}; leave out NUL characters and lone surrogates")


@frozen(kw_only=True)
class ContainerOptions:
    """How a container is created. By default it has no network, no capabilities and no way to gain privileges.

    `user` is the user that its commands run as, by number or name. `variables` are set for everything in it;
    `podman inspect` shows them, so pass secrets to single commands instead.

    A command is killed, and its changes are undone, when the layer takes up more than `max_layer_size` bytes. A
    container that has not been used for `idle_after` seconds is stopped, and started again when it is next used. `None`
    means no limit.
    """

    image: str = field(validator=_check_text)
    network: str = field(default="none", validator=_check_text)
    user: str | None = field(default=None, validator=optional(_check_text))
    capabilities: tuple[str, ...] = field(default=(), validator=_check_texts)
    variables: Mapping[str, str] = field(factory=dict[str, str], repr=False, validator=_check_variables)
    read_only: bool = False
    max_layer_size: int | None = field(default=MAX_LAYER_SIZE, validator=_above_zero)
    idle_after: float | None = field(default=IDLE_AFTER, validator=_above_zero)

    def words(self) -> list[str]:
        """Return the options of `podman create`."""
        return [
            *("--network", self.network, "--cap-drop", "all", "--security-opt", "no-new-privileges"),
            *(word for one in self.capabilities for word in ("--cap-add", one)),
            *(("--user", self.user) if self.user is not None else ()),
            *(word for name, value in self.variables.items() for word in ("--env", f"{name}={value}")),
            *(("--read-only",) if self.read_only else ()),
        ]

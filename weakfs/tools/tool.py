"""A tool: a handler, and what a runtime must know to offer it to a model."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib import import_module
from inspect import iscoroutinefunction, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from attrs import Factory, field, fields

from weakfs.class_decorators import frozen
from weakfs.messages import a_type
from weakfs.tools.permissions.operations import OPERATIONS, Operation
from weakfs.tools.results import Receipt, ToolResult
from weakfs.tools.schemas import Schema, schema_of
from weakfs.tools.schemas.arguments import Parameter, parameters_of, reader

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    # A tool that declares no receipt may return anything.
    R_co = TypeVarWithDefault("R_co", covariant=True, default=object)
else:
    R_co = TypeVar("R_co", covariant=True)

# `handler(params, *, context) -> ToolResult`, where params is an instance of the tool's `params` class.
Handler = Callable[..., ToolResult[object]] | Callable[..., Awaitable[ToolResult[object]]]

# The tool names that every provider accepts.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _parameters(tool: Tool) -> tuple[Parameter, ...]:
    return parameters_of(tool.params)


def _is_async(tool: Tool) -> bool:
    return iscoroutinefunction(tool.handler) or iscoroutinefunction(type(tool.handler).__call__)


def _check_handler(tool: Tool) -> None:
    """Raise `TypeError` for a handler that cannot be called as `handler(params, context=context)`."""
    if not callable(tool.handler):  # pyright: ignore[reportUnnecessaryComparison]
        raise TypeError(f"cannot make the tool {tool.name!r}: its handler is {a_type(tool.handler)}; give a function")
    try:
        signature(tool.handler).bind(None, context=None)
    except TypeError as error:
        name = getattr(tool.handler, "__name__", "handler")
        raise TypeError(
            f"cannot make the tool {tool.name!r}: its handler does not take parameters and a context ({error}); "
            f"declare it as def {name}(params: {tool.params.__name__}, *, context: ToolContext) -> ToolResult"
        ) from None
    except ValueError:
        # Some callables of extension modules have no signature.
        return


def _read_only(aliases: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(aliases))


@frozen(eq=False)
class Tool(Generic[R_co]):
    """One tool that a model may call.

    `params` is an attrs class, a dataclass or a pydantic model; the JSON of a call is checked against its fields.
    `read_only` means that the handler changes nothing, so that a call needs no transaction. `aliases` are other names
    for parameters. `receipt` is the class of the tool's receipts: the handler returns one, and a failed call gets one
    too. Without it, the handler may return any value, and a failed call gets a `Receipt`. `operation` is what a call of
    the tool counts as for a capability and a policy; without one, each method of the filesystem is checked separately.
    `targets(params, context)` returns the paths of the files whose contents the caller is expected to have seen.
    `is_quick` means that the handler never takes long on files in memory, so that `Toolset.acall` runs it in the event
    loop's thread. `runs_programs` means that the handler runs programs that change files on the host: what changes in
    `context.directory` while it runs becomes part of the call, at the cost of two scans, and the call counts as a
    command unless it has another `operation`. A handler may be a coroutine function; such a tool is called with
    `acall`. Raises `TypeError` or `ValueError` if no call could reach the tool, or if its handler takes no `context`.
    """

    name: str
    description: str
    params: type
    handler: Handler = field(repr=False)
    read_only: bool = False
    aliases: Mapping[str, str] = field(factory=dict[str, str], converter=_read_only)
    receipt: type[R_co] = cast("type[R_co]", Receipt)
    operation: Operation | None = None
    targets: Callable[[Any, Any], Iterable[str]] | None = field(default=None, repr=False)
    is_quick: bool = False
    runs_programs: bool = False
    # Whether the handler is a coroutine function.
    is_async: bool = field(init=False, repr=False, default=Factory(_is_async, takes_self=True))
    parameters: tuple[Parameter, ...] = field(init=False, repr=False, default=Factory(_parameters, takes_self=True))
    _read: Callable[[object], object] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"cannot name a tool {self.name!r}: use at most 64 letters, digits, '_' and '-', which all providers "
                "accept"
            )
        if self.operation is not None and self.operation not in OPERATIONS:
            raise ValueError(
                f"the tool {self.name!r} has no operation {self.operation!r}: use one of {', '.join(OPERATIONS)}"
            )
        if not (isinstance(self.receipt, type) and issubclass(self.receipt, Receipt)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"cannot make the tool {self.name!r}: its receipt is {self.receipt!r}; give a subclass of Receipt"
            )
        if self.runs_programs:
            self._check_programs()
        _check_handler(self)
        known = {parameter.name for parameter in self.parameters}
        for alias, name in self.aliases.items():
            if name not in known or alias in known:
                raise ValueError(
                    f"cannot use {alias!r} for the parameter {name!r} of {self.name!r}: the parameters are "
                    f"{', '.join(sorted(known))}; map a new name to one of them"
                )

        object.__setattr__(self, "_read", reader(self.params, self.parameters, self.aliases))

    def _check_programs(self) -> None:
        for name, is_set in (("read_only", self.read_only), ("is_quick", self.is_quick)):
            if is_set:
                raise ValueError(
                    f"the tool {self.name!r} cannot have both {name} and runs_programs: a program may change files and "
                    f"take long; leave one of them out"
                )
        if self.operation is None:
            object.__setattr__(self, "operation", "shell")

    @property
    def json_schema(self) -> Schema:
        """The JSON Schema (2020-12) of the parameters, under their own names."""
        return schema_of(self.params)

    def read_arguments(self, arguments: object) -> object:
        """Convert a call's JSON to the handler's parameters; `ToolValidationError` names every problem."""
        return self._read(arguments)


class BuiltinTool(Tool[R_co]):
    """A tool whose module is imported when more than its name is needed.

    Importing the parameters and receipts of all tools would make a first call take half as long again, and most
    processes call few tools.
    """

    __slots__ = ("_module",)

    _module: str

    @classmethod
    def of(cls, name: str, module: str) -> BuiltinTool[Any]:
        """Return the tool with this name from the `TOOLS` of a module."""
        tool = cls.__new__(cls)
        object.__setattr__(tool, "name", name)
        object.__setattr__(tool, "_module", module)
        return tool

    def __getattr__(self, name: str) -> object:
        # Called only while a slot is empty.
        names = [one.name for one in fields(Tool)]
        if name not in names:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        tools: tuple[Tool, ...] = import_module(self._module).TOOLS
        defined = next(tool for tool in tools if tool.name == self.name)
        for one in names:
            object.__setattr__(self, one, getattr(defined, one))
        return getattr(self, name)

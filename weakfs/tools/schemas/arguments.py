"""Conversion of a call's JSON arguments to a handler's parameters: strict, naming every problem, guessing nothing.

Types of parameters: text, numbers, booleans, literals, lists, objects with text keys, attrs classes, dataclasses,
pydantic models, and unions of those. `null` means that a parameter is left out.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, cast, get_args, get_origin

from weakfs.class_decorators import frozen
from weakfs.messages import a_type, clip, one_line
from weakfs.tools.errors import ToolValidationError
from weakfs.tools.schemas.fields import Schema, fields_of, has_fields
from weakfs.tools.schemas.pydantic_models import is_model, model_schema, read_model, takes_unknown

# Takes a value and its place, adds problems to the list, and returns the value to use.
Reader = Callable[[object, str, list[str]], object]

# The value of a parameter that is not given.
NOTHING: tuple[str, None] = ("", None)

# A name or a value that a message quotes is cut to this many characters.
SHOWN = 60
# An error lists this many unknown names, each with a suggestion, and counts the others.
MAX_UNKNOWN = 10


def param(description: str, *, at_least: int | None = None, for_models: bool = True) -> dict[str, object]:
    """Return the metadata of a parameter, for `field(metadata=...)`: its description and its minimum.

    A parameter that is not `for_models` can be passed by a program and is left out of definitions.
    """
    return {"description": description, "at_least": at_least, "for_models": for_models}


@frozen(eq=False)
class Parameter:
    """One parameter of a tool: its name in a call, the name of its `__init__` argument, and how its value is read."""

    name: str
    init_name: str
    description: str
    required: bool
    read: Reader
    for_models: bool


def parameters_of(params: type) -> tuple[Parameter, ...]:
    """Return the parameters that a class declares.

    Raises `TypeError` if the class is not an attrs class, dataclass or pydantic model, or if JSON cannot represent the
    type of a field.
    """
    if is_model(params):
        return _parameters_of_model(model_schema(params))
    found: list[Parameter] = []
    for field in fields_of(params):
        least = cast("int | None", field.metadata.get("at_least"))
        read = _reader(field.hint, f"{params.__name__}.{field.name}")
        found.append(
            Parameter(
                field.name,
                field.init_name,
                cast(str, field.metadata.get("description", "")),
                field.required,
                read if least is None else _bounded(read, least),
                field.for_models,
            )
        )
    return tuple(found)


def _parameters_of_model(schema: Schema) -> tuple[Parameter, ...]:
    """Return the parameters of a pydantic model, which reads their values itself."""
    required = cast("list[str]", schema.get("required", []))
    return tuple(
        Parameter(name, name, cast(str, one.get("description", "")), name in required, PLAIN[object], True)
        for name, one in cast("dict[str, Schema]", schema["properties"]).items()
    )


def reader(params: type, parameters: Sequence[Parameter], aliases: Mapping[str, str]) -> Callable[[object], object]:
    """Return the function that converts the arguments of a call to parameters.

    It raises `ToolValidationError`, which names every problem with the arguments.
    """
    by_name = {parameter.name: (parameter.init_name, parameter.read) for parameter in parameters}
    known = {**by_name, **{alias: by_name[name] for alias, name in aliases.items()}}
    required = {parameter.init_name for parameter in parameters if parameter.required}
    made_at_once = not is_model(params)

    def read(arguments: object) -> object:
        problems: list[str] = []
        if made_at_once and type(arguments) is dict:
            # Valid arguments take this fast path, which takes a third of the time of the careful one below.
            values: dict[str, object] = {}
            given = cast("dict[object, object]", arguments)
            for key, value in given.items():
                name, read_value = known.get(cast(str, key), NOTHING)
                if value is None or read_value is None:
                    break
                # Most values are ASCII text; calling its reader would cost more than this check.
                plain = read_value is _read_text and type(value) is str and value.isascii()
                values[name] = value if plain else read_value(value, "", problems)
            if len(values) == len(given) and not problems and required <= values.keys():
                try:
                    return cast(object, params(**values))
                except (ValueError, TypeError):
                    # The careful path finds the problem.
                    problems.clear()
        problems.clear()
        made = _build(params, parameters, arguments, aliases, "", problems)
        if problems:
            raise ToolValidationError(*problems)
        return made

    return read


def _build(
    params: type,
    parameters: Sequence[Parameter],
    arguments: object,
    aliases: Mapping[str, str],
    where: str,
    problems: list[str],
) -> object:
    if not isinstance(arguments, Mapping):
        problems.append(f"{where.rstrip('.') or 'arguments'}: expected an object, got {shown(arguments)}")
        return None
    given = cast("Mapping[object, object]", arguments)
    known = {parameter.name: parameter for parameter in parameters}
    values: dict[str, object] = {}
    seen: dict[str, str] = {}
    before = len(problems)
    unknown = 0
    is_open = takes_unknown(params)
    for key, value in given.items():
        name = aliases.get(key, key) if isinstance(key, str) else ""
        parameter = known.get(name)
        if parameter is None and is_open and isinstance(key, str):
            values[key] = value
        elif parameter is None:
            unknown += 1
            if unknown > MAX_UNKNOWN:
                continue
            offered = [one.name for one in parameters if one.for_models]
            problems.append(_unknown(where, key, {**{name: name for name in known}, **aliases}, offered))
        elif name in seen:
            problems.append(f"{where}{key}: the same argument as {seen[name]}; give only one of them")
        else:
            seen[name] = cast(str, key)
            if value is not None or parameter.required:
                values[parameter.init_name] = parameter.read(value, f"{where}{key}", problems)
    if unknown > MAX_UNKNOWN:
        problems.append(f"{where.rstrip('.') or 'arguments'}: {unknown - MAX_UNKNOWN} more unknown names")
    for parameter in parameters:
        if parameter.required and parameter.name not in seen:
            meaning = f"; give {parameter.description}" if parameter.description else ""
            problems.append(f"{where}{parameter.name}: missing{meaning}")
    if len(problems) > before:
        return None
    if is_model(params):
        return read_model(params, values, where, problems)
    try:
        return params(**values)
    except (ValueError, TypeError) as error:
        problems.append(f"{where}{error}")
        return None


def _unknown(where: str, key: object, known: Mapping[str, str], offered: Sequence[str]) -> str:
    if not isinstance(key, str):
        return f"{where}{shown(key)}: not an argument name; names are text"
    name = one_line(clip(key, SHOWN))
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    remedy = f"did you mean {known[near[0]]}?" if near else _names(offered)
    return f"{where}{name}: no such argument; {remedy}"


def _names(offered: Sequence[str]) -> str:
    if not offered:
        return "it takes no arguments"
    return f"use {' or '.join(filter(None, (', '.join(offered[:-1]), offered[-1])))}"


def shown(value: object) -> str:
    """Return a few words about a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"text {clip(value, SHOWN)!r}"
    if isinstance(value, int):
        # Python refuses to print a number with more than 4,300 digits.
        return f"number {value}" if value.bit_length() < 200 else "a very large number"
    if isinstance(value, float):
        return f"number {value}"
    if isinstance(value, list | tuple):
        return f"a list of {len(cast('Sequence[object]', value))}"
    return "an object" if isinstance(value, Mapping) else a_type(value)


# Readers, one for each kind of type


def _plain(expected: str, fits: Callable[[object], bool]) -> Reader:
    def read(value: object, where: str, problems: list[str]) -> object:
        if not fits(value):
            problems.append(f"{where}: expected {expected}, got {shown(value)}")
        return value

    return read


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_text(value: object, where: str, problems: list[str]) -> object:
    if not isinstance(value, str):
        problems.append(f"{where}: expected text, got {shown(value)}")
    elif not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            problems.append(f"{where}: contains a lone surrogate at position {error.start}; leave it out")
    return value


PLAIN: dict[object, Reader] = {
    str: _read_text,
    bool: _plain("true or false", lambda value: isinstance(value, bool)),
    int: _plain("a whole number", _is_whole),
    float: _plain("a number", _is_number),
    object: _plain("a value", lambda value: True),
    Any: _plain("a value", lambda value: True),
    types.NoneType: _plain("null", lambda value: value is None),
}


def _bounded(read: Reader, least: int) -> Reader:
    def read_bounded(value: object, where: str, problems: list[str]) -> object:
        if _is_number(value) and cast(float, value) < least:
            problems.append(f"{where}: expected a number of at least {least}, got {shown(value)}")
            return value
        return read(value, where, problems)

    return read_bounded


def _literal(choices: tuple[object, ...]) -> Reader:
    expected = " or ".join(repr(choice) if isinstance(choice, str) else shown(choice) for choice in choices)
    return _plain(expected, lambda value: any(type(value) is type(choice) and value == choice for choice in choices))


def _union(readers: Sequence[Reader]) -> Reader:
    def read(value: object, where: str, problems: list[str]) -> object:
        found: list[list[str]] = []
        for reader in readers:
            wrong: list[str] = []
            result = reader(value, where, wrong)
            if not wrong:
                return result
            found.append(wrong)
        # Report the problems of the first type: most unions have only one type besides null.
        problems.extend(found[0])
        return value

    return read


def _list(read_item: Reader) -> Reader:
    def read(value: object, where: str, problems: list[str]) -> object:
        if not isinstance(value, list | tuple):
            problems.append(f"{where}: expected a list, got {shown(value)}")
            return value
        items = cast("Sequence[object]", value)
        return tuple(read_item(item, f"{where}[{index}]", problems) for index, item in enumerate(items))

    return read


def _mapping(read_item: Reader) -> Reader:
    def read(value: object, where: str, problems: list[str]) -> object:
        if not isinstance(value, Mapping):
            problems.append(f"{where}: expected an object, got {shown(value)}")
            return value
        items = cast("Mapping[str, object]", value)
        return {name: read_item(item, f"{where}.{clip(str(name), SHOWN)}", problems) for name, item in items.items()}

    return read


def _nested(params: type) -> Reader:
    parameters = parameters_of(params)

    def read(value: object, where: str, problems: list[str]) -> object:
        return _build(params, parameters, value, {}, f"{where}.", problems)

    return read


def _reader(hint: object, name: str) -> Reader:
    if hint in PLAIN:
        return PLAIN[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _literal(inner)
    if origin in (Union, types.UnionType):
        return _union([_reader(one, name) for one in inner])
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        return _list(_reader(inner[0], name))
    if origin is Sequence:
        return _list(_reader(inner[0], name))
    if origin in (dict, Mapping) and inner[0] is str:
        return _mapping(_reader(inner[1], name))
    if has_fields(hint) or is_model(hint):
        return _nested(cast(type, hint))
    raise TypeError(
        f"cannot use {name} as a parameter: JSON cannot represent {hint!r}; use str, int, float, bool, Literal, "
        f"tuple[X, ...], Mapping[str, X], an attrs class, a dataclass or a pydantic model"
    )

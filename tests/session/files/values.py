"""Values of many types with the type hints of their fields: those that must be loaded unchanged, and others."""

from __future__ import annotations

# Both spellings of a union are tested.
# ruff: noqa: UP007, UP045
import enum
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union
from uuid import UUID
from zoneinfo import ZoneInfo

from attrs import frozen

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Multi(enum.Enum):
    PAIR = (1, 2)
    WORD = "word"
    DATA = b"data"


class Size(enum.IntEnum):
    SMALL = 1


class Word(enum.StrEnum):
    YES = "yes"


class Flags(enum.Flag):
    READ = 1
    WRITE = 2


class Text(str):
    __slots__ = ()


@frozen
class Point:
    x: int
    y: int = 0


@frozen
class Space(Point):
    z: int = 0


@frozen
class Branch:
    name: str
    below: tuple[Branch, ...] = ()
    above: Branch | None = None


@frozen
class Wrapper(Generic[T]):
    held: T


@dataclass(frozen=True)
class Plain:
    a: int
    b: str


class Pair(NamedTuple):
    a: int
    b: str


class Typed(TypedDict):
    a: int


Number = NewType("Number", int)

NEW_YEAR = datetime(2020, 1, 1, 1, 2, 3, 456789, tzinfo=UTC)
NEST: Any = [(1, {"a": (b"\x00", None, [Point(1, 2)])})]

# What programs write into their slices: it has to be the same after loading.
KEPT: list[tuple[object, object]] = [
    (int, 5),
    (int, -(2**63)),
    (int, 2**63 - 1),
    (float, 1.5),
    (float, 1),
    (float, -0.0),
    (bool, True),
    (str, "\u00e9\n\x00 \u2028 \U0001f642 \ufffe \uf75c"),
    (bytes, b"\xff\x00"),
    (bytes, b""),
    (type(None), None),
    (Optional[str], None),
    (str | None, "a"),
    (bytes | None, b"x"),
    (Optional[Point], Point(1, 2)),
    (Point | None, None),
    (tuple[int, ...] | None, (1, 2)),
    (Optional[dict[str, int]], {"a": 1}),
    (list[int] | None, [1]),
    (frozenset[int] | None, frozenset({1})),
    (tuple[Point, ...] | None, (Point(1),)),
    (Color | None, Color.RED),
    (tuple[int, ...], (1, 2)),
    (tuple[int, ...], ()),
    (tuple[int, str], (1, "a")),
    (tuple[()], ()),
    (tuple[Point, ...], (Point(1, 2),)),
    (tuple[bytes, ...], (b"a", b"\xff")),
    (tuple[tuple[str, int], ...], (("a", 1), ("b", 2))),
    (tuple[Any, ...], (1, (2,), Point(3), b"\xff")),
    (list[Any], [1, (2,), Point(3)]),
    (dict[str, Any], {"b": (1,), "a": Point(2)}),
    (list[int], [1]),
    (list[Point | None], [None, Point(1, 2)]),
    (dict[str, int], {"b": 1, "a": 2}),
    (dict[str, Point], {"a": Point(1, 2)}),
    (dict[str, tuple[bytes, ...]], {"a": (b"\xff",)}),
    (dict[str, dict[str, Any]], {"a": {"b": (1,)}}),
    (list[tuple[str, Any]], [("a", (1,))]),
    (tuple[dict[str, Any], ...], ({"a": (1,)},)),
    (Mapping[str, Any], {"a": (1,)}),
    (Sequence[int], (1, 2)),
    (Sequence[Any], ((1,),)),
    (tuple[int | None, ...], (None, 1)),
    (Branch, Branch("a", (Branch("b"), Branch("c", (Branch("d"),))), Branch("e"))),
    (frozenset[bytes], frozenset({b"\xff", b"a", b"b"})),
    (datetime | None, NEW_YEAR),
    (dict[str, datetime], {"a": NEW_YEAR}),
    (Mapping[str, int], {"a": 1}),
    (frozenset[str], frozenset("abcdefgh")),
    (frozenset[int], frozenset({3, -1, 2})),
    (Color, Color.RED),
    (tuple[Color, ...], (Color.RED, Color.BLUE)),
    (Literal["a", "b"], "b"),
    (Literal["a", 1], 1),
    (datetime, NEW_YEAR),
    (datetime, NEW_YEAR.replace(tzinfo=None)),
    (Plain, Plain(1, "a")),
    (Number, Number(5)),
    (int | str, 5),
    (int | str, "5"),
    (Union[int, str, None], None),
    (Point | str, Point(1, 2)),
    (Union[Point, Space], Space(1, 2, 3)),
    (Union[Point, Space, None], Point(1, 2)),
    (int | float, 1.0),
    (int | float, 1),
    (int | bool, True),
    (bytes | str, b"a"),
    (Annotated[tuple[int, ...], "numbers"], (1,)),
    (Annotated[str, "name"], "a"),
    (Annotated[Any, "anything"], (1,)),
    (Any, None),
    (Any, 1.0),
    (Any, True),
    (Any, NEST),
    (Any, b"\xff"),
    (Any, Point(1, 2)),
    (Any, Space(1, 2, 3)),
    (Any, {"type": "Point", "value": {"x": 1}}),
    (Any, {"tuple": [1]}),
    (Any, {"blob": 0}),
    (Any, {"map": {}}),
    (Any, {"tree": 0}),
    (Any, {}),
    (Any, ()),
    (Any, []),
]

# What they may try: it is the same after loading, or saving refuses it.
ODD: list[tuple[object, object]] = [
    (int, 2**63),
    (int, 2**64),
    (int, 2**70),
    (int, -(2**63) - 1),
    (int, True),
    (int, "5"),
    (int, 5.0),
    (bool, 1),
    (float, math.nan),
    (float, math.inf),
    (float | None, math.nan),
    (float, "1.5"),
    (str, "\ud800"),
    (str, 5),
    (str, b"a"),
    (str, None),
    (str, Text("a")),
    (str, Word.YES),
    (int, Size.SMALL),
    (bytes, bytearray(b"x")),
    (bytes, "x"),
    (bytes, None),
    (bytearray, bytearray(b"ab")),
    (Optional[int], "a"),
    (Point, Space(1, 2, 3)),
    (Point, Plain(1, "a")),
    (Point | None, Space(1, 2, 3)),
    (tuple[Point, ...], (Space(1, 2, 3),)),
    (Space, Point(1)),
    (tuple[int, ...], [1, 2]),
    (tuple[int, ...], "ab"),
    (tuple[int, ...], (1, "a")),
    (tuple[int, str], (1,)),
    (tuple[int, str], (1, "a", 2)),
    (tuple[int, ...], Pair(1, "a")),
    (list[int], (1, 2)),
    (list[int], {1: 2}),
    (dict[str, int], [("a", 1)]),
    (dict[str, int], OrderedDict(a=1)),
    (dict[str, int], {1: 1}),
    (dict[str, int], {Text("a"): 1}),
    (dict[int, str], {1: "a", -2: "b"}),
    (dict[int, str], {"1": "a"}),
    (dict[int | str, int], {1: 1, "1": 2}),
    (dict[bool, int], {True: 1}),
    (dict[float, int], {1.5: 1}),
    (dict[tuple[int, int], str], {(1, 2): "a"}),
    (dict[bytes, int], {b"a": 1}),
    (dict[Color, int], {Color.RED: 1}),
    (dict[Point, int], {Point(1): 1}),
    (dict[Any, int], {1: 1, "1": 2}),
    (dict[str, str], {"\ud800": "a"}),
    (Mapping[str, int], OrderedDict(a=1)),
    (Sequence[int], [1, 2]),
    (Sequence[str], "ab"),
    (AbstractSet[str], frozenset("ab")),
    (set[int], {3, 1}),
    (frozenset[Point], frozenset({Point(1, 2), Point(3, 4)})),
    (frozenset[Any], frozenset({1, "a", None})),
    (frozenset[str], {"a"}),
    (Size, Size.SMALL),
    (Word, Word.YES),
    (Flags, Flags.READ | Flags.WRITE),
    (Color, "red"),
    (Color | str, Color.RED),
    (Color | str, "red"),
    (Literal["a", "b"], "c"),
    (Literal["a"], 1),
    (Literal[Color.RED], Color.RED),
    (datetime, NEW_YEAR.astimezone(timezone(timedelta(hours=5, minutes=45)))),
    (datetime, NEW_YEAR.replace(fold=1)),
    (datetime, date(2020, 1, 1)),
    (date, date(2020, 1, 1)),
    (date, NEW_YEAR),
    (timedelta, timedelta(1, 2, 3)),
    (datetime, NEW_YEAR.replace(tzinfo=ZoneInfo("UTC"))),
    (dict[int, datetime], {1: NEW_YEAR}),
    (Multi, Multi.PAIR),
    (Multi, Multi.WORD),
    (Multi, Multi.DATA),
    (tuple[Multi, ...], (Multi.PAIR,)),
    (Multi | int, Multi.PAIR),
    (frozenset[Color], frozenset({Color.RED})),
    (frozenset[tuple[str, int]], frozenset({("a", 1)})),
    (Wrapper[int], Wrapper(1)),
    (Wrapper[Any], Wrapper((1,))),
    (Wrapper, Wrapper((1,))),
    (tuple[Pair, ...], (Pair(1, "a"),)),
    (bytes, memoryview(b"a")),
    (Sequence[Any], [(1,)]),
    (UUID, UUID(int=5)),
    (Path, Path("/a")),
    (PurePosixPath, PurePosixPath("/a")),
    (Decimal, Decimal("1.10")),
    (Fraction, Fraction(1, 3)),
    (complex, 1j),
    (Pair, Pair(1, "a")),
    (Typed, {"a": 1}),
    (Plain, {"a": 1, "b": "c"}),
    (Plain | Point, Plain(1, "a")),
    (tuple[int, ...] | str, (1, 2)),
    (list[int] | int, [1]),
    (dict[str, int] | tuple[int, ...], {"a": 1}),
    (tuple[int, ...] | tuple[str, ...], ("a",)),
    (int | str, 1.5),
    (int | str, True),
    (Union[Point, Space], Plain(1, "a")),
    (Any, math.nan),
    (Any, -math.inf),
    (Any, 2**64),
    (Any, "\udfff"),
    (Any, {1: 2}),
    (Any, {"\ud800": 2}),
    (Any, frozenset({1})),
    (Any, Color.RED),
    (Any, Text("a")),
    (Any, Size.SMALL),
    (Any, Plain(1, "a")),
    (Any, Pair(1, "a")),
    (Any, Point),
    (Any, NEW_YEAR),
    (Any, OrderedDict(a=1)),
    (Any, bytearray(b"a")),
    (object, 5),
    (object, (1, 2)),
    (object, Point(1, 2)),
    (tuple, (1, (2,))),
    (list, [1, (2,)]),
    (dict, {"a": (1,)}),
    (dict, {1: 2}),
    (frozenset, frozenset({(1, 2)})),
    (deque[int], deque([1])),
    (deque[int], deque([1], maxlen=3)),
    (defaultdict[str, int], defaultdict(int, {"a": 1})),
    (Counter[str], Counter("aab")),
    (OrderedDict[str, int], OrderedDict(a=1)),
    (type, int),
    (Callable[[], int], int),
    ("Nowhere", 5),
    (None, 5),
]

"""The table of slices: the values of each slice by tag."""

from __future__ import annotations

from typing import Any

from pyrsistent import PMap, pmap

from weakfs.session.history.log import Log

Table = PMap[str, Log[Any]]

EMPTY_TABLE: Table = pmap()

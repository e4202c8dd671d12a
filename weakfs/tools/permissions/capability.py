"""A capability: the operations that a toolset may perform, and their limits."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from os import PathLike
from typing import Self, get_args

from attrs import Attribute, field, fields

from weakfs.class_decorators import frozen
from weakfs.editing import PatchFormat
from weakfs.filesystem import SymlinkPolicy
from weakfs.filesystem.primitives import check_symlink_policy
from weakfs.messages import plural
from weakfs.tools.errors import LimitExceeded, OperationForbidden
from weakfs.tools.permissions.operations import Operation, checked

PATCH_FORMATS: tuple[str, ...] = get_args(PatchFormat)


def _operations(given: Iterable[str] | None) -> frozenset[Operation] | None:
    return None if given is None else checked(given)


def _texts(given: str | Iterable[str] | None) -> tuple[str, ...] | None:
    return (given,) if isinstance(given, str) else None if given is None else tuple(given)


def _not_negative(instance: object, attribute: Attribute[int | None], value: int | None) -> None:
    if value is not None and (type(value) is not int or value < 0):
        raise ValueError(f"{attribute.name} is {value!r}; give a whole number of at least 0, or None for no limit")


def _known_formats(
    instance: object, attribute: Attribute[tuple[str, ...] | None], value: tuple[str, ...] | None
) -> None:
    for name in value or ():
        if name not in PATCH_FORMATS:
            raise ValueError(f"there is no patch format {name!r}; use one of {', '.join(PATCH_FORMATS)}")


def _symlink_policy(instance: object, attribute: object, value: SymlinkPolicy | None) -> None:
    if value is not None:
        check_symlink_policy(value)


def _paths(instance: object, attribute: object, value: tuple[str, ...] | None) -> None:
    for path in value or ():
        if not isinstance(path, str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"fs_roots contains {path!r:.60}; give paths such as '/src'")


@frozen(kw_only=True)
class Capability:
    """Limits on every call of a toolset; each is optional, and `None` means no limit.

    `allowed_fs_ops` are the allowed operations, `fs_roots` the directories where they are allowed. Requests are
    clamped: a call reads at most `max_read_bytes` of a file, returns at most `max_inline_bytes` of an answer inline,
    and finds at most `max_grep_results` lines and `max_glob_results` paths in at most `max_scan_files` files of
    `max_scan_bytes` in total; the answer says that it was cut. Larger changes are refused: a write of more than
    `max_write_bytes`, a patch of more than `max_patch_bytes` or in a format that is not in `allowed_patch_formats`, a
    call that changes more than `max_changed_files` entries, an edit with more than `max_edit_replacements`
    replacements. `follow_symlinks` narrows what the filesystem follows, and never widens it. Raises `ValueError` for
    "allow" together with `fs_roots`: a link out of the filesystem's root leads out of each of those directories. If the
    capability has `fs_roots`, a filesystem that was opened with "allow" follows only links within its root.
    """

    allowed_fs_ops: frozenset[Operation] | None = field(default=None, converter=_operations)
    fs_roots: tuple[str, ...] | None = field(default=None, converter=_texts, validator=_paths)
    max_read_bytes: int | None = field(default=None, validator=_not_negative)
    max_write_bytes: int | None = field(default=None, validator=_not_negative)
    max_patch_bytes: int | None = field(default=None, validator=_not_negative)
    max_inline_bytes: int | None = field(default=None, validator=_not_negative)
    max_grep_results: int | None = field(default=None, validator=_not_negative)
    max_glob_results: int | None = field(default=None, validator=_not_negative)
    max_scan_files: int | None = field(default=None, validator=_not_negative)
    max_scan_bytes: int | None = field(default=None, validator=_not_negative)
    allowed_patch_formats: tuple[str, ...] | None = field(default=None, converter=_texts, validator=_known_formats)
    max_changed_files: int | None = field(default=None, validator=_not_negative)
    max_edit_replacements: int | None = field(default=None, validator=_not_negative)
    follow_symlinks: SymlinkPolicy | None = field(default=None, validator=_symlink_policy)

    def __new__(cls, *args: object, **given: object) -> Self:
        names = [one.name for one in fields(cls)]
        for name in given:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                remedy = f"did you mean {near[0]}?" if near else f"use one of {', '.join(names)}"
                raise TypeError(f"a Capability has no {name!r}; {remedy}")
        return super().__new__(cls)

    def __attrs_post_init__(self) -> None:
        if self.fs_roots is not None and self.follow_symlinks == "allow":
            raise ValueError(
                "cannot combine fs_roots with follow_symlinks='allow': a link out of the filesystem's root leads out "
                "of every directory in fs_roots; use 'within_root_only' or 'deny', or leave follow_symlinks out"
            )

    def check_patch(self, size: int, patch_format: str) -> None:
        """Raise `LimitExceeded` for a patch of too many bytes, `OperationForbidden` for one of another format."""
        formats = self.allowed_patch_formats
        if formats is not None and patch_format not in formats:
            raise OperationForbidden(
                f"cannot apply a patch of format {patch_format!r}: use {', '.join(formats) or 'none'}"
            )
        if self.max_patch_bytes is not None and size > self.max_patch_bytes:
            raise LimitExceeded(
                f"cannot apply a patch of {plural(size, 'byte')}: the limit is {self.max_patch_bytes}; split it"
            )

    def check_replacements(self, path: str, count: int) -> None:
        """Raise `LimitExceeded` for an edit with too many replacements."""
        if self.max_edit_replacements is not None and count > self.max_edit_replacements:
            raise LimitExceeded(
                f"cannot edit {path!r}: {plural(count, 'replacement')} would be made and the limit is "
                f"{self.max_edit_replacements}; use an old_string that matches fewer places"
            )

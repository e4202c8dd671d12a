"""The changes that produce a patch's result, in an order in which no change obstructs another.

A changed file is written as the pieces that differ, so that the record of a change is as small as the change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

from weakfs.class_decorators import frozen
from weakfs.editing.patches.document import BYTE_ORDER_MARK, Document
from weakfs.editing.patches.line_search.text_search import TextPiece
from weakfs.editing.patches.staged_files import Entry, Places
from weakfs.fast_init import fast_init
from weakfs.filesystem.paths import parent
from weakfs.filesystem.results import FileStat
from weakfs.reducers.merging.line_merge import common_ends
from weakfs.session.blobs.rope import with_pieces

Verb = Literal["delete", "move", "clear", "write", "link", "chmod"]

NEW_FILE = 0o644


@fast_init
@frozen(eq=False)
class Step:
    """One change of the filesystem: `content` is for `write`, `to` is the destination of `move` and `link`.

    `pieces` are the parts of the content that differ from the current ones, if writing only those is better.
    """

    verb: Verb
    path: str
    to: str = ""
    content: bytes = b""
    mode: int = 0
    is_new: bool = False
    pieces: tuple[Piece, ...] | None = None

    @property
    def destination(self) -> str:
        """The path that the change creates, changes or deletes."""
        return self.to if self.verb == "move" else self.path

    @property
    def written(self) -> int:
        """The number of bytes written."""
        return len(self.content) if self.pieces is None else sum(len(content) for _, _, content in self.pieces)


def steps_of(places: Places) -> list[Step]:
    """Return the changes: deletions, then moves, then writes. Files that move in a cycle are read and written."""
    moves = _moves(places)
    sources = set(moves.values())
    deletes: list[Step] = []
    writes: list[Step] = []
    for path, entry in places.now.items():
        there = places.before(path)
        if entry is None:
            if _was_entry(there) and path not in sources:
                deletes.append(Step("delete", path))
        elif path not in moves:
            _rewritten(places, path, entry, there, deletes, writes)
        else:
            _after_move(places, path, entry, writes)
    moved = [Step("move", source, to=path) for path, source in moves.items()]
    cleared = [Step("clear", path) for path in places.giving_way]
    return [*deletes, *moved, *cleared, *_smaller_first(places, writes)]


def _was_entry(there: FileStat | None) -> bool:
    return there is not None and not there.is_directory


def _moves(places: Places) -> dict[str, str]:
    """Map new path to old for each simple move: the old path ends up free, and nothing is in the way at the new one."""
    moves: dict[str, str] = {}
    moved = [(path, entry.origin) for path, entry in places.now.items() if entry is not None and entry.origin != path]
    if not moved:
        return moves
    heirs = Counter(entry.origin for entry in places.now.values() if entry is not None)
    for path, origin in moved:
        if origin is None or heirs[origin] > 1 or places.now.get(origin) is not None:
            continue
        if origin in places.now and not places.is_emptied_by(origin) and _is_free(places, path):
            moves[path] = origin
    return moves


def _is_free(places: Places, path: str) -> bool:
    """Return whether a move to this path can happen before all writes."""
    there = places.before(path)
    if there is not None and there.is_directory:
        return False
    above = parent(path)
    while above != "/":
        if above in places.now:
            return False
        above = parent(above)
    return True


def _rewritten(
    places: Places, path: str, entry: Entry, there: FileStat | None, deletes: list[Step], writes: list[Step]
) -> None:
    was_link = there is not None and there.is_symlink
    if entry.target is not None:
        if there is not None and there.target == entry.target:
            return
        if _was_entry(there):
            deletes.append(Step("delete", path))
        writes.append(Step("link", path, to=entry.target, is_new=True))
        return
    if was_link:
        deletes.append(Step("delete", path))
    is_new = not _was_entry(there) or was_link
    if is_new:
        writes.append(Step("write", path, content=entry.data(places.fs), is_new=True))
    elif entry.content is not None or entry.origin != path:
        writes += _written(places, path, path, entry)
    mode = NEW_FILE if there is None or is_new else there.mode
    if entry.mode is not None and entry.mode != mode:
        writes.append(Step("chmod", path, mode=entry.mode))


def _written(places: Places, old_path: str, path: str, entry: Entry) -> list[Step]:
    """Return the steps that write an entry's content if it differs from the current one."""
    made = entry.data(places.fs)
    try:
        held = places.fs.read_bytes(old_path).content
    except PermissionError:
        if entry.origin is not None:
            raise
        # A new file may replace one that cannot be read.
        return [Step("write", path, content=made)]
    if held == made:
        return []
    document = entry.content if isinstance(entry.content, Document) and entry.origin == old_path else None
    return [Step("write", path, content=made, pieces=pieces_between(held, made, document))]


def _after_move(places: Places, path: str, entry: Entry, writes: list[Step]) -> None:
    assert entry.origin is not None
    origin = places.before(entry.origin)
    if entry.content is not None:
        writes += _written(places, entry.origin, path, entry)
    if entry.target is None and entry.mode is not None and origin is not None and entry.mode != origin.mode:
        writes.append(Step("chmod", path, mode=entry.mode))


def _smaller_first(places: Places, writes: list[Step]) -> list[Step]:
    """Put writes that shrink files first: then every step is within a quota that the result is within."""
    if len(writes) < 2:
        return writes

    def growth(step: Step) -> int:
        there = places.before(step.path)
        return 0 if step.verb != "write" or there is None else len(step.content) - there.size_bytes

    shrinking = [step for step in writes if growth(step) < 0]
    return [*shrinking, *(step for step in writes if growth(step) >= 0)]


MARK = BYTE_ORDER_MARK.encode()

# A piece of a file in bytes: start, stop, and the replacement.
Piece = tuple[int, int, bytes]

# The size of a piece in a record, in addition to its bytes.
PIECE = 40


def pieces_between(held: bytes, made: bytes, document: Document | None = None) -> tuple[Piece, ...] | None:
    """Return the pieces that turn one content into the other; `None` if writing all of it is no worse. O(content).

    A document that was changed once knows them; otherwise there is one, from the first byte that differs to the last.
    """
    pieces = None
    if document is not None and document.pieces is not None:
        found = tuple(_in_bytes(held, document.given, document.pieces))
        if with_pieces(held, found) == made:
            pieces = found
    if pieces is None:
        pieces = _one_piece(held, made)
    return pieces if sum([PIECE + len(content) for _, _, content in pieces]) < len(made) else None


def _in_bytes(held: bytes, text: str, pieces: Iterable[TextPiece]) -> Iterator[Piece]:
    at, offset = 0, len(MARK) if held.startswith(MARK) else 0
    for start, stop, content in pieces:
        first = offset + len(text[at:start].encode())
        offset = first + len(text[start:stop].encode())
        at = stop
        yield first, offset, content.encode()


def _one_piece(held: bytes, made: bytes) -> tuple[Piece, ...]:
    if held == made:
        return ()
    start, end = common_ends(held, made)
    return ((start, len(held) - end, made[start : len(made) - end]),)

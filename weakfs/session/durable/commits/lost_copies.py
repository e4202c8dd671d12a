"""Contents whose copies were deleted, read from the frames that lead to them."""

from __future__ import annotations

from functools import partial
from itertools import takewhile

from weakfs.session.blobs.rope import joined
from weakfs.session.durable.checkpoints.checkpoints import Checkpointing
from weakfs.session.durable.checkpoints.state_document import StateDocument
from weakfs.session.durable.commits.log_state import LogState
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frames.content_copies import copied_after, copied_digest
from weakfs.session.durable.frames.decoder import parsed
from weakfs.session.errors import SessionFileError
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log
from weakfs.session.slices.type_registry import Registry
from weakfs.storage.event_store import Frame


def content_from_frames(
    contents: StreamContents, registry: Registry, key: str, *, max_expansion: float | None
) -> bytes | None:
    """Return the content that a copy's key names, taken from the state that the frames produce. O(frames).

    Returns `None` if some of them were trimmed.
    """
    store, stream = contents.store, contents.stream
    number, rules = copied_after(key), Rules.of(registry)
    again = partial(content_from_frames, max_expansion=max_expansion)
    checkpoints = Checkpointing.of(store, stream, rules, again, max_expansion)
    log = LogState(store, stream, checkpoints, 0, frozenset())
    line: Timeline = Timeline(touched=Log())
    frames: list[Frame] = []
    start = 0
    for frame in takewhile(lambda frame: frame.number <= number, store.read(stream)):
        read = parsed(*frame)
        if "reset" in read:
            line, rules = log.load_reset(frame.number, read)
            start = frame.number
            frames.clear()
        else:
            frames.append(frame)
    reader = log.reader(rules, line, 0, is_new=True)
    try:
        reader.apply(frames, start)
    except SessionFileError:
        return None
    document = StateDocument(reader.rules, {})
    document.written(reader.line, {}, {})
    content = document.blobs.by_digest.get(copied_digest(key))
    return None if content is None else joined(content)

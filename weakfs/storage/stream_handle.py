"""`StreamHandle`: a name that always refers to the same stream.

A name can be used again after its stream was deleted. A writer that still has the old stream open knows only the
number at which it ended; if the new stream ends at the same number, an append by name alone would mix the two.
"""

from __future__ import annotations


class StreamHandle(str):
    """A name that refers to one stream only, even if that stream is deleted and the name is used again.

    Every method of an engine accepts it as a name. It refers to the first stream that has frames when it is read or
    appended to under this name. When that stream is gone, `head`, `read` and `get_checkpoint` find nothing, `append`
    and `put_checkpoint` raise `StreamConflict` with 0 as `actual`, and `trim` deletes nothing, even if another
    stream has the name by then. An append after frame 0 makes it refer to the stream to which the frames are appended.

    An event store that does not know handles treats them as names.
    """

    __slots__ = ("identity",)

    # What distinguishes the stream from all others of its name, in the engine's own form. `None` if there was none yet.
    identity: object

    def __init__(self, name: str) -> None:
        super().__init__()
        self.identity = None


def refers_to(stream: str, identity: object, head: int) -> bool:
    """Return whether a name or handle refers to the stream with this identity, which ends at frame `head`.

    A handle that refers to no stream yet refers to this one from now on, if it has frames.
    """
    if not isinstance(stream, StreamHandle):
        return True
    if stream.identity is None:
        if head:
            stream.identity = identity
        return True
    return stream.identity == identity


def begin_append(stream: str, expected: int) -> None:
    """Make a handle refer to no stream if frames are appended to it after frame 0."""
    if not expected and isinstance(stream, StreamHandle):
        stream.identity = None

"""Blobs: contents that answers refer to. The session stores each of them once, for as long as the session exists."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.session import Session
from weakfs.session.blobs.blob import digest_of
from weakfs.tools.errors import UnknownBlob
from weakfs.tools.schemas.arguments import param
from weakfs.tools.slices import KeptBlob, install_blobs

# The number of bytes of a blob that a reference shows.
PREVIEW = 2000


@frozen
class BlobReference:
    """A reference to a blob, in place of its contents in an answer.

    `blob_ref` is its digest (git object id of a blob, SHA-256 format, in hexadecimal), `size_bytes` its size, and
    `preview` its beginning, decoded if it is text. If a policy keeps the contents out of answers, `preview` is `None`,
    and `blob_ref` has the same form but does not depend on them: a digest would confirm a correct guess.
    """

    blob_ref: str
    size_bytes: int
    preview: str | bytes | None = field(default=None, repr=False)

    @property
    def digest(self) -> str:
        """The digest; the same as `blob_ref`."""
        return self.blob_ref

    @property
    def size(self) -> int:
        """The size in bytes; the same as `size_bytes`."""
        return self.size_bytes


@frozen
class BlobArgument:
    """A reference to a blob as an argument of a call, as in a receipt; `blob_ref` alone is enough."""

    blob_ref: str = field(metadata=param("the digest that a receipt gave", for_models=False))
    size_bytes: int | None = field(default=None, metadata=param("its size", for_models=False))
    preview: object = field(default=None, repr=False, metadata=param("what it begins with", for_models=False))


@frozen
class Blobs:
    """The contents that a session stores for the answers of its tools: saved with it, and kept across rollbacks."""

    _session: Session
    # The call for which contents are stored.
    _cause: str | None = None
    # Called when a call gets a blob, with the paths of the files that it comes from.
    _carry: Callable[[Iterable[str]], None] | None = None

    def keep(self, content: bytes, *, preview: int = PREVIEW, origins: Iterable[str] = ()) -> BlobReference:
        """Store a blob and return a reference to it, which shows its first `preview` bytes.

        `origins` are the paths of the files that it comes from and that answers may not show.
        """
        hidden = tuple(sorted(set(origins)))
        with self._session.lock:
            digest = digest_of(self._session.next_id("blob").encode() if hidden else content).hex()
            if hidden or not self._kept(digest):
                self._session.dispatch(KeptBlob(digest, content, hidden), cause=self._cause)
        return BlobReference(digest, len(content), preview_of(content, preview) if preview else None)

    def get(self, digest: str) -> bytes:
        """Return a blob by its digest; raises `UnknownBlob` if the session does not have it.

        A call that gets contents which answers may not show cannot write to a path where they could be seen.
        """
        found = self._kept(digest)
        if not found:
            raise UnknownBlob(f"this session has no blob {digest[:80]!r}; use the blob_ref of a receipt")
        if self._carry is not None:
            self._carry(self.origins(digest))
        return found[0].content

    def origins(self, digest: str) -> tuple[str, ...]:
        """Return the paths of the files that a blob comes from and that answers may not show."""
        return tuple(sorted({path for blob in self._kept(digest) for path in blob.origins}))

    def _kept(self, digest: str) -> tuple[KeptBlob, ...]:
        return install_blobs(self._session).where(lambda blob: blob.digest == digest)


def preview_of(content: bytes, most: int) -> str | bytes:
    """Return the beginning of a blob: text to the last whole character, or bytes if it is not text."""
    head = content[:most]
    try:
        return head.decode()
    except UnicodeDecodeError as error:
        cut = len(content) > most and error.start > most - 4
        return head[: error.start].decode() if cut else head

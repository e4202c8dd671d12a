"""The files as recorded: what is known about each, and setting them up."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field

from weakfs.class_decorators import define
from weakfs.filesystem import Filesystem
from weakfs.session import Session
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Text
from weakfs.transcripts.reconstruction.partial_text import Part, Partial
from weakfs.transcripts.reconstruction.recorded_calls import Texts

# The cause of the records that set up the files. Those before the first call are the baseline.
IMPORT_CAUSE = "import"


@define
class FileStates:
    """The files that recorded calls run on.

    After something outside the recording changes a file, its contents are unknown until the recording shows them again.
    After a run of a program that may have changed a file, the file's contents are doubtful until the recording shows
    them.
    """

    session: Session
    files: Filesystem
    refusal: str = ""
    # The known parts of files whose contents are not fully known.
    _parts: dict[str, Partial] = field(factory=dict[str, Partial])
    _lost: set[str] = field(factory=set[str])
    _absent: set[str] = field(factory=set[str])
    # How many programs have run, and how many had run when the recording last showed a file; -1 for doubtful text.
    _programs: int = 0
    _shown: dict[str, int] = field(factory=dict[str, int])

    def has(self, path: str) -> bool:
        """Return whether anything exists at a path."""
        try:
            return self.files.exists(path)
        except (OSError, ValueError):
            return False

    def text(self, path: str) -> Text:
        """Return what is known about the contents of a file."""
        if path in self._lost:
            return UNKNOWN
        held = self.held(path)
        return UNKNOWN if held is None and path not in self._absent else held

    def program_ran(self) -> None:
        """Record that a program ran, which may have changed any file."""
        self._programs += 1

    def shown(self, path: str, *, is_doubtful: bool = False) -> None:
        """Note that the recording shows a file's current contents, perhaps from before a program that changed it."""
        self._shown[path] = -1 if is_doubtful else self._programs

    def is_doubtful(self, path: str) -> bool:
        """Return whether a program may have changed a file since the recording last showed it."""
        return self._shown.get(path, 0) != self._programs

    def put(self, path: str, text: Text) -> bool:
        """Set the contents of a file; return `False` and set `refusal` to the reason if that fails."""
        if text is UNKNOWN:
            self.lose([path])
            return True
        if isinstance(text, str) and not self.make_way(path):
            return False
        try:
            with self.session.transaction(cause=IMPORT_CAUSE):
                if isinstance(text, str):
                    self.files.write_bytes(path, text.encode())
                elif self.files.exists(path):
                    self.files.delete(path)
        except (OSError, ValueError) as error:
            self.refusal = str(error)
            return False
        self._know(path, text)
        return True

    def make_way(self, path: str) -> bool:
        """Delete files where a path needs directories; return `False` and set `refusal` if it is a directory itself."""
        parts = path.strip("/").split("/")
        parents = ["/" + "/".join(parts[:count]) for count in range(1, len(parts))]
        try:
            if self.files.is_directory(path) and self.files.list(path):
                self.refusal = "it is a directory that is not empty"
                return False
            blocking = [parent for parent in parents if self.files.is_file(parent)]
            if self.files.is_directory(path):
                blocking.append(path)
            if blocking:
                with self.session.transaction(cause=IMPORT_CAUSE):
                    self.files.delete(blocking[0])
        except (OSError, ValueError) as error:
            self.refusal = str(error)
            return False
        return True

    def learn(self, path: str, part: Part) -> None:
        """Add a part of a file whose contents are unknown; once all parts are known, write the file."""
        # A part that contradicts earlier ones shows that the file has changed in the meantime.
        known = self._parts.pop(path, Partial()).joined(part) or Partial().joined(part) or Partial()
        if known.is_complete:
            self.put(path, known.text)
        else:
            self._parts[path] = known

    def settle(self, texts: Texts) -> None:
        """Set files to their recorded contents after a call, where they differ."""
        for path, text in texts.items():
            if text is UNKNOWN:
                self.lose([path])
            elif self.held(path) == text:
                self._know(path, text)
            elif not self.put(path, text):
                self.lose([path])

    def lose(self, paths: Iterable[str]) -> None:
        """Discard what is known about these files, because it turned out to be wrong."""
        for path in paths:
            self._lost.add(path)
            self._parts.pop(path, None)

    def _know(self, path: str, text: Text) -> None:
        self._lost.discard(path)
        self._parts.pop(path, None)
        (self._absent.add if text is None else self._absent.discard)(path)

    def held(self, path: str) -> Text:
        """Return the actual contents of a file, whatever is known about it."""
        try:
            return self.files.read_bytes(path).content.decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return UNKNOWN

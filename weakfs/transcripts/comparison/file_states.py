"""The files as the recording has them: what is known of each, and making it so."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from weakfs.filesystem import Filesystem
from weakfs.session import Session
from weakfs.transcripts.comparison.steps import Texts
from weakfs.transcripts.reconstruction.assembled_text import Part, Parts
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Text

# The cause of the records that make the files what they were. Those before the first call are the baseline.
IMPORT_CAUSE = "import"


@define
class World:
    """The files that recorded calls are performed on.

    Of a file that something outside changed nothing is known until it is told again. What is known of one is doubtful
    from the moment that a program runs, which may have changed it, until the recording shows the file again.
    """

    session: Session
    files: Filesystem
    refusal: str = ""
    _parts: Parts = field(factory=Parts)
    _lost: set[str] = field(factory=set[str])
    _absent: set[str] = field(factory=set[str])
    # How many programs ran, and how many of them had run when the recording showed a file last; -1 for doubtful text.
    _programs: int = 0
    _shown: dict[str, int] = field(factory=dict[str, int])

    def has(self, path: str) -> bool:
        """Tell whether there is anything at a path."""
        try:
            return self.files.exists(path)
        except (OSError, ValueError):
            return False

    def text(self, path: str) -> Text:
        """Give what a file holds as far as it is known."""
        if path in self._lost:
            return UNKNOWN
        held = self.held(path)
        return UNKNOWN if held is None and path not in self._absent else held

    def program_ran(self) -> None:
        """Count a program that may have changed any file."""
        self._programs += 1

    def shown(self, path: str, *, is_doubtful: bool = False) -> None:
        """Take note that the recording shows what a file holds now, perhaps before a program that changed it."""
        self._shown[path] = -1 if is_doubtful else self._programs

    def is_doubtful(self, path: str) -> bool:
        """Tell whether a program may have changed a file since it was shown last."""
        return self._shown.get(path, 0) != self._programs

    def put(self, path: str, text: Text) -> bool:
        """Make a file what it was; False if that is refused, and then `refusal` says why."""
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
        """Take away files where a path needs directories; False, with the `refusal`, for a directory in its place."""
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
        """Take in a part of a file that is not known; once all parts are known, it is put there."""
        text = self._parts.learn(path, part)
        if text is not None:
            self.put(path, text)

    def settle(self, texts: Texts) -> None:
        """Make files what they were after a call, where they are not."""
        for path, text in texts.items():
            if text is UNKNOWN:
                self.lose([path])
            elif self.held(path) == text:
                self._know(path, text)
            elif not self.put(path, text):
                self.lose([path])

    def lose(self, paths: Iterable[str]) -> None:
        """Take what is known of files for wrong."""
        for path in paths:
            self._lost.add(path)
            self._parts.forget(path)

    def _know(self, path: str, text: Text) -> None:
        self._lost.discard(path)
        self._parts.forget(path)
        (self._absent.add if text is None else self._absent.discard)(path)

    def held(self, path: str) -> Text:
        """Give what a file holds now, whatever is known of it."""
        try:
            return self.files.read_bytes(path).content.decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return UNKNOWN

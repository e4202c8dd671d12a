"""The times of recorded calls, and a clock for a session that runs them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from attrs import field

from weakfs.class_decorators import define
from weakfs.transcripts.records import Message, TranscriptCall

# Claude Code, Codex and Copilot write the first field; the others are those of OpenAI's and Anthropic's APIs.
_FIELDS = ("timestamp", "created_at", "created")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Times that do not fit into 64 bits of nanoseconds are invalid.
_LATEST = 1 << 63
# A number of seconds stays below this until the year 5138; a larger one counts milliseconds, and so on.
_MOST_SECONDS = 10**11


def time_of(message: Message) -> int | None:
    """Return when a line was written, in nanoseconds since 1970; `None` if it has no valid time."""
    for name in _FIELDS:
        value = message.get(name)
        at = None
        if isinstance(value, str):
            at = _time_of_text(value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LATEST:
            at = _time_of_number(value)
        if at is not None and 0 < at < _LATEST:
            return at
    return None


def _time_of_text(text: str) -> int | None:
    """Parse ISO 8601; a time without a zone is taken as UTC."""
    try:
        found = datetime.fromisoformat(text)
        since = (found if found.tzinfo is not None else found.replace(tzinfo=UTC)) - _EPOCH
    except (ValueError, OverflowError):
        return None
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


def _time_of_number(value: float) -> int:
    unit = 1_000_000_000
    while value >= _MOST_SECONDS * (1_000_000_000 // unit) and unit > 1:
        unit //= 1000
    return int(value * unit)


@define
class RecordedClock:
    """A clock for a session that shows the times of a recording.

    It starts at `at`; if `at` is `None`, as for a recording without times, it shows the real time. It never goes back:
    a call with an earlier time than the previous one, or without a time, gets the time of the previous call. Only the
    start of a call may be earlier, because calls may have run concurrently.
    """

    at: int | None = None
    real: Callable[[], int] = field(default=time.time_ns, repr=False)
    _started: int | None = field(default=None, init=False)

    def __call__(self) -> int:
        if self._started is not None:
            at, self._started = self._started, None
            return at
        return self.real() if self.at is None else self.at

    def move(self, call: TranscriptCall) -> None:
        """Set the clock to the time at which a call was made."""
        self._move(call.made_at)

    def start(self, call: TranscriptCall) -> None:
        """Show the time at which a call was made, but only once, and after that the time at which it was answered."""
        self._move(call.made_at)
        self._started = call.made_at
        self._move(call.answered_at)

    def _move(self, at: int | None) -> None:
        if at is not None and (self.at is None or at > self.at):
            self.at = at

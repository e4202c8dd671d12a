"""The calls of a session, and its expected files after each call: a model made of dicts, independent of weakfs.

Call `n` of a session is always the same, so that a worker that opens the session after any number of calls can continue
with the next one, and a checker knows the expected files.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from attrs import define, field

FILES = 24
# These files change together, by one patch: they are equal unless a call is half done.
TOGETHER = ("/together/a", "/together/b", "/together/c")
WORDS = [f"word{number}" for number in range(500)]

Arguments = Mapping[str, str]


@define
class Model:
    """The files of one session after some of its calls."""

    session: str
    number: int = 0
    files: dict[str, str] = field(factory=dict[str, str])

    def next_call(self) -> tuple[str, Arguments]:
        """Return the tool and the arguments of the next call."""
        random = Random(f"{self.session} {self.number + 1}")
        known = sorted(self.files.keys() - set(TOGETHER))
        kind = random.random()
        if self.number % 5 == 0:
            return "apply_patch", {"patch": self._patch()}
        if kind < 0.5 or not known:
            return "write_file", {"path": f"/src/{random.randrange(FILES)}.py", "content": self._text(random)}
        path = random.choice(known)
        if kind < 0.9:
            old = random.choice(self.files[path].splitlines())
            return "edit_file", {"path": path, "old_string": old, "new_string": self._line(random, 0)}
        return "rm", {"path": path}

    def apply(self, tool: str, arguments: Arguments) -> None:
        """Apply the next call to the model."""
        self.number += 1
        if tool == "apply_patch":
            self.files.update(dict.fromkeys(TOGETHER, f"call {self.number}\n"))
        elif tool == "write_file":
            self.files[arguments["path"]] = arguments["content"]
        elif tool == "edit_file":
            before = self.files[arguments["path"]]
            self.files[arguments["path"]] = before.replace(arguments["old_string"], arguments["new_string"])
        else:
            del self.files[arguments["path"]]

    def forward(self, number: int) -> Model:
        """Advance to the state after a call, and return the model."""
        while self.number < number:
            self.apply(*self.next_call())
        return self

    def _patch(self) -> str:
        change = f"+call {self.number + 1}\n"
        if self.number:
            change = f"@@\n-{self.files[TOGETHER[0]]}{change}"
        verb = "Update" if self.number else "Add"
        parts = "".join(f"*** {verb} File: {path}\n{change}" for path in TOGETHER)
        return f"*** Begin Patch\n{parts}*** End Patch"

    def _text(self, random: Random) -> str:
        return "".join(f"{self._line(random, at)}\n" for at in range(random.randint(5, 60)))

    def _line(self, random: Random, at: int) -> str:
        # Each line is unique, so that an edit finds its text only once.
        return f"{self.number + 1}.{at}: {' '.join(random.choices(WORDS, k=6))}."

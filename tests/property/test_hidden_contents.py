"""Whatever is called, no answer and no readable file contains text from files that may not be read or shown."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random

from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs import Capability, InMemoryFilesystem, Policy, PolicyRule, Session, ToolResult, Toolset
from weakfs.tools import DEFAULT_TOOLS, HISTORY_TOOLS, ToolCalls
from weakfs.tools.calls.call_json import recorded
from weakfs.tools.permissions import Visibility
from weakfs.tools.permissions.operations import OPERATIONS, Operation
from weakfs.tools.slices import KeptBlob, ToolCall

DIRECTORIES = ("", "/src", "/src/lib", "/secrets", "/secrets/old", "/pub")
NAMES = ("app.py", "token.py", "main.key", "a.txt")
PATTERNS = ("/secrets", "/src/lib", "*.key", "/pub/**", "token.*", "/secrets/old", "/src/app.py", "**/a.txt")
PATHS = tuple(f"{directory}/{name}" for directory in DIRECTORIES for name in NAMES)
LETTERS = "bcdfghjklmnpqrstvwxz"
# Each hidden file has this many pieces of a secret, each on a line of its own.
PIECES = 4


def piece_of(random: Random) -> str:
    return "".join(random.choices(LETTERS, k=12))


def skeleton(pieces: list[str]) -> str:
    """Make a file of which a caller knows everything except the pieces."""
    lines = [f"def step{number}(door):\n    key{number} = '{piece}'\n" for number, piece in enumerate(pieces)]
    return (
        "class Door:\n" + "\n".join(lines) + f"    return {pieces[0]}\n\ndef step9(door):\n    key9 = '{pieces[-1]}'\n"
    )


def policy_of(random: Random) -> Policy:
    """Make a policy of one rule that keeps some files from being read, and other rules of any kind."""
    hiding = PolicyRule(
        effect=random.choice(("deny", "deny", "blob")),
        operations=["read", *random.sample(OPERATIONS, random.randrange(3))],
        paths=random.sample(PATTERNS, random.randint(1, 3)),
        reason="hidden",
    )
    rules = [hiding]
    for _ in range(random.randrange(3)):
        operations: list[Operation] = random.sample(OPERATIONS, random.randint(1, 3))
        effect = random.choice(("deny", "only", "blob"))
        # A rule "only" for a few paths would refuse nearly every call.
        paths = ["/src", "/secrets", "/pub", "*.*"] if effect == "only" else random.sample(PATTERNS, 1)
        rules.append(PolicyRule(effect=effect, operations=operations, paths=paths, reason="other"))  # type: ignore[arg-type]  # one of the effects
    random.shuffle(rules)
    return Policy(rules)


def capability_of(random: Random) -> Capability | None:
    if random.random() < 0.6:
        return None
    lacking = random.choice((None, "read", "search", "list", "stat"))
    return Capability(
        allowed_fs_ops=None if lacking is None else [name for name in OPERATIONS if name != lacking],
        fs_roots=random.choice((None, None, ["/"], ["/src", "/secrets"])),
        max_inline_bytes=random.choice((None, 40)),
    )


@define
class Setting:
    """A session with hidden files, and what its callers may know."""

    random: Random
    policy: Policy
    files: InMemoryFilesystem
    tools: Toolset
    # The pieces of the secrets.
    hidden: list[str] = field(factory=list)
    blobs: list[object] = field(factory=list)

    @classmethod
    def make(cls, random: Random) -> Setting:
        policy = policy_of(random)
        session = Session(session_id="s", clock=count(1).__next__)
        files = InMemoryFilesystem(session, follow_symlinks="within_root_only")
        tools = Toolset(
            session, files, tools=[*DEFAULT_TOOLS, *HISTORY_TOOLS], policy=policy, capability=capability_of(random)
        )
        made = cls(random, policy, files, tools)
        for path in random.sample(PATHS, random.randint(6, 16)):
            pieces = [piece_of(random) for _ in range(PIECES)]
            files.write(path, skeleton(pieces))
            if not made.is_shown(path):
                made.hidden += pieces
        for name in random.sample(("/way", "/src/way", "/secrets/way"), 2):
            files.symlink(random.choice(DIRECTORIES + PATHS) or "/", name)
        return made

    def is_shown(self, path: str) -> bool:
        return self.policy.visibility("read", path) == Visibility.SHOWN

    def path(self) -> str:
        random = self.random
        if random.random() < 0.15:
            return random.choice(("/way", "/src/way", "/secrets/way")) + random.choice(("", "/app.py", "/token.py"))
        if random.random() < 0.15:
            return random.choice(DIRECTORIES) + random.choice(("/tokens.py", "/App.py", "", "/x/main.key"))
        return random.choice(PATHS)

    def old(self) -> str:
        """Return lines as quoted by somebody who guesses the pieces."""
        number = self.random.randrange(PIECES)
        guess = piece_of(self.random)
        return self.random.choice((
            f"    key{number} = '{guess}'",
            f"def step{number}(door):\n    key{number} = '{guess}'\n",
            f"  def step{number}(door):\n      key{number} = '{guess}'\n",
            f"def step{number}(door):\\n    key{number}",
            f"def step{number}(door):\n...\n    return x",
            "    key",
            f"def step{number}(door):",
            f"12: def step{number}(door):",
            "class Door:",
            "class  Door :",
        ))  # fmt: skip

    def content(self) -> object:
        if self.blobs and self.random.random() < 0.6:
            return {"blob_ref": self.random.choice(self.blobs)}
        return skeleton([piece_of(self.random) for _ in range(PIECES)])


def hunk(setting: Setting) -> list[str]:
    old = setting.old().split("\n")
    anchor = setting.random.choice(("@@", "@@ class Door:", "@@ def step1", "@@ def step2(door):"))
    return [anchor, *(setting.random.choice(" -") + line for line in old), "+new"]


def v4a(setting: Setting) -> dict[str, object]:
    lines = ["*** Begin Patch"]
    for _ in range(setting.random.randint(1, 2)):
        lines.append(f"*** Update File: {setting.path()}")
        moves = setting.random.random() < 0.5
        if moves:
            lines.append(f"*** Move to: {setting.path()}")
        if not moves or setting.random.random() < 0.4:
            lines += hunk(setting)
    return {"patch": "\n".join([*lines, "*** End Patch"]), "dry_run": setting.random.random() < 0.2}


def unified(setting: Setting) -> dict[str, object]:
    source, destination = setting.path()[1:], setting.path()[1:]
    verb = setting.random.choice(("rename", "copy"))
    head = [f"diff --git a/{source} b/{destination}", "similarity index 90%"]
    lines = [*head, f"{verb} from {source}", f"{verb} to {destination}"]
    if setting.random.random() < 0.5:
        _, *body = hunk(setting)
        lines += [f"--- a/{source}", f"+++ b/{destination}", "@@ -1,3 +1,3 @@", *body]
    return {"patch": "\n".join(lines) + "\n", "patch_format": "unified"}


def blocks(setting: Setting) -> dict[str, object]:
    text = f"{setting.path()}\n<<<<<<< SEARCH\n{setting.old()}\n=======\nnew\n>>>>>>> REPLACE\n"
    return {"patch": text, "patch_format": "search_replace"}


def reversion(setting: Setting, name: str) -> tuple[str, dict[str, object]]:
    random = setting.random
    arguments: dict[str, object] = {"preview": random.random() < 0.3}
    if name == "restore":
        arguments |= {"moment": str(random.randint(1, setting.tools.session.seq))}
    else:
        arguments |= {"on_conflict": random.choice(("raise", "ours", "theirs", "markers"))}
    if name == "revert":
        calls = setting.tools.session[ToolCall].all()
        arguments |= {"call_id": random.choice(calls).call_id if calls else "none"}
    if name in ("revert", "restore") and random.random() < 0.3:
        arguments |= {"paths": [setting.path()]}
    return name, arguments


CALLS: dict[str, Callable[[Setting], tuple[str, dict[str, object]]]] = {
    "ls": lambda s: ("ls", {"path": s.random.choice(DIRECTORIES) or "/"}),
    "read": lambda s: ("read_file", {"path": s.path()}),
    "read bytes": lambda s: ("read_file", {"path": s.path(), "offset_bytes": 10, "max_bytes": 200}),
    "write": lambda s: (
        "write_file",
        {"path": s.path(), "content": s.content(), "mode": s.random.choice(("overwrite", "append", "create"))},
    ),
    "edit": lambda s: (
        "edit_file",
        {"path": s.path(), "old_string": s.old(), "new_string": "new", "replace_all": s.random.random() < 0.2},
    ),
    "v4a": lambda s: ("apply_patch", v4a(s)),
    "unified": lambda s: ("apply_patch", unified(s)),
    "blocks": lambda s: ("apply_patch", blocks(s)),
    "patch of a blob": lambda s: ("apply_patch", {"patch": s.content()}),
    "glob": lambda s: ("glob", {"pattern": s.random.choice(("**/*", "*.py", "secrets/*", "[a].txt"))}),
    "grep": lambda s: ("grep", {"pattern": s.random.choice(("key", "step1", "Door|return"))}),
    "grep one": lambda s: ("grep", {"pattern": "key", "path": s.path()}),
    "rm": lambda s: ("rm", {"path": s.path()}),
    "mkdir": lambda s: ("mkdir", {"path": s.random.choice(DIRECTORIES) + "/made"}),
    "mv": lambda s: ("mv", {"source": s.path(), "destination": s.path()}),
    "mv directory": lambda s: ("mv", {"source": s.random.choice(DIRECTORIES) or "/", "destination": "/pub/moved"}),
    "cp": lambda s: ("cp", {"source": s.path(), "destination": s.path()}),
    "cp directory": lambda s: ("cp", {"source": s.random.choice(DIRECTORIES) or "/", "destination": "/src/copied"}),
    "stat": lambda s: ("stat", {"path": s.path()}),
    "exists": lambda s: ("exists", {"path": s.path()}),
    "undo": lambda s: reversion(s, "undo"),
    "redo": lambda s: reversion(s, "redo"),
    "revert": lambda s: reversion(s, "revert"),
    "restore": lambda s: reversion(s, "restore"),
    "shell": lambda s: ("shell", {"command": "cat */*.py; cp -r secrets open"}),
}


def call(setting: Setting, kind: str) -> ToolResult[object]:
    name, arguments = CALLS[kind](setting)
    result = setting.tools.call(name, arguments, caller=setting.random.choice(("ann", "bob")))
    for value in ("content", "matches", "paths", "entries"):
        reference = getattr(getattr(result.value, value, None), "blob_ref", None)
        if reference is not None:
            setting.blobs.append(reference)
    return result


def assert_hidden(setting: Setting, text: str, what: object) -> None:
    """Check that a text contains no piece of a secret, forwards or backwards."""
    found = [piece for piece in setting.hidden if piece in text or piece[::-1] in text]
    assert not found, (what, found, text, setting.policy)


@settings(max_examples=share(120))
@given(st.integers(0, 2**32))
def test_no_answer_and_no_readable_file_contains_hidden_text(seed: int) -> None:
    random = Random(seed)
    setting = Setting.make(random)
    for _ in range(25):
        # A command takes as long as all other calls together; every other kind occurs often.
        kind = random.choice([kind for kind in CALLS if kind != "shell" or random.random() < 0.1])
        result = call(setting, kind)
        assert_hidden(setting, result.message, kind)
        assert_hidden(setting, str(recorded(result.value)), kind)
    for entry in setting.files.walk():
        if entry.is_file and setting.is_shown(entry.path):
            assert_hidden(setting, setting.files.read(entry.path).content, entry.path)
    for done in setting.tools.session[ToolCalls].all():
        assert_hidden(setting, f"{done.receipt!s} {done.summary}", done.tool)
    for kept in setting.tools.session[KeptBlob].all():
        if not kept.origins:
            assert_hidden(setting, kept.content.decode(), kept.digest)


# Contents of the same size, of which a file has at most one. They differ in the lengths of their lines, in their kind,
# and in whether they are text and have lines.
SECRETS = (
    b"key one\nstep1 'aaaa'\nreturn 1\n",
    b"key 0\n\n\n\nDoor step1: 'zzzzzz'\n",
    b"\x89PNG\r\n\x1a\n" + bytes(22),
    b"\xffkey " + "é".encode() * 12 + b"\r",
    "\ufeffkey ".encode() + "é".encode() * 11 + b"\n",
)
TARGETS = ("/pub/app.py", "token.py", "/", "../outside", "/nowhere", "way")
MERGING = ("undo", "redo", "revert", "restore")
GUESSING = ("edit", "v4a", "unified", "blocks", "patch of a blob", *MERGING)


def with_secrets(seed: int, variant: int) -> tuple[Setting, list[str]]:
    """Make a setting, and its kinds of calls; those of one seed differ only in their hidden files and links."""
    setting = Setting.make(Random(seed))
    own = Random(f"{seed} {variant}")
    files, policy = setting.files, setting.policy
    lacking = setting.tools.capability is not None and "read" not in (
        setting.tools.capability.allowed_fs_ops or OPERATIONS
    )
    withheld = lacking
    for entry in tuple(files.walk()):
        seen = policy.visibility("read", entry.path)
        if entry.is_directory or (seen == Visibility.SHOWN and not lacking):
            continue
        withheld = withheld or seen == Visibility.WITHHELD
        if entry.is_symlink:
            files.delete(entry.path)
            files.symlink(own.choice(TARGETS), entry.path)
        else:
            files.write_bytes(entry.path, own.choice(SECRETS))
    # An edit reveals whether a text is in a file that may be edited but not shown.
    return setting, [kind for kind in CALLS if kind != "shell" and not (withheld and kind in GUESSING)]


def test_the_secrets_have_equal_sizes() -> None:
    assert len({len(secret) for secret in SECRETS}) == 1


@settings(max_examples=share(300))
@given(st.integers(0, 2**32))
def test_answers_do_not_depend_on_hidden_contents(seed: int) -> None:
    (one, kinds), (other, _) = (with_secrets(seed, variant) for variant in (1, 2))
    for number in range(25):
        kind = Random(f"{seed} {number}").choice(kinds)
        mine, theirs = call(one, kind), call(other, kind)
        assert mine.message == theirs.message, (kind, one.policy)
        assert recorded(mine.value) == recorded(theirs.value), (kind, one.policy)


def test_every_tool_is_called() -> None:
    setting = Setting.make(Random(1))
    assert {CALLS[kind](setting)[0] for kind in CALLS} == {tool.name for tool in setting.tools.tools}

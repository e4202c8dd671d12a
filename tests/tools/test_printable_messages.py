"""Control characters in names, files and commands reach neither the model nor a terminal unescaped."""

from __future__ import annotations

import re

import pytest

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.messages import one_line, printable

ESCAPE = "\x1b]0;owned\x07"
BIDI = "\u202egnp\u2066x\u2069"
EVIL = f"evil{ESCAPE}\x9b31m\x7f{BIDI}"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def tools() -> Toolset:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write(f"/{EVIL}.txt", f"line {EVIL}\n")
    files.write("/plain.txt", f"one {EVIL}\ntwo\n")
    files.symlink(f"{EVIL}.txt", "/link")
    return Toolset(session, files)


def test_control_characters_are_escaped_and_other_text_is_kept() -> None:
    text = "tab\t line\n\u3000日本語 👩‍💻 \x1b[31m\x00\r\x85\u202e\u2069\u2028"
    assert printable(text) == "tab\t line\n\u3000日本語 👩‍💻 \\x1b[31m\\x00\\r\\x85\\u202e\\u2069\u2028"
    assert printable(text, is_line=True) == (
        "tab\t line\\n\u3000日本語 👩‍💻 \\x1b[31m\\x00\\r\\x85\\u202e\\u2069\\u2028"
    )
    assert one_line("a\tb\n\u2029\x1b") == "a\\tb\\n\\u2029\\x1b"


@pytest.mark.parametrize("character", [chr(code) for code in range(0xA0)] + list("\u202a\u202e\u2066\u2069\u061c"))
def test_every_control_character_except_tabs_and_line_breaks_is_escaped(character: str) -> None:
    is_kept = not CONTROLS.match(character)
    assert (printable(f"a{character}b") == f"a{character}b") is is_kept
    assert one_line(f"a{character}b").isprintable()


BLOCK = f"{EVIL}\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n"
CALLS: list[tuple[str, dict[str, object]]] = [
    ("ls", {}),
    ("glob", {"pattern": "*"}),
    ("grep", {"pattern": "line|one"}),
    ("stat", {"path": f"/{EVIL}.txt"}),
    ("stat", {"path": "/link"}),
    ("exists", {"path": f"/{EVIL}.txt"}),
    ("exists", {"path": f"/no{EVIL}"}),
    ("read_file", {"path": f"/no{EVIL}"}),
    ("read_file", {"path": f"/{EVIL}.tx"}),
    ("read_file", {"path": "/link"}),
    ("edit_file", {"path": "/plain.txt", "old_string": "one evil", "new_string": "x", "replace_all": True}),
    ("edit_file", {"path": "/plain.txt", "old_string": f"one {EVIL} \nthree", "new_string": "x"}),
    ("edit_file", {"path": f"/{EVIL}.txt", "old_string": "nothing", "new_string": "x"}),
    ("write_file", {"path": f"/new{EVIL}", "content": ""}),
    ("mkdir", {"path": f"/made{EVIL}"}),
    ("mv", {"source": f"/{EVIL}.txt", "destination": f"/moved{EVIL}"}),
    ("cp", {"source": f"/{EVIL}.txt", "destination": f"/copied{EVIL}"}),
    ("rm", {"path": f"/{EVIL}.txt"}),
    (EVIL, {}),
    ("ls", {EVIL: EVIL}),
    ("apply_patch", {"patch": f"*** Begin Patch\n*** Update File: /plain.txt\n@@\n-two{EVIL}\n+x\n*** End Patch"}),
    ("apply_patch", {"patch": f"*** Begin Patch\n*** Add File: /a{EVIL}\n+x\n*** End Patch"}),
    ("apply_patch", {"patch": f"*** Begin Patch\n{EVIL}\n*** End Patch"}),
    ("apply_patch", {"patch": BLOCK, "patch_format": "search_replace"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_no_message_holds_a_control_character(tools: Toolset, name: str, arguments: dict[str, object]) -> None:
    result = tools.call(name, arguments)
    assert not CONTROLS.search(result.message)
    assert result.summary_text.isprintable()


def test_the_output_of_a_command_is_escaped_in_the_message_and_not_in_the_receipt(tools: Toolset) -> None:
    command = r"printf 'red \033[31m\r\n\tdone\n'; printf '\033]0;owned\007' >&2; exit 3"
    result = tools.call("shell", {"command": command})
    assert result.value.stdout == "red \x1b[31m\r\n\tdone\n"  # type: ignore[attr-defined]  # the receipt of shell
    assert result.message.startswith("red \\x1b[31m\\r\n\tdone\n[stderr]\n\\x1b]0;owned\\x07\n[Exit code 3")


def test_the_text_of_a_file_is_read_without_the_note_after_it(tools: Toolset) -> None:
    whole = tools.call("read_file", {"path": "/plain.txt"})
    assert whole.message == f"one {EVIL}\ntwo\n"
    tools.filesystem.write(f"/{EVIL}", "")
    assert not CONTROLS.search(tools.call("read_file", {"path": f"/{EVIL}"}).message)


def test_a_matching_line_is_shown_without_the_carriage_return_at_its_end(tools: Toolset) -> None:
    tools.filesystem.write("/dos.txt", "first\r\nse\rcond\r\n")
    assert tools.call("grep", {"pattern": "first|cond", "glob": "dos.txt"}).message == (
        "/dos.txt:1:first\n/dos.txt:2:se\\rcond"
    )

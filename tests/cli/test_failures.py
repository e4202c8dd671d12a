"""Errors are reported in one line on standard error, and the exit status says whose fault they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import attrs
import click
import orjson
import pytest

from tests.faults.damage import in_rows, sealed
from weakfs import InMemoryFilesystem, Registry, Session, event
from weakfs.cli.application import COMMANDS
from weakfs.cli.application import command as application

from .conftest import COMMAND, TRANSCRIPTS, Run


@event("test/note")
@attrs.frozen
class Note:
    text: str


REGISTRY = Registry.standard().with_types(Note)


def one_line(err: str) -> bool:
    return err.startswith("weakfs: ") and err.count("\n") == 1 and err.endswith("\n")


@pytest.mark.parametrize(
    "words",
    [
        ["ls"],
        ["nonsense"],
        ["ls", "--nonsense", "file"],
        ["log", "file", "--limit", "many"],
        ["ls", "a", "b", "c"],
        ["ls", "file", "--registry", "no-colon"],
        ["ls", "file", "--registry", "no_such_module_anywhere:registry"],
        ["ls", "file", "--registry", "os:sep"],
    ],
)
def test_a_wrong_command_line_is_status_2(run: Run, words: list[str]) -> None:
    done = run(*words)
    assert (done.status, done.out) == (2, "")
    assert one_line(done.err)


@pytest.mark.parametrize(
    "words",
    [
        ["ls", "no-such-file"],
        ["log", "."],
        ["run", "no-such-file"],
        ["run", str(TRANSCRIPTS / "shop.jsonl"), "--mount", "no-such-directory"],
        ["run", str(TRANSCRIPTS / "shop.jsonl"), "--save", "no-such-directory/s.json"],
        ["run", str(TRANSCRIPTS / "shop.jsonl"), "--save", "."],
        ["stats", str(TRANSCRIPTS / "shop.jsonl")],
        ["stats", str(TRANSCRIPTS / "shop.expected.json")],
    ],
)
def test_unreadable_and_unwritable_files_are_status_1(run: Run, words: list[str]) -> None:
    done = run(*words)
    assert (done.status, done.out) == (1, "")
    assert one_line(done.err)
    assert done.err.startswith("weakfs: cannot ")


@pytest.mark.parametrize("at", ["10", "-1", "no-such-tag", "99999999999999999999"])
def test_an_unknown_moment_is_named(run: Run, saved: Path, at: str) -> None:
    done = run("ls", saved, f"--at={at}")
    assert (done.status, done.out) == (1, "")
    assert one_line(done.err)
    assert at in done.err


@pytest.mark.parametrize("words", [["cat", "/nowhere"], ["ls", "/nowhere"], ["ls", "../up"], ["diff", "a\0b"]])
def test_a_missing_path_is_named(run: Run, saved: Path, words: list[str]) -> None:
    done = run(words[0], saved, *words[1:])
    assert (done.status, done.out) == (1, "")
    assert one_line(done.err)


def test_a_damaged_session_says_where(run: Run, saved: Path) -> None:
    saved.write_bytes(saved.read_bytes().replace(b"/src/old.py", b"/src/0ld.py", 1))
    done = run("log", saved)
    assert done.status == 1
    assert one_line(done.err)
    assert "$." in done.err


def test_a_session_with_custom_types_needs_their_registry(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(registry=REGISTRY)
    session.dispatch(Note("hello"))
    session.save(tmp_path / "s.json")
    done = run("log", tmp_path / "s.json")
    assert done.status == 1
    assert one_line(done.err)
    assert "test/note" in done.err
    assert "--registry MODULE:NAME" in done.err
    monkeypatch.setitem(sys.modules, "runtime_types", sys.modules[__name__])
    shown = run("log", tmp_path / "s.json", "--registry", "runtime_types:REGISTRY", "--json")
    assert shown.objects[0]["event"] == {"text": "hello"}


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    done = run()
    assert done.status == 2
    assert "Usage: weakfs" in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_fits_80_columns(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.status == 0
    assert max(map(len, done.lines)) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_summary_of_each_command(name: str) -> None:
    found = application.get_command(click.Context(application), name)
    assert found is not None
    assert (found.name, found.get_short_help_str(limit=200)) == (name, COMMANDS[name][1])


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = "import sys; from weakfs.cli import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "weakfs.cli.application" in loaded
    assert [name for name in loaded if name.startswith(("weakfs.cli.commands", "weakfs.cli.run"))] == []


def test_the_help_of_a_command_does_not_load_what_the_command_works_with() -> None:
    code = (
        "import sys; from weakfs.cli import main; [main([one, '--help']) for one in sys.argv[1:]]; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *COMMANDS], capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage: ") == len(COMMANDS)
    loaded = done.stdout.splitlines()[-1].split()
    assert "weakfs.cli.commands.sessions.undo" in loaded
    heavy = ("composition_root", "session.session", "cli.sessions", "cli.directories", "history.calls")
    packages = ("backends", "filesystem", "integrations", "reducers", "snapshots", "tools", "transcripts")
    names = (*(f"weakfs.{name}" for name in (*heavy, *packages)),)
    assert [name for name in loaded if name in names or name.startswith(tuple(f"{one}." for one in names))] == []


def test_the_list_of_commands_shows_each_summary_as_a_whole_sentence(run: Run) -> None:
    for group in ((), ("hooks",)):
        lines = run(*group, "--help").lines
        rows = lines[lines.index("Commands:") + 1 :]
        rows = rows[: rows.index("")]
        assert len(rows) >= 3
        assert [row for row in rows if not row.endswith(".") or row.endswith("...")] == []


def test_the_version_is_the_library_s(run: Run) -> None:
    from weakfs import __version__

    assert run("--version").out.split()[-1] == __version__


def test_the_version_is_printed_without_the_extra() -> None:
    code = "import sys; sys.modules['click'] = None; from weakfs.cli import main; sys.exit(main(['--version']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("weakfs, version ")


def test_the_package_runs_as_the_command(saved: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "weakfs", "ls", str(saved)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == subprocess.run([*COMMAND, "ls", str(saved)], capture_output=True, text=True).stdout
    refused = subprocess.run([sys.executable, "-m", "weakfs", "nonsense"], capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "weakfs: no such command 'nonsense'; see: weakfs --help\n"


RUN_MODULE = "import runpy, sys; sys.argv = ['weakfs', '--help']; runpy.run_module('weakfs', run_name='__main__')"


@pytest.mark.parametrize("missing", ["click", "rich"])
@pytest.mark.parametrize("run", [RUN_MODULE, "import sys; from weakfs.cli import main; sys.exit(main(['--help']))"])
def test_without_its_extra_the_command_names_the_extra(run: str, missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; {run}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert one_line(done.stderr)
    assert "pip install 'weakfs[cli]'" in done.stderr


def test_a_target_that_is_no_file_is_reported_with_one_remedy(run: Run, saved: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    outcome = run("timeline", saved, "--html", str(pipe))
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == (
        f"weakfs: cannot save to {str(pipe)!r}: it is not a regular file; the last saved version is unchanged; fix the "
        "cause and save again\n"
    )


def test_a_full_disk_under_the_output_is_reported(saved: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "ls", str(saved)], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert one_line(done.stderr)
    assert "cannot write the output" in done.stderr


def closed(redirection: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command with a standard stream closed by the shell."""
    line = ["sh", "-c", f'exec "$@" {redirection}', "sh", *COMMAND, *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)


@pytest.mark.parametrize("words", [("log",), ("ls",), ("stats",), ("cat", "/a.txt"), ("log", "--json")])
def test_a_closed_output_is_reported(words: tuple[str, ...], tmp_path: Path) -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a.txt", "x\n")
    session.save(tmp_path / "s.json")
    done = closed(">&-", words[0], tmp_path / "s.json", *words[1:])
    assert (done.returncode, done.stdout) == (1, "")
    assert one_line(done.stderr)
    assert "cannot write the output" in done.stderr


@pytest.mark.parametrize("redirection", ["2>&-", "<&- 2>&-"])
def test_an_error_is_discarded_if_standard_error_is_closed(redirection: str, tmp_path: Path) -> None:
    done = closed(redirection, "ls", tmp_path / "missing.json")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_closed_input_is_empty(tmp_path: Path) -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a.txt", "x\n")
    session.save(tmp_path / "s.json")
    done = closed("<&-", "forget", tmp_path / "s.json", "--text", "-")
    assert done.returncode != 0
    assert one_line(done.stderr)


@pytest.mark.parametrize("redirection", ["<&- >&- 2>&-", ">&-"])
def test_a_database_does_not_get_the_descriptor_of_a_closed_stream(redirection: str, tmp_path: Path) -> None:
    where = f"sqlite:{tmp_path}/s.db"
    session = Session.open(where, "main")
    for number in range(5):
        InMemoryFilesystem(session).write("/a.txt", f"{number}\n")
    session.close()
    closed(redirection, "compact", f"{where}#main", "--keep", 1)
    assert closed("", "fsck", f"{where}#main").returncode == 0


INTERRUPTED_IMPORT = """
import os, signal, sys
from weakfs.cli import main

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.exit(main(["run", "/nonexistent"]))
"""


def test_orjson_which_an_interrupt_would_crash_is_loaded_before_the_command_runs() -> None:
    code = "import sys; from weakfs.cli import main; main(['log', '--help']); print('orjson.orjson' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"


@pytest.mark.parametrize("module", ["click", "rich.console", "weakfs.cli.run.command", "weakfs.cli.run.workspace"])
def test_an_interrupt_while_the_command_loads_is_reported_in_one_line(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT, module], capture_output=True, text=True)
    # click ends the line in which a terminal shows ^C.
    assert (done.returncode, done.stdout, done.stderr.lstrip("\n")) == (130, "", "weakfs: interrupted\n")


def test_a_file_that_expands_too_far_is_refused_unless_it_is_trusted(run: Run, tmp_path: Path) -> None:
    session = Session(session_id="s")
    InMemoryFilesystem(session).write("/f", "x")
    session.save(tmp_path / "s.json")
    document = in_rows(orjson.loads((tmp_path / "s.json").read_bytes()))
    [record] = document["records"]
    record["event"]["content"] = {"blob": 1}
    tails = [{"parent": 0, "tail": ""} for _ in range(80)]
    records = [
        {**record, "seq": number, "event": {**record["event"], "content": {"blob": number}}} for number in range(1, 81)
    ]
    (tmp_path / "s.json").write_bytes(sealed({**document, "blobs": ["x" * (1 << 20), *tails], "records": records}))

    refused = run("log", tmp_path / "s.json")
    assert refused.status == 1
    assert "max_expansion" in refused.err
    assert run("log", tmp_path / "s.json", "--max-expansion", "none").status == 0
    assert run("log", tmp_path / "s.json", "--max-expansion", "200").status == 0
    assert run("log", tmp_path / "s.json", "--max-expansion", "much").status == 2

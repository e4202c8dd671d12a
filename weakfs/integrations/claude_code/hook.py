"""The program that Claude Code runs as a hook: it passes the event to the project's server and prints the answer.

Claude Code starts it twice for each tool, as `python -I -S hook.py SERVER DIRECTORY LOCATION`, so it imports almost
nothing: importing `socket` takes 16 ms, as long as starting Python, but `_socket` takes only 1 ms. If an error occurs,
it exits with status 1, which Claude Code shows without stopping the tool.
"""

import _socket
import os
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

# How long to wait for a server to start, in seconds: less than the minute after which Claude Code stops a hook.
PATIENCE = 45.0
WAIT = 0.02


def socket_path(server: str) -> str:
    """Return the path of the socket of a server, in a directory that only this user may access.

    Raises `OSError` if that directory belongs to somebody else.
    """
    place = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"
    place = os.path.join(place, f"weakfs-{os.getuid()}")
    try:
        os.mkdir(place, 0o700)
    except FileExistsError:
        found = os.lstat(place)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(f"{place!r} is not a directory that only you can access; remove it") from None
    return os.path.join(place, f"{server}.sock")


def lock_path(server: str) -> str:
    """Return the file that a server locks while it runs."""
    return socket_path(server).removesuffix(".sock") + ".lock"


def ask(path: str, event: bytes) -> bytes:
    """Return the answer of the server to an event; raises `OSError` if there is no server."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(path)
    connection.sendall(event)
    connection.shutdown(_socket.SHUT_WR)
    answer = b""
    while part := connection.recv(1 << 16):
        answer += part
    connection.close()
    if not answer:
        raise ConnectionError("the server ended before it answered")
    return answer


def start(server: str, directory: str, location: str) -> "subprocess.Popen[bytes]":
    """Start a server that outlives this process, and return its process, which exits if a server is running already."""
    import subprocess  # Imported here because loading it takes 20 ms.

    library = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    program = (
        "import sys; sys.path.append(sys.argv.pop(1)); from weakfs.integrations.claude_code.server import main; main()"
    )
    with open(log_path(server), "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", program, library, server, directory, location],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )


def main() -> int:
    """Run one hook; return its exit status."""
    server, directory, location = sys.argv[1:]
    event = sys.stdin.buffer.read()
    try:
        path = socket_path(server)
        try:
            answer = ask(path, event)
        except (FileNotFoundError, ConnectionRefusedError):
            answer = ask_new(server, directory, location, event)
    except OSError as error:
        print(f"weakfs did not record this tool: {error}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(answer)
    return 0


def log_path(server: str) -> str:
    """Return the file to which a project's server writes its output."""
    return socket_path(server).removesuffix(".sock") + ".log"


def is_served(server: str) -> bool:
    """Return whether a server is running, starting or ending."""
    import fcntl

    with open(lock_path(server), "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def ask_new(server: str, directory: str, location: str, event: bytes) -> bytes:
    """Start a server and return its answer to an event."""
    process = start(server, directory, location)
    path = socket_path(server)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return ask(path, event)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            if process.poll() or time.monotonic() > until:
                raise OSError(f"its server did not start; see {log_path(server)}") from error
            time.sleep(WAIT)
            # Status 0 means that the new process found another server, which may have ended since.
            if process.poll() == 0 and not is_served(server):
                process = start(server, directory, location)


if __name__ == "__main__":
    sys.exit(main())

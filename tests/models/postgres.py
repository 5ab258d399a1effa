"""A private PostgreSQL server for tests, on a free port of 127.0.0.1 and in a folder that is removed afterwards."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Nothing here must survive a power cut, so the server need not wait for the disk.
_OPTIONS = "-c fsync=off -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=40 -c shared_buffers=16MB"


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].split(".")[0]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server; the URL of its database. Skips the test where none is installed."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (apt-get install postgresql)")
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="calls-postgres-"))
    if user:
        shutil.chown(folder, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # no home or locale of the caller, whom the server's user may not read
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}

    def run(*command: str) -> None:
        subprocess.run(command, check=True, user=user, cwd=folder, env=environment, stdout=subprocess.DEVNULL)

    control = [str(programs / "pg_ctl"), "-D", str(folder / "data"), "-w", "-l", str(folder / "log")]
    try:
        run(str(programs / "initdb"), "-D", str(folder / "data"), "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync")
        run(*control, "-o", f"{_OPTIONS} -p {port}", "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)

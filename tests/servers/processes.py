"""Starts server processes for tests, and stops them."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class FaultServerProcess:
    """A running `tests.servers.fault_server`."""

    url: str
    log_file: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def script(self, *faults: dict[str, Any]) -> None:
        """Set the faults to come; none makes the server well."""
        request = urllib.request.Request(f"{self.url}/script", json.dumps(faults).encode(), method="PUT")
        urllib.request.urlopen(request, timeout=10).read()

    def wait_until_quiet(self) -> None:
        """Wait until all that killed clients sent is in the log; a living client keeps its connections open."""
        urllib.request.urlopen(f"{self.url}/quiet", timeout=30).read()

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_file.read_text().splitlines()] if self.log_file.exists() else []

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.log() if event["event"] == kind]


@contextmanager
def server_process(*arguments: str) -> Iterator[str]:
    """Run ``python -m MODULE …`` until the block ends; yields the first line it prints."""
    process = subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line, f"{arguments[0]} ended before it served"
        yield line
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def fault_server(
    folder: Path, *, port: int = 0, delay: float = 0.0, api_key: str | None = None, echo: bool = False
) -> Iterator[FaultServerProcess]:
    """A well fault server that logs into ``folder``; port 0 takes a free one."""
    log = folder / "fault_server.jsonl"
    options = ["--port", str(port), "--log", str(log), "--delay", str(delay)]
    options += (["--api-key", api_key] if api_key else []) + (["--echo"] if echo else [])
    with server_process("tests.servers.fault_server", *options) as url:
        yield FaultServerProcess(url, log)

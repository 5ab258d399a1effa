"""A vision-language model behind ``transformers serve`` in a process of its own: a real server that takes pictures."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ADDRESS = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")
_ANSWERED = '"POST /v1/chat/completions HTTP/1.1" 200'
_START_SECONDS = 120
# Nothing is looked for on the network. One thread, because the process that asks computes too.
_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class TransformersServer:
    """A running server of one model, which goes by its folder's path."""

    base_url: str
    log_file: Path

    def n_answered(self) -> int:
        """The chat completions that it has answered, by its own log, which it writes before it sends a reply."""
        return self.log_file.read_text().count(_ANSWERED)


@contextmanager
def transformers_server(model: Path, log_file: Path) -> Iterator[TransformersServer]:
    """Serve a model's folder on the CPU until the block ends."""
    options = ["--host", "127.0.0.1", "--port", "0", "--device", "cpu", "--dtype", "float32"]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model), *options]
    with log_file.open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=os.environ | _ENVIRONMENT)
    try:
        yield TransformersServer(f"{_address(process, log_file)}/v1", log_file)
    finally:
        process.kill()
        process.wait()


def _address(process: subprocess.Popen[bytes], log_file: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := _ADDRESS.search(log_file.read_text()):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"transformers serve did not start:\n{log_file.read_text()[-3000:]}")

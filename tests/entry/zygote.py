"""Runs of ``train.py`` as forks of one process that has imported everything: a run starts in a second instead of ten.

``python -m tests.entry.zygote`` reads one JSON object a line, ``{"arguments": […], "folder": PATH, "environment": {…}}``. It prints
the process id of the run, and its exit status when it has ended; what the run prints is in the folder.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # a fork has only the thread that forked
"""Environment of a process that forks."""


@dataclass(frozen=True)
class Run:
    """A run of ``train.py`` that was started and has perhaps ended."""

    process: subprocess.Popen[str]
    folder: Path
    pid: int

    def wait(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end; the return code of a killed run is the signal's negative number."""
        assert self.process.stdout is not None
        code = os.waitstatus_to_exitcode(int(self.process.stdout.readline()))
        return subprocess.CompletedProcess([], code, *((self.folder / name).read_text() for name in ("stdout", "stderr")))


class Zygote:
    """Starts runs, one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, arguments: list[str], folder: Path, **environment: str) -> Run:
        """Start ``train.py`` with ``arguments``; what it prints goes into ``folder``."""
        assert self._process.stdin is not None and self._process.stdout is not None
        folder.mkdir(exist_ok=True)
        job = {"arguments": arguments, "folder": str(folder), "environment": environment}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return Run(self._process, folder, int(self._process.stdout.readline()))

    def run(self, arguments: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Start a run and wait for its end."""
        return self.start(arguments, folder, **environment).wait()


@contextmanager
def zygote() -> Iterator[Zygote]:
    command = [sys.executable, "-m", "tests.entry.zygote"]
    environment = os.environ | ONE_THREAD
    with subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Zygote(process)
        process.stdin.close()


def main() -> None:
    # What train.py imports at its start, and what its libraries import later.
    import matplotlib.figure  # noqa: F401
    import torch._dynamo  # noqa: F401

    import train  # noqa: F401

    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(Path(job["folder"], name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
            os.environ.update(job["environment"])
            sys.argv = ["train.py", *job["arguments"]]
            runpy.run_path("train.py", run_name="__main__")
            return
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    main()

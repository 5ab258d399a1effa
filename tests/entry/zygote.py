"""Runs of ``train.py`` as forks of one process that has imported everything: a run starts in a second instead of ten.

``python -m tests.entry.zygote`` reads one JSON object a line, ``{"arguments": […], "folder": PATH, "environment": {…}}``. It prints
the process id of the run, and its exit status when it has ended; what the run prints is in the folder.
"""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

CHECKOUT = Path(__file__).resolve().parents[2]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # a fork has only the thread that forked
"""Environment of a process that forks."""

Finished = subprocess.CompletedProcess[str]


class Zygote:
    """Starts runs, one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._jobs, self._reports = process.stdin, process.stdout
        self._folder = Path()
        self._pid: int | None = None

    def start(self, arguments: list[str], folder: Path, **environment: str) -> None:
        """Start ``train.py`` with ``arguments``; what it prints goes into ``folder``."""
        self.kill()  # what a failed test left behind
        folder.mkdir(exist_ok=True)
        self._jobs.write(json.dumps({"arguments": arguments, "folder": str(folder), "environment": environment}) + "\n")
        self._jobs.flush()
        self._folder, self._pid = folder, int(self._reports.readline())

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so, or the run has ended."""
        while not condition() and Path(f"/proc/{self._pid}").exists():
            time.sleep(0.002)

    def wait(self) -> Finished:
        """Wait for the run's end; the return code of a killed run is the signal's negative number."""
        code = os.waitstatus_to_exitcode(int(self._reports.readline()))
        self._pid = None
        return Finished([], code, *((self._folder / name).read_text() for name in ("stdout", "stderr")))

    def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        assert self._pid is not None
        os.kill(self._pid, signal.SIGINT)

    def kill(self) -> Finished | None:
        """Kill the run with SIGKILL, if there is one that was not waited for."""
        if self._pid is None:
            return None
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        return self.wait()

    def run(self, arguments: list[str], folder: Path, **environment: str) -> Finished:
        """Start a run and wait for its end."""
        self.start(arguments, folder, **environment)
        return self.wait()


@contextmanager
def started_zygote() -> Iterator[Zygote]:
    command = [sys.executable, "-m", "tests.entry.zygote"]
    environment = os.environ | ONE_THREAD
    with subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        zygote = Zygote(process)
        try:
            yield zygote
        finally:
            zygote.kill()
            process.kill()


def run(arguments: list[str]) -> NoReturn:
    """Run train.py and end this process as Python would, but for the exit of libraries: they wait for threads that a fork lacks."""
    sys.argv = ["train.py", *arguments]
    code: int | str | None = 0
    try:
        runpy.run_path("train.py", run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def main() -> None:
    # What train.py imports at its start, and what its libraries import later.
    import matplotlib.figure  # noqa: F401
    import sentence_transformers  # noqa: F401
    import torch._dynamo  # noqa: F401

    import envs.job  # noqa: F401
    import train  # noqa: F401

    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(Path(job["folder"], name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
            os.environ.update(job["environment"])
            run([*job["arguments"]])
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    main()

"""A build that is killed at its fourth description: ``python -m tests.memory.adamm.killed_build FOLDER``."""

import os
import signal
import sys
from pathlib import Path

from tests.memory.adamm.fakes import build, history
from tests.memory.adamm.test_build import FIRST, SECOND, Failing

if __name__ == "__main__":
    build(history(FIRST, SECOND), Path(sys.argv[1]), Failing("describe", 3, lambda: os.kill(os.getpid(), signal.SIGKILL)))

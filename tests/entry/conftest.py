import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.entry.server_runs import Place
from tests.entry.zygote import CHECKOUT, Zygote, started_zygote
from tests.servers.processes import fault_server


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    with started_zygote() as running:
        yield running


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A run in a process of its own that nothing interrupted, with its own data and cache."""
    place = Place(tmp_path_factory.mktemp("uninterrupted"))
    with fault_server(place.root, echo=True) as server:
        command = [sys.executable, "train.py", *place.arguments(server.base_url)]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place

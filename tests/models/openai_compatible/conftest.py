from collections.abc import Iterator

import pytest

from tests.servers.processes import FaultServerProcess, fault_server


@pytest.fixture(scope="session")
def running_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServerProcess]:
    with fault_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def server(running_server: FaultServerProcess) -> FaultServerProcess:
    """The fault server, well and with an empty log."""
    running_server.script()
    running_server.log_file.write_text("")
    return running_server

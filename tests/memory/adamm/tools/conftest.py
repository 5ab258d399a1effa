import pytest

from memory.adamm.model import AdaMMMemory
from memory.adamm.tools.toolbox import ToolBox
from tests.memory.adamm.tools.logs import open_tools, write_log


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> AdaMMMemory:
    return write_log(tmp_path_factory.mktemp("log"))


@pytest.fixture(scope="session")
def tools(log: AdaMMMemory) -> ToolBox:
    return open_tools(log)

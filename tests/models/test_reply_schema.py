import socket
from collections.abc import Iterator

import pytest

from models.reply_schema import json_problem


@pytest.fixture
def no_long_waits() -> Iterator[None]:
    socket.setdefaulttimeout(2)
    yield
    socket.setdefaulttimeout(None)


def test_what_a_schema_refers_to_is_never_fetched(no_long_waits: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        problem = json_problem("{}", {"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema"})
        try:
            server.accept()
            fetched = True
        except BlockingIOError:
            fetched = False
    assert problem is not None and "cannot be checked against its schema" in problem
    assert not fetched


def test_a_reply_that_fits_has_no_problem() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "integer"}}}
    assert json_problem('{"x": 1}', schema) is None
    assert json_problem('{"x": "1"}', schema) == "breaks the schema at $.x: '1' is not of type 'integer'"

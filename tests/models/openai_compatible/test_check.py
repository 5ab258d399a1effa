import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from models.encoders.openai_embeddings import OpenAIEmbeddings
from models.errors import AccessRefused, BackendError, BackendUnavailable, RequestRefused
from models.openai_compatible.backend import OpenAIBackend
from models.openai_compatible.settings import OpenAISettings
from tests.models.openai_compatible.doors import open_door
from tests.models.openai_compatible.support import ask, openai_settings
from tests.models.openai_compatible.test_embeddings import embeddings_settings
from tests.servers.processes import ROOT, FaultServerProcess, fault_server

KEY = "sk-very-secret-0123456789abcdef"


def check(server: FaultServerProcess, n_images: int = 14, **changes: object) -> None:
    OpenAIBackend(openai_settings(server.base_url, **changes)).check(n_images=n_images)


def test_a_good_server_passes_with_one_small_request(server: FaultServerProcess) -> None:
    check(server)
    assert len(server.events("received")) == 1


def test_the_check_leaves_the_usage_of_streams_alone(server: FaultServerProcess) -> None:
    model = OpenAIBackend(openai_settings(server.base_url, streaming=True))
    model.check(n_images=1)
    ((_, reply),) = model.stream([ask("how many words are here")])
    assert reply.usage.input_tokens == 8  # the fault server counts words: 3 of the system message and 5


def test_no_server_is_named_with_its_address(tmp_path: Path) -> None:
    with fault_server(tmp_path) as server:
        pass
    with pytest.raises(BackendUnavailable, match=r"no connection to http://127.*after 2 tries; start the server or correct base_url"):
        check(server)


def test_a_wrong_model_lists_the_servers_models(server: FaultServerProcess) -> None:
    with pytest.raises(AccessRefused, match="does not serve model='gpt-x'; it serves fault-vlm, fault-embedder"):
        check(server, model="gpt-x")


def test_too_low_an_image_limit_says_how_to_raise_it(server: FaultServerProcess) -> None:
    server.script({"fault": "image_limit", "limit": 4})
    with pytest.raises(RequestRefused, match=r"at most 4 pictures.*can show 14.*--limit-mm-per-prompt '\{\"image\": 14\}'"):
        check(server)
    check(server, n_images=4)


def test_a_model_that_refuses_images_is_told_from_a_low_limit(server: FaultServerProcess) -> None:
    server.script({"fault": "refuse_images"})
    with pytest.raises(RequestRefused, match=r"takes no pictures.*mmproj.*image_tokens=none"):
        check(server)
    check(server, image_tokens="none")


def test_a_server_that_refuses_everything_is_not_blamed_on_pictures(server: FaultServerProcess) -> None:
    server.script({"fault": "status", "status": 400, "message": "chat template is missing"})
    with pytest.raises(RequestRefused, match=r"even a request without pictures.*chat template is missing"):
        check(server)


def test_what_the_check_learns_is_not_asked_again(server: FaultServerProcess) -> None:
    server.script({"fault": "refuse", "field": "temperature"})
    model = OpenAIBackend(openai_settings(server.base_url))
    model.check(n_images=1)
    n_before = len(server.events("received"))
    list(model.stream([ask("a")]))
    assert len(server.events("received")) == n_before + 1


def test_a_missing_key_names_the_variable(server: FaultServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GYM_TEST_KEY", raising=False)
    with pytest.raises(AccessRefused, match="set the environment variable GYM_TEST_KEY"):
        check(server, api_key_env="GYM_TEST_KEY")


def test_a_malformed_key_is_not_quoted(server: FaultServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TEST_KEY", f"{KEY}\nsecond line")
    with pytest.raises(AccessRefused, match="GYM_TEST_KEY") as caught:
        check(server, api_key_env="GYM_TEST_KEY")
    assert KEY not in str(caught.value)


def test_settings_are_checked_all_at_once_and_secrets_are_not_echoed() -> None:
    with pytest.raises(BackendError) as caught:
        openai_settings("http://me:pa55word@host/v1", api_key_env=KEY, concurrency=0, timeout_seconds=-1.0)
    message = str(caught.value)
    assert "pa55word" not in message and KEY not in message
    assert all(word in message for word in ("base_url", "api_key_env", "concurrency=0", "timeout_seconds=-1.0"))
    with pytest.raises(BackendError, match=r"base_url='localhost:8000'"):
        openai_settings("localhost:8000")
    with pytest.raises(BackendError, match=r"extra\.messages"):
        openai_settings("http://127.0.0.1:1/v1", extra={"messages": []})


def test_the_key_reaches_no_log_repr_error_key_or_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GYM_TEST_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    with fault_server(tmp_path, api_key=KEY) as server:
        settings: OpenAISettings = openai_settings(server.base_url, api_key_env="GYM_TEST_KEY", max_retries=1)
        model = OpenAIBackend(settings)
        model.check(n_images=1)
        door = open_door(model, tmp_path)
        server.script({"fault": "status", "status": 500, "times": 1, "match": "hello"})
        reply = door.generate([ask("hello")])[0]
        encoder = OpenAIEmbeddings(embeddings_settings(server.base_url, api_key_env="GYM_TEST_KEY"))
        encoder.encode(["hello"])
        shown += [repr(settings), repr(model), repr(model.connection), repr(encoder), repr(door), repr(reply), model.model_id, encoder.id]
        shown += [ask("hello").rendered(model.model_id)]
        monkeypatch.setenv("GYM_TEST_KEY", wrong := KEY + "x")
        # The server echoes the key that it refuses, as OpenAI's own message does in part.
        for attempt in (lambda: OpenAIBackend(settings).check(n_images=0), lambda: list(OpenAIBackend(settings).stream([ask("hello")]))):
            with pytest.raises(AccessRefused, match=r"refuses the key in GYM_TEST_KEY.*\[the API key\]") as caught:
                attempt()
            shown.append(str(caught.value))
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if "calls" in path.name)
    assert b"hello" in stored and KEY.encode() not in stored
    assert KEY in wrong and caplog.text.count("HTTP Request") >= 1  # the libraries did log their calls
    for text in [*shown, caplog.text, *capfd.readouterr()]:
        assert KEY not in text


def test_a_key_in_the_environment_is_not_sent_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with fault_server(tmp_path, api_key=KEY) as server, pytest.raises(AccessRefused, match="name the key's variable in api_key_env"):
        check(server, n_images=0)


def test_a_process_that_never_closes_its_backend_ends(server: FaultServerProcess) -> None:
    program = (
        "import sys; from tests.models.openai_compatible.support import ask, openai_settings\n"
        "from models.openai_compatible.backend import OpenAIBackend\n"
        "model = OpenAIBackend(openai_settings(sys.argv[1])); print(next(iter(model.stream([ask('a'), ask('b')])))[1].text)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, server.base_url],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stdout.strip() and not done.stderr

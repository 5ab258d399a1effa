"""``train.py`` with a server or files that cannot be used: one message, nothing lost, and after the repair the same command goes on."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from envs.run_folder import sole_run
from tests.entry.server_runs import Place, stored_requests
from tests.entry.zygote import Finished, Zygote
from tests.servers.processes import FaultServerProcess, fault_server

KEY = "sk-very-secret-0123456789abcdef"


def assert_told(done: Finished, *messages: str) -> None:
    assert done.returncode == 1, done.stdout + done.stderr
    for message in messages:
        assert message in done.stderr, done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def assert_finished_alike(done: Finished, place: Place, uninterrupted: Place) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert place.results() == uninterrupted.results()


def copied(place: Place, root: Path) -> Place:
    """The same data, cache and run elsewhere."""
    shutil.copytree(place.root, root, dirs_exist_ok=True)
    return Place(root)


def received(server: FaultServerProcess) -> list[str]:
    return [event["id"] for event in server.events("received")]


def test_a_server_that_goes_away_stops_the_training_and_the_same_command_goes_on(
    zygote: Zygote, uninterrupted: Place, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    with fault_server(tmp_path, delay=0.1, echo=True) as server:
        command = place.arguments(server.base_url)
        zygote.start(command, tmp_path / "output")
        zygote.wait_for(lambda: '"train"' in place.text("checkpoints/metrics.jsonl"))
    stopped = zygote.wait()
    assert_told(stopped, "training stopped: stopped after 3 calls failed one after the other", server.base_url, "start the server")
    assert (
        f"The state is in {place.run}/checkpoints/resume.zip; resume" in stopped.stderr and f"hydra.run.dir={place.run}" in stopped.stderr
    )
    assert (place.run / "checkpoints" / "resume.zip").exists() and not (place.run / "selector").exists()
    stored = stored_requests(place)
    assert 0 < len(stored) < len(stored_requests(uninterrupted))

    assert_told(zygote.run(command, tmp_path / "output"), f"no connection to {server.base_url}", "start the server or correct base_url")
    assert stored_requests(place) == stored

    with fault_server(tmp_path, port=server.port, echo=True) as back:
        n_before = len(received(back))
        assert_finished_alike(zygote.run(command, tmp_path / "output"), place, uninterrupted)
        # The start-up check, and what was not answered.
        assert len(received(back)) - n_before == 1 + len(stored_requests(uninterrupted)) - len(stored)
    assert stored_requests(place) == stored_requests(uninterrupted)


def no_image(place: Place) -> None:
    place.an_image().write_bytes(b"no image at all")


def too_large_an_image(place: Place) -> None:
    with place.an_image().open("ab") as file:
        file.truncate(65 * 2**20)


def foreign_checkpoint(place: Place) -> None:
    with zipfile.ZipFile(place.run / "checkpoints" / "resume.zip", "w") as archive:
        archive.writestr("resume.json", '{"progress": [1, 2, 3]}')


@dataclass(frozen=True)
class Case:
    """What is wrong, and what the message must say."""

    messages: list[str]
    arguments: list[str] = field(default_factory=list)
    script: list[dict[str, Any]] = field(default_factory=list)
    key: str = KEY
    spoil: Callable[[Place], None] = lambda place: None


CASES = {
    "bad key": Case(["refuses the key in FAULT_KEY (HTTP 401)", "put a valid key into FAULT_KEY"], key="sk-wrong-9876543210"),
    "no key": Case(["no API key", "set the environment variable FAULT_KEY"], key=""),
    "wrong model": Case(["does not serve model='gpt-x'; it serves fault-vlm", "correct model"], arguments=["vlm.model=gpt-x"]),
    "no pictures": Case(["takes no pictures", "Serve a vision-language model"], script=[{"fault": "refuse_images"}]),
    "image that does not decode": Case(["D1_IMG_001.png: not a readable image", "replace the file"], spoil=no_image),
    "image over 64 MiB": Case(["D1_IMG_001.png: larger than 64 MiB", "shrink the file"], spoil=too_large_an_image),
    "foreign checkpoint": Case(
        ["resume.zip is not a complete", "'fingerprint' is a required property", "move the file away"], spoil=foreign_checkpoint
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_used_is_told_and_after_the_repair_the_run_goes_on(
    zygote: Zygote, uninterrupted: Place, tmp_path: Path, name: str
) -> None:
    case, place = CASES[name], copied(uninterrupted, tmp_path / "place")
    with fault_server(tmp_path, api_key=KEY, echo=True) as server:
        command = place.arguments(server.base_url, "vlm.api_key_env=FAULT_KEY")
        server.script(*case.script)
        case.spoil(place)
        done = zygote.run([*command, *case.arguments], tmp_path / "output", FAULT_KEY=case.key)
        assert_told(done, *case.messages)
        assert not case.key or case.key not in done.stdout + done.stderr
        assert case.spoil not in (no_image, too_large_an_image) or received(server) == []  # told before anything is asked
        assert place.results() == uninterrupted.results() and stored_requests(place) == stored_requests(uninterrupted)

        server.script()
        shutil.copytree(uninterrupted.data, place.data, dirs_exist_ok=True)
        if case.spoil is foreign_checkpoint:
            (place.run / "checkpoints" / "resume.zip").rename(tmp_path / "foreign.zip")
        n_before = len(received(server))
        assert_finished_alike(zygote.run(command, tmp_path / "output", FAULT_KEY=KEY), place, uninterrupted)
        assert len(received(server)) == n_before + 1  # the start-up check
    assert not [path for path in place.run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_a_reply_that_stays_useless_is_quoted_and_only_its_request_is_asked_again(
    zygote: Zygote, uninterrupted: Place, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    with fault_server(tmp_path, echo=True) as server:
        command = place.arguments(server.base_url)
        server.script({"fault": "text", "text": "I would rather not.", "match": "D1:IMG_001", "times": 10**6})
        done = zygote.run(command, tmp_path / "output")
        assert_told(done, "2 of 28 requests failed; the replies to the others are kept", "memorise request", "ground request")
        assert_told(done, "also after one repair: 'I would rather not.'", "use a model that follows the schema")
        stored = stored_requests(place)
        assert len(stored) > 10
        server.script()
        n_before = len(received(server))
        assert_finished_alike(zygote.run(command, tmp_path / "output"), place, uninterrupted)
        assert len(received(server)) - n_before == 1 + len(stored_requests(uninterrupted)) - len(stored)


def test_images_of_20_megabytes_and_of_one_pixel_are_used(zygote: Zygote, tmp_path: Path, uninterrupted: Place) -> None:
    place = copied(uninterrupted, tmp_path / "place")
    shutil.rmtree(place.run)
    large, tiny = sorted((place.data / "image").rglob("*.png"))[:2]
    Image.linear_gradient("L").resize((2600, 2600)).convert("RGB").save(large, compress_level=0)
    Image.new("RGB", (1, 1), "teal").save(tiny)
    assert large.stat().st_size > 20_000_000
    with fault_server(tmp_path, echo=True) as server:
        done = zygote.run(place.arguments(server.base_url), tmp_path / "output")
        assert done.returncode == 0, done.stdout + done.stderr
        new = [request for key, request in stored_requests(place).items() if key not in stored_requests(uninterrupted)]
    shown = {hashlib.sha256(path.read_bytes()).hexdigest(): size for path, size in ((large, (1024, 1024)), (tiny, (1, 1)))}
    parts = [part for request in new for message in json.loads(request)["messages"] for part in message["parts"]]
    seen = {part["image"]: (part["width"], part["height"]) for part in parts if isinstance(part, dict)}
    assert {sha256: seen[sha256] for sha256 in shown} == shown


def test_a_folder_where_another_run_is_at_work_is_left_alone(zygote: Zygote, uninterrupted: Place, tmp_path: Path) -> None:
    place = copied(uninterrupted, tmp_path / "place")
    with fault_server(tmp_path, echo=True) as server, sole_run(place.run):
        done = zygote.run(place.arguments(server.base_url, "algo.epochs=1"), tmp_path / "output")
        assert_told(done, f"another train.py is at work in {place.run}", "hydra.run.dir")
        assert received(server) == []
    assert place.results() == uninterrupted.results()
    assert place.text("settings.json") == uninterrupted.text("settings.json")

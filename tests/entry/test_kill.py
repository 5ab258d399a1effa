"""``train.py``, killed twenty times with SIGKILL: it pays for nothing twice but what was in flight, and ends as if nothing had been."""

import json
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.images import MAX_SENT_PIXELS, Picture, load_picture
from models.openai_compatible.rendering import chat_messages
from models.requests import ImagePart, Message, Request, TextPart
from tests.entry.server_runs import CONCURRENCY, Place, stored_requests
from tests.entry.zygote import Zygote
from tests.servers.fault_server import request_id
from tests.servers.processes import FaultServerProcess, fault_server

N_KILLS = 20


@dataclass(frozen=True)
class Kill:
    """One kill: in which phase, which replies were stored by then, and how long the server's log was."""

    phase: str
    stored: set[str]
    n_log_lines: int


def test_a_run_killed_twenty_times_asks_nothing_twice_and_ends_like_one_that_was_not(
    zygote: Zygote, uninterrupted: Place, tmp_path: Path
) -> None:
    place, rng = Place(tmp_path), np.random.default_rng(1)
    with fault_server(tmp_path, delay=0.05, echo=True) as server:
        kills = [killed(zygote, place, server, rng) for _ in range(N_KILLS)]
        done = zygote.run(place.arguments(server.base_url), tmp_path / "output")
        assert done.returncode == 0, done.stdout + done.stderr
        log = server.log()
    phases = Counter(kill.phase for kill in kills)
    assert phases["build"] >= 2 and phases["train"] >= 4, phases
    stored = stored_requests(place)
    id_of = request_ids(stored, place)
    probes = {event["id"] for event in log} - set(id_of.values())
    assert len(probes) == 1  # the start-up check; every other request is answered in the end

    start = 0
    for kill in kills:
        sent = {event["id"] for event in log[start : kill.n_log_lines] if event["event"] == "received"} - probes
        kept = {id_of[key] for key in kill.stored}
        again = {event["id"] for event in log[kill.n_log_lines :] if event["event"] == "received"}
        assert not again & kept
        assert len(sent - kept) <= CONCURRENCY
        start = kill.n_log_lines
    assert stored == stored_requests(uninterrupted)
    assert place.results() == uninterrupted.results()


def killed(zygote: Zygote, place: Place, server: FaultServerProcess, rng: np.random.Generator) -> Kill:
    """Start the run and kill it a moment after some requests, wherever it is then; after none, in its start."""
    n_requests = int(rng.integers(0, 12))
    moment = rng.uniform(0, 0.1 if n_requests else 2)
    target = n_lines(server.log_file) + 2 * n_requests  # received, finished
    zygote.start(place.arguments(server.base_url), place.root / "output")
    zygote.wait_for(lambda: n_lines(server.log_file) >= target)
    time.sleep(moment)
    done = zygote.kill()
    assert done is not None and done.returncode == -signal.SIGKILL, done
    server.wait_until_quiet()
    phase = "evaluate" if (place.run / "selector").exists() else "train" if (place.run / "checkpoints").exists() else "build"
    return Kill(phase, set(stored_requests(place)), n_lines(server.log_file))


def n_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def request_ids(stored: dict[str, str], place: Place) -> dict[str, str]:
    """The id that the server's log has for each stored call: its request is sent again, but for the sending."""
    files = [path for folder in (place.data, place.cache) for path in folder.rglob("*.png")]
    pictures = {picture.sha256: picture for picture in map(load_picture, files)}
    return {key: request_id({"messages": sent(rendered, pictures)}) for key, rendered in stored.items()}


def sent(rendered: str, pictures: dict[str, Picture]) -> list[dict[str, object]]:
    messages = tuple(
        Message(
            message["role"],
            tuple(TextPart(part) if isinstance(part, str) else ImagePart(pictures[part["image"]]) for part in message["parts"]),
        )
        for message in json.loads(rendered)["messages"]
    )
    return chat_messages(Request("answer", "answer", messages, None), max_pixels=MAX_SENT_PIXELS, detail=None)

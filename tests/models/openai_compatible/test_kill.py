"""Killed twenty times with SIGKILL while it builds and trains, a run pays for nothing twice but what was in flight."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.models.openai_compatible.killed_runs import CONCURRENCY
from tests.servers.processes import ROOT, fault_server

N_KILLS = 20


def test_no_stored_reply_is_asked_for_again_and_only_what_was_in_flight_is_sent_twice(tmp_path: Path) -> None:
    with fault_server(tmp_path, delay=0.02) as server:
        arguments = [str(tmp_path), server.base_url, str(server.log_file), str(N_KILLS), "0"]
        module = "tests.models.openai_compatible.killed_runs"
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        log = server.log()
    told = json.loads(done.stdout)
    names = [json.loads(line) for line in (tmp_path / "names.jsonl").read_text().splitlines()]
    id_of = {name["key"]: name["id"] for name in names}
    phase_of = {name["key"]: name["phase"] for name in names}

    assert [kill["was_killed"] for kill in told["kills"]] == [True] * N_KILLS
    interrupted = Counter("build" if all(phase_of[key] == "build" for key in kill["stored"]) else "answer" for kill in told["kills"])
    assert interrupted["build"] >= 2 and interrupted["answer"] >= 2

    start = 0
    for kill in told["kills"]:
        end = kill["n_log_lines"]
        stored = {id_of[key] for key in kill["stored"]}
        sent = {event["id"] for event in log[start:end] if event["event"] == "received"}
        assert len(sent - stored) <= CONCURRENCY
        again = {event["id"] for event in log[end:] if event["event"] == "received"}
        assert not again & stored
        start = end
    n_sent = Counter(event["id"] for event in log if event["event"] == "received")
    assert sum(n_sent.values()) - len(n_sent) <= N_KILLS * CONCURRENCY
    # In the end every reply is stored, once.
    assert sorted(id_of[key] for key in told["stored"]) == sorted(n_sent)

"""A run, building and then answering as training does, that is killed again and again until it is let through.

``python -m tests.models.openai_compatible.killed_runs FOLDER BASE_URL SERVER_LOG N_KILLS SEED`` prints what was stored after
each kill as JSON. The runs are forks of this process, so that each is killed in its work and not in its imports.
"""

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data.history import Dataset
from data.loaders.mem_gallery import load_mem_gallery
from data.sample.generate import generate_sample
from envs.answering import Answerer
from envs.metrics.text import profile
from envs.questions import prepare_questions
from memory.build import build_bank
from memory.forms import forms_named
from memory.settings import BankSettings, RetrievalSettings
from models.encoders.minilm import MiniLM
from models.openai_compatible.backend import OpenAIBackend
from models.openai_compatible.rendering import chat_messages
from models.openai_compatible.settings import OpenAISettings
from models.requests import Reply, Request, TokenCounter
from tests.memory.fakes import HashEncoder
from tests.models.openai_compatible.doors import open_door
from tests.models.openai_compatible.support import openai_settings
from tests.servers.fault_server import request_id

CONCURRENCY = 4
ROLLOUT = 16
N_ROLLOUTS = 24
FORMS = ("raw", "summary", "caption", "view", "image")
BANK = BankSettings(episode_tokens=256, k_edge=4, captions="model", visual_anchors=True, idf=True, visual_visual=False)
RETRIEVAL = RetrievalSettings(k_ret=5, k_exp=2, expansion=True)


def run(dataset: Dataset, folder: Path, settings: OpenAISettings, counter: TokenCounter) -> None:
    """Build the banks, then answer rollouts of random compositions: the same requests in the same order every time."""
    backend = OpenAIBackend(settings)
    door = open_door(backend, folder)
    names = os.open(folder / "names.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def generate(requests: Sequence[Request]) -> list[Reply]:
        for request in requests:  # which key of the cache is which request of the server's log
            messages = chat_messages(request, max_pixels=settings.max_image_pixels, detail=None)
            name = {"key": request.key(backend.model_id), "id": request_id({"messages": messages}), "phase": request.phase}
            os.write(names, (json.dumps(name) + "\n").encode())
        return door.generate(requests)

    encoder, forms = HashEncoder(), forms_named(FORMS)
    banks = {
        history.id: build_bank(
            history, root=folder / "banks", generate=generate, counter=counter, encoder=encoder, settings=BANK, model_id=backend.model_id,
            progress=lambda step, done, total: None,
        )
        for history in dataset.histories
    }  # fmt: skip
    questions = prepare_questions(
        dataset.questions, banks=banks, encoder=encoder, retrieval=RETRIEVAL, forms=forms, counter=backend.counter, instructions={}
    )
    answerer = Answerer(generate, forms=forms, counter=backend.counter, metric=profile("mem_gallery"))
    rng = np.random.default_rng(0)
    for _ in range(N_ROLLOUTS):
        asked = [questions[number] for number in rng.integers(len(questions), size=ROLLOUT)]
        answerer.answer(asked, rng.random((ROLLOUT, RETRIEVAL.k_total, len(FORMS))) < 0.5)


def stored_keys(folder: Path) -> list[str]:
    path = folder / "calls.sqlite"
    if not path.exists():
        return []
    with sqlite3.connect(path) as connection:
        has_table = connection.execute("SELECT name FROM sqlite_master WHERE name = 'calls'").fetchone()
        return [key for (key,) in connection.execute("SELECT key FROM calls")] if has_table else []


def n_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main() -> None:
    folder, base_url, server_log = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    n_kills, seed = int(sys.argv[4]), int(sys.argv[5])
    generate_sample(folder / "sample", seed=0, n_histories=1, n_questions=60)
    dataset = load_mem_gallery(folder / "sample")
    settings, counter = openai_settings(base_url, concurrency=CONCURRENCY, max_retries=0), MiniLM().counter
    rng = np.random.default_rng(seed)
    kills = []
    for _ in range(n_kills):
        # After so many more requests and a few milliseconds, wherever the run is then.
        target, extra = n_lines(server_log) + int(rng.integers(1, 24)), float(rng.uniform(0, 0.03))
        child = os.fork()
        if child == 0:
            run(dataset, folder, settings, counter)
            os._exit(0)
        deadline = time.monotonic() + 60
        while n_lines(server_log) < target and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(extra)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        time.sleep(0.1)  # what the kernel still holds for the server reaches its log
        kills.append({"was_killed": os.WIFSIGNALED(status), "n_log_lines": n_lines(server_log), "stored": stored_keys(folder)})
    run(dataset, folder, settings, counter)
    print(json.dumps({"kills": kills, "stored": stored_keys(folder)}))


if __name__ == "__main__":
    main()

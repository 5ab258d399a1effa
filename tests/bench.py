"""Speeds, each measured beside what it is compared with, in one run: ``make bench``.

Ratios are what to read: absolute times depend on the machine and on what else it is doing.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from envs.answering import Answerer, Outcome
from envs.batched import BatchedSelectionEnv
from envs.evaluation.comparison import outcomes_of
from envs.metrics.text import profile
from envs.questions import PreparedQuestion
from envs.selection import EvidenceSelectionEnv
from envs.settings import default_settings
from envs.workbench import Workbench, open_workbench
from models.requests import Reply, Request, Usage
from planners.composers import Uniform
from policies.export import export_selector
from policies.inference import Selector
from policies.selector import SelectorPolicy
from policies.training import build_ppo
from tests.bench_door import door_overhead_seconds, warm_lookups_per_second
from tests.bench_induction import N_ATTRIBUTES, induction_speeds
from tests.bench_planner import N_EVENTS, N_TABLES, planning_seconds
from tests.bench_retrieval import retrieval_seconds
from tests.bench_tables import N_ROWS, table_speeds

N_ENVS = 16
ANSWER_SECONDS = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true", help="also time the whole of train.py in a fresh folder (minutes)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = {"root": Path("outputs/one_history"), "split_by": "question", "sample": {"seed": 0, "n_histories": 1, "n_questions": 150}}
    bench = Bench(open_workbench(default_settings(data=data)))
    table = Table(title=f"{N_ENVS} questions a step; sample of one history, embedded engine", title_justify="left")
    for name in ("what", "batched", "compared with", "ratio", "aim"):
        table.add_column(name)
    for row in (
        bench.training_with_slow_answers,
        bench.environment_alone,
        bench.update_share,
        bench.selection,
        door_lookups,
        door_overhead,
        retrieval,
        planning,
    ):
        table.add_row(*row())
    Console().print(table)
    Console().print(tables_on_a_million_rows())
    Console().print(schema_induction())
    if arguments.whole:
        print(f"python train.py in a fresh folder: {whole_run():.0f} s (aim: under 180 s on two idle cores)")


class KnownAnswers(Answerer):
    """Answers every composition of a question with the outcome of its first, as if each had been asked before."""

    def answer(self, questions: Sequence[PreparedQuestion], compositions: NDArray[np.bool_]) -> list[Outcome]:
        return super().answer(questions, np.ones_like(compositions))


class Bench:
    """The prepared parts that all measurements share."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self.questions: list[PreparedQuestion] = workbench.questions("train", refusals=False)
        # Every picture is read once before anything is timed.
        outcomes_of(Uniform(np.ones(len(workbench.answerer.forms), np.bool_)), self.questions, workbench.answerer)

    def answerer(self, generate: Callable[[Sequence[Request]], list[Reply]], *, memoise: bool) -> Answerer:
        door = self.workbench.door
        return Answerer(
            generate, forms=self.workbench.answerer.forms, counter=door.backend.counter, metric=profile("mem_gallery"), memoise=memoise
        )

    def batched(self, answerer: Answerer) -> BatchedSelectionEnv:
        normaliser = self.workbench.reward_normaliser(self.questions)
        return BatchedSelectionEnv(self.questions, answerer=answerer, normaliser=normaliser, cost_weight=0.1, n_envs=N_ENVS, seed=0)

    def dummy(self, answerer: Answerer) -> DummyVecEnv:
        normaliser = self.workbench.reward_normaliser(self.questions)
        make = lambda: EvidenceSelectionEnv(self.questions, answerer=answerer, normaliser=normaliser, cost_weight=0.1)  # noqa: E731
        return DummyVecEnv([make] * N_ENVS)

    def ppo(self, environment: VecEnv) -> PPO:
        settings = self.workbench.settings.algo.ppo(N_ENVS)
        return build_ppo(environment, settings=settings, policy_options={}, seed=0)

    def training_with_slow_answers(self) -> list[str]:
        def slow(requests: Sequence[Request]) -> list[Reply]:
            time.sleep(ANSWER_SECONDS)  # a backend that answers a batch concurrently
            return [Reply(request.key("simulated"), "blue", Usage(100, 1, 0), ANSWER_SECONDS) for request in requests]

        def rate(environment: VecEnv, n_updates: int) -> float:
            model = self.ppo(environment)
            model.learn(2 * N_ENVS)
            start = time.perf_counter()
            model.learn(n_updates * N_ENVS)
            return n_updates * N_ENVS / (time.perf_counter() - start)

        fast, one_by_one = (
            rate(self.batched(self.answerer(slow, memoise=False)), 20),
            rate(self.dummy(self.answerer(slow, memoise=False)), 5),
        )
        return [
            "training steps / s, simulated answers of 50 ms",
            f"{fast:.0f}",
            f"DummyVecEnv {one_by_one:.0f}",
            f"{fast / one_by_one:.1f} ×",
            "≥ 6 ×",
        ]

    def environment_alone(self) -> list[str]:
        actions = np.random.default_rng(0).random((64, N_ENVS, self.questions[0].available.size)) < 0.5
        generate = self.workbench.door.generate

        def seconds(environment: VecEnv) -> float:
            environment.seed(0)
            environment.reset()
            start = time.perf_counter()
            for action in actions:
                environment.step(action.astype(np.int8))
            return (time.perf_counter() - start) / len(actions)

        batched, dummy = self.batched(self.answerer(generate, memoise=True)), self.dummy(self.answerer(generate, memoise=False))
        seconds(dummy)  # every answer of this pass is in the call cache afterwards
        state = batched.state_dict()
        seconds(batched)  # and every outcome of this one is memoised
        batched.load_state_dict({**state, "n_drawn": 0})
        fast, slow = seconds(batched), seconds(dummy)
        what = "environment step alone, answers cached (batched memoises; the other renders and hashes)"
        return [what, f"{fast * 1e3:.2f} ms", f"DummyVecEnv {slow * 1e3:.1f} ms", f"{slow / fast:.1f} ×", "≥ 5 ×"]

    def update_share(self) -> list[str]:
        door = self.workbench.door
        answerer = KnownAnswers(
            door.generate, forms=self.workbench.answerer.forms, counter=door.backend.counter, metric=profile("mem_gallery")
        )
        model = self.ppo(self.batched(answerer))
        model.learn(N_ENVS * 20)
        updating = 0.0
        train = model.train

        def timed() -> None:
            nonlocal updating
            start = time.perf_counter()
            train()
            updating += time.perf_counter() - start

        model.train = timed  # type: ignore[method-assign]  # measures the gradient steps inside SB3's loop
        n_updates = 50
        start = time.perf_counter()
        model.learn(N_ENVS * n_updates)
        whole = time.perf_counter() - start
        what = "one update with all answers known: gradient steps of collecting and updating"
        return [
            what,
            f"{updating / n_updates * 1e3:.1f} ms",
            f"whole {whole / n_updates * 1e3:.1f} ms",
            f"{updating / whole:.0%}",
            "≥ 75 %",
        ]

    def selection(self) -> list[str]:
        environment = self.batched(self.workbench.answerer)
        policy = self.ppo(environment).policy
        assert isinstance(policy, SelectorPolicy)
        encoder = self.workbench.encoder
        with tempfile.TemporaryDirectory() as folder:
            export_selector(
                policy,
                Path(folder) / "selector",
                forms=list(self.workbench.answerer.forms),
                encoder_id=encoder.id,
                encoder_dimension=encoder.dimension,
                threshold=0.5,
                metric_profile="mem_gallery",
                provenance={},
            )
            selector = Selector.load(Path(folder) / "selector")
        times = []
        for item in self.questions[:100]:
            start = time.perf_counter()
            selector.select(item.query, item.summaries, item.available)
            times.append(time.perf_counter() - start)
        return ["selection with the exported policy, seven memories", f"{median(times) * 1e3:.3f} ms", "", "", "≤ 1 ms"]


def tables_on_a_million_rows() -> Table:
    table = Table(title=f"Analytic tools on {N_ROWS:,} rows of ten columns, medians", title_justify="left")
    for name in ("what", "tool", "compared with", "ratio", "aim"):
        table.add_column(name)
    with tempfile.TemporaryDirectory() as folder:
        for row in table_speeds(Path(folder)):
            table.add_row(*row)
    return table


def schema_induction() -> Table:
    table = Table(title=f"Schema induction, {N_ATTRIBUTES} attributes unless said otherwise", title_justify="left")
    for name in ("what", "seconds", "compared with", "ratio", "aim"):
        table.add_column(name)
    for row in induction_speeds():
        table.add_row(*row)
    return table


def door_lookups() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        return ["warm look-ups through the door, a second, by batch", f"{warm_lookups_per_second(Path(folder)):.0f}", "", "", "≥ 20,000"]


def door_overhead() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        return ["the door's overhead over a direct call", f"{door_overhead_seconds(Path(folder)) * 1e3:.2f} ms", "", "", "< 1 ms"]


def retrieval() -> list[str]:
    seconds = retrieval_seconds()
    product = seconds.pop("text product")
    name, slowest = max(seconds.items(), key=lambda item: item[1])
    what = f"retrieval tools over 100,000 events, a fifth with images: {name}"
    return [what, f"{slowest * 1e3:.0f} ms", f"text product {product * 1e3:.0f} ms", f"{slowest / product:.1f} ×", "≤ 50 ms"]


def planning() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        seconds = planning_seconds(Path(folder))
    context = seconds.pop("the planning context")
    name, slowest = max(seconds.items(), key=lambda item: item[1])
    what = f"planner without models, {N_TABLES:,} tables, {N_EVENTS:,} events: {name}"
    return [what, f"{slowest * 1e3:.0f} ms", f"context {context * 1e3:.0f} ms", "", "≤ 50 ms each"]


def whole_run() -> float:
    """Seconds of the whole of train.py: sample, banks, training, evaluation, export, nothing cached."""
    checkout = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        where = [f"data.root={folder}/sample", f"cache={folder}/cache", f"hydra.run.dir={folder}/run"]
        subprocess.run([sys.executable, "train.py", *where], check=True, cwd=checkout, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


if __name__ == "__main__":
    main()

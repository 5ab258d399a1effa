"""The verdict over a grid of runs (cost weights × seeds): does the selector beat the fixed compositions?

``python -m envs.evaluation.acceptance outputs/accept`` reads each run's ``settings.json``, ``validation.json`` and ``summary.json``.

The best uniform composition and λ are chosen on validation; the verdict is about the test split, means over seeds:

* at λ = 0: F1 ≥ best uniform − 0.02;
* at the chosen λ: F1 ≥ best uniform − 0.01 at ≤ 60 % of its evidence tokens;
* no uniform composition has F1 more than 0.01 higher with fewer evidence tokens.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rich.console import Console
from rich.table import Table

SELECTOR = "selector"
TOKEN_SHARE = 0.6
_FILES = ("settings.json", "validation.json", "summary.json")


@dataclass(frozen=True)
class GridRun:
    """One run of the grid; ``test`` and ``validation`` map each method to its summary."""

    cost_weight: float
    seed: int
    best_uniform: str
    uniforms: tuple[str, ...]
    test: Mapping[str, Mapping[str, Any]]
    validation: Mapping[str, Mapping[str, Any]]

    def f1(self, split: str, method: str = SELECTOR) -> float:
        """F1 of a method on ``test`` or ``validation``."""
        return float(getattr(self, split)[method]["f1"])

    def tokens(self, split: str, method: str = SELECTOR) -> float:
        """Evidence tokens per question of a method on ``test`` or ``validation``."""
        return float(getattr(self, split)[method]["evidence_tokens_per_question"])


@dataclass(frozen=True)
class Check:
    """One condition of the verdict, with its figures."""

    what: str
    holds: bool


def read_grid(folder: Path) -> list[GridRun]:
    """Read every finished run below ``folder``, sorted by cost weight and seed."""
    runs = []
    for path in sorted(folder.rglob("summary.json")):
        settings, validation, test = (json.loads(path.with_name(name).read_text(encoding="utf-8")) for name in _FILES)
        runs.append(
            GridRun(
                settings["reward"]["cost_weight"],
                settings["seed"],
                validation["best_uniform"],
                tuple(validation["uniforms"]),
                test,
                validation["methods"],
            )
        )
    return sorted(runs, key=lambda run: (run.cost_weight, run.seed))


def choose_cost_weight(runs: Sequence[GridRun]) -> float:
    """λ > 0 chosen on validation.

    The highest mean F1 among those that use at most 60 % of the best uniform's evidence tokens there; if none does,
    the fewest tokens.
    """
    weights = sorted({run.cost_weight for run in runs if run.cost_weight > 0})
    f1 = {weight: fmean(run.f1("validation") for run in runs if run.cost_weight == weight) for weight in weights}
    tokens = {weight: fmean(run.tokens("validation") for run in runs if run.cost_weight == weight) for weight in weights}
    limit = TOKEN_SHARE * runs[0].tokens("validation", runs[0].best_uniform)
    frugal = [weight for weight in weights if tokens[weight] <= limit]
    return max(frugal, key=lambda weight: f1[weight]) if frugal else min(weights, key=lambda weight: tokens[weight])


def verdict(runs: Sequence[GridRun]) -> list[Check]:
    """The three conditions over a complete grid."""
    best = runs[0].best_uniform
    best_f1, best_tokens = runs[0].f1("test", best), runs[0].tokens("test", best)
    free = [run for run in runs if run.cost_weight == 0]
    weight = choose_cost_weight(runs)
    chosen = [run for run in runs if run.cost_weight == weight]
    free_f1 = fmean(run.f1("test") for run in free)
    f1, tokens = fmean(run.f1("test") for run in chosen), fmean(run.tokens("test") for run in chosen)
    dominating = [name for name in runs[0].uniforms if runs[0].f1("test", name) > f1 + 0.01 and runs[0].tokens("test", name) < tokens]
    return [
        Check(f"λ = 0: F1 {free_f1:.3f} ≥ {best_f1 - 0.02:.3f} (best uniform {best}: {best_f1:.3f}, less 0.02)", free_f1 >= best_f1 - 0.02),
        Check(f"λ = {weight:g}, chosen on validation: F1 {f1:.3f} ≥ {best_f1 - 0.01:.3f} (best uniform less 0.01)", f1 >= best_f1 - 0.01),
        Check(
            f"λ = {weight:g}: {tokens:.0f} evidence tokens ≤ 60 % of {best_tokens:.0f} ({tokens / best_tokens:.1%})",
            tokens <= TOKEN_SHARE * best_tokens,
        ),
        Check(
            f"λ = {weight:g}: no uniform composition has F1 more than 0.01 higher with fewer tokens ({', '.join(dominating) or 'none'})",
            not dominating,
        ),
    ]


def main(folder: Path) -> int:
    """Print the grid and the verdict; returns 0 if every condition holds."""
    console = Console()
    runs = read_grid(folder)
    weights = sorted({run.cost_weight for run in runs})
    if not runs or 0 not in weights or len(weights) < 2:
        console.print(f"{folder}: needs finished runs at λ = 0 and at another λ; run: python train.py --multirun experiment=accept")
        return 2
    table = Table(title=f"test split, answerer {runs[0].test[SELECTOR]['answerer']}", title_justify="left")
    for name in ("λ", "seed", "F1", "evidence tokens", "validation F1", "validation tokens"):
        table.add_column(name, justify="right")
    for weight in weights:
        own = [run for run in runs if run.cost_weight == weight]
        for run in own:
            cells = [f"{run.f1('test'):.3f}", f"{run.tokens('test'):.0f}", f"{run.f1('validation'):.3f}", f"{run.tokens('validation'):.0f}"]
            table.add_row(f"{weight:g}", str(run.seed), *cells)
        means = [
            fmean(values)
            for values in zip(*((r.f1("test"), r.tokens("test"), r.f1("validation"), r.tokens("validation")) for r in own), strict=True)
        ]
        spread = f" ± {stdev(run.f1('test') for run in own):.3f}" if len(own) > 1 else ""
        table.add_row(
            f"{weight:g}",
            "mean",
            f"{means[0]:.3f}{spread}",
            f"{means[1]:.0f}",
            f"{means[2]:.3f}",
            f"{means[3]:.0f}",
            style="bold",
            end_section=True,
        )
    console.print(table)
    checks = verdict(runs)
    for check in checks:
        console.print(f"{'holds' if check.holds else 'FAILS'}  {check.what}")
    return 0 if all(check.holds for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""Evaluates a selector beside every fixed composition and writes the results of a run folder.

``rows.parquet``      one row per method and question of the split
``summary.json``      one object per method
``validation.json``   the same for the validation split, and the best uniform composition, which is chosen there
``frontier.png``      F1 over evidence tokens
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from envs.evaluation.comparison import Summary, best_uniform, compare, summarise
from envs.evaluation.records import Row, write_json, write_rows
from envs.evaluation.table import draw_frontier, print_table
from envs.workbench import EMBEDDED_NOTE, Workbench
from memory.composition import view_tokens
from planners.composers import Composer, Random, Uniform, uniform_composers

SELECTOR = "selector"


def evaluate_selector(workbench: Workbench, selector: Composer, *, folder: Path, part: str, console: Console) -> dict[str, Summary]:
    """Compare on ``part`` of the split, write the files above into ``folder``, print the table.

    Returns:
        The summaries by method; ``selector`` is the one under test.
    """
    uniforms = uniform_composers(list(workbench.answerer.forms))
    validation = _compare(workbench, {SELECTOR: selector, **uniforms}, "validation", console)
    best = best_uniform(validation, list(uniforms))
    write_json(folder / "validation.json", {"best_uniform": best, "uniforms": list(uniforms), "methods": _as_json(validation)})

    forms = np.array(list(workbench.answerer.forms))
    named: dict[str, Composer] = {
        "no-memory": Uniform(np.zeros(len(forms), np.bool_)),
        "summary-only": Uniform(forms == "summary"),
        "all-forms": Uniform(np.ones(len(forms), np.bool_)),
        "random": Random(np.random.default_rng([workbench.settings.seed, 2])),
    }
    rows: list[Row] = []
    summaries = _compare(workbench, {SELECTOR: selector, **named, **uniforms}, part, console, rows)
    write_rows(folder / "rows.parquet", rows)
    write_json(folder / "summary.json", _as_json(summaries))
    metric = workbench.settings.reward.metric_profile
    asked = summaries[SELECTOR]
    size = f"{asked.n} questions and {asked.n_refusals} refusals"
    title = f"{workbench.dataset.name}, {part} split ({size}), F1 profile {metric}, answered by {workbench.answerer_name}"
    draw_frontier(folder / "frontier.png", summaries, title=title, trained=[SELECTOR])
    print_table(console, summaries, title=title, trained=[SELECTOR], best=best)
    _print_notes(workbench, console)
    return summaries


def _compare(
    workbench: Workbench, composers: Mapping[str, Composer], part: str, console: Console, rows: list[Row] | None = None
) -> dict[str, Summary]:
    questions = workbench.questions(part, refusals=rows is not None)
    kept = [] if rows is None else rows
    for method, composer in track(composers.items(), f"evaluate on {part}", console=console, transient=True):
        kept += compare(method, composer, questions, workbench.answerer, split=part, refusals=workbench.dataset.refusal_categories)
    return summarise(kept, metric_profile=workbench.settings.reward.metric_profile, answerer=workbench.door.backend.model_id)


def _as_json(summaries: Mapping[str, Summary]) -> dict[str, object]:
    return {method: asdict(summary) for method, summary in summaries.items()}


def _print_notes(workbench: Workbench, console: Console) -> None:
    tokens = [view_tokens(bank, workbench.door.backend.counter) for bank in workbench.banks.values()]
    views, images = sum(bank.views for bank in tokens), sum(bank.images for bank in tokens)
    if images:
        console.print(f"grounded views: {views} image tokens against {images} of the images they are cut from ({views / images - 1:+.0%})")
    if workbench.dataset.n_missing_images:
        console.print(f"{workbench.dataset.n_missing_images} of {workbench.dataset.n_images} images have no file; their captions stand in")
    if workbench.is_embedded:
        console.print(EMBEDDED_NOTE)

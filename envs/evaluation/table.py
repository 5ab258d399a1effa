"""The comparison table and the quality–token picture."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from envs.evaluation.comparison import Summary

_LEGEND = (
    "evidence, total: tokens per question, of the shown evidence and of the whole call; recall, found: share of gold rounds in memories "
    "that are shown, that were retrieved; refusal: F1 on questions without an answer, which the other columns leave out"
)


def print_table(console: Console, summaries: Mapping[str, Summary], *, title: str, trained: Sequence[str], best: str | None) -> None:
    """Print one line a method: trained selectors first, then by F1.

    Args:
        console: Where to print.
        summaries: By method.
        title: Says split, metric profile and answerer.
        trained: The methods to put first, in bold.
        best: The uniform composition chosen on validation, marked with ``*``; None to mark none.
    """
    table = Table(
        title=escape(title),
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("method", no_wrap=True)
    for name in ("F1", "evidence", "total", "recall", "found", "refusal"):
        table.add_column(name, justify="right", no_wrap=True)
    names = sorted(summaries, key=lambda name: (name not in trained, -summaries[name].f1, summaries[name].evidence_tokens_per_question))
    for name in names:
        summary = summaries[name]
        cells = [f"{summary.f1:.3f}", f"{summary.evidence_tokens_per_question:.0f}", f"{summary.tokens_per_question:.0f}"]
        cells += ["–" if value is None else f"{value:.3f}" for value in (summary.recall, summary.retrieval_recall, summary.refusal_f1)]
        table.add_row(f"{name} *" if name == best else name, *cells, style="bold" if name in trained else "")
    console.print(table)
    console.print(_LEGEND, style="dim")
    if best is not None:
        console.print("* the best fixed composition on the validation split (F1, then fewer evidence tokens)")


def draw_frontier(path: Path, summaries: Mapping[str, Summary], *, title: str, trained: Sequence[str]) -> None:
    """Draw F1 over evidence tokens, one dot a method, with the frontier of the fixed compositions, as a PNG."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it logs that it builds its font cache
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.add_subplot()
    fixed = {name: summary for name, summary in summaries.items() if name not in trained}
    by_cost = sorted(fixed.items(), key=lambda item: (item[1].evidence_tokens_per_question, -item[1].f1))
    frontier: list[tuple[str, Summary]] = []
    for name, summary in by_cost:
        if not frontier or summary.f1 > frontier[-1][1].f1:
            frontier.append((name, summary))
    axes.scatter(
        [s.evidence_tokens_per_question for s in fixed.values()],
        [s.f1 for s in fixed.values()],
        color="0.6",
        s=22,
        label="fixed and random compositions",
    )
    axes.step([s.evidence_tokens_per_question for _, s in frontier], [s.f1 for _, s in frontier], where="post", color="0.4", linewidth=1)
    for name, summary in frontier:
        axes.annotate(
            name, (summary.evidence_tokens_per_question, summary.f1), xytext=(5, -9), textcoords="offset points", fontsize=8, color="0.3"
        )
    for name in trained:
        summary = summaries[name]
        axes.scatter([summary.evidence_tokens_per_question], [summary.f1], s=70, marker="*", zorder=3, label=name)
    axes.set_xlabel("evidence tokens per question")
    axes.set_ylabel("F1")
    axes.set_title(title, loc="left", fontsize=10, parse_math=False)
    axes.grid(alpha=0.2)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=130)

"""The page of an evaluation of pipelines: one file, with its table and every trace inside; nothing is fetched."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envs.evaluation.html_page import write_html


def write_page(path: Path, *, title: str, summaries: Mapping[str, Any], traces: Sequence[Mapping[str, Any]], note: str) -> None:
    """Write the page aside and rename it; whatever histories and models say is escaped.

    Args:
        path: the HTML file.
        title: what was evaluated.
        summaries: `envs.evaluation.pipelines.PipelineSummary` by method.
        traces: of `envs.evaluation.traces`; those of one question are shown together.
        note: what must be said above the table; "" for nothing.
    """
    categories = sorted({name for summary in summaries.values() for name in summary.f1_by_category})
    questions: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for trace in traces:
        questions.setdefault((trace["history_id"], trace["question_id"]), []).append(trace)
    write_html(path, "pipelines.html", title=title, summaries=summaries, categories=categories, questions=questions, note=note)

"""The trace of a planned question: plan, calls, results, evidence, tokens, answer and gold, as one JSON line.

``python -m envs.evaluation.traces FOLDER`` prints one for people.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from envs.errors import RunError
from envs.evaluation.plain import visible
from envs.planned import PlannedOutcome, PlannedQuestion
from models.tasks.answer import ShownPicture

TRACES = "traces.jsonl"


def trace_of(method: str, planned: PlannedQuestion, outcome: PlannedOutcome) -> dict[str, Any]:
    """Everything that led to one answer, as plain JSON."""
    question, execution = planned.question, outcome.execution
    return {
        "method": method,
        "history_id": question.history_id,
        "question_id": question.id,
        "category": question.category,
        "question": question.text,
        "context": {
            "tables": [table.name for table in planned.context.shown.tables],
            "episodes": [episode.text for episode in planned.context.shown.episodes],
            "n_left_out": planned.context.n_left_out,
        },
        "plan": [{"tool": step.tool, "goal": step.goal} for step in execution.plan],
        "plan_failure": execution.plan_failure,
        "steps": [
            {
                "tool": done.step.tool,
                "goal": done.step.goal,
                "arguments": done.arguments,
                "failures": list(done.failures),
                "skipped": done.result is None,
                "units": [] if done.result is None else [unit.text for unit in done.result.units],
            }
            for done in execution.steps
        ],
        "evidence": [_shown_lines(step) for step in outcome.shown],
        "tokens": {"planning": outcome.planning_tokens, "evidence": outcome.evidence_tokens, "total": outcome.total_tokens},
        "answer": outcome.answer,
        "gold": question.answer,
        "f1": outcome.f1,
        "recall": outcome.recall,
    }


def _shown_lines(step: Any) -> list[str]:
    memories = [line for memory in step.memories for line in (memory.line, *(_line(item) for item in memory.items))]
    return [step.line, *(item.line for item in step.items), *memories]


def _line(item: Any) -> str:
    return f"{item.line} {item.picture.width} x {item.picture.height} pixels" if isinstance(item, ShownPicture) else str(item.line)


def write_traces(path: Path, traces: Sequence[dict[str, Any]]) -> None:
    """Write one trace a line, aside and renamed."""
    aside = path.with_suffix(".partial")
    with aside.open("w", encoding="utf-8") as file:
        for trace in traces:
            file.write(json.dumps(trace, ensure_ascii=False) + "\n")
    os.replace(aside, path)


def read_traces(path: Path) -> Iterator[dict[str, Any]]:
    """The traces of a file.

    Raises:
        RunError: there is no such file, or a line of it is no trace.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                trace = json.loads(line)
                if not isinstance(trace, dict) or "question_id" not in trace:
                    raise RunError(f"{path}, line {number} is no trace; evaluate again with mode=pipelines")
                yield trace
    except (OSError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{path} holds no traces ({error}); name the folder of mode=pipelines or of a run with env=planning") from error


def show(trace: dict[str, Any], console: Console) -> None:
    """Print one trace."""
    console.print(Text(visible(f"{trace['method']}  {trace['question_id']}  ({trace['category']})"), style="bold"))
    console.print(Text(visible(trace["question"])))
    for number, step in enumerate(trace["steps"], start=1):
        body = Text(visible(f"goal: {step['goal']}\narguments: {step['arguments']}\n"))
        for failure in step["failures"]:
            body.append(visible(f"problem: {failure}\n"), style="red")
        body.append(visible("\n".join(step["units"])) or ("skipped" if step["skipped"] else "nothing found"))
        console.print(Panel(body, title=f"step {number}: {step['tool']}", title_align="left"))
    if trace["plan_failure"]:
        console.print(Text(visible(f"no plan: {trace['plan_failure']}"), style="red"))
    tokens = trace["tokens"]
    right = trace["f1"] >= 0.999
    console.print(Text(visible(f"answer: {trace['answer']}"), style="green" if right else "yellow"))
    console.print(Text(visible(f"gold:   {trace['gold']}")))
    recall = "" if trace["recall"] is None else f", recall {trace['recall']:.2f}"
    console.print(
        f"F1 {trace['f1']:.3f}{recall}; tokens: {tokens['planning']} planning, {tokens['evidence']} evidence, {tokens['total']} in all"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print traces of an evaluation's folder."""
    parser = argparse.ArgumentParser(prog="python -m envs.evaluation.traces", description="Print how planned questions were answered.")
    parser.add_argument("folder", type=Path, help=f"the folder with {TRACES}: of mode=pipelines, or of a run with env=planning")
    parser.add_argument("--question", help="only questions whose id or text contains this")
    parser.add_argument("--method", help="only this method, for example adamm or joint")
    parser.add_argument("--wrong", action="store_true", help="only answers with F1 under 0.5")
    parser.add_argument("-n", type=int, default=1, help="how many to print (default: 1)")
    chosen = parser.parse_args(arguments)
    console = Console()
    shown = 0
    methods: dict[str, None] = {}
    try:
        for trace in read_traces(chosen.folder / TRACES):
            methods[trace["method"]] = None
            wanted = chosen.question or ""
            if (
                (wanted in trace["question_id"] or wanted in trace["question"])
                and chosen.method in (None, trace["method"])
                and (not chosen.wrong or trace["f1"] < 0.5)
            ):
                show(trace, console)
                shown += 1
                if shown >= chosen.n:
                    break
    except RunError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return 1
    if not shown:
        text = f"no trace fits; leave options out. The methods are {', '.join(methods)}"
        console.print(visible(text), markup=False, highlight=False, soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

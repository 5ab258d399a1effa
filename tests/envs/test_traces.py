"""Traces are written, found again, shown and put on a page as plain text, whatever histories and models say."""

from pathlib import Path

import pytest
from rich.console import Console

from envs.errors import RunError
from envs.evaluation.page import write_page
from envs.evaluation.pipelines import PipelineSummary
from envs.evaluation.traces import TRACES, main, read_traces, show, write_traces
from envs.workbench import EMBEDDED_NOTE

HOSTILE = "<script>alert(1)</script> [red]x[/red] \x1b[31m"
TRACE = {
    "method": "adamm",
    "history_id": "h",
    "question_id": "h:3",
    "category": "aggregation",
    "question": f"What was the average? {HOSTILE}",
    "context": {"tables": ["sleep_records"], "episodes": [], "n_left_out": 0},
    "plan": [{"tool": "Compute", "goal": "g"}],
    "plan_failure": "",
    "steps": [
        {
            "tool": "Compute",
            "goal": HOSTILE,
            "arguments": "{}",
            "failures": ["table: no such"],
            "skipped": False,
            "units": ["result: 71.5 min"],
        },
        {"tool": "Rank", "goal": "g", "arguments": "{}", "failures": [], "skipped": True, "units": []},
    ],
    "evidence": [["[Step 1] Compute {}"]],
    "tokens": {"planning": 10, "evidence": 5, "total": 20},
    "answer": "71.5 min",
    "gold": "71.5 min",
    "f1": 1.0,
    "recall": 0.5,
}


def test_traces_come_back_as_they_were_written(tmp_path: Path) -> None:
    write_traces(tmp_path / TRACES, [TRACE, TRACE | {"question_id": "h:4"}])
    assert list(read_traces(tmp_path / TRACES)) == [TRACE, TRACE | {"question_id": "h:4"}]


@pytest.mark.parametrize("content", [None, "no json", "[1]", '{"a": 1}'])
def test_a_file_that_holds_no_traces_is_an_error(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / TRACES).write_text(content)
    with pytest.raises(RunError, match=r"traces\.jsonl"):
        list(read_traces(tmp_path / TRACES))


def test_a_trace_is_shown_as_plain_text() -> None:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    show(TRACE, console)
    text = console.export_text()
    for wanted in (
        "[red]x[/red]",
        "result: 71.5 min",
        "problem: table: no such",
        "skipped",
        "gold:   71.5 min",
        "recall 0.50",
        "20 in all",
    ):
        assert wanted in text
    assert "\x1b" not in text


def test_the_command_chooses_by_method_question_and_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = TRACE | {"question_id": "h:9", "method": "joint all-forms", "f1": 0.0, "answer": "nothing"}
    write_traces(tmp_path / TRACES, [TRACE, wrong])
    assert main([str(tmp_path)]) == 0 and "h:3" in capsys.readouterr().out
    assert main([str(tmp_path), "--wrong"]) == 0 and "h:9" in capsys.readouterr().out
    assert main([str(tmp_path), "--method", "joint all-forms", "--question", "h:9"]) == 0 and "nothing" in capsys.readouterr().out
    assert main([str(tmp_path), "--method", "hive"]) == 1
    assert main([str(tmp_path / "absent")]) == 1 and "mode=pipelines" in capsys.readouterr().out


def test_the_page_escapes_what_it_shows_and_says_whose_answers_they_are(tmp_path: Path) -> None:
    summary = PipelineSummary(0.5, {"aggregation": 0.5}, 5.0, 20.0, None, 1, 1, None)
    write_page(tmp_path / "report.html", title="t <b>", summaries={"adamm": summary}, traces=[TRACE], note=EMBEDDED_NOTE)
    text = (tmp_path / "report.html").read_text()
    assert "<script>" not in text and "&lt;script&gt;" in text and "t &lt;b&gt;" in text
    assert "not results of a vision-language model" in text and "result: 71.5 min" in text and "Skipped." in text
    assert "src=" not in text and "http" not in text.replace("http-equiv", "")

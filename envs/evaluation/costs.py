"""What a run's model calls cost, building and querying apart: ``costs.json`` and a short table."""

from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from envs.evaluation.records import write_json
from envs.run_folder import LEDGER
from models.ledger import read_ledger, summarise
from models.prices import PriceList


def report_costs(folder: Path, *, prices: PriceList | None, console: Console) -> None:
    """Sum up the run's ledger, write ``costs.json`` and print it.

    Every call is counted at what it cost when it was made; ``paid`` are those that this run had to make.

    Raises:
        models.errors.LedgerError: the ledger cannot be read.
        models.errors.BackendError: a model has no price.
    """
    costs = summarise(read_ledger(folder / LEDGER), prices=prices)
    write_json(folder / "costs.json", {purpose: asdict(cost) for purpose, cost in costs.items()})
    table = Table(title="model calls", title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    table.add_column("for")
    for name in ("calls", "paid", "text tokens", "image tokens", "seconds", "USD"):
        table.add_column(name, justify="right")
    for purpose, cost in costs.items():
        if cost.total.n_calls:
            usd = "–" if cost.total.usd is None else f"{cost.total.usd:.4f}"
            cells = [str(cost.total.n_calls), str(cost.paid.n_calls), str(cost.total.text_tokens), str(cost.total.image_tokens)]
            table.add_row(purpose, *cells, f"{cost.total.seconds:.1f}", usd)
    console.print(table)

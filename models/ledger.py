"""The ledger: what every model call of a run cost, one JSON line each, and the sums of build and query apart."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from models.errors import LedgerError
from models.prices import PriceList
from models.requests import Phase, Reply, Request, Usage

Tokens = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Purpose = Literal["build", "query", "judge"]
PURPOSES: dict[Phase, Purpose] = {"build": "build", "plan": "query", "answer": "query", "judge": "judge"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One call. ``hit``: it was not paid for; tokens and seconds are those of the call when it was made.

    ``at`` is the time of the entry in seconds since 1970, UTC; ``key`` is the call's key in the cache.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    run: str
    at: Seconds
    phase: Phase
    task: str
    model: str
    key: str
    input_tokens: Tokens
    output_tokens: Tokens
    image_tokens: Tokens
    seconds: Seconds
    first_token_seconds: Seconds | None
    hit: bool


class Ledger:
    """Appends entries to a run's ledger file; each `add` is one write, so a killed process loses no earlier entry."""

    def __init__(self, path: Path, *, run: str) -> None:
        """Open (or make) the file; the rest of a line that a killed process left is removed.

        Raises:
            LedgerError: the file cannot be opened.
        """
        self._path = path
        self._run = run
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_torn_line(path)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._failed(error) from error

    def add(self, model: str, calls: Iterable[tuple[Request, Reply]]) -> None:
        """Append calls of one model.

        Raises:
            LedgerError: the file cannot be written.
        """
        at = round(time.time(), 3)
        lines = []
        for request, reply in calls:
            usage = reply.usage
            entry = {
                "run": self._run,
                "at": at,
                "phase": request.phase,
                "task": request.task,
                "model": model,
                "key": reply.key,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "image_tokens": usage.image_tokens,
                "seconds": reply.seconds,
                "first_token_seconds": reply.first_token_seconds,
                "hit": reply.hit,
            }
            lines.append(json.dumps(entry))
        if not lines:
            return
        content = ("\n".join(lines) + "\n").encode()
        try:
            while content:
                content = content[os.write(self._file, content) :]
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _failed(self, error: OSError) -> LedgerError:
        return LedgerError(f"the ledger {self._path} cannot be written ({error.strerror}); check its folder and the disk's free space")


def _remove_torn_line(path: Path) -> None:
    if path.exists():
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            os.truncate(path, content.rfind(b"\n") + 1)


_ENTRY = TypeAdapter(Entry)


def read_ledger(path: Path) -> Iterator[Entry]:
    """The entries of a ledger; a last line that a killed process left unfinished is passed over.

    Raises:
        LedgerError: the file cannot be read, or a line is no entry; the message names the line and what is wrong.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield _entry(line, f"{path}, line {number}")
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be read ({error.strerror})") from error


def _entry(line: bytes, where: str) -> Entry:
    try:
        return _ENTRY.validate_json(line)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, one['loc'])) or 'line'}={one['input']!r:.200}: {one['msg']}" for one in error.errors()]
        raise LedgerError(f"{where} is no entry ({'; '.join(wrong)}); remove the line") from error


@dataclass(frozen=True)
class Cost:
    """A sum over calls. ``image_tokens`` are part of ``input_tokens``; ``seconds`` add up calls that ran side by side.

    ``usd`` is None without a price file.
    """

    n_calls: int
    input_tokens: int
    output_tokens: int
    image_tokens: int
    seconds: float
    usd: float | None

    @property
    def text_tokens(self) -> int:
        """Text tokens in and out."""
        return self.input_tokens - self.image_tokens + self.output_tokens


@dataclass(frozen=True)
class PurposeCost:
    """What one purpose cost: every call, hits at what they cost when they were made, and those that this run paid for."""

    total: Cost
    paid: Cost

    @property
    def n_hits(self) -> int:
        """Calls that were not paid for."""
        return self.total.n_calls - self.paid.n_calls


def summarise(entries: Iterable[Entry], *, prices: PriceList | None) -> dict[Purpose, PurposeCost]:
    """Sum up build, query (plan and answer) and judge calls; a purpose without calls is all zeros.

    Raises:
        models.errors.BackendError: a model has no price.
    """
    sums: dict[tuple[Purpose, str, bool], list[float]] = {}
    for entry in entries:
        row = sums.setdefault((PURPOSES[entry.phase], entry.model, entry.hit), [0, 0, 0, 0, 0.0])
        for place, value in enumerate((1, entry.input_tokens, entry.output_tokens, entry.image_tokens, entry.seconds)):
            row[place] += value
    costs: dict[Purpose, PurposeCost] = {}
    for purpose in get_args(Purpose):
        mine = [(model, hit, row) for (name, model, hit), row in sums.items() if name == purpose]
        total, paid = (_cost([(model, row) for model, hit, row in mine if not (hit and paid)], prices) for paid in (False, True))
        costs[purpose] = PurposeCost(total, paid)
    return costs


def _cost(rows: list[tuple[str, list[float]]], prices: PriceList | None) -> Cost:
    n_calls, n_input, n_output, n_image = (sum(int(row[place]) for _, row in rows) for place in range(4))
    usd = None if prices is None else sum(prices.usd(model, Usage(int(row[1]), int(row[2]), int(row[3]))) for model, row in rows)
    return Cost(n_calls, n_input, n_output, n_image, sum(row[4] for _, row in rows), usd)

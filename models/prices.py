"""What models cost, from a price file that its user keeps: an unknown model is an error and never 0."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from models.errors import BackendError
from models.requests import Usage

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens; picture tokens are billed as input."""

    input: float
    output: float


@dataclass(frozen=True)
class PriceList:
    """Prices by model name, and the day they were read."""

    path: Path
    as_of: date
    prices: Mapping[str, Price]

    @classmethod
    def load(cls, path: Path) -> "PriceList":
        """Read a price file: ``as_of`` (a date) and ``usd_per_million_tokens`` (by model: ``input`` and ``output``).

        Raises:
            BackendError: the file cannot be used; the message lists all that is wrong.
        """
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise BackendError(
                f"price file {path}: cannot be read ({error}); name a YAML file with as_of and usd_per_million_tokens"
            ) from error
        content = content if isinstance(content, dict) else {}
        table = content.get("usd_per_million_tokens")
        problems = [
            f"{name}: unknown; only as_of and usd_per_million_tokens are read"
            for name in sorted(set(content) - {"as_of", "usd_per_million_tokens"}, key=str)
        ]
        if type(content.get("as_of")) is not date:
            problems.append("as_of: must be the day the prices were read, as in 2026-02-07")
        if not isinstance(table, dict) or not table:
            problems.append("usd_per_million_tokens: must list models, each with input and output")
            table = {}
        problems += [problem for model, price in table.items() for problem in _price_problems(model, price)]
        if problems:
            raise BackendError(f"price file {path} cannot be used:\n" + "\n".join(f"  - {problem}" for problem in problems))
        return cls(path, content["as_of"], {model: Price(float(price["input"]), float(price["output"])) for model, price in table.items()})

    def usd(self, model: str, usage: Usage) -> float:
        """The price of that many tokens in US dollars.

        Args:
            model: A backend's model id; what follows its last ``@`` (settings), and a date at the end of the name, are passed over
                where the list does not name them.
            usage: The tokens.

        Raises:
            BackendError: the list has no price for the model.
        """
        name = model.rpartition("@")[0] or model
        price = next((self.prices[known] for known in (model, name, _SNAPSHOT.sub("", name)) if known in self.prices), None)
        if price is None:
            raise BackendError(
                f"no price for model {name!r} in {self.path}; add it under usd_per_million_tokens (it has {', '.join(self.prices)})"
            )
        return (price.input * usage.input_tokens + price.output * usage.output_tokens) / 1e6


def _price_problems(model: Any, price: Any) -> list[str]:
    if not isinstance(model, str):
        return [f"{model!r}: a model's name must be text; put it in quotes"]
    if not isinstance(price, dict) or set(price) != {"input", "output"}:
        return [f"{model}: must have exactly input and output, got {price!r}"]
    return [
        f"{model}.{side}={amount!r}: must be a number of US dollars, at least 0"
        for side, amount in price.items()
        if not isinstance(amount, int | float) or isinstance(amount, bool) or not math.isfinite(amount) or amount < 0
    ]

"""The operators of Compute: which types they apply to, how they are computed, and what their results are.

The standard deviation is that of a sample (n - 1). Times of day are averaged as minutes since midnight. Text is counted as distinct
without case. First, last, ``difference`` (last minus first) and ``change`` (each value minus the one before, the first ten) go by
round order. Without values a count is 0 and every other result null. Of groups there are at most fifty: those with most values, in
order of the groups' own values.
"""

import math
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

from data.typed_values import ColumnType
from memory.adamm.tools.arguments import Computation
from memory.adamm.tools.columns import AUXILIARY
from memory.adamm.tools.errors import ToolError
from memory.adamm.tools.expressions import Compiled
from memory.adamm.tools.rendering import plain, value_text
from memory.adamm.tools.selection import Selection

MAX_CHANGES = 10
MAX_GROUPS = 50
# Over the values v and the round orders o of the selected rows; NULLs do not count. fsum and favg lose no digits on the way.
_AGGREGATES: dict[Computation, str] = {
    "count": "count(v)",
    "count_distinct": "count(DISTINCT v)",
    "sum": "fsum(v)",
    "average": "favg(v)",
    "minimum": "min(v)",
    "maximum": "max(v)",
    "median": "median(v)",
    "standard_deviation": "stddev_samp(v)",
    "first": "arg_min(v, o)",
    "last": "arg_max(v, o)",
    "difference": "arg_max(v, o) - arg_min(v, o)",
}
_COUNTS: tuple[Computation, ...] = ("count", "count_distinct")
_ANY: tuple[Computation, ...] = (*_COUNTS, "first", "last")
_STEPS: tuple[Computation, ...] = ("difference", "change")
_ORDERED: tuple[Computation, ...] = (*_ANY, "minimum", "maximum", *_STEPS)
_MEANS: tuple[Computation, ...] = ("average", "median", "standard_deviation")
OPERATORS: dict[ColumnType, tuple[Computation, ...]] = {
    "number": (*_ORDERED, *_MEANS, "sum"),
    "duration": (*_ORDERED, *_MEANS, "sum"),
    "time": (*_ORDERED, *_MEANS),
    "date": _ORDERED,
    "boolean": _ANY,
    "text": _ANY,
}


@dataclass(frozen=True)
class Computed:
    """A result as plain JSON and as text, and how many rows it comes from."""

    json: dict[str, Any]
    text: str
    n_contributing: int


def compute(operator: Computation, selection: Selection, target: Compiled, group: Compiled | None) -> Computed:
    """Compute over the selected rows, or over each group of them; raises `ToolError` where the operator does not apply."""
    if operator not in OPERATORS[target.type]:
        raise ToolError("operator", "operator", f"{operator} does not apply to a {target.type}", ", ".join(OPERATORS[target.type]))
    if group:
        return _grouped(operator, selection, target, group)
    results = _Results(operator, target)
    if operator == "change":
        _, n = selection.compute("count(v)", target)
        rows = selection.first_rows(AUXILIARY[:1], MAX_CHANGES + 1, target=target)
        values = [results.value(later[-1] - earlier[-1]) for earlier, later in pairwise(rows)]
        some = f" (the first {MAX_CHANGES} of {n - 1})" if n - 1 > MAX_CHANGES else ""
        shown = ", ".join(map(results.text, values)) or "none"
        return _computed({"value": values, "unit": results.measure, "shown": shown}, f"{shown}{some}", n)
    found, n = selection.compute(_AGGREGATES[operator], target, folded=operator == "count_distinct")
    value = results.value(found)
    return _computed({"value": plain(value), "unit": results.measure, "shown": results.text(value)}, results.text(value), n)


def _grouped(operator: Computation, selection: Selection, target: Compiled, group: Compiled) -> Computed:
    if operator == "change":
        allowed = ", ".join(one for one in OPERATORS[target.type] if one != "change")
        raise ToolError("operator", "operator", "change is not computed by groups", allowed)
    results = _Results(operator, target)
    aggregate = _AGGREGATES[operator]
    rows = selection.compute_groups(aggregate, target, group, limit=MAX_GROUPS, folded=operator == "count_distinct")
    groups, lines = [], []
    for name, found, n, _, _ in sorted(rows, key=lambda row: row[0]):
        value = results.value(found)
        groups.append({"group": plain(name), "value": plain(value), "shown": results.text(value), "n_contributing": n})
        lines.append(f"{value_text(name, group.type, group.unit)}: {results.text(value)} (n_contributing {n})")
    n_groups, n = (rows[0][3], rows[0][4]) if rows else (0, 0)
    some = f"the {MAX_GROUPS} largest of {n_groups} groups" if n_groups > MAX_GROUPS else f"{n_groups} groups"
    return _computed({"groups": groups, "unit": results.measure, "n_groups": n_groups}, "\n".join([some, *lines]), n)


def _computed(json: dict[str, Any], text: str, n: int) -> Computed:
    return Computed(json | {"n_contributing": n}, f"result: {text}\nn_contributing: {n}", n)


class _Results:
    """What an operator makes of a target: values of a type, in a unit."""

    def __init__(self, operator: Computation, target: Compiled) -> None:
        is_distance = operator in _STEPS or operator == "standard_deviation"
        self.type, self.unit, self._scale = target.type, target.unit, 1
        if operator in _COUNTS:
            self.type, self.unit = "number", ""
        elif is_distance and target.type == "time":
            self.type, self.unit, self._scale = "duration", "min", 60
        elif is_distance and target.type == "date":
            self.type, self.unit = "number", "days"

    @property
    def measure(self) -> str:
        """The unit of the results as numbers."""
        return "s" if self.type == "duration" else self.unit

    def value(self, found: Any) -> Any:
        """A result of the query without the noise of binary fractions: 2.665, not 2.6650000000000005."""
        if isinstance(found, timedelta):
            return found.days
        if not isinstance(found, float):
            return found
        if not math.isfinite(found):
            raise ToolError("value", "target_column_expression", "the result is beyond the range of numbers", "smaller numbers")
        return float(f"{found * self._scale:.15g}")

    def text(self, value: Any) -> str:
        """The value for people."""
        return "none" if value is None else value_text(value, self.type, self.unit)

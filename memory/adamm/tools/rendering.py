"""What analytic tools return: rows as plain JSON, and calls, rows and values as text for a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from data.typed_values import ColumnType, show_value
from memory.adamm.tools.arguments import AnalyticArguments, Compute, Condition, Filter, Lookup, Scalar
from memory.adamm.tools.columns import Field

Value = float | date | bool | str | None


@dataclass(frozen=True)
class Shown:
    """One thing that a row shows: a column, or the value of an expression under its text."""

    name: str
    type: ColumnType
    unit: str

    @classmethod
    def of(cls, field: Field) -> "Shown":
        """A column."""
        return cls(field.name, field.type, field.unit)


def plain(value: Value) -> float | bool | str | None:
    """A value as JSON has it: dates in ISO form, times of day in minutes, durations in seconds."""
    return value.isoformat() if isinstance(value, date) else value


def value_text(value: float | date | bool | str, kind: ColumnType, unit: str) -> str:
    """A value for people, in one line."""
    return _one_line(show_value(value, kind, unit))


def row_json(shown: Sequence[Shown], row: Sequence[Value]) -> dict[str, float | bool | str | None]:
    """A row by column; what else the row has is left out."""
    return {one.name: plain(value) for one, value in zip(shown, row, strict=False)}


def row_text(shown: Sequence[Shown], row: Sequence[Value]) -> str:
    """A row in one line; what is empty is left out, and what else the row has."""
    pairs = zip(shown, row, strict=False)
    return " | ".join(f"{_one_line(one.name)}: {value_text(value, one.type, one.unit)}" for one, value in pairs if value is not None)


def heading(arguments: AnalyticArguments) -> str:
    """Tool, table and arguments of a call in one line."""
    match arguments:
        case Lookup():
            keys = [f"{key.column} = {_scalar(key.value)}" for key in arguments.key_values]
            call = f"Lookup {arguments.table} where {' and '.join(keys)}"
        case Filter():
            call = f"Filter {arguments.table}{_where(arguments.column_filters)}"
        case Compute():
            by = f" by {arguments.group_by}" if arguments.group_by else ""
            call = f"Compute {arguments.table}: {arguments.operator} of {arguments.target_column_expression}{by}"
            call += _where(arguments.optional_column_filters or [])
        case _:
            call = f"Rank {arguments.table}: {arguments.target_column_expression} {arguments.order}"
            call += _where(arguments.optional_column_filters or [])
    return _one_line(call)


def _where(conditions: Sequence[Condition]) -> str:
    return f" where {' and '.join(map(_condition, conditions))}" if conditions else ""


def _condition(condition: Condition) -> str:
    values = condition.value if isinstance(condition.value, list) else [] if condition.value is None else [condition.value]
    return f"{condition.column} {condition.operator} {', '.join(map(_scalar, values))}".rstrip()


def _scalar(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else value


def _one_line(text: str) -> str:
    return " ".join(text.split())

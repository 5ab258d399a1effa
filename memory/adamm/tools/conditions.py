"""Conditions of a call: predicates in SQL over compiled expressions, with values of the expressions' types bound as parameters.

NULL meets no condition but ``is_null``. Text is compared without case: with the folded companion of a data column; ``source`` and
``captions``, which have none, are folded by the query (NFC and lower case). Other texts are read as values of the expression's type
and converted to its unit; a number without a unit is taken to be in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from data.typed_values import ColumnType, TypedValue, in_unit, read_value
from memory.adamm.tools.arguments import Condition, Scalar
from memory.adamm.tools.columns import Columns, Field
from memory.adamm.tools.errors import ToolError, collected, raise_all
from memory.adamm.tools.expressions import Compiled, compile_expression

Parameter = float | date | bool | str
_ORDERED = ("=", "!=", "<", "<=", ">", ">=", "between", "in", "is_null")
_OPERATORS: dict[ColumnType, tuple[str, ...]] = {
    "number": _ORDERED,
    "date": _ORDERED,
    "time": _ORDERED,
    "duration": _ORDERED,
    "boolean": ("=", "!=", "in", "is_null"),
    "text": ("=", "!=", "in", "contains", "is_null"),
}
_HINTS = {
    "date": 'a date, for example "2026-03-12"; for a month or a year compare month(x) or year(x), or use between',
    "time": 'a time of day, for example "19:30" or "7 pm"',
    "duration": 'a duration with its unit, for example "5 h 30 min"',
    "boolean": "true or false",
    "text": "a text",
}


@dataclass(frozen=True)
class Predicate:
    """A condition in SQL, its parameters in order, and the columns that it uses."""

    sql: str
    parameters: tuple[Parameter, ...]
    fields: tuple[Field, ...]


def compile_conditions(conditions: Sequence[Condition], columns: Columns, where: str) -> Predicate:
    """All conditions, joined by AND; without any, every row matches.

    Raises:
        ToolError: a condition is wrong; of several, the error names all.
    """
    compiled: list[Predicate] = []
    errors: list[ToolError] = []
    for place, condition in enumerate(conditions):
        with collected(errors):
            compiled.append(_compile(condition, columns, f"{where}[{place}]"))
    raise_all(errors)
    return all_of(compiled)


def all_of(predicates: Sequence[Predicate]) -> Predicate:
    """The predicates joined by AND."""
    return Predicate(
        " AND ".join(f"({one.sql})" for one in predicates) or "TRUE",
        tuple(parameter for one in predicates for parameter in one.parameters),
        tuple(field for one in predicates for field in one.fields),
    )


def not_null(target: Compiled) -> Predicate:
    """That there is a value."""
    return Predicate(target.exists, target.parameters, target.fields)


def _compile(condition: Condition, columns: Columns, where: str) -> Predicate:
    target = compile_expression(condition.column, columns, f"{where}.column")
    operators = _OPERATORS[target.type]
    if condition.operator not in operators:
        raise ToolError("operator", f"{where}.operator", f"{condition.operator} does not apply to a {target.type}", ", ".join(operators))
    values = _values(condition, target, f"{where}.value")
    sql, value = target.sql, "?"
    if target.field and target.type == "text" and values:
        sql, value = target.field.folded, target.field.folded_value
    match condition.operator:
        case "is_null":
            return Predicate(f"({target.exists}) IS {'' if condition.value is False else 'NOT '}TRUE", target.parameters, target.fields)
        case "between":
            sql = f"{sql} BETWEEN ? AND ?"
        case "in":
            sql = f"{sql} IN ({', '.join([value] * len(values))})"
        case "contains":
            sql = f"contains({sql}, {value})"
        case operator:
            sql = f"{sql} {operator} {value}"
    compared = Predicate(sql, (*target.parameters, *values), target.fields)
    return all_of([not_null(target), compared]) if target.fragile else compared


def _values(condition: Condition, target: Compiled, where: str) -> list[Parameter]:
    """The condition's values, cast to the target's type."""
    value, operator = condition.value, condition.operator
    if operator == "is_null":
        if not (value is None or isinstance(value, bool)):
            raise ToolError("value", where, "is_null takes no value", "null, or false for rows where there is a value")
        return []
    if operator in ("in", "between"):
        if not isinstance(value, list) or not value or (operator == "between" and len(value) != 2):
            raise ToolError("value", where, f"{operator} wants a list", "two values" if operator == "between" else "at least one value")
        return [_cast(one, target, f"{where}[{place}]") for place, one in enumerate(value)]
    if value is None or isinstance(value, list):
        raise ToolError("value", where, f"{operator} wants one value", "one value; several with in, missing ones with is_null")
    return [_cast(value, target, where)]


def _cast(value: Scalar, target: Compiled, where: str) -> Parameter:
    """A value as one of the target's type and unit."""
    cast: Parameter | None = None
    if isinstance(value, bool):
        cast = value if target.type == "boolean" else None
    elif target.type in ("number", "duration"):
        cast = _number(value, target)
    elif target.field and target.type == "text":
        text = value if isinstance(value, str) else f"{value:.15g}"
        cast = target.field.fold(text.strip()) or None
    elif isinstance(value, str) and (read := read_value(value, target.type)):
        cast = read.value
    if cast is None:
        alone = f"a number, alone or in a unit that converts to {target.unit}" if target.unit else "a number without a unit"
        problem = f"{value!r:.100} is not to be compared with a {target.what}"
        raise ToolError("value", where, problem, _HINTS.get(target.type, alone))
    return cast


def _number(value: float | str, target: Compiled) -> Parameter | None:
    """The number in the target's unit; a text may also be a duration where the unit is one of time."""
    if isinstance(value, float):
        readings = [TypedValue("number", value, target.unit)]
    else:
        number, duration = read_value(value, "number", unit=target.unit), read_value(value, "duration", unit=target.unit)
        readings = [number] if number else []
        readings += [TypedValue("number", duration.value, "s")] if duration else []
    converted = (in_unit(reading, target.measure) for reading in readings)
    return next((one.value for one in converted if one), None)

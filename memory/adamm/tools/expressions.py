"""Column expressions: parsed by a grammar, checked for types and units, and compiled to SQL with bound numbers.

An expression is a column of any type, or arithmetic:

* A number may have a unit ("5.5 hrs", "3 km/h"; a unit follows its number directly, so a division by a column wants spaces).
* ``+`` and ``-`` want one unit: the right side is converted to the left's, a side without a unit is taken to be in the other's
  (a duration's is the one that it is shown in). A date minus a date is a number of days, a time of day minus a time of day a duration.
* ``*`` and ``/``: a side without a unit leaves the other's; two units are combined ("km*h", "km/h"), and cancel in a division
  where one converts to the other. A duration counts there as a number in the unit it is shown in; by a plain number it stays one.
* ``year(x)``, ``month(x)``, ``day(x)``, ``weekday(x)`` (1 Monday to 7 Sunday) of a date are numbers.
* A division by zero, and a result beyond the range of numbers, is NULL; so is what is computed from NULL.
"""

from dataclasses import dataclass, replace
from typing import NoReturn

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from data.typed_values import ColumnType, read_value
from data.units import convert
from memory.adamm.tools.columns import Columns, Field
from memory.adamm.tools.errors import ToolError

_PARSER = Lark(
    r"""
    ?sum: product | sum "+" product -> add | sum ("-" | "−") product -> subtract
    ?product: factor | product ("*" | "×") factor -> multiply | product ("/" | "÷") factor -> divide
    ?factor: atom | ("-" | "−") factor -> negative
    ?atom: QUANTITY -> quantity | NAME -> column | QUOTED -> quoted | NAME "(" sum ")" -> call | "(" sum ")"
    QUANTITY: /(\d+(\.\d+)?|\.\d+)([eE][+-]?\d+)?(\s*([^\W\d_]|[%°$€£₹¥])+[²³23]?(\/[^\W\d_]+[²³23]?)?)?/
    NAME: /[^\W\d]\w*/
    QUOTED: /"([^"]|"")+"/
    %ignore /\s+/
    """,
    start="sum",
    parser="lalr",
)
_MAX_DEPTH = 50
# Infinity and NaN stay what they are in all that is computed from them, but for a division by infinity. The remainder by the largest
# number makes NaN of it, and leaves numbers as they are. (`nullif` would write a divisor out twice, and 2^n times in n divisions.)
_OR_NAN = "% 1.7976931348623157e308::DOUBLE"
_DATE_PARTS = {"year": "year", "month": "month", "day": "day", "weekday": "isodow"}
_ALLOWED = (
    f"columns, numbers with or without a unit, + - * / ( ) and {', '.join(f'{name}(x)' for name in _DATE_PARTS)} of a date; "
    "to count rows, count round_order"
)


@dataclass(frozen=True)
class Compiled:
    """An expression in SQL, with the parameters to bind in order, and what its values are.

    ``fields`` are the columns it uses, in order; ``field`` is the one that it is, None for arithmetic. ``unit`` is, for a duration,
    the unit to show it in: its values are in seconds. ``fragile``: its values may be infinite or NaN, which count as NULL.
    """

    sql: str
    parameters: tuple[float, ...]
    type: ColumnType
    unit: str = ""
    fields: tuple[Field, ...] = ()
    field: Field | None = None
    fragile: bool = False

    @property
    def exists(self) -> str:
        """That there is a value, in SQL; with the same parameters."""
        return f"isfinite({self.sql})" if self.fragile else f"{self.sql} IS NOT NULL"

    @property
    def measure(self) -> str:
        """The unit that the numbers are in."""
        return "s" if self.type == "duration" else self.unit

    @property
    def what(self) -> str:
        """Its type and unit, in words."""
        return f"{self.type} in {self.unit}" if self.unit else self.type


def compile_expression(text: str, columns: Columns, where: str) -> Compiled:
    """Compile an expression over a table's columns; a text that is a column's whole name is that column.

    Raises:
        ToolError: it is no expression, names no column, or its types or units do not go together.
    """
    if field := columns.find(text.strip()):
        return _column(field)
    try:
        tree = _PARSER.parse(text)
    except UnexpectedInput as error:
        rest = text[error.pos_in_stream or 0 :]
        raise ToolError("expression", where, f"cannot be read from {rest[:30]!r} on", _ALLOWED) from error
    return _Compiler(columns, where).compile(tree, 1)


def _column(field: Field) -> Compiled:
    return Compiled(field.sql, (), field.type, field.unit, (field,), field)


class _Compiler:
    def __init__(self, columns: Columns, where: str) -> None:
        self._columns = columns
        self._where = where

    def compile(self, tree: Tree[Token], depth: int) -> Compiled:
        if depth > _MAX_DEPTH:
            self._refuse(f"more than {_MAX_DEPTH} operations inside each other", _ALLOWED)
        first, *others = tree.children
        match tree.data:
            case "quantity":
                return self._quantity(str(first))
            case "column":
                return _column(self._columns.get(str(first), self._where))
            case "quoted":
                return _column(self._columns.get(str(first)[1:-1].replace('""', '"'), self._where))
            case "call":
                return self._date_part(str(first), self._operand(others[0], depth))
        left = self._operand(first, depth)
        if tree.data == "negative":
            self._numeric(left)
            return replace(left, sql=f"(-{_double(left)})", field=None)
        right = self._operand(others[0], depth)
        match tree.data:
            case "add":
                return self._sum(left, right, "+")
            case "subtract":
                return self._sum(left, right, "-")
            case "multiply":
                return self._product(left, right)
        return self._quotient(left, right)

    def _operand(self, tree: Tree[Token] | Token, depth: int) -> Compiled:
        assert isinstance(tree, Tree)
        return self.compile(tree, depth + 1)

    def _quantity(self, text: str) -> Compiled:
        number = read_value(text, "number")
        if number is None or not isinstance(number.value, float):
            self._refuse(f"{text!r} is no number below 10^15 with a unit", _ALLOWED)
        return Compiled("?::DOUBLE", (number.value,), "number", number.unit)

    def _date_part(self, name: str, operand: Compiled) -> Compiled:
        part = _DATE_PARTS.get(name.casefold())
        if part is None:
            self._refuse(f"there is no function {name!r}", _ALLOWED)
        if operand.type != "date":
            self._refuse(f"{name}(x) is of a date, not of a {operand.what}", _ALLOWED)
        return Compiled(f"{part}({operand.sql})::DOUBLE", operand.parameters, "number", fields=operand.fields)

    def _sum(self, left: Compiled, right: Compiled, sign: str) -> Compiled:
        parameters, fields = left.parameters + right.parameters, left.fields + right.fields
        if sign == "-" and left.type == right.type == "date":
            return Compiled(f"({left.sql} - {right.sql})::DOUBLE", parameters, "number", "days", fields)
        if sign == "-" and left.type == right.type == "time":
            return Compiled(f"(({left.sql} - {right.sql}) * 60)", parameters, "duration", "min", fields)
        if not {left.type, right.type} <= {"number", "duration"}:
            self._refuse(
                f"{left.what} {sign} {right.what} is not defined",
                "numbers and durations; a date minus a date; a time of day minus a time of day",
            )
        lead = left if left.measure else right
        first, second = (_convert(side if side.measure else replace(side, unit=lead.unit), lead.measure) for side in (left, right))
        if first is None or second is None:
            self._refuse(f"{left.what} {sign} {right.what}: the units do not convert", "sides in units of one kind, or without a unit")
        sql = f"({_double(first)} {sign} {_double(second)})"
        fragile = first.fragile or second.fragile
        return Compiled(sql, first.parameters + second.parameters, lead.type, lead.unit, fields, fragile=fragile)

    def _product(self, left: Compiled, right: Compiled) -> Compiled:
        self._numeric(left, right)
        if not (left.measure and right.measure):
            lead = left if left.measure else right
            return self._combined(left, "*", right, lead.type, lead.unit)
        left, right = _as_shown(left), _as_shown(right)
        return self._combined(left, "*", right, "number", f"{left.unit}*{right.unit}")

    def _quotient(self, left: Compiled, right: Compiled) -> Compiled:
        self._numeric(left, right)
        if not right.measure:
            return self._combined(left, "/", right, left.type, left.unit)
        left, right = _as_shown(left), _as_shown(right)
        if left.unit and (converted := _convert(right, left.unit)):
            return self._combined(left, "/", converted, "number", "")
        below = f"({right.unit})" if {*right.unit} & {*"*/"} else right.unit
        return self._combined(left, "/", right, "number", f"{left.unit or 1}/{below}")

    def _combined(self, left: Compiled, sign: str, right: Compiled, kind: ColumnType, unit: str) -> Compiled:
        below = f"({right.sql} {_OR_NAN})" if sign == "/" and right.fragile else _double(right)
        sql = f"({_double(left)} {sign} {below})"
        return Compiled(sql, left.parameters + right.parameters, kind, unit, left.fields + right.fields, fragile=True)

    def _numeric(self, *operands: Compiled) -> None:
        if wrong := [operand.what for operand in operands if operand.type not in ("number", "duration")]:
            self._refuse(f"there is no arithmetic with a {' and a '.join(wrong)}", "numbers and durations")

    def _refuse(self, problem: str, allowed: str) -> NoReturn:
        raise ToolError("expression", self._where, problem, allowed)


def _double(operand: Compiled) -> str:
    """The operand as a DOUBLE: round orders are integers, which could overflow."""
    return f"{operand.sql}::DOUBLE" if operand.field else operand.sql


def _as_shown(operand: Compiled) -> Compiled:
    """A duration as a number in the unit that it is shown in, or in seconds; numbers as they are."""
    if operand.type == "number":
        return operand
    shown = _convert(operand, operand.unit)
    return replace(shown, type="number") if shown else replace(operand, type="number", unit="s", field=None)


def _convert(operand: Compiled, unit: str) -> Compiled | None:
    """The operand's numbers in another unit; None where its own does not convert. All units are linear in each other."""
    offset, one = (convert(point, operand.measure or unit, unit) for point in (0, 1))
    if offset is None or one is None:
        return None
    if (offset, one) == (0, 1):
        return operand
    return replace(operand, sql=f"({_double(operand)} * ? + ?)", parameters=(*operand.parameters, one - offset, offset), field=None)

"""Lookup, Filter, Compute and Rank over the induced tables (AdaMM, §3.5.1, Appendix B).

Names are resolved against the tables' metadata and quoted, values are bound. One query counts the selected rows or computes over them,
another reads the rows to return, so that a large table is read in few columns.
"""

from collections.abc import Sequence

from memory.adamm.model import Table
from memory.adamm.tools.arguments import AnalyticArguments, Compute, Condition, Filter, Lookup, Rank
from memory.adamm.tools.columns import AUXILIARY, Columns, Field, find_name, unknown_name
from memory.adamm.tools.computing import compute
from memory.adamm.tools.conditions import Predicate, all_of, compile_conditions, not_null
from memory.adamm.tools.errors import ToolError, collected, raise_all
from memory.adamm.tools.expressions import Compiled, compile_expression
from memory.adamm.tools.rendering import Shown, heading, row_json, row_text
from memory.adamm.tools.result import EvidenceUnit, ToolResult
from memory.adamm.tools.selection import Row, Selection, TableStore

MAX_ROWS = 10
_PLACE, _CAPTIONS = AUXILIARY[:3], AUXILIARY[3]
_RANKED = ("number", "date", "time", "duration")


class AnalyticTools:
    """The four analytic tools over the tables of a memory."""

    def __init__(self, tables: Sequence[Table], store: TableStore) -> None:
        self._tables = {table.name: table for table in tables}
        self._store = store

    def run(self, arguments: AnalyticArguments, *, allowance: int) -> ToolResult:
        """Run one call.

        Lookup, Filter and Rank return whole records, Compute the rows that contribute, with the columns it uses; ``captions`` are there
        only where the call names them. A budget counts rows; of Compute, whose result is one unit with its rows, the rows shown.

        Args:
            arguments: the checked arguments.
            allowance: the most units there may be; a missing or larger ``result_budget`` is cut to it, and to ten.

        Raises:
            ToolError: a name, value, expression or operator is not allowed, or the query takes too much time or memory.
        """
        name = find_name(arguments.table.strip(), [*self._tables])
        if name is None:
            raise unknown_name("table", "table", arguments.table, [*self._tables], [*self._tables])
        columns = Columns(self._tables[name])
        budget = arguments.result_budget or MAX_ROWS
        match arguments:
            case Compute():
                return self._compute(arguments, name, columns, budget)
            case Rank():
                return self._rank(arguments, name, columns, min(budget, allowance))
            case Lookup():
                keys = [Condition(column=key.column, operator="=", value=key.value) for key in arguments.key_values]
                predicate = compile_conditions(keys, columns, "key_values")
            case Filter():
                predicate = compile_conditions(arguments.column_filters, columns, "column_filters")
        selection = Selection(self._store, name, predicate)
        fields = _record(columns, predicate.fields)
        limit = min(budget, allowance)
        rows = selection.first_rows(fields, limit)
        n = len(rows) if len(rows) < limit else selection.count()
        return _returned(arguments, "matching_rows", [*map(Shown.of, fields)], rows, n)

    def _rank(self, arguments: Rank, name: str, columns: Columns, limit: int) -> ToolResult:
        target, predicate, _ = _compile(arguments, columns)
        if target.type not in _RANKED:
            raise ToolError("operator", "target_column_expression", f"a {target.type} is not ranked", f"a {', '.join(_RANKED)}")
        fields = _record(columns, (*target.fields, *predicate.fields))
        selection = Selection(self._store, name, predicate)
        rows = selection.first_rows(fields, limit, target=target, rank="ASC" if arguments.order == "ascending" else "DESC")
        n = len(rows) if len(rows) < limit else selection.count(target)
        return _returned(arguments, "ranked_rows", _shown(fields, arguments, target), rows, n)

    def _compute(self, arguments: Compute, name: str, columns: Columns, budget: int) -> ToolResult:
        target, predicate, group = _compile(arguments, columns)
        if group:
            predicate = all_of([predicate, not_null(group)])
        selection = Selection(self._store, name, predicate)
        result = compute(arguments.operator, selection, target, group)
        fields = [*dict.fromkeys((*_PLACE, *target.fields, *predicate.fields))]
        rows = selection.first_rows(fields, budget, target=target)
        shown = _shown(fields, arguments, target)
        lines = [heading(arguments), result.text, *_some(rows, result.n_contributing), *(row_text(shown, row) for row in rows)]
        returned = {"computed_result": result.json, "contributing_rows": [row_json(shown, row) for row in rows]}
        return ToolResult("Compute", arguments, returned, (EvidenceUnit("computed", "\n".join(lines), tuple(row[0] for row in rows)),))


def _compile(arguments: Rank | Compute, columns: Columns) -> tuple[Compiled, Predicate, Compiled | None]:
    """Target, filters and group of a call; raises one error for all that are wrong."""
    errors: list[ToolError] = []
    group = None
    with collected(errors):
        target = compile_expression(arguments.target_column_expression, columns, "target_column_expression")
    with collected(errors):
        predicate = compile_conditions(arguments.optional_column_filters or [], columns, "optional_column_filters")
    if isinstance(arguments, Compute) and arguments.group_by is not None:
        with collected(errors):
            group = compile_expression(arguments.group_by, columns, "group_by")
    raise_all(errors)
    return target, predicate, group


def _record(columns: Columns, used: Sequence[Field]) -> list[Field]:
    """The fields of a whole record."""
    return [*_PLACE, *([_CAPTIONS] if _CAPTIONS in used else []), *columns.data]


def _shown(fields: Sequence[Field], arguments: Rank | Compute, target: Compiled) -> list[Shown]:
    """What rows with a target's value show: the value, under the expression's text, only where it is no column."""
    value = [] if target.field else [Shown(arguments.target_column_expression.strip(), target.type, target.unit)]
    return [*map(Shown.of, fields), *value]


def _returned(arguments: Lookup | Filter | Rank, key: str, shown: Sequence[Shown], rows: Sequence[Row], n: int) -> ToolResult:
    """A result whose units are rows; the first one begins with the call's heading."""
    texts = [f"{place} of {n}: {row_text(shown, row)}" for place, row in enumerate(rows, start=1)]
    texts = [f"{heading(arguments)}\n{text}" for text in texts[:1]] + texts[1:]
    units = tuple(EvidenceUnit("row", text, (row[0],)) for text, row in zip(texts, rows, strict=True))
    return ToolResult(type(arguments).__name__, arguments, {key: [row_json(shown, row) for row in rows]}, units)


def _some(rows: Sequence[Row], n: int) -> list[str]:
    return [f"the first {len(rows)} of these rows by round order:"] if len(rows) < n else []

"""The rows of a table that a call selects: counted, read in part, and computed over."""

from collections.abc import Sequence
from typing import Any, Protocol

import duckdb

from memory.adamm.tools.columns import Field
from memory.adamm.tools.conditions import Parameter, Predicate
from memory.adamm.tools.errors import ToolError
from memory.adamm.tools.expressions import Compiled
from memory.duckdb_file import quoted

Row = tuple[Any, ...]


class TableStore(Protocol):
    """The rows of the induced tables: `memory.adamm.database.TableStore` is one."""

    def query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """Run one statement under a time limit; raises `ToolError` where it takes longer."""


class Selection:
    """The rows of a table that meet a predicate."""

    def __init__(self, store: TableStore, table: str, predicate: Predicate) -> None:
        self._store = store
        self._from = f"FROM induced.{quoted(table)} WHERE {predicate.sql}"
        self._parameters = predicate.parameters

    def count(self, target: Compiled | None = None) -> int:
        """How many rows there are, or how many that have a value of the target."""
        sql, parameters = (f" AND {target.exists}", target.parameters) if target else ("", ())
        ((n,),) = self._query(f"SELECT count(*) {self._from}{sql}", (*self._parameters, *parameters))
        return int(n)

    def first_rows(self, fields: Sequence[Field], limit: int, *, target: Compiled | None = None, rank: str = "") -> list[Row]:
        """The fields of the first rows by round order.

        Args:
            fields: what to read.
            limit: how many rows.
            target: also read its value, as the last of a row, of rows that have one.
            rank: ASC or DESC orders by the target first.
        """
        columns = [field.sql for field in fields]
        if target is None:
            return self._query(f"SELECT {', '.join(columns)} {self._from} ORDER BY round_order LIMIT {limit}", self._parameters)
        order = f"{len(columns) + 1} {rank}, round_order" if rank else "round_order"
        return self._query(
            f"SELECT {', '.join([*columns, target.sql])} {self._from} AND {target.exists} ORDER BY {order} LIMIT {limit}",
            (*target.parameters, *self._parameters, *target.parameters),
        )

    def compute(self, aggregate: str, target: Compiled, *, folded: bool = False) -> tuple[Any, int]:
        """An aggregate over the values v of a target, text without case if ``folded``, and round orders o; and how many there are."""
        inner = f"SELECT {_value(target, folded)} AS v, round_order AS o {self._having(target)}"
        (row,) = self._query(f"SELECT {aggregate}, count(v) FROM ({inner})", self._bound(target))
        return row[0], row[1]

    def compute_groups(self, aggregate: str, target: Compiled, group: Compiled, *, limit: int, folded: bool = False) -> list[Row]:
        """The same by the values of ``group``, text without case; of the groups those with most values, the earliest at a tie.

        Returns:
            Of each group its first value, the aggregate, and how many values it has; then how many groups and values there are in all.
        """
        values = f"{_value(target, folded)} AS v, {group.sql} AS g, {_value(group, True)} AS k, round_order AS o"
        return self._query(
            f"""SELECT arg_min(g, o), {aggregate}, count(*), count(*) OVER (), sum(count(*)) OVER ()::BIGINT
            FROM (SELECT {values} {self._having(target)}) WHERE v IS NOT NULL AND k IS NOT NULL
            GROUP BY k ORDER BY count(*) DESC, min(o) LIMIT {limit}""",
            self._bound(target, (*group.parameters, *group.parameters)),
        )

    def _having(self, target: Compiled) -> str:
        """The rows without those whose value counts as NULL though it is none."""
        return f"{self._from} AND {target.exists}" if target.fragile else self._from

    def _bound(self, target: Compiled, others: Sequence[Parameter] = ()) -> list[Parameter]:
        """The parameters of a query that selects the target, others, and from `_having`."""
        return [*target.parameters, *others, *self._parameters, *(target.parameters if target.fragile else ())]

    def _query(self, sql: str, parameters: Sequence[Parameter]) -> list[Row]:
        try:
            return self._store.query(sql, parameters)
        except duckdb.OutOfMemoryException as error:
            problem = "needs more memory than a query may take"
            raise ToolError("timeout", "query", problem, "a narrower filter or fewer distinct values") from error


def _value(target: Compiled, folded: bool) -> str:
    return target.field.folded if folded and target.field else target.sql

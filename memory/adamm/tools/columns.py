"""The columns of a table as a tool call may name them: exactly, or without case; nothing else reaches a query."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from data.typed_values import ColumnType
from memory.adamm.model import FOLDED, Table
from memory.adamm.names import fold
from memory.adamm.tools.errors import Code, ToolError
from memory.duckdb_file import quoted

_N_LISTED = 60


@dataclass(frozen=True)
class Field:
    """A column of a table. ``has_companion``: a text column whose folded text is stored beside it."""

    name: str
    type: ColumnType
    unit: str = ""
    has_companion: bool = False

    @property
    def sql(self) -> str:
        """The column in a query."""
        return quoted(self.name)

    @property
    def folded(self) -> str:
        """The column in a query as it is compared: text without case."""
        if self.type != "text":
            return self.sql
        return quoted(self.name + FOLDED) if self.has_companion else f"lower(nfc_normalize({self.sql}))"

    @property
    def folded_value(self) -> str:
        """The placeholder of a text to compare `folded` with."""
        return "?" if self.has_companion else "lower(nfc_normalize(?))"

    def fold(self, text: str) -> str:
        """The text to bind to `folded_value`."""
        return fold(text) if self.has_companion else text

    def __str__(self) -> str:
        return f"{self.name} ({self.type}{f', {self.unit}' if self.unit else ''})"


AUXILIARY = (Field("round_order", "number"), Field("time", "date"), Field("source", "text"), Field("captions", "text"))


class Columns:
    """The columns of one table, by name."""

    def __init__(self, table: Table) -> None:
        self.data = tuple(Field(column.name, column.type, column.unit, column.type == "text") for column in table.columns)
        self._by_name = {field.name: field for field in (*AUXILIARY, *self.data)}

    def find(self, name: str) -> Field | None:
        """The column of that name; None where there is none."""
        known = find_name(name, [*self._by_name])
        return None if known is None else self._by_name[known]

    def get(self, name: str, where: str) -> Field:
        """The column of that name; raises `ToolError`."""
        field = self.find(name)
        if field is None:
            raise unknown_name("column", where, name, [*self._by_name], [*map(str, self._by_name.values())])
        return field


def find_name(name: str, known: Sequence[str]) -> str | None:
    """The known name that is meant: the same one, else the one that differs in case only."""
    return name if name in known else {fold(one): one for one in known}.get(fold(name))


def unknown_name(code: Code, where: str, name: str, known: Sequence[str], described: Sequence[str]) -> ToolError:
    """The error for a name that is none of ``known``; it names the closest and lists them as ``described``."""
    by_folded = {fold(one): one for one in known}
    close = [by_folded[one] for one in get_close_matches(fold(name), [*by_folded])]
    hint = f", perhaps {' or '.join(close)}" if close else ""
    more = f" and {len(described) - _N_LISTED} more" if len(described) > _N_LISTED else ""
    problem = f"there is no {code.removeprefix('unknown_')} {name!r}{hint}"
    return ToolError(code, where, problem, ", ".join(described[:_N_LISTED]) + more)

"""The typed arguments of the six tools; names are the exact keys of Table 4 (AdaMM, Appendix B).

Two optional keys are ours and not the paper's: ``group_by`` and ``result_budget`` of Compute. A ``result_budget`` that is
missing or null takes what the caller allows.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Scalar = bool | int | float | str
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "between", "in", "contains", "is_null"]
Computation = Literal[
    "count",
    "count_distinct",
    "sum",
    "average",
    "minimum",
    "maximum",
    "median",
    "standard_deviation",
    "first",
    "last",
    "difference",
    "change",
]
Scope = Literal["topic", "episode", "event"]
Budget = Annotated[int | None, Field(ge=1, le=10, description="at most this many evidence units")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Expression = Annotated[
    str,
    Field(
        min_length=1, max_length=500, description="a column, or arithmetic over columns and numbers: + - * / ( ) year(x) month(x) day(x)"
    ),
]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Condition(_Arguments):
    """One predicate: ``value`` is a list for ``in`` and ``between`` (two values, inclusive), and absent for ``is_null``.

    ``≠``, ``≤`` and ``≥`` are read as ``!=``, ``<=`` and ``>=``. A text value with a unit ("5 h 30 min") is converted to the column's.
    """

    column: Expression
    operator: Operator
    value: Scalar | list[Scalar] | None = None


Conditions = Annotated[list[Condition], Field(max_length=20)]


class Lookup(_Arguments):
    """Retrieves records matching the specified keys."""

    table: Name
    key_values: Annotated[dict[str, Scalar], Field(min_length=1, max_length=20)]
    result_budget: Budget = None


class Filter(_Arguments):
    """Selects records satisfying the specified predicates."""

    table: Name
    column_filters: Annotated[list[Condition], Field(min_length=1, max_length=20)]
    result_budget: Budget = None


class Compute(_Arguments):
    """Performs deterministic computation over a selected table scope."""

    table: Name
    target_column_expression: Expression
    operator: Computation
    optional_column_filters: Conditions = []
    group_by: Expression | None = None
    result_budget: Budget = None


class Rank(_Arguments):
    """Returns the top- or bottom-ranked records."""

    table: Name
    target_column_expression: Expression
    order: Literal["ascending", "descending"]
    optional_column_filters: Conditions = []
    result_budget: Budget = None


class SemanticMatch(_Arguments):
    """Retrieves semantically relevant memory units."""

    query_content: Annotated[str, Field(min_length=1, max_length=2000)]
    retrieval_scope: Scope
    result_budget: Budget = None


class EventLocate(_Arguments):
    """Locates event occurrences and their surrounding context."""

    query_content: Annotated[str, Field(min_length=1, max_length=2000)]
    result_budget: Budget = None


Arguments = Lookup | Filter | Compute | Rank | SemanticMatch | EventLocate
TOOLS: dict[str, type[Lookup | Filter | Compute | Rank | SemanticMatch | EventLocate]] = {
    tool.__name__: tool for tool in (Lookup, Filter, Compute, Rank, SemanticMatch, EventLocate)
}
ANALYTIC_TOOLS = ("Lookup", "Filter", "Compute", "Rank")
RETRIEVAL_TOOLS = ("SemanticMatch", "EventLocate")


def json_schema(tool: str) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, for constraining a model to it."""
    return TOOLS[tool].model_json_schema()

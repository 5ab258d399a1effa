"""The typed arguments of the six tools; names are the exact keys of Table 4 (AdaMM, Appendix B).

Two optional keys are ours and not the paper's: ``group_by`` and ``result_budget`` of Compute. What is optional may be left out or
null; a missing ``result_budget`` takes what the caller allows.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

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
_ALIASES = {"≠": "!=", "<>": "!=", "==": "=", "≤": "<=", "≥": ">="}


def _without_alias(operator: object) -> object:
    return _ALIASES.get(operator, operator) if isinstance(operator, str) else operator


def _as_pairs(value: object) -> object:
    return [{"column": column, "value": one} for column, one in value.items()] if isinstance(value, Mapping) else value


Operator = Annotated[Literal["=", "!=", "<", "<=", ">", ">=", "between", "in", "contains", "is_null"], BeforeValidator(_without_alias)]
# A length limit also makes pydantic refuse what is no Unicode text.
Scalar = bool | Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, Field(max_length=1000)]
Budget = Annotated[int | None, Field(ge=1, le=10, description="at most this many units of evidence")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Expression = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        description="a column, or arithmetic over columns and numbers: + - * / ( ) year(x) month(x) day(x) weekday(x); "
        'a name of other characters than letters, digits and _ stands in ""',
    ),
]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Condition(_Arguments):
    """A predicate. A value may be a text with a unit ("5 h 30 min"); text is compared without case."""

    column: Expression
    operator: Operator
    value: Annotated[
        Scalar | Annotated[list[Scalar], Field(max_length=100)] | None,
        Field(description="a list for in and between (both ends included); null for is_null, or false for not null"),
    ] = None


class KeyValue(_Arguments):
    """A column and the value it must have."""

    column: Name
    value: Scalar


Conditions = Annotated[list[Condition], Field(max_length=20)]


class Lookup(_Arguments):
    """Retrieves records matching the specified keys."""

    table: Name
    key_values: Annotated[list[KeyValue], BeforeValidator(_as_pairs), Field(min_length=1, max_length=20)]  # or an object
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
    optional_column_filters: Conditions | None = None
    group_by: Expression | None = None
    result_budget: Budget = None


class Rank(_Arguments):
    """Returns the top- or bottom-ranked records."""

    table: Name
    target_column_expression: Expression
    order: Literal["ascending", "descending"]
    optional_column_filters: Conditions | None = None
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


AnalyticArguments = Lookup | Filter | Compute | Rank
RetrievalArguments = SemanticMatch | EventLocate
Arguments = AnalyticArguments | RetrievalArguments
TOOLS: dict[str, type[Arguments]] = {tool.__name__: tool for tool in (Lookup, Filter, Compute, Rank, SemanticMatch, EventLocate)}
ANALYTIC_TOOLS = ("Lookup", "Filter", "Compute", "Rank")
RETRIEVAL_TOOLS = ("SemanticMatch", "EventLocate")


@cache
def json_schema(tool: str) -> Mapping[str, Any]:
    """The JSON schema of a tool's arguments, for constraining a model to it; shared by all who ask.

    It is closed and names every key as required (null stands for what is left out), as servers that enforce schemas want it. Upper
    limits of lengths are left out of it, because they make a grammar large; they are checked when the call is.
    """
    schema: Mapping[str, Any] = _for_models(TOOLS[tool].model_json_schema())
    return schema


def _for_models(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_for_models(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _for_models(value) for name, value in schema.items() if name not in ("title", "default", "maxLength", "maxItems")}
    return kept | {"required": [*kept["properties"]]} if "properties" in kept else kept

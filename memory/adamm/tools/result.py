"""What a tool returns (AdaMM, Table 4, Appendix C)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memory.adamm.tools.arguments import Arguments


@dataclass(frozen=True)
class EvidenceUnit:
    """One unit of the evidence budget: a matched row, a computed result with its contributing rows, or a memory unit.

    ``text`` is the unit as shown to a model; of the rows of one call only the first begins with tool, table and arguments. ``rounds``
    are the round orders it stands on; ``image_ids`` the images of those rounds (for a memory unit). ``score`` is the relevance of a
    memory unit, None for analytic units.
    """

    kind: Literal["row", "computed", "memory"]
    text: str
    rounds: tuple[int, ...]
    image_ids: tuple[str, ...] = ()
    score: float | None = None


@dataclass(frozen=True)
class ToolResult:
    """The outcome of one call.

    ``returned`` has the exact keys of Table 4 and holds plain JSON values (``matching_rows``; ``computed_result`` and
    ``contributing_rows``; ``ranked_rows``; ``ranked_memory_units`` and ``relevance_scores``). ``units`` are in the same order.
    """

    tool: str
    arguments: Arguments
    returned: Mapping[str, Any]
    units: tuple[EvidenceUnit, ...]

"""SemanticMatch and EventLocate: memory units from the hierarchy, ranked by Eq. 13 (AdaMM, Appendix B)."""

import logging
from dataclasses import dataclass
from typing import Any, Literal

from data.images import Picture
from memory.adamm.model import LEVELS, AdaMMMemory, Level, Node
from memory.adamm.similarity import PAPER_WEIGHTS, FusedIndex, FusionWeights, Probe
from memory.adamm.tools.arguments import EventLocate, SemanticMatch
from memory.adamm.tools.result import EvidenceUnit, ToolResult
from models.encoders.types import ImageEncoder, TextEncoder, TextImageEncoder

QueryFusion = Literal["fused", "text_only"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Hit:
    """A found node and its score; for EventLocate also the events around it."""

    node: Node
    score: float
    before: Node | None = None
    after: Node | None = None

    @property
    def shown(self) -> tuple[tuple[str, Node], ...]:
        """The nodes to show, in order of time, each under its name."""
        name = self.node.level.capitalize()
        around = ((f"{name} before", self.before), (name, self.node), (f"{name} after", self.after))
        return tuple((name, node) for name, node in around if node is not None)


class RetrievalTools:
    """The two retrieval tools over an opened memory."""

    def __init__(
        self,
        memory: AdaMMMemory,
        *,
        text_encoder: TextEncoder,
        image_encoder: ImageEncoder | None = None,
        weights: FusionWeights = PAPER_WEIGHTS,
        query_fusion: QueryFusion = "fused",
    ) -> None:
        """Index the three levels.

        Args:
            memory: what is searched.
            text_encoder: the one that the memory was built with; keeps the vectors of repeated queries, if it is a caching one.
            image_encoder: the one that the memory was built with; None compares text only.
            weights: those of Eq. 13.
            query_fusion: ``fused`` also compares nodes' visual vectors: with the query's picture or, if it has none and the encoder
                reads texts too, with its text. ``text_only`` never does (ablation).

        Raises:
            ValueError: an encoder is not the one that the memory was built with.
        """
        ids = [("text", memory.text_encoder_id, text_encoder.id)]
        ids += [("image", memory.image_encoder_id, image_encoder.id)] if image_encoder else []
        wrong = [f"its {kind} vectors are by {built or 'none'}, not {given}" for kind, built, given in ids if given != built]
        if wrong:
            raise ValueError(f"memory of {memory.history_id!r}: {'; '.join(wrong)}; use the encoders that it was built with")
        self._memory = memory
        self._text_encoder = text_encoder
        self._image_encoder = image_encoder if query_fusion == "fused" else None
        self._indexes = {level: FusedIndex(memory.vectors[level], weights) for level in LEVELS}

    def run(self, arguments: SemanticMatch | EventLocate, *, allowance: int, query_image: Picture | None = None) -> ToolResult:
        """Run one call; its units come by descending score, ties the earlier node first.

        A unit of EventLocate is an event with its window: the event before and the one after in the same session. An event in a
        better unit's window makes no unit of its own, because it is shown there; two windows may share a neighbour.

        Args:
            arguments: the checked arguments.
            allowance: the most units there may be; a missing or larger ``result_budget`` is cut to it.
            query_image: the picture that belongs to the query, if there is one.
        """
        budget = allowance if arguments.result_budget is None else min(allowance, arguments.result_budget)
        level: Level = "event" if isinstance(arguments, EventLocate) else arguments.retrieval_scope
        probe = self._probe(arguments.query_content, query_image)
        hits = self._with_windows(probe, budget) if isinstance(arguments, EventLocate) else self._ranked(level, probe, budget)
        if hits and logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s over %ss: %s", type(arguments).__name__, level, self._indexes[level].mean_cosines(probe))
        units = tuple(self._unit(hit) for hit in hits)
        returned = {
            "ranked_memory_units": [self._json(hit, unit) for hit, unit in zip(hits, units, strict=True)],
            "relevance_scores": [hit.score for hit in hits],
        }
        return ToolResult(type(arguments).__name__, arguments, returned, units)

    def _probe(self, query: str, picture: Picture | None) -> Probe:
        text, encoder = self._text_encoder.encode([query])[0], self._image_encoder
        if encoder is not None and picture is not None:
            return Probe(text, encoder.encode_images([picture])[0])
        return Probe(text, encoder.encode([query])[0] if isinstance(encoder, TextImageEncoder) else None)

    def _ranked(self, level: Level, probe: Probe, k: int) -> list[_Hit]:
        nearest = self._indexes[level].search(probe, k)
        nodes = self._memory.nodes[level]
        return [_Hit(nodes[row], score) for row, score in zip(nearest.rows.tolist(), nearest.scores.tolist(), strict=True)]

    def _with_windows(self, probe: Probe, k: int) -> list[_Hit]:
        hits: list[_Hit] = []
        covered: set[int] = set()
        for hit in self._ranked("event", probe, 3 * k):  # of three events, a unit covers at most two others
            if len(hits) < k and hit.node.index not in covered:
                hit = _Hit(hit.node, hit.score, self._neighbour(hit.node, -1), self._neighbour(hit.node, 1))
                hits.append(hit)
                covered.update(node.index for _, node in hit.shown)
        return hits

    def _neighbour(self, event: Node, step: int) -> Node | None:
        """The event before (-1) or after (1), if it is of the same session."""
        events, sessions = self._memory.nodes["event"], self._memory.round_sessions
        place = event.index + step
        if not 0 <= place < len(events) or sessions[events[place].rounds[0]] != sessions[event.rounds[0]]:
            return None
        return events[place]

    def _unit(self, hit: _Hit) -> EvidenceUnit:
        nodes = [node for _, node in hit.shown]
        return EvidenceUnit(
            kind="memory",
            text="\n".join(f"{self._heading(name, node)}\n{node.text}" for name, node in hit.shown),
            rounds=tuple(round_order for node in nodes for round_order in node.rounds),
            image_ids=tuple(image_id for node in nodes for image_id in node.image_ids),
            score=hit.score,
        )

    def _heading(self, name: str, node: Node) -> str:
        fields = (("date", [_time(node)]), ("rounds", self._sources(node.rounds)), ("images", node.image_ids))
        return f"[{name}] " + "; ".join(f"{field}: {', '.join(values)}" for field, values in fields if any(values))

    def _sources(self, rounds: tuple[int, ...]) -> list[str]:
        return [self._memory.round_ids[round_order] for round_order in rounds]

    def _json(self, hit: _Hit, unit: EvidenceUnit) -> dict[str, Any]:
        """A unit as Table 4 returns it; ``round_order`` is a found event's own, ``round_orders`` are all that are shown."""
        own = {"round_order": hit.node.rounds[0]} if hit.node.level == "event" else {}
        return {
            "level": hit.node.level,
            "time": _time(hit.node),
            **own,
            "round_orders": list(unit.rounds),
            "sources": self._sources(unit.rounds),
            "image_ids": list(unit.image_ids),
            "text": unit.text,
        }


def _time(node: Node) -> str:
    """A node's date, or its first and last; "" where it has none."""
    first, last = node.dates
    return first if first == last else f"{first} to {last}"

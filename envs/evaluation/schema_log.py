"""Why AdaMM's tables are there: what happened to their schemas, in words (AdaMM, §3.3.2)."""

from collections import Counter

from memory.adamm.model import AdaMMMemory, EventKind

MEASURES = (
    "all_conf: of the rounds that hold the set's most frequent attribute, the share that holds the whole set; "
    "ext_conf: of the rounds that hold the schema, the share that holds the larger set"
)
"""What the two measures say."""
_KINDS: tuple[EventKind, ...] = ("discovered", "extended", "merged", "rejected", "capped")


def table_log(memory: AdaMMMemory, schema: int) -> list[str]:
    """What made a schema what it is, a line each, in order; of the sets that were refused, how many and the nearest."""
    lines: list[str] = []
    attributes: tuple[str, ...] = ()
    refused: list[tuple[float, str]] = []
    for event in memory.schema_events:
        after = f"after round {memory.round_ids[event.round_order]}"
        if event.kind == "merged" and event.value == schema:
            lines.append(f"{after}: took in the schema of {', '.join(event.attributes)}")
        if event.schema != schema:
            continue
        new = ", ".join(attribute for attribute in event.attributes if attribute not in attributes)
        if event.kind in ("discovered", "extended"):
            lines.append(f"{after}: {event.kind} {'with' if attributes else 'as'} {new} ({event.measure} {event.value:.3f})")
            attributes = event.attributes
        elif event.kind == "rejected":
            refused.append((event.value, f"{new}, {after} ({event.measure} {event.value:.3f})"))
    if refused:
        nearest = max(refused, key=lambda one: one[0])[1]
        lines.append(f"refused to extend it with {len(refused)} sets of attributes; the nearest: {nearest}")
    return lines


def events_line(memory: AdaMMMemory) -> str:
    """How many of each kind of event there were, and of the rounds whose search was cut short."""
    kinds = Counter(event.kind for event in memory.schema_events)
    return "schemas: " + ", ".join(f"{kinds[kind]} {kind}" for kind in _KINDS if kinds[kind] or kind != "capped")

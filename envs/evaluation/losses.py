"""What a memory dropped or lacks, in words."""

from collections.abc import Mapping

_WORDS = {
    "images_missing": "images have no file: their captions stand for them",
    "captions_absent": "images have no caption",
    "views_absent": "images have no grounded view: the model marked nothing, or nearly all of the image",
    "observations_without_name": "observations dropped: the attribute's name is empty or too long",
    "observations_without_value": "observations dropped: the value is empty",
    "observations_without_pointer": "observations dropped: they point to no dialogue and no image",
    "observations_not_in_dialogue": "observations dropped: the dialogue does not say the quote, or the quote not the value",
    "observations_of_unknown_image": "observations dropped: they point to an image that the round does not have",
    "observations_not_recognised": "observations kept, but text recognition does not find the value in the image",
    "duplicates": "observations fill no cell: the round has an earlier one of the same attribute",
    "cells_unusable": "cells left empty: the value is not of the column's type and unit",
    "events_truncated": "rounds are longer than the text encoder reads: their vectors miss the end",
    "tables_truncated": "tables have more columns and samples than the text encoder reads: their vectors miss the end",
    "descriptions_truncated": "descriptions are longer than the text encoder reads: their vectors miss the end",
}
_OF_CONTENT = frozenset(
    {
        *("episodes", "rounds", "images", "views", "anchors", "edges"),
        *("observations", "tables", "rows", "cells", "events", "adamm_episodes", "topics"),
    }
)


def losses(counts: Mapping[str, int]) -> list[tuple[int, str]]:
    """How many of what was dropped or is missing, and why; nothing of which there is none.

    Args:
        counts: `MemoryBank.counts` or `AdaMMMemory.counts`. A count that is unknown here goes by its name, last.
    """
    known = [name for name in _WORDS if counts.get(name)]
    unknown = [name for name, count in counts.items() if count and name not in _WORDS and name not in _OF_CONTENT]
    return [(counts[name], _WORDS.get(name, name)) for name in [*known, *unknown]]

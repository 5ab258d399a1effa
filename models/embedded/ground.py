"""The ground task: the part of a picture that the conversation speaks of."""

import json

from models.embedded.english import stem_set
from models.embedded.layout import Row, layout_of
from models.embedded.ocr import Line, TextReader
from models.tasks.hive import GroundInputs

_MARGIN = 0.08
"""Of the mean line height, on every side."""


def ground(inputs: GroundInputs, *, reader: TextReader) -> str:
    """Box the rows whose labels the context names; the reply is JSON in ``GROUND_SCHEMA``."""
    layout = layout_of(reader.lines(inputs.picture))
    context = stem_set(inputs.context)
    rows = [row for row in layout.rows if _spoken_of(row, context)]
    titled = bool(layout.title_lines) and bool(stem_set(layout.title) & context)
    lines = [line for row in rows for line in row.lines]
    if titled and not lines:
        lines = [line for row in layout.rows for line in row.lines]
    if titled:
        lines += layout.title_lines
    if not lines:
        return json.dumps({"target": "", "box": None})
    target = layout.title if titled else rows[0].label or rows[0].text
    return json.dumps({"target": target, "box": _box(lines, inputs.picture.width, inputs.picture.height)}, ensure_ascii=False)


def _spoken_of(row: Row, context: frozenset[str]) -> bool:
    stems = stem_set(row.label or row.text)
    return bool(stems) and 2 * len(stems & context) > len(stems)


def _box(lines: list[Line], width: int, height: int) -> list[float]:
    margin = _MARGIN * sum(line.height for line in lines) / len(lines)
    left, top = (min(line.box[side] for line in lines) - margin for side in (0, 1))
    right, bottom = (max(line.box[side] for line in lines) + margin for side in (2, 3))
    box = [max(0.0, left) / width, max(0.0, top) / height, min(right, width) / width, min(bottom, height) / height]
    return [round(1000 * side, 1) for side in box]

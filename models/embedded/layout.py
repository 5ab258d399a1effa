"""What the lines of a picture are to each other: a title, label–value rows, lone pieces of text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from models.embedded.ocr import Line, rows_of

_LABEL_VALUE = re.compile(r"^\s*(?P<label>[^\d:]*[^\W\d][^\d:]*?)\s*(?::\s*(?P<after>.+)|(?P<number>[-+$€£]?\s?\d.*))$")


_STANDS_OUT = 1.15
"""How much taller than the mean of the other rows a title is that does not open the picture."""


@dataclass(frozen=True)
class Row:
    """A row of text in a picture; ``label`` and ``value`` are "" where it is not a label with its value."""

    text: str
    label: str
    value: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Layout:
    """A picture's text: ``title`` ("" if none stands out), then every other row from top to bottom."""

    title: str
    title_lines: tuple[Line, ...]
    rows: tuple[Row, ...]

    @property
    def has_values(self) -> bool:
        """Whether the picture is a list of labels with values."""
        return sum(1 for row in self.rows if row.value) >= 2


@lru_cache(maxsize=20_000)
def layout_of(lines: tuple[Line, ...]) -> Layout:
    """Read the layout. The title is a row of letters without a value: the tallest, if it opens the picture or stands out."""
    rows = [_row(row) for row in rows_of(lines)]
    heights = [max(line.height for line in row.lines) for row in rows]
    candidates = [place for place, row in enumerate(rows) if not row.value and any(letter.isalpha() for letter in row.text)]
    if not candidates:
        return Layout("", (), tuple(rows))
    tallest = max(candidates, key=lambda place: (heights[place], -place))
    others = [height for place, height in enumerate(heights) if place != tallest]
    stands_out = not others or heights[tallest] >= _STANDS_OUT * sum(others) / len(others)
    title = tallest if stands_out or tallest == 0 else 0 if candidates[0] == 0 else -1
    if title < 0:
        return Layout("", (), tuple(rows))
    return Layout(rows[title].text, rows[title].lines, tuple(row for place, row in enumerate(rows) if place != title))


def _row(lines: Sequence[Line]) -> Row:
    text = " ".join(line.text for line in lines)
    pair = _LABEL_VALUE.match(text)
    if pair:
        value = (pair["after"] or pair["number"] or "").strip()
        return Row(text, pair["label"].strip(" .…·-–"), value, tuple(lines))
    return Row(text, "", "", tuple(lines))

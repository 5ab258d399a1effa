"""The caption task: a picture's title and whether it lists values, never the labels and values themselves.

What only the pixels say stays in the pixels: a caption tells pictures apart, it does not replace them.
"""

import re

from models.embedded.layout import Layout, layout_of
from models.embedded.ocr import TextReader
from models.tasks.hive import CaptionInputs

_WITH_DIGIT = re.compile(r"\S*\d\S*")


def caption(inputs: CaptionInputs, *, reader: TextReader) -> str:
    """Describe one picture in a sentence."""
    return describe(layout_of(reader.lines(inputs.picture)))


def describe(layout: Layout) -> str:
    """A sentence from a layout."""
    title = " ".join(_WITH_DIGIT.sub(" ", layout.title).split()).strip(" :-–,.")
    opening = f'A picture titled "{title}"' if title else "A picture"
    if not layout.rows:
        return f"{opening}." if title else "A picture without readable text."
    return f"{opening} that lists labels with their values." if layout.has_values else f"{opening} with some more words."

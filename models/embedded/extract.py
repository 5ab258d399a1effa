"""The extract task: the attribute-value observations that one round states in words or shows in its pictures."""

import json

from models.embedded.labelled_values import label_of, labelled_values
from models.embedded.layout import layout_of
from models.embedded.ocr import TextReader
from models.embedded.spans import spaced_unit
from models.embedded.turns import read_turns
from models.tasks.adamm import ExtractedValue, ExtractInputs

_LONGEST_VALUE = 6


def extract(inputs: ExtractInputs, *, reader: TextReader) -> str:
    """Extract one round; the reply is JSON in ``EXTRACT_SCHEMA``, what is said first, then what pictures show."""
    found = [*_said(inputs.dialogue)]
    for image in inputs.images:
        if image.picture is not None:
            for row in layout_of(reader.lines(image.picture)).rows:
                label = label_of(row.label)
                if label and row.value and len(row.value.split()) <= _LONGEST_VALUE:
                    found.append(ExtractedValue(label, spaced_unit(row.value), "", image.image_id))
    return json.dumps({"observations": [vars(one) for one in dict.fromkeys(found)]}, ensure_ascii=False)


def _said(dialogue: str) -> list[ExtractedValue]:
    """What sentences state; a sentence that the dialogue does not hold as one stretch gives nothing."""
    found = []
    for sentence in read_turns(dialogue):
        for one in labelled_values(sentence.text):
            quote = sentence.text[one.start : one.end]
            if quote in dialogue:
                found.append(ExtractedValue(one.label, one.value, quote, ""))
    return found

"""The table task: a name, a description and column types for attributes that were observed together."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence

from data.typed_values import ColumnType, guess_type, type_column
from models.embedded.english import is_content, stem
from models.embedded.word_lists import word_list
from models.tasks.adamm import TableInputs

_ANY_TOPIC = word_list("any_topic")
_NAMED_COLUMNS = 10
_WHAT: dict[ColumnType, str] = {
    "number": "a number",
    "date": "a date",
    "time": "a time of day",
    "duration": "a duration",
    "boolean": "yes or no",
    "text": "in words",
}


def table(inputs: TableInputs) -> str:
    """Name and describe one table; the reply is JSON in ``TABLE_SCHEMA``."""
    attributes = [attribute for attribute, _ in inputs.columns]
    columns = []
    for attribute, values in inputs.columns:
        kind = guess_type(values)
        unit = type_column(values, kind).unit
        columns.append(
            {"name": attribute, "type": kind, "description": f"{_spoken(attribute)}, {_WHAT[kind]}{f' in {unit}' if unit else ''}."}
        )
    topic = _topic(attributes)
    listed = ", ".join(_spoken(attribute) for attribute in attributes[:_NAMED_COLUMNS])
    more = f" and {len(attributes) - _NAMED_COLUMNS} more" if len(attributes) > _NAMED_COLUMNS else ""
    reply = {
        "name": f"{topic}_records",
        "description": f"One {_spoken(topic)} record a row: {listed}{more}; for values, counts, averages, extremes and changes over time.",
        "columns": columns,
    }
    return json.dumps(reply, ensure_ascii=False)


def _spoken(attribute: str) -> str:
    return attribute.replace("_", " ")


def _topic(attributes: Sequence[str]) -> str:
    """The word that most attributes share, one that opens names first, else the first two attributes.

    Words that say how something is measured, whatever it is (time, level, rate), are no topic.
    """
    counts: Counter[str] = Counter()
    opening: Counter[str] = Counter()
    surface: defaultdict[str, list[str]] = defaultdict(list)
    for attribute in attributes:
        words = [word for word in attribute.split("_") if is_content(word) and word not in _ANY_TOPIC]
        for word in words:
            surface[stem(word)].append(word)
        counts.update({stem(word) for word in words})
        opening.update([stem(words[0])] if len(words) > 1 else [])
    best = max(surface, key=lambda key: (counts[key], opening[key]), default="")
    if counts[best] > 1:
        return min(surface[best], key=len)
    return "_and_".join(attributes[:2])

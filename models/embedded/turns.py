"""Evidence text to its sentences: who speaks, which images are meant, and what stands just before."""

import re
from dataclasses import dataclass
from functools import lru_cache

from models.embedded.english import sentences

_SPEAKER = re.compile(r"^\W*(user|assistant)\b(?:\s*\([^)]*\))?\s*:\s*", re.IGNORECASE)
_IMAGE_LINE = re.compile(r"\[image\s+([^\]\s]+)[^\]]*\]", re.IGNORECASE)
_IMAGE_LIST = re.compile(r"\(images?:\s*([^)]*)\)", re.IGNORECASE)


@dataclass(frozen=True)
class Sentence:
    """One sentence of a text.

    ``speaker`` is "user", "assistant" or "" where the text does not say; ``image_ids`` are those of the exchange
    it belongs to; ``before`` is the sentence before it in the same turn, or "".
    """

    text: str
    speaker: str
    image_ids: tuple[str, ...]
    before: str
    turn: int


@lru_cache(maxsize=20_000)
def read_turns(text: str) -> tuple[Sentence, ...]:
    """Cut a text into sentences; ``[image ID]`` lines and ``(images: ID, ID)`` name the images of what they stand beside."""
    listed = tuple(name.strip() for names in _IMAGE_LIST.findall(text) for name in names.split(",") if name.strip())
    exchanges: list[tuple[list[tuple[str, str]], list[str]]] = []
    for raw_line in _IMAGE_LIST.sub("", text).splitlines():
        ids = _IMAGE_LINE.findall(raw_line)
        line = _IMAGE_LINE.sub("", raw_line).strip()
        named = _SPEAKER.match(line)
        speaker = named.group(1).casefold() if named else ""
        if speaker == "user" or not exchanges:
            exchanges.append(([], []))
        turns, images = exchanges[-1]
        images.extend(ids)
        if line:
            turns.append((speaker or (turns[-1][0] if turns else ""), line[named.end() :] if named else line))
    found = []
    for number, (turns, images) in enumerate(exchanges):
        for speaker, line in turns:
            before = ""
            for sentence in sentences(line):
                found.append(Sentence(sentence, speaker, tuple(dict.fromkeys((*images, *listed))), before, number))
                before = sentence
    return tuple(found)

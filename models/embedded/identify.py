"""What a question's picture shows, by what is said of the images it resembles ("this is a garden phlox")."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from models.embedded.chunks import Piece, chunks, tokens
from models.embedded.english import stem_set
from models.embedded.evidence import Statement
from models.embedded.question import Asked
from models.embedded.spans import clean

_ASKS_WHAT = re.compile(
    r"\b(?:what|which)\b.*\b(?:species|breed|category|type|kind|name|product|plant|flower|animal|dog|bird|item|style|content)s?\b.*"
    r"\b(?:image|picture|photo)s?\b",
    re.IGNORECASE,
)
_POINTING = re.compile(
    r"\b(?:this|that|it|these|those|they|here|one)\b[^.,]{0,12}?"
    r"(?:['’]s|\bis|\bare|\blooks? like|\bmust(?:['’]ve| have)? be(?:en)?|\bwas|\bwere)\b"
    r"(?:\s+(?:also|indeed|definitely|still|another|a|an|the|called|likely|probably|beautiful|lovely|classic))*\W+$",
    re.IGNORECASE,
)


def asks_what_it_is(asked: Asked) -> bool:
    """Whether the question wants to know what its picture shows."""
    return bool(_ASKS_WHAT.search(asked.text))


def named_thing(asked: Asked, statements: Sequence[Statement]) -> str:
    """The phrase that names what the images of some statements show; "" if there is none.

    A phrase scores the number of statements that repeat its words, and more where it follows "this is a" and the like or is
    written with capitals.
    """
    said = [one for one in statements if one.speaker]
    heads = frozenset(asked.heads) | asked.stems
    scores: defaultdict[frozenset[str], float] = defaultdict(float)
    surface: dict[frozenset[str], str] = {}
    for one in said:
        for chunk in chunks(one.text):
            if chunk.kind not in {Piece.NAME, Piece.NOUNS} or chunk.stems <= heads or len(chunk.text.split()) > 5:
                continue
            start = tokens(one.text)[chunk.place].start
            pointed = bool(_POINTING.search(one.text[:start]))
            scores[chunk.stems] += 1 + 2 * pointed + (0.5 if chunk.kind is Piece.NAME else 0.0)
            surface.setdefault(chunk.stems, chunk.text)
    if not scores:
        return ""
    repeated = Counter(stem for one in said for stem in one.stems)
    best = max(
        scores, key=lambda stems: (scores[stems] + sum(repeated[stem] for stem in stems) / len(stems) + 0.3 * len(stems), surface[stems])
    )
    return clean(surface[best]) if stem_set(surface[best]) else ""

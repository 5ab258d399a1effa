"""Which of the shown pictures a question's picture is, or is a part of."""

from collections.abc import Sequence

from data.images import Picture
from models.embedded.english import stem_set
from models.embedded.ocr import TextReader
from models.encoders.types import ImageEncoder

_SAME_WORDS = 0.5
_SAME_LOOK = 0.8


class PictureMatcher:
    """Compares pictures by their vectors and by the text that can be read in them."""

    def __init__(self, encoder: ImageEncoder, *, reader: TextReader) -> None:
        self._encoder = encoder
        self._reader = reader

    def find(self, asked: Picture, shown: Sequence[Picture]) -> int | None:
        """The number of the shown picture that is the asked one (the earliest of equals), or None.

        Two pictures are the same if at least half of the asked one's words stand in the other, or, where it has no words,
        if the cosine of their vectors is at least 0.8; of several, the one with the highest sum of both counts.
        """
        if not shown:
            return None
        vectors = self._encoder.encode_images([asked, *shown])
        cosines = [float(cosine) for cosine in vectors[1:] @ vectors[0]]
        words = self.words(asked)
        shares = [len(words & self.words(picture)) / len(words) if words else 0.0 for picture in shown]
        best = max(range(len(shown)), key=lambda place: (cosines[place] + shares[place], -place))
        same = shares[best] >= _SAME_WORDS if words else cosines[best] >= _SAME_LOOK
        return best if same else None

    def words(self, picture: Picture) -> frozenset[str]:
        """The stems of the words and numbers that can be read in a picture."""
        return frozenset[str]().union(*(stem_set(line.text) for line in self._reader.lines(picture)))

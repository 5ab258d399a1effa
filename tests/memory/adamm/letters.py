"""Stand-ins whose vectors can be worked out by hand: a text is its counts of the letters A, B, C and D."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.images import Picture
from memory.adamm.hierarchy import EventContent
from memory.adamm.settings import AdaMMSettings
from models.tasks.adamm import DescribeInputs


def letters(text: str) -> NDArray[np.float32]:
    """(5,) float32, unit norm; the last place says that there is no such letter."""
    counts = [text.count(letter) for letter in "ABCD"]
    row = np.array([*counts, 0 if any(counts) else 1], np.float64)
    return (row / np.linalg.norm(row)).astype(np.float32)


class LetterTexts:
    """A text encoder."""

    id = "letters"
    dimension = 5

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode to (n, 5) float32, unit norm."""
        self.batches.append(list(texts))
        return np.array([letters(text) for text in texts], np.float32).reshape(-1, 5)


class LetterImages:
    """An image encoder: a picture's letters are those of its hash."""

    id = "letter pictures"

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Encode to (n, 5) float32, unit norm."""
        return np.array([letters(picture.sha256) for picture in pictures], np.float32).reshape(-1, 5)


class LetterTextImages(LetterTexts, LetterImages):
    """A text-image encoder."""

    id = "letters and pictures"


def picture(name: str) -> Picture:
    """A picture of some letters; there is no file."""
    return Picture(Path(name), name, 1, 1)


def event(order: int, text: str, *, pictures: str = "", date: str = "", caption: str = "") -> EventContent:
    """A round with a picture for each word of ``pictures``, or with one image that has only a caption."""
    names = pictures.split()
    ids = tuple(f"i{order}.{place}" for place in range(len(names) or bool(caption)))
    return EventContent(order, f"s{date}", date, text, ((ids[0], caption),) if caption else (), tuple(map(picture, names)), ids)


def together(inputs: DescribeInputs) -> str:
    """A description that has the letters of all parts."""
    return " ".join(inputs.parts)


def settings(**changes: float) -> AdaMMSettings:
    """The paper's settings (Table 5), but for ``changes``."""
    usual = {"episode_threshold": 0.60, "topic_threshold": 0.65, "text_weight": 0.60, "visual_weight": 0.40, "gap_days": 1}
    mining = {"min_support": 4, "min_all_conf": 0.60, "min_ext_conf": 0.80, "max_tested": 100_000}
    return AdaMMSettings(captions="model", **{**usual, **mining, **changes})  # type: ignore[arg-type]

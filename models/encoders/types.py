"""The protocols of the encoders."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from data.images import Picture


class TextEncoder(Protocol):
    """Text to unit vectors."""

    @property
    def id(self) -> str:
        """Names the model and its version; vectors of different ids are never compared."""

    @property
    def dimension(self) -> int:
        """Length d of a vector."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode to (len(texts), d) float32, unit norm."""


class ImageEncoder(Protocol):
    """Pictures to unit vectors, comparable with each other only."""

    @property
    def id(self) -> str:
        """Names the model and its version."""

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Encode to (len(pictures), d) float32, unit norm."""


@runtime_checkable
class TextImageEncoder(TextEncoder, ImageEncoder, Protocol):
    """Text and pictures to unit vectors of one space, so that a text can be compared with a picture."""


class JointEncoder(TextImageEncoder, Protocol):
    """A `TextImageEncoder` that also embeds a text and its pictures together, as one item."""

    def encode_joint(self, items: Sequence[tuple[str, tuple[Picture, ...]]]) -> NDArray[np.float32]:
        """Encode texts, each with its pictures, to (len(items), d) float32, unit norm."""

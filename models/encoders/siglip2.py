"""SigLIP2 of fixed resolution (``google/siglip2-base-patch16-384`` and its sizes): text and pictures in one space."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from data.images import Picture
from models.errors import WeightsError
from models.weights import PretrainedSettings, Weights, need


class SigLIP2:
    """A `models.encoders.types.TextImageEncoder`; the weights are read at the first call."""

    def __init__(self, settings: PretrainedSettings) -> None:
        """Find the model; reads its files once to name it.

        Raises:
            WeightsError: there is no such model on this machine, or it is not a SigLIP2.
            DependencyMissing: a package is not installed; the message holds the pip command.
        """
        need("transformers")
        self._settings = settings
        self._weights = Weights(settings, model_type="siglip")
        self.dimension = int(self._weights.config.text_config.projection_size)

    @cached_property
    def id(self) -> str:
        """Kind, content hash and number format."""
        return self._weights.identity()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode to (len(texts), d) float32, unit norm.

        As in training, texts are lower-cased, cut to 63 tokens, closed with the end token, and padded to 64, padding attended to.
        """
        import torch

        def features(part: slice) -> Any:
            ids = torch.tensor([self._token_ids(text) for text in texts[part]], device=self._model.device)
            return self._model.get_text_features(input_ids=ids)

        return self._in_batches(len(texts), features)

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Encode to (len(pictures), d) float32, unit norm; each is squeezed to the model's square, as in training."""

        def features(part: slice) -> Any:
            pixels = self._image_processor([picture.pixels() for picture in pictures[part]], return_tensors="pt")["pixel_values"]
            return self._model.get_image_features(pixel_values=pixels.to(self._model.device, self._model.dtype))

        return self._in_batches(len(pictures), features)

    def _in_batches(self, n: int, features: Callable[[slice], Any]) -> NDArray[np.float32]:
        """(n, d) unit vectors of the model's outputs for each part of n items."""
        import torch

        vectors = [np.zeros((0, self.dimension), np.float32)]
        for start in range(0, n, self._settings.batch_size):
            with torch.inference_mode():
                pooled = features(slice(start, start + self._settings.batch_size)).pooler_output.float()
            vectors.append(torch.nn.functional.normalize(pooled, dim=1).cpu().numpy())
        return np.concatenate(vectors)

    def _token_ids(self, text: str) -> list[int]:
        length = self._weights.config.text_config.max_position_embeddings
        ids = self._tokenizer.encode(text.lower(), add_special_tokens=False).ids[: length - 1]
        end, padding = self._end_and_padding
        return [*ids, end, *[padding] * (length - 1 - len(ids))]

    @cached_property
    def _end_and_padding(self) -> tuple[int, int]:
        end, padding = (self._tokenizer.token_to_id(token) for token in ("<eos>", "<pad>"))
        if end is None or padding is None:
            raise WeightsError(f"{self._weights.folder}: tokenizer.json has no <eos> and <pad>, so it is not SigLIP2's; download it again")
        return end, padding

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        # The tokenizer's own file and nothing else: which class reads it, and what that adds, has changed with transformers' releases.
        tokenizer = Tokenizer.from_buffer(self._weights.read("tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _image_processor(self) -> Any:
        from transformers import AutoImageProcessor

        # Pillow's resizing with and without torchvision, so that vectors do not depend on what else is installed.
        return self._weights.read_with(AutoImageProcessor, backend="pil")

    @cached_property
    def _model(self) -> Any:
        from transformers import SiglipModel

        return self._weights.load(SiglipModel)

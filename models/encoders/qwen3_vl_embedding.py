"""Qwen3-VL-Embedding (2B: 2,048 dimensions): texts, pictures, or both together in one space.

Inputs are formed as its authors do: a system message with an instruction, a user message with pictures and then text, and
the opened reply; the vector is the last layer's state of the last token, brought to unit norm.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.images import Picture
from models.errors import BackendError
from models.qwen3_vl.chat import Chat
from models.requests import ImagePart, Message, TextPart
from models.weights import PretrainedSettings, Weights, need

_INSTRUCTION = "Represent the user's input."
_NOTHING = "NULL"
_MAX_TOKENS = 8192
_TEMPLATE_TOKENS = 64  # more than the instruction and the chat template take


class Qwen3VLEmbedding:
    """A `models.encoders.types.JointEncoder`; the weights are read at the first call."""

    def __init__(self, settings: PretrainedSettings) -> None:
        """Find the model; reads its files once to name it.

        Raises:
            WeightsError: there is no such model on this machine, or it is not a Qwen3-VL.
            DependencyMissing: a package is not installed; the message holds the pip command.
        """
        need("torchvision", "transformers", "qwen_vl_utils")
        self._settings = settings
        self._weights = Weights(settings, model_type="qwen3_vl")
        self._chat = Chat(self._weights)
        self.dimension = int(self._weights.config.get_text_config().hidden_size)

    @cached_property
    def id(self) -> str:
        """Kind, content hash and number format."""
        return f"embedding-{self._weights.identity()}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode to (len(texts), d) float32, unit norm; texts are cut at 8,192 tokens with the chat template's."""
        return self.encode_joint([(text, ()) for text in texts])

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Encode to (len(pictures), d) float32, unit norm."""
        return self.encode_joint([("", (picture,)) for picture in pictures])

    def encode_joint(self, items: Sequence[tuple[str, tuple[Picture, ...]]]) -> NDArray[np.float32]:
        """Encode texts, each with its pictures, to (len(items), d) float32, unit norm; a text is cut, a picture never.

        Raises:
            BackendError: an item's pictures alone are more than the model reads.
        """
        import torch

        vectors = [np.zeros((0, self.dimension), np.float32)]
        for start in range(0, len(items), self._settings.batch_size):
            inputs = self._chat.inputs([self._messages(*item) for item in items[start : start + self._settings.batch_size]])
            with torch.inference_mode():
                # Padding is on the left, so the last column holds each row's last token.
                states = self._model(**inputs.to(self._settings.device), use_cache=False).last_hidden_state[:, -1].float()
            vectors.append(torch.nn.functional.normalize(states, dim=1).cpu().numpy())
        return np.concatenate(vectors)

    def _messages(self, text: str, pictures: tuple[Picture, ...]) -> list[Message]:
        images = sum(self._chat.count_image(picture.width, picture.height) + 2 for picture in pictures)
        left = _MAX_TOKENS - _TEMPLATE_TOKENS - images
        if left < 1:
            raise BackendError(f"{len(pictures)} pictures take {images} tokens, but {self.id} reads {_MAX_TOKENS}: embed fewer at once")
        parts: list[TextPart | ImagePart] = [ImagePart(picture) for picture in pictures]
        if text or not pictures:
            parts.append(TextPart(self._chat.cut(text or _NOTHING, left)))
        return [Message("system", (TextPart(_INSTRUCTION),)), Message("user", tuple(parts))]

    @cached_property
    def _model(self) -> Any:
        from transformers import Qwen3VLModel

        return self._weights.load(Qwen3VLModel)

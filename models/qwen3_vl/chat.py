"""Messages to model inputs, by Qwen3-VL's own processor, and the model's token rules."""

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from models.errors import BackendError, WeightsError
from models.requests import ImagePart, Message, TextPart
from models.weights import Weights, need


class Chat:
    """The processor of a Qwen3-VL folder, read at the first use; also the backend's `models.requests.TokenCounter`.

    Texts come from data files, so a text that contains one of the tokenizer's control tokens (``<|im_end|>``,
    ``<|image_pad|>`` …) is not allowed to act as one: a space is put after its first character.
    """

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.count_text = lru_cache(maxsize=200_000)(self._count_text)
        self.count_image = lru_cache(maxsize=10_000)(self._count_image)

    @cached_property
    def processor(self) -> Any:
        """The processor, set to pad on the left, where no padding can stand between a prompt and its reply.

        Raises:
            WeightsError: the folder's tokenizer or chat template is missing or another model's.
        """
        need("torchvision", "transformers", "qwen_vl_utils")
        from transformers import AutoProcessor

        processor = self._weights.read_with(AutoProcessor)
        if processor.image_token_id != self._weights.config.image_token_id or not processor.chat_template:
            raise WeightsError(f"{self._weights.folder}: tokenizer or chat template are missing or not this model's; download it again")
        processor.tokenizer.padding_side = "left"
        return processor

    @property
    def tokenizer(self) -> Any:
        """The processor's tokenizer."""
        return self.processor.tokenizer

    def _count_text(self, text: str) -> int:
        return len(self.tokenizer(self._plain(text), add_special_tokens=False)["input_ids"])

    def _count_image(self, width: int, height: int) -> int:
        """Tokens of a picture of that many pixels: one for each 32 × 32 after the rounding of ``qwen_vl_utils``, at least 4.

        Raises:
            BackendError: the picture is more than 200 times as long as wide, which Qwen3-VL does not take.
        """
        need("torchvision", "qwen_vl_utils")
        from qwen_vl_utils.vision_process import MAX_RATIO, smart_resize

        if max(width, height) > MAX_RATIO * min(width, height):
            raise BackendError(
                f"a picture of {width} × {height} pixels: Qwen3-VL takes none that is more than {MAX_RATIO} times as long as wide; "
                "crop it, or remove its reference"
            )
        vision = self._weights.config.vision_config
        side = vision.patch_size * vision.spatial_merge_size
        rows, columns = smart_resize(height, width, factor=side)
        return int(rows // side) * int(columns // side)

    def inputs(self, conversations: Sequence[Sequence[Message]]) -> Any:
        """The model inputs of a batch, padded on the left to the longest.

        Returns:
            What the processor emits: ``input_ids`` and ``attention_mask`` (batch, length) int64, and, where there are
            pictures, ``pixel_values`` (patches, channels × time × 16 × 16) float32 and ``image_grid_thw`` (pictures, 3).

        Raises:
            BackendError: a conversation's picture tokens are not as many as `count_image` says.
            data.errors.ImageError: a picture's file cannot be decoded any more.
        """
        from qwen_vl_utils import process_vision_info

        rendered = [[self._rendered(message) for message in messages] for messages in conversations]
        pictures, _ = process_vision_info(rendered, image_patch_size=self._weights.config.vision_config.patch_size)
        texts = [self.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) for messages in rendered]
        inputs = self.processor(text=texts, images=pictures, do_resize=False, padding=True, return_tensors="pt")
        found = (inputs["input_ids"] == self.processor.image_token_id).sum(dim=1).tolist()
        for messages, tokens in zip(conversations, found, strict=True):
            expected = self.image_tokens(messages)
            if tokens != expected:
                raise BackendError(
                    f"the processor of {self._weights.folder} spends {tokens} tokens on the pictures of a request, the rule says "
                    f"{expected}: its chat template or preprocessor is not Qwen3-VL's; download the model again"
                )
        return inputs

    def image_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation's pictures by the rule."""
        pictures = [part.picture for message in messages for part in message.parts if isinstance(part, ImagePart)]
        return sum(self.count_image(picture.width, picture.height) for picture in pictures)

    def text_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation's texts, without the chat template's."""
        return sum(self.count_text(part.text) for message in messages for part in message.parts if isinstance(part, TextPart))

    def _rendered(self, message: Message) -> dict[str, Any]:
        """A message as the chat template takes it; each text part ends its line, because the template puts nothing between parts."""
        last = len(message.parts) - 1
        content: list[dict[str, Any]] = []
        for number, part in enumerate(message.parts):
            if isinstance(part, TextPart):
                content.append({"type": "text", "text": self._plain(part.text) + ("" if number == last else "\n")})
            else:
                content.append({"type": "image", "image": part.picture.pixels()})
        return {"role": message.role, "content": content}

    def cut(self, text: str, n_tokens: int) -> str:
        """The text up to its first ``n_tokens`` tokens."""
        ends = self.tokenizer(self._plain(text), add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        return text if len(ends) <= n_tokens else self._plain(text)[: ends[n_tokens - 1][1]]

    @cached_property
    def _control_tokens(self) -> re.Pattern[str]:
        tokens = sorted(self.tokenizer.get_added_vocab(), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, tokens)) or r"(?!)")

    def _plain(self, text: str) -> str:
        return self._control_tokens.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)

"""Token counting rules.

Text is counted by the answering backend's tokenizer; the embedded engine, and the cutting of memory episodes whatever
the answerer, use MiniLM's WordPiece. Pictures are counted by the backend's own rule.
"""

from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

PATCH_SIDE = 32
"""Qwen3-VL spends one token on each 32 × 32 pixels (16-pixel patches, merged 2 × 2)."""


def smart_resize_tokens(width: int, height: int) -> int:
    """Tokens of a picture of ``width`` × ``height`` pixels under Qwen3-VL's rule: each side rounded to 32 pixels.

    Pictures are at most 1,048,576 pixels here, so the rule's upper limit never applies.
    """
    columns, rows = (max(1, round(side / PATCH_SIDE)) for side in (width, height))
    return columns * rows


class WordPieceCounter:
    """Counts text in MiniLM's WordPieces and pictures by `smart_resize_tokens`; counts are memoised by text."""

    def __init__(self, tokenizer_file: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer_file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.count_text = lru_cache(maxsize=200_000)(self._count_text)

    def _count_text(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def count_image(self, width: int, height: int) -> int:
        """Tokens of a picture of that many pixels."""
        return smart_resize_tokens(width, height)

"""Token rules of OpenAI-compatible servers: text by a named tokenizer, pictures by a named rule."""

import math
import re
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from tokenizers import Tokenizer

from models.errors import BackendError
from models.openai_compatible.images import fit
from models.tokens import smart_resize_tokens

OPENAI_ENCODINGS = ("o200k_base", "cl100k_base")
NO_PICTURES = "none"
_OWN_RULES = ("qwen3_vl", NO_PICTURES)
_PATCH_SIDE, _TILE_SIDE, _LONG_SIDE, _SHORT_SIDE = 32, 512, 2048, 768
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")

ImageRule = Callable[[int, int], int]


class RuleCounter:
    """A `TokenCounter`: counts are memoised by text; pictures are counted at the size at which they are sent."""

    def __init__(self, tokenizer: str, *, image_tokens: str, max_image_pixels: int) -> None:
        """Name the rules as `models.openai_compatible.settings.OpenAISettings` does.

        Raises:
            BackendError: a tokenizer or rule that is not known; the message lists what is.
        """
        self.count_text = lru_cache(maxsize=200_000)(_text_rule(tokenizer))
        self._count_pixels = _image_rule(image_tokens)
        self._max_image_pixels = max_image_pixels

    def count_image(self, width: int, height: int) -> int:
        """Tokens of a picture of that many pixels."""
        return self._count_pixels(*fit(width, height, self._max_image_pixels))


def image_detail(image_tokens: str) -> str | None:
    """The ``detail`` that is asked for with each picture: what the counting rule assumes, where the model knows it."""
    return None if image_tokens in _OWN_RULES else "high"


def patch_tokens(width: int, height: int, *, multiplier: float, budget: int) -> int:
    """Tokens under OpenAI's rule of 32 × 32 patches; a picture of more than ``budget`` patches is shrunk to fit."""
    if math.ceil(width / _PATCH_SIDE) * math.ceil(height / _PATCH_SIDE) > budget:
        shrink = math.sqrt(_PATCH_SIDE**2 * budget / (width * height))
        columns, rows = width * shrink / _PATCH_SIDE, height * shrink / _PATCH_SIDE
        # One side then holds a whole number of patches. A side of less than one patch stays one patch.
        shrink *= min(max(1, math.floor(side)) / side for side in (columns, rows))
        width, height = round(width * shrink), round(height * shrink)
    patches = max(1, math.ceil(width / _PATCH_SIDE)) * max(1, math.ceil(height / _PATCH_SIDE))
    return math.ceil(min(patches, budget) * multiplier)


def tile_tokens(width: int, height: int, *, base: int, tile: int) -> int:
    """Tokens under OpenAI's rule of 512 × 512 tiles, at high detail; pictures are shrunk, never enlarged."""
    scale = min(1.0, _LONG_SIDE / max(width, height))
    scale = min(scale, _SHORT_SIDE / min(width, height))
    columns, rows = (max(1, math.ceil(round(side * scale) / _TILE_SIDE)) for side in (width, height))
    return base + tile * columns * rows


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    text = (Path(__file__).parent / "image_tokens.yaml").read_text(encoding="utf-8")
    table: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(text)
    return table


def _image_rule(name: str) -> ImageRule:
    if name == "qwen3_vl":
        return smart_resize_tokens
    if name == NO_PICTURES:
        return _refuse_picture
    model = _SNAPSHOT.sub("", name)
    if model in _table()["patches"]:
        patches = _table()["patches"][model]
        return lambda width, height: patch_tokens(width, height, **patches)
    if model in _table()["tiles"]:
        tiles = _table()["tiles"][model]
        return lambda width, height: tile_tokens(width, height, **tiles)
    known = ", ".join([*_OWN_RULES, *_table()["patches"], *_table()["tiles"]])
    raise BackendError(
        f"image_tokens={name!r} is no rule by which pictures are counted; known are {known}. A rule that the model's maker has "
        "published can be added to models/openai_compatible/image_tokens.yaml"
    )


def _refuse_picture(width: int, height: int) -> int:
    raise BackendError(
        f"a picture of {width} × {height} pixels is to be counted, but image_tokens=none says that the model takes none: "
        "name the model's rule, or leave images and views out of memory.forms"
    )


def _text_rule(tokenizer: str) -> Callable[[str], int]:
    if tokenizer in OPENAI_ENCODINGS:
        try:
            from bpe_openai import get_encoding  # carries the encodings' tables, needs no network
        except ImportError as error:
            raise BackendError(f"tokenizer={tokenizer!r} needs a package: pip install bpe-openai") from error
        encode = get_encoding(tokenizer).encode_ordinary
        return lambda text: len(encode(text))
    path = Path(tokenizer)
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        fast = Tokenizer.from_file(str(file))
    except Exception as error:  # the Rust library raises plain Exception for a missing or malformed file
        raise BackendError(
            f"tokenizer={tokenizer!r} cannot be read ({error}): name the tokenizer.json of the served model, the folder that holds "
            f"it, or one of {', '.join(OPENAI_ENCODINGS)}"
        ) from error
    fast.no_truncation()
    fast.no_padding()
    return lambda text: len(fast.encode(text, add_special_tokens=False).ids)

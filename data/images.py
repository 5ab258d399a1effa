"""Pictures: image files opened under limits, downscaled to what is counted and sent, and named by their content."""

import hashlib
import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageOps

from data.errors import ImageError
from data.history import ImageRef

MAX_SENT_PIXELS = 1_048_576
"""Pictures are downscaled to at most this many pixels before they are counted or sent."""
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_DECODED_PIXELS = 100_000_000
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""What is decoded; Pillow knows formats that start other programs."""


@dataclass(frozen=True)
class Picture:
    """An image file that was checked once.

    ``sha256`` is of the file's bytes and names the picture in request keys; ``width`` and ``height`` are those of
    the pixels sent (after orientation and downscaling), in pixels.
    """

    path: Path
    sha256: str
    width: int
    height: int

    def pixels(self) -> Image.Image:
        """Decode to RGB, upright, at ``width`` × ``height``."""
        upright = self.original()
        return upright if upright.size == (self.width, self.height) else upright.resize((self.width, self.height), Image.Resampling.LANCZOS)

    def original(self) -> Image.Image:
        """Decode to RGB, upright, at the file's own size: what views are cut from."""
        return _decode(self.path)


@lru_cache(maxsize=4096)
def load_picture(path: Path) -> Picture:
    """Check an image file and return it as a `Picture`.

    Raises:
        ImageError: the file is missing, too large, not an image, or has a side of less than one pixel; the message
            names the file and what to do.
    """
    try:
        content = path.read_bytes() if path.stat().st_size <= MAX_FILE_BYTES else None
    except OSError as error:
        raise ImageError(f"{path}: cannot be read ({error.strerror}); restore the file or remove its reference") from error
    if content is None:
        raise ImageError(f"{path}: larger than {MAX_FILE_BYTES // 2**20} MiB; shrink the file")
    width, height = sent_size(*_decode(path).size)
    return Picture(path, hashlib.sha256(content).hexdigest(), width, height)


def unusable_images(images: Iterable[ImageRef]) -> list[str]:
    """What is wrong with the files of images, one line for each that cannot be used; every file is decoded."""
    problems = []
    for image in images:
        try:
            if image.path is not None:
                load_picture(image.path)
        except ImageError as error:
            problems.append(f"image {image.id!r}: {error}")
    return problems


def sent_size(width: int, height: int) -> tuple[int, int]:
    """The width and height in pixels at which an image of that size is counted and sent."""
    scale = min(1.0, math.sqrt(MAX_SENT_PIXELS / (width * height)))
    return max(1, math.floor(width * scale)), max(1, math.floor(height * scale))


def _decode(path: Path) -> Image.Image:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=_FORMATS) as image:
                if image.width * image.height > MAX_DECODED_PIXELS:
                    raise ImageError(f"{path}: {image.width} × {image.height} pixels is too large; shrink the file")
                return ImageOps.exif_transpose(image).convert("RGB")
    except ImageError:
        raise
    except Exception as error:  # Pillow's decoders raise many kinds on hostile bytes
        raise ImageError(f"{path}: not a readable image ({error}); replace the file or remove its reference") from error

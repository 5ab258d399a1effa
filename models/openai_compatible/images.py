"""Pictures as data URLs: downscaled to the limit, and re-encoded only where the file itself cannot be sent."""

import base64
import hashlib
import io
import math
from functools import lru_cache

from PIL import Image

from data.errors import ImageError
from data.images import Picture

_AS_IT_IS = {"PNG": "image/png", "JPEG": "image/jpeg"}  # what every server decodes; others (WebP, GIF, BMP) become PNG
_PLAIN_MODES = {"RGB", "L"}  # servers differ in what they put behind transparency and in how they read palettes and CMYK
_MAX_FILE_BYTES = 4 * 1024 * 1024
"""Larger files than a picture of the permitted size needs carry something else (metadata, 16-bit samples)."""
_ORIENTATION = 0x0112
_JPEG_QUALITY = 95


def fit(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """The size in pixels at which a picture of that size is sent."""
    scale = min(1.0, math.sqrt(max_pixels / (width * height)))
    return max(1, math.floor(width * scale)), max(1, math.floor(height * scale))


@lru_cache(maxsize=64)
def data_url(picture: Picture, max_pixels: int) -> str:
    """The picture as a ``data:`` URL of at most ``max_pixels`` pixels.

    Raises:
        ImageError: the file is gone, or is no longer the one that was checked.
    """
    try:
        content = picture.path.read_bytes()
    except OSError as error:
        raise ImageError(f"{picture.path}: cannot be read any more ({error.strerror}); restore the file") from error
    if hashlib.sha256(content).hexdigest() != picture.sha256:
        raise ImageError(f"{picture.path}: changed since the run began; start it again, so that replies are stored under the new content")
    size = fit(picture.width, picture.height, max_pixels)
    with Image.open(io.BytesIO(content)) as image:
        kind = image.format
        as_it_is = (
            kind in _AS_IT_IS
            and image.size == size
            and image.mode in _PLAIN_MODES
            and image.getexif().get(_ORIENTATION, 1) == 1
            and len(content) <= _MAX_FILE_BYTES
        )
    if not as_it_is:
        kind = "JPEG" if kind == "JPEG" else "PNG"
        pixels = picture.pixels()
        buffer = io.BytesIO()
        resized = pixels if pixels.size == size else pixels.resize(size, Image.Resampling.LANCZOS)
        resized.info.clear()  # Pillow would write comments again
        resized.save(buffer, kind, **({"quality": _JPEG_QUALITY} if kind == "JPEG" else {}))
        content = buffer.getvalue()
    return f"data:{_AS_IT_IS[str(kind)]};base64,{base64.b64encode(content).decode()}"

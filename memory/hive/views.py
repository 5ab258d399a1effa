"""Grounded visual views: the region of an image that the conversation is about (HiVe-Mem, A.1)."""

import math
from pathlib import Path

from PIL import Image

from data.images import sent_size

MIN_SIDE = 32
"""Smaller boxes are grown around their centre to this many pixels."""
MAX_SHARE = 0.9
"""A box that covers more of the image than this is no view of its own."""

Box = tuple[float, float, float, float]


def pixel_box(box: Box | None, width: int, height: int) -> tuple[int, int, int, int] | None:
    """Turn a predicted box into the pixels to crop.

    Args:
        box: left, top, right, bottom in thousandths of the image, as predicted; may lie outside or be None.
        width: of the original image, in pixels.
        height: of the original image, in pixels.

    Returns:
        Left, top, right, bottom in pixels, inside the image; None where there is no usable box or it covers more
        than `MAX_SHARE` of the image.
    """
    if box is None:
        return None
    left, right = _side(box[0], box[2], width)
    top, bottom = _side(box[1], box[3], height)
    if left >= right or top >= bottom:
        return None
    left, right = _grown(left, right, width)
    top, bottom = _grown(top, bottom, height)
    covers_too_much = (right - left) * (bottom - top) > MAX_SHARE * width * height
    return None if covers_too_much else (left, top, right, bottom)


def save_view(original: Image.Image, pixels: tuple[int, int, int, int], path: Path) -> None:
    """Cut ``pixels`` out of the original image, downscale as any picture is, and save as PNG."""
    view = original.crop(pixels)
    size = sent_size(*view.size)
    if view.size != size:
        view = view.resize(size, Image.Resampling.LANCZOS)
    view.save(path, format="PNG")


def _side(low: float, high: float, length: int) -> tuple[int, int]:
    """One side of a box in whole pixels, clamped to the image; empty where the box is empty or outside."""
    low, high = (min(max(edge / 1000 * length, 0.0), float(length)) for edge in (low, high))
    return (math.floor(low), math.ceil(high)) if low < high else (0, 0)


def _grown(low: int, high: int, length: int) -> tuple[int, int]:
    """The side with at least `MIN_SIDE` pixels where the image has them, moved inside the image."""
    wanted = min(MIN_SIDE, length)
    if high - low >= wanted:
        return low, high
    start = min(max((low + high - wanted) // 2, 0), length - wanted)
    return start, start + wanted

"""Small pictures for tests."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from data.images import Picture, load_picture


def draw_lines(path: Path, lines: list[str], *, size: tuple[int, int] = (320, 240)) -> Picture:
    """Draw text lines in black on white and return the picture."""
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(20)
    for row, line in enumerate(lines):
        pen.text((12, 10 + 34 * row), line, fill="black", font=font)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return load_picture(path)


def noise_pictures(folder: Path, n: int, *, size: tuple[int, int] = (96, 64)) -> list[Picture]:
    """Pictures of coarse coloured noise, each of its own seed, as PNG files in ``folder``."""
    pictures = []
    for number in range(n):
        path = folder / f"noise_{number}.png"
        coarse = Image.fromarray(np.random.default_rng(number).integers(0, 256, (3, 4, 3), np.uint8))
        coarse.resize(size, Image.Resampling.NEAREST).save(path)
        pictures.append(load_picture(path))
    return pictures

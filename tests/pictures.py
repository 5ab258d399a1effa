"""Small pictures for tests."""

from pathlib import Path

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

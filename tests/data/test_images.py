"""Pictures: checked once, downscaled to what is counted, named by their bytes."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from data import images
from data.errors import ImageError
from data.images import load_picture


def saved(path: Path, size: tuple[int, int], **options: Any) -> Path:
    Image.new("RGB", size, (10, 200, 30)).save(path, **options)
    return path


def test_a_small_picture_keeps_its_size(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", (480, 360))
    picture = load_picture(path)
    assert (picture.width, picture.height) == (480, 360)
    assert picture.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    pixels = picture.pixels()
    assert (pixels.mode, pixels.size, pixels.getpixel((5, 5))) == ("RGB", (480, 360), (10, 200, 30))


def test_a_large_picture_is_downscaled_under_the_limit(tmp_path: Path) -> None:
    # 4096 x 1024 pixels are 4 times 1,048,576, so both sides are halved.
    picture = load_picture(saved(tmp_path / "a.png", (4096, 1024)))
    assert (picture.width, picture.height) == (2048, 512)
    assert picture.width * picture.height <= images.MAX_SENT_PIXELS
    assert picture.pixels().size == (2048, 512)


def test_a_thin_picture_keeps_one_pixel(tmp_path: Path) -> None:
    # scale = sqrt(1048576 / 3000000) = 0.591; the short side would be 0
    picture = load_picture(saved(tmp_path / "a.png", (3_000_000, 1)))
    assert picture.height == 1
    assert picture.width == 1_773_620  # floor(3000000 * 0.59120...)


def test_orientation_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90 degrees to view
    picture = load_picture(saved(tmp_path / "a.jpg", (40, 20), exif=exif))
    assert (picture.width, picture.height) == (20, 40)
    assert picture.pixels().size == (20, 40)


def test_missing_and_broken_files_name_the_path_and_repair(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"nothing\.png: cannot be read .*restore the file"):
        load_picture(tmp_path / "nothing.png")
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(ImageError, match=r"text\.png: not a readable image .*replace the file"):
        load_picture(tmp_path / "text.png")
    whole = saved(tmp_path / "cut.png", (300, 300)).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImageError, match=r"cut\.png: not a readable image"):
        load_picture(tmp_path / "cut.png")


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "a.png", (30, 20))
    monkeypatch.setattr(images, "MAX_DECODED_PIXELS", 599)
    with pytest.raises(ImageError, match="30 × 20 pixels is too large"):
        load_picture(path)
    monkeypatch.setattr(images, "MAX_FILE_BYTES", path.stat().st_size - 1)
    with pytest.raises(ImageError, match=r"larger than .* MiB"):
        load_picture(path)

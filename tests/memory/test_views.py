"""Tests of turning predicted boxes into views."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from memory.hive.views import pixel_box, save_view


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((500, 0, 1000, 1000), (200, 0, 400, 200)),
        ((100, 100, 300, 400), (40, 20, 120, 80)),
        ((-500, 250, 500, 1e8), (0, 50, 200, 200)),  # clamped
        ((101, 101, 299, 399), (40, 20, 120, 80)),  # 40.4 to 119.6 and 20.2 to 79.8: whole pixels around it
        ((500, 500, 505, 510), (185, 85, 217, 117)),  # 2 × 2 pixels at (200, 100) grown to 32 × 32
        ((0, 995, 10, 1000), (0, 168, 32, 200)),  # grown, moved inside
        ((0, 0, 1000, 900), (0, 0, 400, 180)),  # exactly 90 %
        ((0, 0, 1000, 905), None),  # more
        ((0, 0, 1000, 1000), None),
        ((300, 100, 100, 400), None),  # left of itself
        ((100, 100, 100, 400), None),  # empty
        ((1100, 0, 1200, 1000), None),  # outside
        (None, None),
    ],
)
def test_boxes_in_an_image_of_400_by_200(box: tuple[float, float, float, float] | None, expected: tuple[int, int, int, int] | None) -> None:
    assert pixel_box(box, 400, 200) == expected


def test_small_images_have_no_view_unless_a_part_is_shown() -> None:
    assert pixel_box((0, 0, 500, 500), 20, 20) is None  # grown to the whole image
    assert pixel_box((0, 0, 500, 100), 20, 100) == (0, 0, 20, 32)


NUMBER = st.floats(-1e8, 1e8)


@given(st.tuples(NUMBER, NUMBER, NUMBER, NUMBER), st.integers(1, 3000), st.integers(1, 3000))
def test_views_lie_inside_and_are_large_enough(box: tuple[float, float, float, float], width: int, height: int) -> None:
    pixels = pixel_box(box, width, height)
    if pixels is not None:
        left, top, right, bottom = pixels
        assert 0 <= left < right <= width and 0 <= top < bottom <= height
        assert right - left >= min(32, width) and bottom - top >= min(32, height)
        assert (right - left) * (bottom - top) <= 0.9 * width * height


def test_large_views_are_downscaled(tmp_path: Path) -> None:
    save_view(Image.new("RGB", (3000, 1500)), (0, 0, 2000, 1500), tmp_path / "view.png")
    with Image.open(tmp_path / "view.png") as view:
        # √(1,048,576 / 3,000,000) = 0.5912: 1182.4 × 886.8, rounded down
        assert (view.size, view.format) == ((1182, 886), "PNG")

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from data.errors import ImageError
from data.images import load_picture
from models.openai_compatible.images import data_url, fit
from models.openai_compatible.rendering import chat_messages
from models.requests import ImagePart, Message, Request, TextPart
from tests.models.openai_compatible.support import picture

LIMIT = 1_048_576


def decoded(url: str) -> tuple[str, bytes, Image.Image]:
    head, _, body = url.partition(",")
    content = base64.b64decode(body)
    return head, content, Image.open(io.BytesIO(content))


@pytest.mark.parametrize(("suffix", "mime"), [("png", "image/png"), ("jpg", "image/jpeg")])
def test_a_file_that_fits_is_sent_as_it_is(tmp_path: Path, suffix: str, mime: str) -> None:
    shown = picture(tmp_path / f"a.{suffix}")
    head, content, _ = decoded(data_url(shown, LIMIT))
    assert head == f"data:{mime};base64" and content == shown.path.read_bytes()


def test_a_picture_over_the_limit_is_shrunk_in_its_own_format(tmp_path: Path) -> None:
    for suffix, mime in (("png", "image/png"), ("jpg", "image/jpeg")):
        head, _, image = decoded(data_url(picture(tmp_path / f"a.{suffix}", (400, 100)), 10_000))
        # √(10,000 / 40,000) = ½.
        assert head == f"data:{mime};base64" and image.size == (200, 50) and image.format == suffix.upper().replace("JPG", "JPEG")


@pytest.mark.parametrize("suffix", ["webp", "gif", "bmp"])
def test_formats_that_not_every_server_reads_become_png(tmp_path: Path, suffix: str) -> None:
    head, _, image = decoded(data_url(picture(tmp_path / f"a.{suffix}"), LIMIT))
    assert head == "data:image/png;base64" and image.format == "PNG" and image.size == (64, 48)


def test_transparency_palettes_and_orientation_are_resolved_before_sending(tmp_path: Path) -> None:
    Image.new("RGBA", (40, 30), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    assert decoded(data_url(load_picture(tmp_path / "clear.png"), LIMIT))[2].mode == "RGB"
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    Image.linear_gradient("L").save(tmp_path / "turned.png", exif=exif)  # dark at the top of the file, so light as it is meant
    image = decoded(data_url(load_picture(tmp_path / "turned.png"), LIMIT))[2]
    assert image.convert("L").getpixel((0, 0)) == 255 and 0x0112 not in image.getexif()


def test_a_bloated_file_is_reencoded(tmp_path: Path) -> None:
    shown = picture(tmp_path / "a.jpg", (64, 48), comment=b"x" * 60_000)
    shown.path.write_bytes(shown.path.read_bytes() + b"\0" * 5_000_000)
    load_picture.cache_clear()
    _, content, image = decoded(data_url(load_picture(shown.path), LIMIT))
    assert len(content) < 10_000 and image.size == (64, 48)


def test_a_file_that_changed_or_went_is_an_error(tmp_path: Path) -> None:
    shown, gone = picture(tmp_path / "a.png"), picture(tmp_path / "b.png", color="navy")
    picture(tmp_path / "a.png", color="red")
    gone.path.unlink()
    with pytest.raises(ImageError, match="changed since the run began"):
        data_url(shown, LIMIT)
    with pytest.raises(ImageError, match=r"b\.png: cannot be read any more"):
        data_url(gone, LIMIT)


def test_sizes_keep_the_aspect_and_one_pixel_at_least() -> None:
    assert fit(100, 100, LIMIT) == (100, 100)
    assert fit(2048, 2048, LIMIT) == (1024, 1024)
    assert fit(1_000_000, 1, 10_000) == (100_000, 1)


def test_texts_are_joined_and_kept_apart_from_pictures(tmp_path: Path) -> None:
    shown = picture(tmp_path / "a.png")
    parts = (TextPart("Memory 1"), TextPart("image D1:IMG_1:"), ImagePart(shown), TextPart("Question: \ud800?"))
    request = Request("answer", "answer", (Message("system", (TextPart("Be brief."), TextPart("Thanks."))), Message("user", parts)), None)
    system, user = chat_messages(request, max_pixels=LIMIT, detail=None)
    assert system == {"role": "system", "content": "Be brief.\nThanks."}
    assert [part["type"] for part in user["content"]] == ["text", "image_url", "text"]
    assert user["content"][0]["text"] == "Memory 1\nimage D1:IMG_1:\n"
    assert user["content"][2]["text"] == "\nQuestion: ??\n"  # a lone surrogate cannot be sent
    assert user["content"][1]["image_url"] == {"url": data_url(shown, LIMIT)}
    assert chat_messages(request, max_pixels=LIMIT, detail="high")[1]["content"][1]["image_url"]["detail"] == "high"

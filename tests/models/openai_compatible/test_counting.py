import pytest

from models.encoders.minilm import MiniLM
from models.errors import BackendError
from models.openai_compatible.counting import RuleCounter, image_detail, patch_tokens, tile_tokens
from tests.models.openai_compatible.support import TOKENIZER


def counter(image_tokens: str, *, tokenizer: str = TOKENIZER, max_image_pixels: int = 1_048_576) -> RuleCounter:
    return RuleCounter(tokenizer, image_tokens=image_tokens, max_image_pixels=max_image_pixels)


def test_text_is_counted_by_the_named_tokenizer() -> None:
    text = "A pelican's umbrella, 2031-04-02."
    assert counter("none").count_text(text) == MiniLM().counter.count_text(text)
    assert counter("none", tokenizer=f"{TOKENIZER}/tokenizer.json").count_text(text) == MiniLM().counter.count_text(text)


def test_openais_encodings_are_counted_offline() -> None:
    pytest.importorskip("bpe_openai", reason="bpe-openai is not installed")
    # Published examples of both encodings: "tiktoken is great!" is 6 tokens in cl100k_base ([83, 1609, 5963, 374, 2294, 0]).
    assert counter("none", tokenizer="cl100k_base").count_text("tiktoken is great!") == 6
    assert counter("none", tokenizer="o200k_base").count_text("hello world") == 2
    assert counter("none", tokenizer="o200k_base").count_text("<|endoftext|>") > 1  # text, not the special token


@pytest.mark.parametrize("tokenizer", ["o300k_base", "/nowhere/tokenizer.json", __file__])
def test_an_unknown_tokenizer_is_an_error_that_says_what_to_name(tokenizer: str) -> None:
    with pytest.raises(BackendError, match=r"name the tokenizer\.json.*o200k_base, cl100k_base"):
        counter("none", tokenizer=tokenizer)


def test_patches_follow_the_published_examples() -> None:
    # 1024 × 1024: 32 × 32 patches. 1800 × 2400: 57 × 75 is over 1536, shrunk to 1056 × 1408, 33 × 44 patches.
    assert patch_tokens(1024, 1024, multiplier=1.0, budget=1536) == 1024
    assert patch_tokens(1800, 2400, multiplier=1.0, budget=1536) == 1452
    # Users measured 77, 922 and 1844 tokens at 1.2 for 64, 768 and 1536 patches: rounded up.
    assert patch_tokens(256, 256, multiplier=1.2, budget=1536) == 77
    assert patch_tokens(768, 1024, multiplier=1.2, budget=1536) == 922
    assert patch_tokens(2048, 768, multiplier=1.2, budget=1536) == 1844


def test_a_very_long_picture_stays_within_the_patch_budget() -> None:
    # One row of 100,000 / 32 = 3125 patches cannot keep its height: it is cut down to the budget.
    assert patch_tokens(100_000, 8, multiplier=1.0, budget=1536) <= 1536
    assert patch_tokens(1, 1, multiplier=1.62, budget=1536) == 2  # one patch, 1.62 rounded up


def test_tiles_follow_the_published_examples() -> None:
    # 1024 × 1024 → 768 × 768: 4 tiles, 85 + 4 · 170. 2048 × 4096 → 1024 × 2048 → 768 × 1536: 6 tiles, 85 + 6 · 170.
    assert tile_tokens(1024, 1024, base=85, tile=170) == 765
    assert tile_tokens(2048, 4096, base=85, tile=170) == 1105
    # Small pictures are not enlarged: users measured one tile for 128 × 64.
    assert tile_tokens(128, 64, base=85, tile=170) == 255


@pytest.mark.parametrize(
    ("rule", "tokens"),
    [
        ("qwen3_vl", 80),  # 320 × 256: 10 × 8 squares of 32
        ("gpt-4.1-mini", 130),  # 80 patches · 1.62 = 129.6
        ("gpt-4.1-mini-2025-04-14", 130),
        ("gpt-4o", 255),  # one tile
        ("gpt-4o-mini", 8500),  # 2833 + 5667
        ("gpt-5-2025-08-07", 210),  # 70 + 140
    ],
)
def test_pictures_are_counted_by_the_named_rule(rule: str, tokens: int) -> None:
    assert counter(rule).count_image(320, 256) == tokens


def test_pictures_are_counted_at_the_size_at_which_they_are_sent() -> None:
    # 1024 × 1024 shrunk to 65,536 pixels is 256 × 256: 8 × 8 squares.
    assert counter("qwen3_vl", max_image_pixels=65_536).count_image(1024, 1024) == 64


def test_an_unknown_rule_lists_what_is_known() -> None:
    with pytest.raises(BackendError, match=r"image_tokens='gpt-9'.*qwen3_vl, none, gpt-5-mini.*gpt-4o.*image_tokens\.yaml"):
        counter("gpt-9")


def test_a_model_without_pictures_counts_none() -> None:
    with pytest.raises(BackendError, match="image_tokens=none says that the model takes none"):
        counter("none").count_image(64, 64)


def test_detail_is_asked_for_where_the_rule_assumes_it() -> None:
    assert (image_detail("gpt-4o"), image_detail("qwen3_vl"), image_detail("none")) == ("high", None, None)

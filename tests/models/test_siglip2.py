"""SigLIP2 on a tiny model of its layout: text and pictures in one space. No torchvision needed."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer
from transformers import SiglipModel

from data.images import Picture, load_picture
from models.encoders.cached import CachedTextImageEncoder
from models.encoders.siglip2 import SigLIP2
from models.errors import WeightsError
from models.store import ContentStore
from tests.models.tiny_qwen import build_tiny_siglip2
from tests.pictures import noise_pictures
from tests.vlm import pretrained

TEXTS = [f"picture {number} of the conversation" for number in range(19)] + ["word " * 200]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_siglip2(tmp_path_factory.mktemp("siglip"))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Picture]:
    return noise_pictures(tmp_path_factory.mktemp("pictures"), 20)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SigLIP2:
    return SigLIP2(pretrained(folder, batch_size=8))


def test_twenty_texts_and_twenty_pictures_are_unit_vectors_of_one_space(encoder: SigLIP2, pictures: list[Picture]) -> None:
    texts, images = encoder.encode(TEXTS), encoder.encode_images(pictures)
    for vectors in (texts, images):
        assert vectors.shape == (20, encoder.dimension) and vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
        assert len(np.unique(vectors.round(4), axis=0)) == 20
    assert encoder.encode([]).shape == encoder.encode_images([]).shape == (0, encoder.dimension)


def test_a_vector_does_not_depend_on_its_batch(encoder: SigLIP2, pictures: list[Picture]) -> None:
    np.testing.assert_allclose(encoder.encode(TEXTS), np.concatenate([encoder.encode([text]) for text in TEXTS]), atol=1e-5)
    alone = np.concatenate([encoder.encode_images([picture]) for picture in pictures])
    np.testing.assert_allclose(encoder.encode_images(pictures), alone, atol=1e-5)


def test_texts_are_formed_as_in_training(encoder: SigLIP2, folder: Path) -> None:
    # Lower case, at most 63 tokens, the end token (1), padding (0) up to 64 that is attended to.
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode("a text", add_special_tokens=False).ids
    model = SiglipModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = model.get_text_features(input_ids=torch.tensor([[*ids, 1, *[0] * (63 - len(ids))]])).pooler_output[0].numpy()
    np.testing.assert_allclose(encoder.encode(["A Text"])[0], expected / np.linalg.norm(expected), atol=1e-5)
    np.testing.assert_array_equal(encoder.encode(["word " * 200]), encoder.encode(["word " * 300]))


def test_a_picture_is_the_model_s_own_for_its_pixels(encoder: SigLIP2, folder: Path, tmp_path: Path) -> None:
    Image.new("RGB", (64, 64), (255, 0, 127)).save(tmp_path / "plain.png")  # the model's size, so nothing is resized
    model = SiglipModel.from_pretrained(folder).eval()
    pixels = torch.tensor([1.0, -1.0, 127 / 127.5 - 1]).reshape(1, 3, 1, 1).expand(1, 3, 64, 64)
    with torch.inference_mode():
        expected = model.get_image_features(pixel_values=pixels).pooler_output[0].numpy()
    found = encoder.encode_images([load_picture(tmp_path / "plain.png")])[0]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-5)


def test_vectors_are_kept_by_content_and_encoder(folder: Path, pictures: list[Picture], tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "vectors.sqlite")
    first = CachedTextImageEncoder(SigLIP2(pretrained(folder)), store=store)
    texts, images = first.encode(TEXTS), first.encode_images(pictures)
    again = SigLIP2(pretrained(folder, device="nonsense"))  # cannot compute anything
    cached = CachedTextImageEncoder(again, store=store)
    np.testing.assert_array_equal(cached.encode(TEXTS[::-1]), texts[::-1])
    np.testing.assert_array_equal(cached.encode_images([pictures[3], pictures[3]]), images[[3, 3]])
    with pytest.raises(WeightsError, match="nonsense"):
        cached.encode(["a new text"])
    other = SigLIP2(pretrained(build_tiny_siglip2(tmp_path / "other", seed=1)))
    assert other.id != first.id
    assert np.abs(CachedTextImageEncoder(other, store=store).encode(TEXTS) - texts).max() > 0.01


def test_another_tokenizer_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    path = copy / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace("<eos>", "<end>"), encoding="utf-8")
    with pytest.raises(WeightsError, match="no <eos> and <pad>"):
        SigLIP2(pretrained(copy)).encode(["a"])
    path.unlink()
    with pytest.raises(WeightsError, match=r"tokenizer\.json: cannot be read"):
        SigLIP2(pretrained(copy)).encode(["a"])

"""Qwen3-VL-Embedding on a tiny model of its layout: texts, pictures and both in one space."""

from pathlib import Path

import numpy as np
import pytest

from data.images import Picture
from models.encoders.cached import CachedJointEncoder
from models.encoders.qwen3_vl_embedding import Qwen3VLEmbedding
from models.errors import BackendError, WeightsError
from models.store import ContentStore
from tests.models.tiny_qwen import build_tiny_qwen3_vl
from tests.pictures import noise_pictures
from tests.vlm import needs_vlm, pretrained

pytestmark = needs_vlm
DIMENSION = 48
TEXTS = [f"which picture shows number {number}, and " + "why " * number for number in range(20)]
INSTRUCTION = "Represent the user's input."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_qwen3_vl(tmp_path_factory.mktemp("embedding"), dimension=DIMENSION)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Picture]:
    return noise_pictures(tmp_path_factory.mktemp("pictures"), 20)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Qwen3VLEmbedding:
    return Qwen3VLEmbedding(pretrained(folder, batch_size=6))


def test_twenty_texts_pictures_and_pairs_are_unit_vectors_of_one_space(encoder: Qwen3VLEmbedding, pictures: list[Picture]) -> None:
    pairs = [(text, (picture,)) for text, picture in zip(TEXTS, pictures, strict=True)]
    together = [encoder.encode(TEXTS), encoder.encode_images(pictures), encoder.encode_joint(pairs)]
    assert encoder.dimension == DIMENSION
    for vectors in together:
        assert vectors.shape == (20, DIMENSION) and vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert len(np.unique(np.concatenate(together).round(4), axis=0)) == 60
    assert encoder.encode([]).shape == (0, DIMENSION)
    # A pair is neither its text nor its picture, and the second picture of two counts.
    both = encoder.encode_joint([("", (pictures[0], pictures[1])), ("", (pictures[0], pictures[2]))])
    assert np.abs(both[0] - both[1]).max() > 1e-3


def test_a_vector_does_not_depend_on_its_batch(encoder: Qwen3VLEmbedding, pictures: list[Picture]) -> None:
    items = [(text, (picture,) * (number % 3)) for number, (text, picture) in enumerate(zip(TEXTS, pictures, strict=True))]
    alone = np.concatenate([encoder.encode_joint([item]) for item in items])
    np.testing.assert_allclose(encoder.encode_joint(items), alone, atol=1e-5)


def test_it_agrees_with_sentence_transformers(encoder: Qwen3VLEmbedding, folder: Path, pictures: list[Picture]) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.base.modules.normalize import Normalize
    from sentence_transformers.sentence_transformer.modules import Pooling

    options = {"chat_template": {"add_generation_prompt": True}, "image": {"do_resize": False}}
    transformer = Transformer(str(folder), model_kwargs={"use_safetensors": True}, processing_kwargs=options)
    theirs = SentenceTransformer(modules=[transformer, Pooling(DIMENSION, "lasttoken"), Normalize()], device="cpu", local_files_only=True)
    # The pictures are 96 × 64 already, so that no resizing is compared.
    shown = [{"role": "user", "content": [{"type": "image", "image": pictures[0].pixels()}, {"type": "text", "text": TEXTS[0]}]}]
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs.encode(TEXTS, prompt=INSTRUCTION), atol=1e-5)
    found = encoder.encode_joint([(TEXTS[0], (pictures[0],))])
    np.testing.assert_allclose(found, theirs.encode([shown], prompt=INSTRUCTION), atol=1e-5)


def test_a_text_is_cut_and_too_many_pictures_are_refused(encoder: Qwen3VLEmbedding, pictures: list[Picture]) -> None:
    long = encoder.encode(["memory image " * 6000, "memory image " * 7000])
    np.testing.assert_array_equal(long[0], long[1])
    # A picture of 96 × 64 takes 6 tokens and 2 around it: 1,017 of them take 8,136 of the 8,192 less 64.
    with pytest.raises(BackendError, match="1017 pictures take 8136 tokens"):
        encoder.encode_joint([("", tuple(pictures[:1] * 1017))])


def test_vectors_are_kept_by_content_and_encoder(folder: Path, pictures: list[Picture], tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "vectors.sqlite")
    items = [(text, (picture,)) for text, picture in zip(TEXTS[:4], pictures[:4], strict=True)]
    first = CachedJointEncoder(Qwen3VLEmbedding(pretrained(folder)), store=store)
    vectors = [first.encode(TEXTS[:4]), first.encode_images(pictures[:4]), first.encode_joint(items)]
    cached = CachedJointEncoder(Qwen3VLEmbedding(pretrained(folder, device="nonsense")), store=store)  # cannot compute anything
    np.testing.assert_array_equal(cached.encode(TEXTS[:4]), vectors[0])
    np.testing.assert_array_equal(cached.encode_images(pictures[:4]), vectors[1])
    np.testing.assert_array_equal(cached.encode_joint(items[::-1]), vectors[2][::-1])
    with pytest.raises(WeightsError, match="nonsense"):
        cached.encode_joint([(TEXTS[0], (pictures[1],))])
    other = Qwen3VLEmbedding(pretrained(build_tiny_qwen3_vl(tmp_path / "other", seed=1, dimension=DIMENSION)))
    assert other.id != first.id and Qwen3VLEmbedding(pretrained(folder, dtype="bfloat16")).id != first.id

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from data.images import load_picture
from models.encoders.cached import content_key
from models.encoders.efficientnet import EfficientNetLite0
from models.errors import WeightsError
from models.store import ContentStore


def _scene(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (240, 180), tuple(int(c) for c in rng.integers(120, 255, 3)))
    draw = ImageDraw.Draw(image)
    for _ in range(6):
        x, y, side = rng.integers(0, 180), rng.integers(0, 120), rng.integers(20, 60)
        draw.rectangle((x, y, x + side, y + side), fill=tuple(int(c) for c in rng.integers(0, 255, 3)))
    image.save(path)
    return path


def test_vectors_have_unit_norm_and_find_the_picture_that_was_cropped(tmp_path: Path) -> None:
    encoder = EfficientNetLite0(ContentStore(None))
    scenes = [load_picture(_scene(tmp_path / f"{seed}.png", seed)) for seed in range(4)]
    cut = tmp_path / "cut.png"
    scenes[2].pixels().crop((10, 10, 225, 170)).save(cut)
    vectors = encoder.encode_images([load_picture(cut), *scenes])
    assert vectors.shape == (5, 1280) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert int(np.argmax(vectors[1:] @ vectors[0])) == 2


def test_a_stored_vector_is_not_computed_again(tmp_path: Path) -> None:
    store = ContentStore(None)
    picture = load_picture(_scene(tmp_path / "a.png", 1))
    vector = np.arange(1280, dtype="<f4") / 1000
    store.put(f"image vectors of {EfficientNetLite0.id}", {content_key(picture): vector.tobytes()})
    missing = EfficientNetLite0(store, weights=tmp_path / "no such file")
    np.testing.assert_array_equal(missing.encode_images([picture, picture]), np.stack([vector, vector]))


def test_no_pictures_need_no_weights(tmp_path: Path) -> None:
    assert EfficientNetLite0(ContentStore(None), weights=tmp_path / "no such file").encode_images([]).shape == (0, 1280)


@pytest.mark.parametrize("content", [b"not weights", None])
def test_other_weights_are_refused_before_they_are_read(tmp_path: Path, content: bytes | None) -> None:
    weights = tmp_path / "weights.pth"
    if content is not None:
        weights.write_bytes(content)
    expected = "cannot be read" if content is None else hashlib.sha256(content).hexdigest()
    with pytest.raises(WeightsError, match=expected) as error:
        EfficientNetLite0(ContentStore(None), weights=weights).encode_images([load_picture(_scene(tmp_path / "a.png", 1))])
    assert str(weights) in str(error.value) and "reinstall" in str(error.value)

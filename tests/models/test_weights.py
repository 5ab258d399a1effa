"""Weights on disk: found, named by content, refused when they are not whole. No torchvision needed."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from transformers import SiglipModel

from models.encoders.qwen3_vl_embedding import Qwen3VLEmbedding
from models.encoders.siglip2 import SigLIP2
from models.errors import DependencyMissing, WeightsError
from models.qwen3_vl.backend import Qwen3VL, Qwen3VLSettings
from models.weights import Weights
from tests.models.tiny_qwen import build_tiny_siglip2
from tests.vlm import pretrained


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_siglip2(tmp_path_factory.mktemp("siglip"))


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(published, tmp_path / "copy"))


def opened(folder: Path, **changes: str) -> Weights:
    return Weights(pretrained(folder, **changes), model_type="siglip")


def test_the_identity_is_that_of_the_content_and_the_number_format(folder: Path) -> None:
    name = opened(folder).identity()
    assert name.startswith("siglip-") and name.endswith("-float32")
    moved = folder.rename(folder.parent / "elsewhere")
    (moved / "README.md").write_text("a new model card")
    assert opened(moved).identity() == name
    assert opened(moved, dtype="bfloat16").identity() == name.replace("float32", "bfloat16")
    weights = moved / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1  # one bit of one weight
    weights.write_bytes(content)
    changed = opened(moved).identity()
    assert changed != name
    (moved / "chat_template.jinja").write_text("another template")
    assert opened(moved).identity() not in (name, changed)


def test_a_model_that_is_not_here_says_how_to_get_it() -> None:
    with pytest.raises(WeightsError, match=r"neither a folder nor .* downloaded[\s\S]*hf download some/model --revision abc"):
        Weights(pretrained(Path("some/model"), revision="abc"), model_type="siglip")
    with pytest.raises(WeightsError, match="Name a folder"):
        Weights(pretrained(Path("/no/such/folder")), model_type="siglip")


def test_all_that_is_wrong_with_a_folder_is_said_at_once(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(WeightsError) as told:
        opened(folder)
    assert "model_type 'llama', not 'siglip'" in str(told.value) and "weights in pickle" in str(told.value)


@pytest.mark.parametrize(("content", "message"), [("{", "is not JSON"), ("[]", "must be a JSON object"), (None, "cannot be read")])
def test_a_damaged_configuration(folder: Path, content: str | None, message: str) -> None:
    (folder / "config.json").unlink() if content is None else (folder / "config.json").write_text(content)
    with pytest.raises(WeightsError, match=message):
        opened(folder)


def test_damaged_weights_are_never_made_up(folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WeightsError, match="cannot be loaded"):
        opened(folder).load(SiglipModel)
    path.write_bytes(whole)
    tensors = load_file(path)
    del tensors["logit_scale"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(WeightsError, match="1 weights are missing, logit_scale among them"):
        opened(folder).load(SiglipModel)


def test_a_device_that_is_not_there(folder: Path) -> None:
    with pytest.raises(WeightsError, match="'nonsense' cannot be used"):
        opened(folder, device="nonsense").load(SiglipModel)


@pytest.mark.parametrize("model", [Qwen3VL, Qwen3VLEmbedding])
def test_a_missing_package_is_told_with_its_command(folder: Path, monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    settings = Qwen3VLSettings(**vars(pretrained(folder)), batch_tokens=1000)
    with pytest.raises(DependencyMissing, match=r"torchvision is needed .*: pip install torch==.* torchvision=="):
        model(settings)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(DependencyMissing, match=r"transformers is needed .*: pip install transformers"):
        SigLIP2(settings)

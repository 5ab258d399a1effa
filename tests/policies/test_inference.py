"""Selecting with an exported policy: equal to torch, without torch, and safe with damaged files."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from policies.errors import ArtefactError
from policies.export import build_onnx
from policies.inference import Selector
from tests.policies.test_export import FORMS, D, F, K, export, make_policy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an exported selector."""
    path = tmp_path_factory.mktemp("export") / "selector"
    export(make_policy(), path)
    return path


def inputs(batch: int, memories: int, *, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    """Return unit-norm queries and summaries, and availability; memories without a form are zero rows."""
    rng = np.random.default_rng(seed)
    query, summaries = rng.standard_normal((batch, D)), rng.standard_normal((batch, memories, D))
    available = rng.random((batch, memories, F)) < 0.6
    available[0, 0] = False
    query /= np.linalg.norm(query, axis=-1, keepdims=True)
    summaries /= np.linalg.norm(summaries, axis=-1, keepdims=True)
    summaries[~available.any(axis=-1)] = 0
    return query.astype(np.float32), summaries.astype(np.float32), available


def test_selections_equal_the_policys(folder: Path) -> None:
    selector, policy = Selector.load(folder), make_policy()
    query, summaries, available = inputs(200, K)
    chosen = selector.select_batch(query, summaries, available)
    observation: dict[str, NDArray[Any]] = {"query": query, "summaries": summaries.reshape(200, -1), "available": available.astype(np.int8)}
    expected, _ = policy.predict(observation, deterministic=True)
    np.testing.assert_array_equal(chosen, expected.reshape(200, K, F) > 0.5)
    assert chosen.dtype == np.bool_ and 0.1 < chosen[available].mean() < 0.9
    assert not (chosen & ~available).any()
    for row in (0, 7):
        np.testing.assert_array_equal(selector.select(query[row], summaries[row], available[row]), chosen[row])
    torch_logits = policy.logits(torch.from_numpy(query), torch.from_numpy(summaries))
    np.testing.assert_allclose(selector.probabilities(query, summaries), torch.sigmoid(torch_logits).numpy(), atol=1e-5)


def test_the_threshold_of_the_document_decides(tmp_path: Path) -> None:
    query, summaries, available = inputs(50, K)
    counts = []
    for threshold in (0.2, 0.5, 0.8):
        export(make_policy(), tmp_path / "selector", threshold=threshold)
        selector = Selector.load(tmp_path / "selector")
        chosen = selector.select_batch(query, summaries, available)
        counts.append(int(chosen.sum()))
        np.testing.assert_array_equal(chosen, (selector.probabilities(query, summaries) > threshold) & available)
    assert counts[0] > counts[1] > counts[2] > 0


def test_any_number_of_memories_and_none(folder: Path) -> None:
    selector = Selector.load(folder)
    for memories in (1, 3, 20):
        query, summaries, available = inputs(4, memories)
        assert selector.select_batch(query, summaries, available).shape == (4, memories, F)
    query, _, _ = inputs(1, 1)
    assert selector.select(query[0], np.zeros((0, D), np.float32), np.zeros((0, F), bool)).shape == (0, F)
    assert selector.select_batch(query[:0], np.zeros((0, 2, D), np.float32), np.zeros((0, 2, F), bool)).shape == (0, 2, F)


def test_float64_is_accepted(folder: Path) -> None:
    selector = Selector.load(folder)
    query, summaries, available = inputs(3, K)
    expected = selector.select_batch(query, summaries, available)
    np.testing.assert_array_equal(selector.select_batch(query.astype(float), summaries.astype(float), available), expected)


def test_wrong_inputs_are_named_together(folder: Path) -> None:
    selector = Selector.load(folder)
    query, summaries, available = inputs(2, K)
    message = r"query vectors must have length 48 \(encoder text-encoder-1\), got shape \(2, 47\).*available must be bool \(2, 7, 5\)"
    with pytest.raises(ValueError, match=message):
        selector.select_batch(query[:, 1:], summaries, available.astype(np.int8))
    with pytest.raises(ValueError, match="summaries must be one"):
        selector.select_batch(query, summaries[:1], available)
    with pytest.raises(ValueError, match=r"query vectors must have unit norm, found 19\.6"):
        selector.select_batch(np.float32(19.6) * query, summaries, available)
    summaries[1, 2] = np.nan
    available[1, 2] = True
    with pytest.raises(ValueError, match="summary vectors must have unit norm, found nan"):
        selector.select_batch(query, summaries, available)


def test_another_encoder_is_refused(folder: Path) -> None:
    assert Selector.load(folder, encoder_id="text-encoder-1").forms == FORMS
    with pytest.raises(ArtefactError, match="reads vectors of encoder 'text-encoder-1', not of 'other'"):
        Selector.load(folder, encoder_id="other")


def test_inference_needs_neither_torch_nor_the_training_stack(folder: Path) -> None:
    """In a fresh process, loading and selecting import none of the training libraries, directly or not."""
    program = f"""
import json, sys
import numpy as np
from policies.inference import Selector
selector = Selector.load({str(folder)!r})
vector = np.zeros({D}, np.float32); vector[0] = 1
chosen = selector.select(vector, np.stack([vector] * 7), np.ones((7, {F}), bool))
banned = {{"torch", "stable_baselines3", "gymnasium", "onnx", "safetensors", "wandb", "tensorboard", "pandas", "matplotlib"}}
print(json.dumps([chosen.sum().item(), sorted(banned & {{name.split(".")[0] for name in sys.modules}})]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    count, imported = json.loads(done.stdout)
    vector = torch.zeros(1, D)
    vector[0, 0] = 1
    assert count == int((make_policy().logits(vector, vector.repeat(1, 7, 1)) > 0).sum())
    assert imported == []


def corrupt(folder: Path, tmp_path: Path, name: str, data: bytes | None) -> Path:
    """Return a copy of the export with one file replaced (or removed)."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    if data is None:
        (copy / name).unlink()
    else:
        (copy / name).write_bytes(data)
    return copy


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "cannot be read"),
        (b"", "is not a JSON document"),
        (b"\xff\xfe\x00", "is not a JSON document"),
        (b"[" * 200_000, "is not a JSON document"),
        (b'{"threshold": NaN}', "NaN is not a JSON number"),
        (b" " * 1_000_001, "is larger than the 1000000 bytes"),
        (b"[]", "does not describe a selector"),
        (b'{"format": "evidence-gym-selector", "format_version": 7}', "format_version is 7, this program reads 1"),
    ],
)
def test_damaged_documents_give_one_clear_error(folder: Path, tmp_path: Path, data: bytes | None, message: str) -> None:
    with pytest.raises(ArtefactError, match=message):
        Selector.load(corrupt(folder, tmp_path, "selector.json", data))


def test_all_violations_of_a_document_are_reported(folder: Path, tmp_path: Path) -> None:
    document = json.loads((folder / "selector.json").read_text())
    document["threshold"] = "high"
    document["forms"] = ["raw", "raw"]
    document["files"]["../secret"] = document["files"]["selector.onnx"]
    del document["encoder"]["id"]
    with pytest.raises(ArtefactError) as refused:
        Selector.load(corrupt(folder, tmp_path, "selector.json", json.dumps(document).encode()))
    for part in ("$.threshold: 'high'", "$.forms:", "'../secret' was unexpected", "$.encoder: 'id' is a required property"):
        assert part in str(refused.value)


@pytest.mark.parametrize(("name", "value"), [("threshold", "high"), ("threshold", 1.5), ("forms", []), ("encoder", {}), ("files", [])])
def test_without_jsonschema_a_selector_works_and_bad_documents_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    assert Selector.load(folder).forms
    document = json.loads((folder / "selector.json").read_text()) | {name: value}
    with pytest.raises(ArtefactError, match="does not describe a selector"):
        Selector.load(corrupt(folder, tmp_path, "selector.json", json.dumps(document).encode()))


@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "flipped"])
def test_damaged_models_give_one_clear_error(folder: Path, tmp_path: Path, damage: str) -> None:
    data = (folder / "selector.onnx").read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    changed = {"missing": None, "empty": b"", "truncated": data[:1000], "flipped": bytes(flipped)}[damage]
    with pytest.raises(ArtefactError, match="cannot be read" if damage == "missing" else "is not the file that"):
        Selector.load(corrupt(folder, tmp_path, "selector.onnx", changed))


def forge(folder: Path, tmp_path: Path, model: bytes, **changes: Any) -> Path:
    """Return a copy whose document vouches for another model."""
    copy = corrupt(folder, tmp_path, "selector.onnx", model)
    document = json.loads((copy / "selector.json").read_text()) | changes
    document["files"]["selector.onnx"] = {"bytes": len(model), "sha256": hashlib.sha256(model).hexdigest()}
    (copy / "selector.json").write_text(json.dumps(document))
    return copy


def test_models_that_do_not_fit_their_document_are_refused(folder: Path, tmp_path: Path) -> None:
    data = (folder / "selector.onnx").read_bytes()
    cases: list[tuple[bytes, dict[str, Any], str]] = [
        (b"not a model", {}, "is not a model that onnxruntime can run"),
        (data, {"forms": ["raw", "summary"]}, r"logits of shape \(2, 3, 5\), expected finite \(2, 3, 2\)"),
        (data, {"encoder": {"id": "e", "dimension": 384}}, "has inputs"),
    ]
    model = build_onnx(make_policy().network)
    model.graph.output[0].name = "scores"
    model.graph.node[-1].output[0] = "scores"
    cases.append((model.SerializeToString(), {}, "has inputs"))
    infinite = make_policy()
    with torch.no_grad():
        infinite.network.logit_layer.bias.fill_(float("inf"))
    cases.append((build_onnx(infinite.network).SerializeToString(), {}, "expected finite"))
    for index, (content, changes, message) in enumerate(cases):
        (tmp_path / str(index)).mkdir()
        with pytest.raises(ArtefactError, match=message):
            Selector.load(forge(folder, tmp_path / str(index), content, **changes))

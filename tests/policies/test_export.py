"""The exported artefact: parity with torch, all or nothing, and what is refused."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from gymnasium import spaces
from jsonschema import Draft202012Validator
from onnx import numpy_helper
from safetensors.torch import load_file

from policies.artefact import DOCUMENT_SCHEMA, read_document
from policies.checkpoint import load_weights
from policies.errors import ArtefactError, ExportError
from policies.export import PARITY_TOLERANCE, build_onnx, check_parity, export_selector
from policies.selector import SelectorPolicy

D, K, F = 48, 7, 5
FORMS = ("raw", "summary", "caption", "image", "view")


def make_policy(*, seed: int = 0, gain: float = 100.0, **options: Any) -> SelectorPolicy:
    """Return a policy with random weights whose logits spread over several units, as after training."""
    torch.manual_seed(seed)
    observation = spaces.Dict(
        {
            "query": spaces.Box(-1, 1, (D,), np.float32),
            "summaries": spaces.Box(-1, 1, (K * D,), np.float32),
            "available": spaces.MultiBinary([K, F]),
        }
    )
    policy = SelectorPolicy(observation, spaces.MultiBinary(K * F), lambda _: 1e-3, **({"hidden_sizes": (32, 32, 32)} | options))
    with torch.no_grad():
        policy.network.logit_layer.weight.mul_(gain)
        for parameter in policy.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return policy


def export(policy: SelectorPolicy, folder: Path, **changes: Any) -> Any:
    """Export with ordinary settings."""
    settings: dict[str, Any] = {
        "forms": FORMS,
        "encoder_id": "text-encoder-1",
        "encoder_dimension": D,
        "threshold": 0.5,
        "metric_profile": "mem_gallery",
        "provenance": {"seed": 0, "cost_weight": 0.1, "versions": {"torch": torch.__version__}},
    }
    return export_selector(policy, folder, **(settings | changes))


@pytest.mark.parametrize("options", [{}, {"activation": "tanh"}, {"input_scale": 1.0}, {"hidden_sizes": (24,)}])
@pytest.mark.parametrize("seed", [0, 1])
def test_onnx_equals_torch_for_any_batch_and_number_of_memories(options: dict[str, Any], seed: int) -> None:
    policy = make_policy(seed=seed, **options)
    session = onnxruntime.InferenceSession(build_onnx(policy.network).SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    largest = 0.0
    for batch, memories in ((1, 1), (2, 7), (5, 13), (33, 3)):
        query = rng.standard_normal((batch, D)).astype(np.float32)
        summaries = rng.standard_normal((batch, memories, D)).astype(np.float32)
        query /= np.linalg.norm(query, axis=-1, keepdims=True)
        summaries /= np.linalg.norm(summaries, axis=-1, keepdims=True)
        (logits,) = session.run(["logits"], {"query": query, "summaries": summaries})
        expected = policy.logits(torch.from_numpy(query), torch.from_numpy(summaries)).numpy()
        assert logits.shape == (batch, memories, F) and logits.dtype == np.float32
        assert (np.abs(logits - expected) <= 1e-5 * np.maximum(1, np.abs(expected))).all()
        largest = max(largest, float(np.abs(expected).max()))
    assert largest > 0.3  # The comparison is not between zeros.


def test_the_model_is_one_checked_file_with_the_scale_inside() -> None:
    policy = make_policy(input_scale=5.0)
    model = build_onnx(policy.network)
    assert all(tensor.data_location == onnx.TensorProto.DEFAULT for tensor in model.graph.initializer)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert constants["input_scale"] == np.float32(5.0)
    axes = {value.name: [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim] for value in model.graph.input}
    assert axes == {"query": ["batch", D], "summaries": ["batch", "memories", D]}


def test_the_folder_holds_what_the_document_says(tmp_path: Path) -> None:
    policy = make_policy()
    document = export(policy, tmp_path / "selector")
    folder = tmp_path / "selector"
    assert sorted(path.name for path in folder.iterdir()) == [
        "selector.json",
        "selector.onnx",
        "selector.safetensors",
        "selector.schema.json",
    ]
    assert read_document(folder) == document
    assert document.forms == FORMS and document.network.hidden_sizes == (32, 32, 32) and document.provenance["cost_weight"] == 0.1
    for name, record in document.files.items():
        data = (folder / name).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (record.bytes, record.sha256)
    assert 0 <= document.parity.largest_error <= PARITY_TOLERANCE and document.parity.logits > 1000
    schema = json.loads((folder / "selector.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    assert schema == DOCUMENT_SCHEMA
    Draft202012Validator(schema).validate(json.loads((folder / "selector.json").read_text()))
    other = make_policy(seed=7)
    load_weights(other, folder / "selector.safetensors")
    assert (other.parameters_to_vector() == policy.parameters_to_vector()).all()
    assert set(load_file(folder / "selector.safetensors")) == set(policy.network.state_dict())


def test_parity_gates_the_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is off by 1e-4 in one bias is refused, and the former export stays."""
    policy = make_policy()
    export(policy, tmp_path / "selector")
    before = (tmp_path / "selector" / "selector.onnx").read_bytes()

    def slightly_wrong(network: Any) -> onnx.ModelProto:
        model = build_onnx(network)
        (bias,) = (tensor for tensor in model.graph.initializer if tensor.name == "logit_bias")
        bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) + np.array([0, 0, 1e-4, 0, 0], np.float32), "logit_bias"))
        return model

    monkeypatch.setattr("policies.export.build_onnx", slightly_wrong)
    with pytest.raises(ExportError, match="ONNX and torch differ by"):
        export(policy, tmp_path / "selector")
    assert (tmp_path / "selector" / "selector.onnx").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["selector"]


def test_a_diverged_policy_is_refused(tmp_path: Path) -> None:
    policy = make_policy()
    with torch.no_grad():
        policy.network.logit_layer.bias.fill_(float("nan"))
    with pytest.raises(ExportError, match="not finite"):
        export(policy, tmp_path / "selector")
    assert not list(tmp_path.iterdir())


def test_an_earlier_export_is_replaced_and_other_folders_are_not(tmp_path: Path) -> None:
    export(make_policy(seed=1), tmp_path / "selector")
    export(make_policy(seed=2), tmp_path / "selector")
    other = make_policy()
    load_weights(other, tmp_path / "selector" / "selector.safetensors")
    assert (other.parameters_to_vector() == make_policy(seed=2).parameters_to_vector()).all()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(ExportError, match="is not an exported selector"):
        export(make_policy(), tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"


def test_a_failing_write_leaves_the_former_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(make_policy(seed=1), tmp_path / "selector")
    before = {path.name: path.read_bytes() for path in (tmp_path / "selector").iterdir()}

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("policies.export.save_file", fail)
    with pytest.raises(OSError, match="No space"):
        export(make_policy(seed=2), tmp_path / "selector")
    assert {path.name: path.read_bytes() for path in (tmp_path / "selector").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["selector"]


def test_a_failing_rename_puts_the_former_export_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(make_policy(seed=1), tmp_path / "selector")
    before = {path.name: path.read_bytes() for path in (tmp_path / "selector").iterdir()}
    rename = os.replace

    def fail_for_the_new_one(source: Path, target: Path) -> None:
        if source.name == "new":
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr("policies.export.os.replace", fail_for_the_new_one)
    with pytest.raises(OSError, match="Input/output error"):
        export(make_policy(seed=2), tmp_path / "selector")
    assert {path.name: path.read_bytes() for path in (tmp_path / "selector").iterdir()} == before


def test_all_wrong_settings_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"2 forms are named but the policy has 5.*dimension 384 but the policy reads 48"):
        export(make_policy(), tmp_path / "selector", forms=("raw", "summary"), encoder_dimension=384)
    with pytest.raises(ArtefactError, match=r"\$\.forms.*\$\.metric_profile.*\$\.threshold"):
        export(make_policy(), tmp_path / "selector", forms=("raw",) * 5, threshold=1.5, metric_profile="")
    with pytest.raises(ArtefactError, match="a value that JSON cannot"):
        export(make_policy(), tmp_path / "selector", provenance={"score": float("nan")})
    assert not list(tmp_path.iterdir())


def test_parity_covers_extreme_inputs() -> None:
    record = check_parity(make_policy(), build_onnx(make_policy().network).SerializeToString())
    # (1*1 + 1*7 + 16*7 + 3*40 + 64*2 + 8*3 + 4*4 + 4*3) rows of 5 logits
    assert record.logits == 5 * (1 + 7 + 112 + 120 + 128 + 24 + 16 + 12)
    assert record.tolerance == 1e-5

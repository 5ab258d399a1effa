"""Exports a trained selector as ONNX, safetensors and a JSON document, after checking that ONNX reproduces torch."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file

from policies.artefact import (
    DOCUMENT_NAME,
    DOCUMENT_SCHEMA,
    ONNX_NAME,
    SCHEMA_NAME,
    WEIGHTS_NAME,
    EncoderRecord,
    FileRecord,
    Json,
    NetworkRecord,
    ParityRecord,
    SelectorDocument,
)
from policies.errors import ExportError
from policies.network import SelectorNetwork
from policies.selector import SelectorPolicy

PARITY_TOLERANCE = 1e-5
_OPSET = 17
_IR_VERSION = 8


def export_selector(
    policy: SelectorPolicy,
    folder: Path,
    *,
    forms: Sequence[str],
    encoder_id: str,
    encoder_dimension: int,
    threshold: float,
    metric_profile: str,
    provenance: Mapping[str, Json],
) -> SelectorDocument:
    """Write an exported selector; the folder appears complete or not at all.

    Args:
        policy: The trained policy.
        folder: Where to write; an earlier export there is replaced, any other content refused.
        forms: Names of the evidence forms, in the order of the action bits.
        encoder_id: Id of the encoder of the query and summary embeddings.
        encoder_dimension: Its vector length d.
        threshold: Probability in (0, 1) above which a form is selected.
        metric_profile: Metric profile of the answer reward.
        provenance: How it was trained (seed, cost weight, data, model, commit, ...), as JSON values.

    Raises:
        ExportError: If the settings do not fit the policy, or the ONNX model differs from torch by more than 1e-5 * max(1, |logit|).
        ArtefactError: If a value does not fit the document's schema.
    """
    problems = []
    if len(forms) != policy.forms:
        problems.append(f"{len(forms)} forms are named but the policy has {policy.forms} bits a memory")
    if encoder_dimension != policy.dimension:
        problems.append(f"encoder {encoder_id} has dimension {encoder_dimension} but the policy reads {policy.dimension}")
    if folder.exists() and not (folder.is_dir() and ((folder / DOCUMENT_NAME).is_file() or not any(folder.iterdir()))):
        problems.append(f"{folder} exists and is not an exported selector; choose another folder")
    if problems:
        raise ExportError("; ".join(problems))
    model = build_onnx(policy.network).SerializeToString()
    parity = check_parity(policy, model)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        aside = Path(scratch) / "new"
        aside.mkdir()
        (aside / ONNX_NAME).write_bytes(model)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in policy.network.state_dict().items()}
        save_file(weights, aside / WEIGHTS_NAME)
        document = SelectorDocument(
            forms=tuple(forms),
            threshold=threshold,
            encoder=EncoderRecord(id=encoder_id, dimension=encoder_dimension),
            metric_profile=metric_profile,
            network=NetworkRecord(hidden_sizes=policy.hidden_sizes, activation=policy.hidden_activation, input_scale=policy.input_scale),
            files={name: _describe(aside / name) for name in (ONNX_NAME, WEIGHTS_NAME)},
            parity=parity,
            provenance=dict(provenance),
        )
        for name, content in ((DOCUMENT_NAME, document.to_json()), (SCHEMA_NAME, DOCUMENT_SCHEMA)):
            (aside / name).write_text(json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        _swap(aside, folder, retired=Path(scratch) / "old")
    return document


def build_onnx(network: SelectorNetwork) -> onnx.ModelProto:
    """Return the selector as one ONNX model, dynamic in batch B and memories N.

    Inputs are ``query`` (B, d) and ``summaries`` (B, N, d), unit-norm float32; the output is ``logits`` (B, N, F). The input scale is
    part of the model.
    """
    dimension, forms = network.query_layer.in_features, network.logit_layer.out_features
    constants: dict[str, NDArray[np.generic]] = {
        "input_scale": np.array(network.input_scale, np.float32),
        "memory_axis": np.array([1], np.int64),
    }

    def weights(layer: torch.nn.Linear, name: str) -> None:
        constants[f"{name}_weight"] = layer.weight.detach().numpy().T.copy()
        if layer.bias is not None:
            constants[f"{name}_bias"] = layer.bias.detach().numpy().copy()

    activation = {"relu": "Relu", "tanh": "Tanh"}[network.activation]
    weights(network.query_layer, "query")
    weights(network.summary_layer, "summary")
    nodes = [
        helper.make_node("Mul", ["query", "input_scale"], ["query_scaled"]),
        helper.make_node("Mul", ["summaries", "input_scale"], ["summaries_scaled"]),
        helper.make_node("MatMul", ["query_scaled", "query_weight"], ["query_product"]),
        helper.make_node("Add", ["query_product", "query_bias"], ["query_projected"]),
        helper.make_node("Unsqueeze", ["query_projected", "memory_axis"], ["query_row"]),
        helper.make_node("MatMul", ["summaries_scaled", "summary_weight"], ["summaries_projected"]),
        helper.make_node("Add", ["query_row", "summaries_projected"], ["joined"]),
        helper.make_node(activation, ["joined"], ["hidden_0"]),
    ]
    for index, layer in enumerate(network.hidden_layers, start=1):
        assert isinstance(layer, torch.nn.Linear)
        weights(layer, f"layer_{index}")
        nodes += [
            helper.make_node("MatMul", [f"hidden_{index - 1}", f"layer_{index}_weight"], [f"product_{index}"]),
            helper.make_node("Add", [f"product_{index}", f"layer_{index}_bias"], [f"sum_{index}"]),
            helper.make_node(activation, [f"sum_{index}"], [f"hidden_{index}"]),
        ]
    weights(network.logit_layer, "logit")
    nodes += [
        helper.make_node("MatMul", [f"hidden_{len(network.hidden_layers)}", "logit_weight"], ["logit_product"]),
        helper.make_node("Add", ["logit_product", "logit_bias"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "evidence_selector",
        [
            helper.make_tensor_value_info("query", TensorProto.FLOAT, ["batch", dimension]),
            helper.make_tensor_value_info("summaries", TensorProto.FLOAT, ["batch", "memories", dimension]),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "memories", forms])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, producer_name="evidence-gym", opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = _IR_VERSION
    onnx.checker.check_model(model, full_check=True)
    return model


def check_parity(policy: SelectorPolicy, model: bytes) -> ParityRecord:
    """Compare an ONNX model with the policy on random and extreme inputs of several sizes.

    Args:
        policy: The policy it was built from.
        model: The serialised model.

    Raises:
        ExportError: If a logit is not finite or differs by more than `PARITY_TOLERANCE` * max(1, |logit|).
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    largest, compared = 0.0, 0
    for query, summaries in _parity_inputs(policy.dimension):
        expected = policy.logits(torch.from_numpy(query), torch.from_numpy(summaries)).numpy()
        found = np.asarray(session.run(["logits"], {"query": query, "summaries": summaries})[0])
        errors = np.abs(found - expected) / np.maximum(1.0, np.abs(expected))
        if not np.isfinite(errors).all():
            raise ExportError("the policy gives logits that are not finite; it has diverged, choose an earlier checkpoint")
        largest, compared = max(largest, float(errors.max())), compared + errors.size
    if largest > PARITY_TOLERANCE:
        raise ExportError(f"ONNX and torch differ by {largest:.3g} * max(1, |logit|), more than {PARITY_TOLERANCE:g}; nothing was exported")
    return ParityRecord(largest_error=largest, tolerance=PARITY_TOLERANCE, logits=compared)


def _parity_inputs(dimension: int) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Yield (query (B, d), summaries (B, N, d)): random directions, then single axes, equal, opposite, zero and oversized vectors."""
    rng = np.random.default_rng(0)

    def directions(*shape: int) -> NDArray[np.float32]:
        vectors = rng.standard_normal((*shape, dimension))
        return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)

    for batch, memories in ((1, 1), (1, 7), (16, 7), (3, 40), (64, 2)):
        yield directions(batch), directions(batch, memories)
    axes = np.eye(dimension, dtype=np.float32)[rng.permutation(dimension)[:8]]
    yield axes, np.stack([axes, -axes, np.zeros_like(axes)], axis=1)
    query = directions(4)
    yield query, np.stack([query, -query, np.zeros_like(query), 10 * query], axis=1)
    yield np.zeros_like(query), np.zeros((4, 3, dimension), np.float32)


def _swap(new: Path, folder: Path, *, retired: Path) -> None:
    """Put ``new`` in the place of ``folder``; if that fails the former content stays."""
    if not folder.exists():
        os.replace(new, folder)
        return
    os.replace(folder, retired)
    try:
        os.replace(new, folder)
    except OSError:
        os.replace(retired, folder)
        raise


def _describe(path: Path) -> FileRecord:
    data = path.read_bytes()
    return FileRecord(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

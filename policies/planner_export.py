"""Exports a trained planner as ONNX, safetensors and a JSON document, after checking that ONNX reproduces torch."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file
from torch import nn

from policies.artefact import EncoderRecord, FileRecord, Json, NetworkRecord, ParityRecord
from policies.errors import ExportError
from policies.planner import PlannerPolicy
from policies.planner_inference import DOCUMENT_NAME, FORMAT, FORMAT_VERSION, ONNX_NAME
from policies.planner_network import PlannerNetwork

WEIGHTS_NAME = "planner.safetensors"
PARITY_TOLERANCE = 1e-5
_OPSET, _IR_VERSION = 17, 8
INPUTS = ("query", "candidates", "scores", "present", "progress")


def export_planner(
    policy: PlannerPolicy, folder: Path, *, actions: Sequence[str], encoder_id: str, metric_profile: str, provenance: Mapping[str, Json]
) -> dict[str, Any]:
    """Write an exported planner; the folder appears complete or not at all, in the place of an earlier export.

    Args:
        policy: The trained policy.
        folder: Where to write.
        actions: What each action stands for, in order, with slots for tables ("Lookup 0").
        encoder_id: Id of the encoder of questions, tables and episodes.
        metric_profile: Metric profile of the answer reward.
        provenance: How it was trained, as JSON values.

    Raises:
        ExportError: If the actions do not fit, the folder holds something else, or ONNX differs from torch by more than
            1e-5 * max(1, |logit|).
    """
    sizes = policy.planner_sizes
    if len(actions) != sizes.actions:
        raise ExportError(f"{len(actions)} actions are named but the policy has {sizes.actions}")
    if folder.exists() and not ((folder / DOCUMENT_NAME).is_file() or not any(folder.iterdir())):
        raise ExportError(f"{folder} exists and is not an exported planner; choose another folder")
    model = build_onnx(policy.network).SerializeToString()
    parity = check_parity(policy, model)
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        aside.chmod(0o755)
        (aside / ONNX_NAME).write_bytes(model)
        save_file({name: tensor.detach().contiguous() for name, tensor in policy.network.state_dict().items()}, aside / WEIGHTS_NAME)
        document = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "actions": list(actions),
            "layout": asdict(sizes),
            "encoder": asdict(EncoderRecord(id=encoder_id, dimension=sizes.dimension)),
            "metric_profile": metric_profile,
            "network": asdict(
                NetworkRecord(hidden_sizes=policy.hidden_sizes, activation=policy.hidden_activation, input_scale=policy.input_scale)
            ),
            "files": {name: asdict(_describe(aside / name)) for name in (ONNX_NAME, WEIGHTS_NAME)},
            "parity": asdict(parity),
            "provenance": dict(provenance),
        }
        (aside / DOCUMENT_NAME).write_text(json.dumps(document, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return document


def build_onnx(network: PlannerNetwork) -> onnx.ModelProto:
    """Return the actor as one ONNX model, dynamic in the batch B.

    Inputs are those of `PlannerNetwork.forward`, by name, float32; the output is ``logits`` (B, actions).
    """
    sizes = network.sizes
    slots, d = sizes.tables + sizes.episodes, sizes.dimension
    constants: dict[str, NDArray[Any]] = {
        "scale": np.array(network.input_scale, np.float32),
        "one": np.array(1, np.float32),
        "first": np.array([0], np.int64),
        "tables_end": np.array([sizes.tables], np.int64),
        "slots_end": np.array([slots], np.int64),
        "axis_1": np.array([1], np.int64),
        "axis_2": np.array([2], np.int64),
        "flat": np.array([-1, sizes.table_tools * sizes.tables], np.int64),
    }
    nodes: list[onnx.NodeProto] = []

    def node(operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(name: str, values: torch.Tensor) -> str:
        constants[name] = values.detach().numpy().copy()
        return name

    def linear(inputs: str, layer: nn.Module, name: str) -> str:
        assert isinstance(layer, nn.Linear)
        product = node("MatMul", [inputs, constant(f"{name}_weight", layer.weight.T)], f"{name}_product")
        return node("Add", [product, constant(f"{name}_bias", layer.bias)], name)

    activation = {"relu": "Relu", "tanh": "Tanh"}[network.activation]
    query = node("Mul", ["query", "scale"], "scaled_query")
    scaled = node("Mul", ["candidates", "scale"], "scaled_candidates")
    tables = node("Slice", [scaled, "first", "tables_end", "axis_1"], "tables")
    episodes = node("Slice", [scaled, "tables_end", "slots_end", "axis_1"], "episodes")
    table_scores = node("Slice", ["scores", "first", "tables_end", "axis_1"], "table_scores")
    score_column = node("Unsqueeze", [table_scores, "axis_2"], "score_column")
    filled = node("Slice", ["present", "tables_end", "slots_end", "axis_1"], "filled")
    weights = node("Unsqueeze", [filled, "axis_2"], "weights")
    total = node("ReduceSum", [node("Mul", [episodes, weights], "weighted"), "axis_1"], "total", keepdims=0)
    count = node("Max", [node("ReduceSum", [filled, "axis_1"], "count", keepdims=1), "one"], "at_least_one")
    pooled = node("Div", [total, count], "pooled")

    # The first slot layer acts on [table; score; query; progress]: what is the same for all slots is projected once.
    first = network.slot_layers[0]
    assert isinstance(first, nn.Linear)
    shared = node("Concat", [query, "progress"], "shared", axis=1)
    of_table = node("MatMul", [tables, constant("slot_table_weight", first.weight[:, :d].T)], "of_table")
    of_score = node("MatMul", [score_column, constant("slot_score_weight", first.weight[:, d : d + 1].T)], "of_score")
    of_shared = node("MatMul", [shared, constant("slot_shared_weight", first.weight[:, d + 1 :].T)], "of_shared")
    of_shared = node("Unsqueeze", [node("Add", [of_shared, constant("slot_bias", first.bias)], "biased"), "axis_1"], "of_all_slots")
    hidden = node(activation, [node("Add", [node("Add", [of_table, of_score], "of_slot"), of_shared], "slot_0")], "slot_0_active")
    for place, layer in enumerate(list(network.slot_layers)[1:], start=1):
        hidden = node(activation, [linear(hidden, layer, f"slot_{place}")], f"slot_{place}_active")
    by_slot = linear(hidden, network.slot_logits, "slot_logits")
    by_tool = node("Reshape", [node("Transpose", [by_slot], "by_tool", perm=[0, 2, 1]), "flat"], "table_logits")

    hidden = node("Concat", [query, pooled, "scores", "present", "progress"], "whole", axis=1)
    for place, layer in enumerate(network.whole_layers):
        hidden = node(activation, [linear(hidden, layer, f"whole_{place}")], f"whole_{place}_active")
    node("Concat", [by_tool, linear(hidden, network.whole_logits, "whole_logits")], "logits", axis=1)

    shapes: dict[str, list[str | int]] = {
        "query": ["batch", d],
        "candidates": ["batch", slots, d],
        "scores": ["batch", slots],
        "present": ["batch", slots],
        "progress": ["batch", sizes.progress],
    }
    graph = helper.make_graph(
        nodes,
        "planner",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes[name]) for name in INPUTS],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", sizes.actions])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, producer_name="evidence-gym", opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = _IR_VERSION
    onnx.checker.check_model(model, full_check=True)
    return model


def check_parity(policy: PlannerPolicy, model: bytes) -> ParityRecord:
    """Compare an ONNX model with the policy on random inputs of several sizes, with empty slots among them.

    Raises:
        ExportError: If a logit is not finite or differs by more than `PARITY_TOLERANCE` * max(1, |logit|).
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    sizes, rng = policy.planner_sizes, np.random.default_rng(0)
    slots = sizes.tables + sizes.episodes
    largest, compared = 0.0, 0
    for batch in (1, 3, 64):
        candidates = rng.standard_normal((batch, slots, sizes.dimension))
        query = rng.standard_normal((batch, sizes.dimension))
        present = rng.random((batch, slots)) < (0.0 if batch == 3 else 0.7)
        inputs = {
            "query": query / np.linalg.norm(query, axis=-1, keepdims=True),
            "candidates": candidates / np.linalg.norm(candidates, axis=-1, keepdims=True) * present[:, :, None],
            "scores": rng.random((batch, slots)) * present,
            "present": present,
            "progress": rng.random((batch, sizes.progress)),
        }
        arrays = {name: value.astype(np.float32) for name, value in inputs.items()}
        with torch.no_grad():
            expected = policy.network(*(torch.from_numpy(arrays[name]) for name in INPUTS))[0].numpy()
        found = np.asarray(session.run(["logits"], arrays)[0])
        errors = np.abs(found - expected) / np.maximum(1.0, np.abs(expected))
        if not np.isfinite(errors).all():
            raise ExportError("the policy gives logits that are not finite; it has diverged, choose an earlier checkpoint")
        largest, compared = max(largest, float(errors.max())), compared + errors.size
    if largest > PARITY_TOLERANCE:
        raise ExportError(f"ONNX and torch differ by {largest:.3g} * max(1, |logit|), more than {PARITY_TOLERANCE:g}; nothing was exported")
    return ParityRecord(largest_error=largest, tolerance=PARITY_TOLERANCE, logits=compared)


def _describe(path: Path) -> FileRecord:
    data = path.read_bytes()
    return FileRecord(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

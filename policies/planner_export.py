"""Exports a trained planner as ONNX, safetensors and a JSON document, after checking that ONNX reproduces torch."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import nn

from policies.artefact import EncoderRecord, FileRecord, Json, NetworkRecord, ParityRecord
from policies.errors import ExportError
from policies.planner import PlannerPolicy
from policies.planner_inference import DOCUMENT_NAME, FORMAT, FORMAT_VERSION, ONNX_NAME
from policies.planner_network import PlannerNetwork, PlannerSizes

WEIGHTS_NAME = "planner.safetensors"
PARITY_TOLERANCE = 1e-5
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
    model = build_onnx(policy.network)
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


def build_onnx(network: PlannerNetwork) -> bytes:
    """Return the actor as one ONNX model, dynamic in the batch B.

    Inputs are those of `PlannerNetwork.forward`, by name, float32; the output is ``logits`` (B, actions).
    """
    example = tuple(torch.from_numpy(array) for array in _random_inputs(network.sizes, 3, np.random.default_rng(0)).values())
    batch = torch.export.Dim("batch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that B is one size under five names, and deprecations inside torch
        for name in ("torch.onnx", "onnx_ir", "onnxscript"):  # of torchvision, which nothing here needs, and of every pass
            logging.getLogger(name).setLevel(logging.ERROR)
        program = torch.onnx.export(
            _Actor(network),
            example,
            input_names=INPUTS,
            output_names=["logits"],
            dynamic_shapes={"inputs": tuple({0: batch} for _ in INPUTS)},
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


class _Actor(nn.Module):
    """The network without its value."""

    def __init__(self, network: PlannerNetwork) -> None:
        super().__init__()
        self.network = network
        self.eval()

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        logits, _ = self.network(*inputs)
        return torch.as_tensor(logits)


def _random_inputs(sizes: PlannerSizes, batch: int, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    """Inputs of the network by name, in order: unit vectors, about a third of the slots empty, in a batch of three all."""
    slots = sizes.tables + sizes.episodes
    candidates, query = rng.standard_normal((batch, slots, sizes.dimension)), rng.standard_normal((batch, sizes.dimension))
    present = rng.random((batch, slots)) < (0.0 if batch == 3 else 0.7)
    inputs = {
        "query": query / np.linalg.norm(query, axis=-1, keepdims=True),
        "candidates": candidates / np.linalg.norm(candidates, axis=-1, keepdims=True) * present[:, :, None],
        "scores": rng.random((batch, slots)) * present,
        "present": present,
        "progress": rng.random((batch, sizes.progress)),
    }
    return {name: inputs[name].astype(np.float32) for name in INPUTS}


def check_parity(policy: PlannerPolicy, model: bytes) -> ParityRecord:
    """Compare an ONNX model with the policy on random inputs of several sizes, with empty slots among them.

    Raises:
        ExportError: If a logit is not finite or differs by more than `PARITY_TOLERANCE` * max(1, |logit|).
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    largest, compared = 0.0, 0
    for batch in (1, 3, 64):
        arrays = _random_inputs(policy.planner_sizes, batch, rng)
        with torch.no_grad():
            expected = policy.network(*(torch.from_numpy(array) for array in arrays.values()))[0].numpy()
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

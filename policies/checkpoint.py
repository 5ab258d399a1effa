"""Exact resume: everything a run needs to continue bit for bit, in one file.

The file is Stable-Baselines3's zip (weights, optimiser, counters, last observation) with one more entry, ``resume.json``: the states of the
torch, NumPy and Python generators, of the environment and of the callbacks. A snapshot is taken between rollouts and can be
written later, as long as no gradient step has happened since.

Stable-Baselines3's zip contains pickled objects: load only checkpoints that you wrote yourself.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jsonschema import Draft202012Validator
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from stable_baselines3 import PPO
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from policies.artefact import Json
from policies.errors import CheckpointError
from policies.planner import PlannerPolicy
from policies.selector import SelectorPolicy

_ENTRY = "resume.json"
_REPAIR = "move the file away to train from the beginning, or give another folder"
_FORMAT_VERSION = 1
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["format_version", "fingerprint", "random", "environment", "progress"],
    "properties": {
        "format_version": {"const": _FORMAT_VERSION},
        "fingerprint": {"type": "object"},
        "random": {"type": "object"},
        "environment": {"type": "object"},
        "progress": {
            "type": "object",
            "required": ["rollout", "validated_epochs", "best", "metrics_bytes"],
            "properties": {
                "rollout": {"type": "integer", "minimum": 0},
                "validated_epochs": {"type": "integer", "minimum": -1},
                "best": {
                    "type": ["object", "null"],
                    "additionalProperties": False,
                    "required": ["epoch", "reward", "evidence_tokens"],
                    "properties": {"epoch": {"type": "integer"}, "reward": {"type": "number"}, "evidence_tokens": {"type": "number"}},
                },
                "metrics_bytes": {"type": "integer", "minimum": 0},
            },
        },
    },
}
"""The document in the entry; the environment and the generators check their own parts."""


@runtime_checkable
class Resumable(Protocol):
    """An environment whose state is a JSON document."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state: question cursor, current questions, reward windows, generators."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` returned."""
        ...


@dataclass(frozen=True, kw_only=True)
class RandomStates:
    """States of the global generators of torch, NumPy and Python."""

    torch_state: torch.Tensor
    numpy_state: Any
    python_state: Any

    @classmethod
    def capture(cls) -> RandomStates:
        """Read the generators without advancing them."""
        return cls(torch_state=torch.get_rng_state(), numpy_state=np.random.get_state(), python_state=random.getstate())

    def restore(self) -> None:
        """Put the generators back."""
        torch.set_rng_state(self.torch_state)
        np.random.set_state(self.numpy_state)
        random.setstate(self.python_state)

    def to_json(self) -> dict[str, Any]:
        """Return the states as a JSON document."""
        name, keys, position, has_gauss, gauss = self.numpy_state
        version, words, python_gauss = self.python_state
        return {
            "torch": bytes(self.torch_state.tolist()).hex(),
            "numpy": [name, [int(key) for key in keys], int(position), int(has_gauss), float(gauss)],
            "python": [version, list(words), python_gauss],
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> RandomStates:
        """Read what `to_json` returned."""
        name, keys, position, has_gauss, gauss = document["numpy"]
        version, words, python_gauss = document["python"]
        return cls(
            torch_state=torch.tensor(list(bytes.fromhex(document["torch"])), dtype=torch.uint8),
            numpy_state=(name, np.array(keys, np.uint32), position, has_gauss, gauss),
            python_state=(version, tuple(words), python_gauss),
        )


@contextmanager
def preserved_randomness() -> Iterator[None]:
    """Run a block without advancing the global generators, so that logging or validating cannot change the training."""
    states = RandomStates.capture()
    try:
        yield
    finally:
        states.restore()


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What changes between two rollouts apart from weights and optimiser.

    Attributes:
        timesteps: Questions answered so far.
        last_observation: Observations of the questions to answer next.
        last_episode_starts: SB3's episode flags, bool (n_envs,).
        random: Generator states.
        environment: The environment's state as JSON text, so that later steps cannot alter it.
        progress: The callbacks' state as JSON text.
    """

    timesteps: int
    last_observation: Any
    last_episode_starts: Any
    random: RandomStates
    environment: str
    progress: str


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """A run read from a checkpoint: the model with its environment, the callbacks' state, and the generators to restore last."""

    model: OnPolicyAlgorithm
    progress: dict[str, Any]
    random: RandomStates


def capture(model: OnPolicyAlgorithm, *, progress: Mapping[str, Json]) -> Snapshot:
    """Take a snapshot at the start of a rollout.

    Args:
        model: The model in training; its environment must be `Resumable`.
        progress: State of the callbacks.

    Raises:
        CheckpointError: If the environment has no state or a state is not JSON.
    """
    environment = model.get_env()
    if not isinstance(environment, Resumable):
        raise CheckpointError(f"{type(environment).__name__} has no state_dict and load_state_dict, so a run on it could not be resumed")
    try:
        environment_text = json.dumps(environment.state_dict(), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the state of {type(environment).__name__} is not a JSON document: {error}") from error
    return Snapshot(
        timesteps=model.num_timesteps,
        last_observation=copy.deepcopy(model._last_obs),
        last_episode_starts=copy.deepcopy(model._last_episode_starts),
        random=RandomStates.capture(),
        environment=environment_text,
        progress=json.dumps(progress, allow_nan=False),
    )


def write_checkpoint(path: Path, model: OnPolicyAlgorithm, *, snapshot: Snapshot, fingerprint: Mapping[str, Json]) -> None:
    """Write a checkpoint aside, then rename it; a crash leaves the previous one whole.

    Args:
        path: The file to write.
        model: The model, whose weights and optimiser have not changed since the snapshot.
        snapshot: State at the start of a rollout.
        fingerprint: Settings that a resumed run must share, as JSON values by name.
    """
    document = {
        "format_version": _FORMAT_VERSION,
        "fingerprint": dict(fingerprint),
        "random": snapshot.random.to_json(),
        "environment": json.loads(snapshot.environment),
        "progress": json.loads(snapshot.progress),
    }
    buffer = io.BytesIO()
    current = model.num_timesteps, model._last_obs, model._last_episode_starts
    model.num_timesteps, model._last_obs, model._last_episode_starts = (
        snapshot.timesteps,
        snapshot.last_observation,
        snapshot.last_episode_starts,
    )
    try:
        model.save(buffer)
    finally:
        model.num_timesteps, model._last_obs, model._last_episode_starts = current
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(_ENTRY, json.dumps(document, allow_nan=False))
    write_atomically(path, buffer.getvalue())


def load_checkpoint(
    path: Path, environment: VecEnv, *, fingerprint: Mapping[str, Json], algorithm: type[OnPolicyAlgorithm] = PPO
) -> Resumed:
    """Read a checkpoint that this project wrote and put the environment back where it was.

    Args:
        path: The file; it contains pickled objects, so it must be one's own.
        environment: A freshly built environment of the same configuration, `Resumable`.
        fingerprint: Settings of the present run, compared with those of the checkpoint.
        algorithm: What wrote the checkpoint.

    Raises:
        CheckpointError: If the file is missing, damaged, of other settings (each named) or does not fit the environment.
    """
    if not isinstance(environment, Resumable):
        raise CheckpointError(f"{type(environment).__name__} has no load_state_dict, so no run can be resumed on it")
    document = _read_document(path)
    written = document["fingerprint"]
    given = json.loads(json.dumps(dict(fingerprint)))
    differences = [
        f"{name}: {written.get(name)!r} in the checkpoint, {given.get(name)!r} now"
        for name in sorted(written.keys() | given.keys())
        if written.get(name) != given.get(name)
    ]
    if differences:
        raise CheckpointError(f"{path} is of a run with other settings; set them back or start a new run. {'; '.join(differences)}")
    try:
        model = algorithm.load(path, env=environment, device="cpu", force_reset=False)
        environment.load_state_dict(document["environment"])
        generators = RandomStates.from_json(document["random"])
        generators.restore()
    except Exception as error:  # pickles, arrays and states that somebody else wrote fail in any way
        raise CheckpointError(f"{path} does not fit this environment or is damaged: {error!r}; {_REPAIR}") from error
    return Resumed(model=model, progress=document["progress"], random=generators)


def _read_document(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            document: Any = json.loads(archive.read(_ENTRY))
    except Exception as error:  # a zip may be cut off, encrypted, or packed in ways that Python does not know
        raise CheckpointError(f"{path} is not a complete training checkpoint ({error}); {_REPAIR}") from error
    version = document.get("format_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version != _FORMAT_VERSION:
        raise CheckpointError(f"{path} has format version {version}, this program reads {_FORMAT_VERSION}; resume it with its own version")
    problems = [f"{found.json_path}: {found.message[:200]}" for found in Draft202012Validator(_SCHEMA).iter_errors(document)]
    if problems:
        raise CheckpointError(f"{path} is not a complete training checkpoint ({'; '.join(problems)}); {_REPAIR}")
    assert isinstance(document, dict)
    return document


def save_weights(policy: SelectorPolicy | PlannerPolicy, path: Path) -> None:
    """Write the network's weights as safetensors, aside and renamed."""
    write_atomically(path, save({name: tensor.detach().contiguous() for name, tensor in policy.network.state_dict().items()}))


def load_weights(policy: SelectorPolicy | PlannerPolicy, path: Path) -> None:
    """Load weights written by `save_weights` (or of an export) into a policy of the same layout.

    Raises:
        CheckpointError: If the file cannot be read or has other tensors.
    """
    try:
        policy.network.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise CheckpointError(f"{path} does not hold the weights of this policy: {error}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file beside its place and rename it, so that readers see the old or the new content and never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)

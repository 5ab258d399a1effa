"""Pretrained weights on this machine: found without network, named by their content, loaded without pickle and without foreign code."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from models.errors import DependencyMissing, WeightsError

DType = Literal["float32", "bfloat16", "float16"]

# What a model reads from its folder; a changed README or licence does not make it another model.
_SUFFIXES = frozenset({".json", ".safetensors", ".jinja", ".txt", ".model"})
_INSTALL = {
    "outlines_core": "pip install outlines-core",
    "qwen_vl_utils": "pip install qwen-vl-utils",
    "torchvision": "pip install torch==2.14.1 torchvision==0.29.1 (in one command: a torchvision of another release breaks transformers)",
    "transformers": "pip install transformers",
}


@dataclass(frozen=True)
class PretrainedSettings:
    """Which weights, and how they run.

    ``model`` is a folder, or the name of a repository of the Hugging Face hub that was downloaded before; ``revision``
    is that repository's commit or branch (None: its main branch as downloaded; no meaning for a folder). ``device`` is
    torch's name (cpu, cuda, cuda:1, mps).
    """

    model: str
    revision: str | None
    device: str
    dtype: DType
    batch_size: int


def need(*modules: str) -> None:
    """Check that packages are installed.

    Raises:
        DependencyMissing: one is not, or cannot be imported; the message holds the pip command.
    """
    for module in modules:
        try:
            import_module(module)
        except (ImportError, RuntimeError) as error:  # a torchvision of another release than torch's raises the latter
            raise DependencyMissing(f"{module} is needed by this model and cannot be imported ({error}): {_INSTALL[module]}") from error


class Weights:
    """The folder of a model of one kind, checked for what loading needs."""

    def __init__(self, settings: PretrainedSettings, *, model_type: str) -> None:
        """``model_type``: what the ``config.json`` must say, for example qwen3_vl.

        Raises:
            WeightsError: there is no such model on this machine, or it is of another kind, or has no safetensors.
        """
        self.folder = _folder(settings.model, settings.revision)
        self._settings = settings
        self._model_type = model_type
        problems = []
        found = self.read_json("config.json").get("model_type")
        if found != model_type:
            problems.append(f"config.json has the model_type {found!r}, not {model_type!r}: name another model")
        if not any(self.folder.glob("*.safetensors")):
            problems.append("it has no *.safetensors; weights in pickle (*.bin) are not read: convert them, or name another revision")
        if problems:
            raise WeightsError(f"{self.folder} cannot be used:\n" + "\n".join(f"  - {problem}" for problem in problems))

    def read(self, name: str) -> bytes:
        """One of the folder's files.

        Raises:
            WeightsError: it cannot be read.
        """
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise WeightsError(f"{self.folder / name}: cannot be read ({error.strerror}); download the model again") from error

    def read_json(self, name: str) -> Mapping[str, Any]:
        """A JSON object among the folder's files.

        Raises:
            WeightsError: the file cannot be read or is something else.
        """
        try:
            content = json.loads(self.read(name))
        except ValueError as error:
            raise WeightsError(f"{self.folder / name}: is not JSON ({error}); download the model again") from error
        if not isinstance(content, dict):
            raise WeightsError(f"{self.folder / name}: must be a JSON object; download the model again")
        return content

    @cached_property
    def config(self) -> Any:
        """The model's transformers configuration, with the values that ``config.json`` leaves at their defaults."""
        from transformers import AutoConfig

        return self.read_with(AutoConfig)

    def identity(self) -> str:
        """Name the model by its content: kind, the first 16 hex digits of a SHA-256 over its files, number format.

        Reads every file once, about a second for each gigabyte.
        """
        digest = hashlib.sha256()
        for path in sorted(path for path in self.folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file()):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.relative_to(self.folder).as_posix()}\n{content}\n".encode())
        return f"{self._model_type}-{digest.hexdigest()[:16]}-{self._settings.dtype}"

    def load(self, model_class: Any) -> Any:
        """Load a transformers model class in evaluation mode, on the settings' device and in their number format.

        Raises:
            WeightsError: weights are missing or do not fit the class (transformers would make them up at random), or there
                is no such device.
        """
        import torch
        from safetensors import SafetensorError

        try:
            model, report = model_class.from_pretrained(
                self.folder,
                dtype=getattr(torch, self._settings.dtype),
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise WeightsError(f"{self.folder}: the weights cannot be loaded ({error}); download them again") from error
        if report["missing_keys"]:
            names = sorted(report["missing_keys"])
            raise WeightsError(f"{self.folder}: {len(names)} weights are missing, {names[0]} among them; download them again")
        try:
            return model.eval().requires_grad_(False).to(self._settings.device)
        except (RuntimeError, AssertionError) as error:  # torch asserts that it was compiled for the device
            raise WeightsError(f"the device {self._settings.device!r} cannot be used ({error}); name another, for example cpu") from error

    def read_with(self, transformers_class: Any, **options: Any) -> Any:
        """Read the folder's configuration, tokenizer or image processor with one of transformers' ``Auto…`` classes.

        Raises:
            WeightsError: its files are missing or damaged.
        """
        try:
            return transformers_class.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False, **options)
        except (OSError, ValueError, KeyError, TypeError) as error:
            name = transformers_class.__name__
            raise WeightsError(f"{self.folder}: {name} cannot read it ({error}); download the model again") from error


def _folder(model: str, revision: str | None) -> Path:
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    need("transformers")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        at = f" --revision {revision}" if revision else ""
        raise WeightsError(
            f"{model!r} is neither a folder nor a repository that was downloaded to this machine; nothing is downloaded by itself. "
            f"Name a folder, or run: hf download {model}{at}"
        ) from error

"""Tests of models that run on this machine: what they need, and settings for tiny models."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from models.weights import PretrainedSettings

_MISSING = [name for name in ("torchvision", "qwen_vl_utils", "outlines_core") if find_spec(name) is None]

needs_vlm = [
    pytest.mark.vlm,
    pytest.mark.skipif(
        bool(_MISSING), reason=f"{', '.join(_MISSING)} not installed: `make vlm` makes an environment with the local models"
    ),
]


def pretrained(folder: Path, **changes: Any) -> PretrainedSettings:
    """Settings of a tiny model on the CPU."""
    values: dict[str, Any] = {"model": str(folder), "revision": None, "device": "cpu", "dtype": "float32", "batch_size": 8}
    return PretrainedSettings(**values | changes)

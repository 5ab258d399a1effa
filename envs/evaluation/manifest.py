"""The run manifest: what a number came from."""

import subprocess
import sys
from dataclasses import asdict
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from envs.workbench import Workbench
from models.tasks.base import prompts_hash

_CHECKOUT = Path(__file__).resolve().parents[2]


def manifest(workbench: Workbench) -> dict[str, Any]:
    """Commit, versions, data, split, seeds, models, prompts and banks of a run; JSON-able."""
    settings = workbench.settings
    return {
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain")),
        "command": sys.argv,
        "python": sys.version.split()[0],
        "versions": {
            item.metadata["Name"]: item.version for item in sorted(distributions(), key=lambda item: item.metadata["Name"].lower())
        },
        "dataset": workbench.dataset.name,
        "data_hash": workbench.dataset.content_hash,
        "images_missing": workbench.dataset.n_missing_images,
        "split": asdict(workbench.split),
        "seeds": {"run": settings.seed, "split": settings.data.split_seed, "sample": settings.data.sample and settings.data.sample.seed},
        "answerer": workbench.door.backend.model_id,
        "encoder": workbench.encoder.id,
        "image_encoder": workbench.image_encoder and workbench.image_encoder.id,
        "prompts_hash": prompts_hash(),
        "banks": {history_id: bank.folder.name for history_id, bank in workbench.banks.items()},
        "adamm": {history_id: memory.folder.name for history_id, memory in workbench.adamm.items()},
    }


def _git(*arguments: str) -> str:
    """Output of a git command in the checkout, or "" where there is no git or no repository."""
    try:
        done = subprocess.run(["git", "-C", str(_CHECKOUT), *arguments], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

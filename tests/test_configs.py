"""Every YAML says how it is run, composes, and fits the settings; the defaults are the same with and without Hydra."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from envs.settings import CONFIGS, Settings, default_settings

GROUP_FILES = sorted(path for path in CONFIGS.rglob("*.yaml") if path.parent != CONFIGS)


def composed(name: str, *overrides: str) -> dict[str, Any]:
    with initialize_config_dir(str(CONFIGS), version_base=None):
        values = OmegaConf.to_container(compose(name, overrides=list(overrides)), resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.yaml")), ids=str)
def test_every_file_opens_with_the_command_that_runs_it(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    command = lines[1] if lines[0].startswith("# @package") else lines[0]
    assert command.startswith("# python ")
    if path.parent != CONFIGS:
        assert f"{path.parent.name}={path.stem}" in command


@pytest.mark.parametrize("path", GROUP_FILES, ids=lambda path: f"{path.parent.name}={path.stem}")
def test_every_option_composes_and_fits_the_settings(path: Path) -> None:
    mandatory = [name for name, value in OmegaConf.to_container(OmegaConf.load(path)).items() if value == "???"]
    overrides = [f"{path.parent.name}={path.stem}", *(f"{path.parent.name}.{name}=/somewhere" for name in mandatory)]
    Settings.model_validate(composed("train", *overrides))


def test_the_defaults_are_the_same_without_hydra() -> None:
    assert Settings.model_validate(composed("train")) == default_settings()


def test_the_paper_differs_from_the_default_in_two_values() -> None:
    default, paper = (composed("train", f"algo={name}")["algo"] for name in ("ppo", "paper"))
    assert {name: (default[name], paper[name]) for name in default if default[name] != paper[name]} == {
        "input_scale": (None, 1.0),
        "normalize_advantage": (True, False),
    }


def test_evaluate_has_its_own_settings() -> None:
    values = composed("evaluate")
    assert (values["mode"], values["run"], values["use"], values["split"]) == ("methods", "newest", "artefact", "test")

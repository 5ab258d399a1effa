"""Every YAML says how it is run, composes, and fits the settings; the defaults are the same with and without Hydra."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from pydantic import ValidationError

from envs.settings import CONFIGS, Settings, default_settings
from memory.adamm.settings import AdaMMSettings

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
    command = path.read_text(encoding="utf-8").splitlines()[0].split()
    groups = [word for word in command if (CONFIGS / f"{word.replace('=', '/')}.yaml").exists()]  # what it is used with
    overrides = [
        *dict.fromkeys([f"{path.parent.name}={path.stem}", *groups]),
        *(f"{path.parent.name}.{name}=/somewhere" for name in mandatory),
    ]
    Settings.model_validate(composed("train", *overrides))


def test_the_defaults_are_the_same_without_hydra() -> None:
    assert Settings.model_validate(composed("train")) == default_settings()


@pytest.mark.parametrize("memory", ["hive", "adamm", "both"])
def test_an_option_that_builds_upon_another_is_the_same_without_hydra(memory: str) -> None:
    settings = Settings.model_validate(composed("train", f"memory={memory}"))
    assert settings == default_settings(memory=memory)
    assert settings.memory.builder == memory and settings.memory.bank == default_settings().memory.bank


def test_planning_chooses_its_own_algorithm_unless_another_is_named() -> None:
    for overrides, changes in (((), {}), (("algo=paper",), {"algo": "paper"})):
        settings = Settings.model_validate(composed("train", "env=planning", *overrides))
        assert settings == default_settings(env="planning", **changes)
        assert (settings.algo.minibatch_size == 64) == (not overrides)


def test_adamm_has_the_values_of_its_paper() -> None:
    assert default_settings(memory="both").memory.adamm_memory == AdaMMSettings(
        min_support=4,
        min_all_conf=0.60,
        min_ext_conf=0.80,
        max_tested=100_000,
        episode_threshold=0.60,
        topic_threshold=0.65,
        text_weight=0.60,
        visual_weight=0.40,
        gap_days=1,
        captions="model",
    )


def test_a_part_without_settings_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"memory.adamm must be given with builder=both: choose memory=both"):
        default_settings(memory={"builder": "both"})


def test_the_paper_differs_from_the_default_in_two_values() -> None:
    default, paper = (composed("train", f"algo={name}")["algo"] for name in ("ppo", "paper"))
    assert {name: (default[name], paper[name]) for name in default if default[name] != paper[name]} == {
        "input_scale": (None, 1.0),
        "normalize_advantage": (True, False),
    }


def test_evaluate_has_its_own_settings() -> None:
    values = composed("evaluate")
    assert (values["mode"], values["run"], values["use"], values["split"]) == ("methods", "newest", "artefact", "test")

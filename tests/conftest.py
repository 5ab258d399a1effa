"""Fixtures that several packages' tests share."""

import pytest
import torch
from hypothesis import settings

from envs.settings import Settings, default_settings
from envs.workbench import Workbench, open_workbench

torch.set_num_threads(1)
settings.register_profile("untimed", deadline=None)  # a machine under load is slow now and then
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def tiny_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The default settings on a sample of one small history, split by question."""
    root = tmp_path_factory.mktemp("tiny")
    data = {"root": root / "sample", "split_by": "question", "sample": {"seed": 0, "n_histories": 1, "n_questions": 60}}
    return default_settings(data=data, cache=root / "cache")


@pytest.fixture(scope="session")
def workbench(tiny_settings: Settings) -> Workbench:
    """An opened workbench with real banks and the embedded engine."""
    return open_workbench(tiny_settings)

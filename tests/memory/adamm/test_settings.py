from dataclasses import replace

import pytest

from tests.memory.adamm.fakes import SETTINGS


def test_all_that_is_wrong_is_told() -> None:
    wrong = {
        "min_support": 0,
        "max_tested": 0,
        "gap_days": -1,
        "min_all_conf": 0.0,
        "episode_threshold": 1.2,
        "text_weight": 0,
        "captions": "x",
    }
    with pytest.raises(ValueError, match="AdaMM memory settings: ") as caught:
        replace(SETTINGS, **wrong)  # type: ignore[arg-type]
    assert [name for name in wrong if f"{name} must be" not in str(caught.value)] == []


def test_the_limits_are_allowed() -> None:
    replace(SETTINGS, min_support=1, max_tested=1, gap_days=0, episode_threshold=0, topic_threshold=1, visual_weight=0, text_weight=1)

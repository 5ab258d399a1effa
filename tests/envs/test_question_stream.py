import numpy as np
import pytest

from envs.question_stream import QuestionStream


def test_every_question_comes_once_per_epoch_across_batches() -> None:
    stream = QuestionStream(10, seed=3)
    drawn = np.concatenate([stream.draw(4) for _ in range(5)])  # 20 = two epochs, the third batch crosses the border
    assert sorted(drawn[:10]) == list(range(10))
    assert sorted(drawn[10:]) == list(range(10))
    assert drawn[:10].tolist() != drawn[10:].tolist()


def test_position_is_the_whole_state() -> None:
    straight, resumed = QuestionStream(7, seed=0), QuestionStream(7, seed=0)
    straight.draw(9)
    resumed.n_drawn = straight.n_drawn
    assert resumed.draw(12).tolist() == straight.draw(12).tolist()


def test_seed_decides_the_order() -> None:
    assert QuestionStream(50, seed=0).draw(50).tolist() != QuestionStream(50, seed=1).draw(50).tolist()


def test_empty_set_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one question"):
        QuestionStream(0, seed=0)

"""What the batched environments share: an SB3 ``VecEnv`` of one object, whose rows answer every question once an epoch."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from envs.question_stream import QuestionStream
from envs.reward import CostRange, FrozenReward, RewardNormaliser


class QuestionVecEnv(VecEnv):
    """Draws the questions, counts what is answered, and answers SB3's questions about single rows.

    ``n_answered`` counts finished rollouts. ``validation_reward`` is the reward that checkpoints compete by, fixed when the first epoch
    ends (None before).
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        n_envs: int,
        n_questions: int,
        normaliser: RewardNormaliser,
        seed: int,
    ) -> None:
        self.render_mode = None  # SB3 warns where it is not defined
        super().__init__(n_envs, observation_space, action_space)
        self.normaliser = normaliser
        self.n_answered = 0
        self.validation_reward: FrozenReward | None = None
        self.stream = QuestionStream(n_questions, seed=seed)
        self._n_questions = n_questions

    @property
    def n_epochs_done(self) -> int:
        """How often every question has been answered."""
        return self.n_answered // self._n_questions

    def count_answers(self, n_answers: int) -> None:
        """Count finished rollouts; the first epoch's end fixes the reward of validation."""
        self.n_answered += n_answers
        if self.validation_reward is None and self.n_epochs_done >= 1:
            self.validation_reward = self.normaliser.frozen()

    def state_dict(self) -> dict[str, Any]:
        """Everything that a later `load_state_dict` needs to continue exactly; JSON-able. Subclasses add their rows."""
        return {
            "n_answered": self.n_answered,
            "n_drawn": self.stream.n_drawn,
            "n_questions": self._n_questions,
            "normaliser": self.normaliser.state_dict(),
            "validation_reward": None if self.validation_reward is None else asdict(self.validation_reward),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict` of an environment over the same questions.

        Raises:
            ValueError: the state is of another question set.
        """
        if state["n_questions"] != self._n_questions:
            raise ValueError(f"the saved state is of {state['n_questions']} questions, this split has {self._n_questions}")
        self.n_answered = state["n_answered"]
        self.stream.n_drawn = state["n_drawn"]
        self.normaliser.load_state_dict(state["normaliser"])
        frozen = state["validation_reward"]
        self.validation_reward = None if frozen is None else FrozenReward(CostRange(**frozen["range"]), frozen["alpha"])

    def close(self) -> None:
        """Nothing to close: the door belongs to the caller."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute of this environment, once for each of ``indices``."""
        return [getattr(self, attr_name) for _ in self._rows(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of this environment (there is one for all rows)."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any) -> list[Any]:
        """Call a method for each of ``indices``."""
        return [self.row_method(method_name, row, *method_args, **method_kwargs) for row in self._rows(indices)]

    def row_method(self, name: str, row: int, *arguments: Any, **named: Any) -> Any:
        """What a method gives for one row; the same for every row unless a subclass knows better."""
        return getattr(self, name)(*arguments, **named)

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        """No row is wrapped."""
        return [False for _ in self._rows(indices)]

    def _rows(self, indices: VecEnvIndices) -> Iterable[int]:
        return self._get_indices(indices)

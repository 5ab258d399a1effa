"""What the batched environments share: an SB3 ``VecEnv`` of one object, whose rows have no environments of their own."""

from collections.abc import Iterable
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices


class SharedVecEnv(VecEnv):
    """Answers SB3's questions about single rows for an environment that keeps all of them."""

    def __init__(self, n_envs: int, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> None:
        self.render_mode = None  # SB3 warns where it is not defined
        super().__init__(n_envs, observation_space, action_space)

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

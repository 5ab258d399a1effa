"""The hyperparameters of PPO (HiVe-Mem Table 3), apart from what needs torch."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """Hyperparameters of PPO; the values in parentheses are the paper's.

    Attributes:
        learning_rate: Adam's step size (3e-4).
        clip_range: PPO clipping coefficient (0.2).
        rollout_size: Questions per rollout; equals the number of parallel environments (16).
        minibatch_size: Rows per gradient step (16).
        update_epochs: Passes over each rollout (4).
        gamma: Discount (1); a rollout has one step.
        gae_lambda: GAE coefficient (1).
        value_coefficient: Weight of the value loss (0.5).
        entropy_coefficient: Weight of the entropy bonus (0.01).
        max_grad_norm: Gradient clipping threshold (1.0).
        normalize_advantage: Whether advantages are standardised per minibatch; the paper does not say so.
    """

    learning_rate: float
    clip_range: float
    rollout_size: int
    minibatch_size: int
    update_epochs: int
    gamma: float
    gae_lambda: float
    value_coefficient: float
    entropy_coefficient: float
    max_grad_norm: float
    normalize_advantage: bool

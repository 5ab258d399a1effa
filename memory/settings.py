"""Settings of the memory: what a bank is built with, and how it is read. Defaults are in ``configs/memory``."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class BankSettings:
    """What a HiVe-Mem bank is built with; part of its fingerprint.

    Args:
        episode_tokens: an episode closes at the first round end at or past this many tokens.
        k_edge: largest degree of an episode in the affinity graph (K_edge).
        captions: ``model`` asks the caption task, ``dataset`` uses the file's captions.
        visual_anchors: False drops the visual anchors (ablation).
        idf: False sets IDF = 1 in Eq. 3 and 4 (ablation).
        visual_visual: True also matches visual anchors with visual ones, which Eq. 2 does not (ablation).
    """

    episode_tokens: int
    k_edge: int
    captions: Literal["model", "dataset"]
    visual_anchors: bool
    idf: bool
    visual_visual: bool

    def __post_init__(self) -> None:
        """Check the values; raises ValueError naming all that are wrong."""
        _check({"episode_tokens": (self.episode_tokens, 1), "k_edge": (self.k_edge, 0)})
        if self.captions not in ("model", "dataset"):
            raise ValueError(f"memory setting captions must be 'model' or 'dataset', got {self.captions!r}")


@dataclass(frozen=True, kw_only=True)
class RetrievalSettings:
    """How candidates are found for a question.

    Args:
        k_ret: seeds by summary similarity (K_ret).
        k_exp: neighbours added by expansion (K_exp).
        expansion: False takes the k_ret + k_exp most similar episodes instead (ablation).
    """

    k_ret: int
    k_exp: int
    expansion: bool

    def __post_init__(self) -> None:
        """Check the values; raises ValueError naming all that are wrong."""
        _check({"k_ret": (self.k_ret, 1), "k_exp": (self.k_exp, 0)})

    @property
    def k_total(self) -> int:
        """The most candidates a question can have."""
        return self.k_ret + self.k_exp


def _check(values: dict[str, tuple[int, int]]) -> None:
    wrong = [f"{name} must be at least {least}, got {value!r}" for name, (value, least) in values.items() if value < least]
    if wrong:
        raise ValueError("memory settings: " + "; ".join(wrong))

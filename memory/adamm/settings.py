"""Settings of AdaMM's memory: what it is built with. Defaults are in ``configs/memory``."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class AdaMMSettings:
    """What AdaMM's memory is built with; part of its fingerprint (AdaMM, §3.3, Appendix A).

    Args:
        min_support: θ_s, in how many rounds attributes must occur together.
        min_all_conf: θ_a, the least all-confidence of a new schema.
        min_ext_conf: θ_e, the least extension confidence of a schema's growth.
        max_tested: how many attribute sets one round may test before the search stops.
        episode_threshold: θ_epi, an episode takes events more similar than this.
        topic_threshold: θ_topic, a topic takes episodes more similar than this.
        text_weight: weight of text similarity in Eq. 13; the two weights are renormalised over what both nodes have.
        visual_weight: weight of visual similarity in Eq. 13.
        gap_days: a longer gap than this, in days, ends an episode.
        captions: ``model`` asks the caption task, ``dataset`` uses the file's captions.
    """

    min_support: int
    min_all_conf: float
    min_ext_conf: float
    max_tested: int
    episode_threshold: float
    topic_threshold: float
    text_weight: float
    visual_weight: float
    gap_days: int
    captions: Literal["model", "dataset"]

    def __post_init__(self) -> None:
        """Check the values; raises ValueError naming all that are wrong."""
        least = {"min_support": 1, "max_tested": 1, "gap_days": 0}
        wrong = [f"{name} must be at least {low}, got {getattr(self, name)!r}" for name, low in least.items() if getattr(self, name) < low]
        for name in ("min_all_conf", "min_ext_conf", "episode_threshold", "topic_threshold", "text_weight", "visual_weight"):
            if not 0 <= getattr(self, name) <= 1:
                wrong.append(f"{name} must be from 0 to 1, got {getattr(self, name)!r}")
        wrong += [f"{name} must be above 0" for name in ("min_all_conf", "min_ext_conf", "text_weight") if getattr(self, name) == 0]
        if self.captions not in ("model", "dataset"):
            wrong.append(f"captions must be 'model' or 'dataset', got {self.captions!r}")
        if wrong:
            raise ValueError("AdaMM memory settings: " + "; ".join(wrong))

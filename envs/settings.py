"""Every setting of a run, with its type and limits. The defaults are in ``configs/``; nothing here repeats one.

Pydantic checks them all at once: an unknown name or a value out of range is one error that lists each by its path.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from envs.metrics.text import PROFILES
from memory.adamm.settings import AdaMMSettings
from memory.forms import FORMS
from memory.identity import Part
from memory.settings import BankSettings, RetrievalSettings
from models.cache.calls import Mode, cache_url
from models.errors import CacheError
from models.tasks.answer import answer_formats
from policies.ppo_settings import PPOSettings

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[float, Field(gt=0, le=1)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _one_of(names: Iterable[str]) -> AfterValidator:
    known = sorted(names)

    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return value

    return AfterValidator(check)


FormName = Annotated[str, _one_of(FORMS)]
ProfileName = Annotated[str, _one_of(PROFILES)]
FormatName = Annotated[str, _one_of(answer_formats())]


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class SampleSettings(_Group):
    """What the sample generator makes when the dataset's folder does not exist."""

    seed: Annotated[int, Field(ge=0)]
    n_histories: Count
    n_questions: Count


class DataSettings(_Group):
    """Which benchmark, how it is split, and which of ``models/prompts/answer_formats.toml`` its questions carry.

    ``sample`` is None for real data, which is never generated.
    """

    name: str
    root: Path
    sample: SampleSettings | None
    split_by: Literal["history", "question"]
    split_seed: int
    train_refusals: bool
    answer_format: FormatName | None


class AdaMMGroup(_Group):
    """How AdaMM's memory is built (`memory.adamm.settings.AdaMMSettings`)."""

    min_support: Count
    min_all_conf: Share
    min_ext_conf: Share
    max_tested: Count
    episode_threshold: Fraction
    topic_threshold: Fraction
    text_weight: Share
    visual_weight: Fraction
    gap_days: Annotated[int, Field(ge=0)]


class MemorySettings(_Group):
    """How banks are built (`memory.settings.BankSettings`) and read (`memory.settings.RetrievalSettings`).

    ``builder`` says which parts there are; ``adamm`` may be None where AdaMM's is not built. ``captions`` is for both.
    """

    builder: Literal["hive", "adamm", "both"]
    adamm: AdaMMGroup | None
    forms: Annotated[tuple[FormName, ...], Field(min_length=1)]
    episode_tokens: Count
    k_edge: Annotated[int, Field(ge=0)]
    captions: Literal["model", "dataset"]
    visual_anchors: bool
    idf: bool
    visual_visual: bool
    k_ret: Count
    k_exp: Annotated[int, Field(ge=0)]
    expansion: bool

    @model_validator(mode="after")
    def _adamm_is_given(self) -> Self:
        if "adamm" in self.parts and self.adamm is None:
            raise ValueError(f"memory.adamm must be given with builder={self.builder}: choose memory={self.builder}")
        return self

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that are built."""
        return ("hive", "adamm") if self.builder == "both" else (self.builder,)

    @property
    def adamm_memory(self) -> AdaMMSettings:
        """What AdaMM's memory is built with, where it is."""
        assert self.adamm is not None
        return AdaMMSettings(captions=self.captions, **self.adamm.model_dump())

    @property
    def bank(self) -> BankSettings:
        """What a bank is built with."""
        return BankSettings(**{name: getattr(self, name) for name in BankSettings.__dataclass_fields__})

    @property
    def retrieval(self) -> RetrievalSettings:
        """How candidates are found."""
        return RetrievalSettings(k_ret=self.k_ret, k_exp=self.k_exp, expansion=self.expansion)


class RewardSettings(_Group):
    """F1 minus cost (HiVe-Mem Eq. 6–9); ``cost_weight`` is λ."""

    metric_profile: ProfileName
    cost_weight: NonNegative
    cost_window: Count
    sample_window: Count
    min_samples: Count
    max_alpha: Positive
    epsilon: Positive
    n_prefill: Count

    @model_validator(mode="after")
    def _windows_fit(self) -> Self:
        if self.min_samples > self.sample_window:
            raise ValueError(f"min_samples={self.min_samples} must not exceed sample_window={self.sample_window}")
        return self


class _Server(_Group):
    """An OpenAI-compatible server (`models.openai_compatible.settings.ServerSettings`)."""

    base_url: str
    model: str
    api_key_env: str | None
    concurrency: Count
    timeout_seconds: Positive
    connect_timeout_seconds: Positive
    max_retries: Annotated[int, Field(ge=0)]
    max_failures: Count
    revision: str


class _Pretrained(_Group):
    """Local weights (`models.weights.PretrainedSettings`)."""

    model: str
    revision: str | None
    device: str
    dtype: Literal["float32", "bfloat16", "float16"]
    batch_size: Count


class MiniLMEncoder(_Group):
    """all-MiniLM-L6-v2, from a package."""

    name: Literal["minilm"]


class OpenAIEncoder(_Server):
    """An encoder behind ``/embeddings``."""

    name: Literal["openai"]
    batch_size: Count
    dimensions: Count | None


class SigLIP2Encoder(_Pretrained):
    """SigLIP2 through transformers; as text encoder its text branch."""

    name: Literal["siglip2"]


class EfficientNetEncoder(_Group):
    """EfficientNet-lite0, from a package; images only."""

    name: Literal["efficientnet"]


class Qwen3VLEmbeddingEncoder(_Pretrained):
    """Qwen3-VL-Embedding through transformers."""

    name: Literal["qwen3_vl_embedding"]


EncoderSettings = Annotated[MiniLMEncoder | OpenAIEncoder | SigLIP2Encoder | Qwen3VLEmbeddingEncoder, Field(discriminator="name")]

ImageEncoderSettings = Annotated[EfficientNetEncoder | SigLIP2Encoder, Field(discriminator="name")]


class EmbeddedVlm(_Group):
    """The deterministic CPU-only engine."""

    name: Literal["embedded"]


class OpenAIVlm(_Server):
    """A model behind an OpenAI-compatible server (`models.openai_compatible.settings.OpenAISettings`)."""

    name: Literal["openai"]
    tokenizer: str
    image_tokens: str
    max_image_pixels: Annotated[int, Field(ge=1024)]
    streaming: bool
    extra: dict[str, Any]


class Qwen3VLVlm(_Pretrained):
    """Qwen3-VL through transformers (`models.qwen3_vl.backend.Qwen3VLSettings`)."""

    name: Literal["qwen3_vl"]
    batch_tokens: Count


VlmSettings = Annotated[EmbeddedVlm | OpenAIVlm | Qwen3VLVlm, Field(discriminator="name")]


class CallCacheSettings(_Group):
    """Where model replies are kept and whether they are used (`models.cache.calls`).

    ``where`` is a file, a PostgreSQL URL without a password, or None for ``calls.sqlite`` in the cache folder.
    """

    where: str | None
    mode: Mode

    @field_validator("where")
    @classmethod
    def _is_a_place(cls, where: str | None) -> str | None:
        try:
            if where is not None:
                cache_url(where)
        except CacheError as error:
            raise ValueError(str(error)) from error
        return where


class SelectionEnv(_Group):
    """Choosing evidence: how many questions one step answers."""

    name: Literal["selection"]
    n_envs: Count

    @property
    def n_steps(self) -> int:
        """Steps of each environment per rollout: a question is one."""
        return 1

    @property
    def needs(self) -> tuple[Part, ...]:
        """The parts of the memory that it reads."""
        return ("hive",)


class PlanningEnv(_Group):
    """Choosing tools: how many questions side by side, steps of each per rollout, and what the tools read."""

    name: Literal["planning"]
    n_envs: Count
    n_steps: Count
    n_prefill: Count
    pipeline: Literal["adamm", "joint"]
    composer: str

    @property
    def needs(self) -> tuple[Part, ...]:
        """The parts of the memory that it reads."""
        return ("hive", "adamm") if self.pipeline == "joint" else ("adamm",)


EnvSettings = Annotated[SelectionEnv | PlanningEnv, Field(discriminator="name")]


class PolicySettings(_Group):
    """The selector's network and its threshold at inference."""

    hidden_sizes: Annotated[tuple[Count, ...], Field(min_length=1)]
    activation: Literal["relu", "tanh"]
    threshold: Annotated[float, Field(gt=0, lt=1)]


class AlgoSettings(_Group):
    """PPO (HiVe-Mem Table 3). ``input_scale`` multiplies the unit-norm embeddings; None means √d."""

    epochs: Count
    learning_rate: Positive
    clip_range: Positive
    minibatch_size: Annotated[int, Field(ge=2)]
    update_epochs: Count
    gamma: Fraction
    gae_lambda: Fraction
    value_coefficient: NonNegative
    entropy_coefficient: NonNegative
    entropy: Literal["sum", "mean"]
    max_grad_norm: Positive
    normalize_advantage: bool
    input_scale: Positive | None

    def ppo(self, rollout_size: int) -> PPOSettings:
        """The settings of `policies.training.build_ppo`."""
        shared = {name: getattr(self, name) for name in PPOSettings.__dataclass_fields__ if name != "rollout_size"}
        return PPOSettings(rollout_size=rollout_size, **shared)


class LoggerSettings(_Group):
    """Where training curves go besides ``metrics.jsonl``, which is always written."""

    tensorboard: bool
    wandb: Literal["off", "offline", "online"]
    wandb_project: str


class Settings(_Group):
    """One run, complete."""

    seed: Annotated[int, Field(ge=0, lt=2**32)]
    cache: Path
    call_cache: CallCacheSettings
    prices: Path | None
    resume: bool
    data: DataSettings
    encoder: EncoderSettings
    image_encoder: ImageEncoderSettings
    vlm: VlmSettings
    memory: MemorySettings
    env: EnvSettings
    reward: RewardSettings
    policy: PolicySettings
    algo: AlgoSettings
    logger: LoggerSettings

    @model_validator(mode="after")
    def _rollout_is_whole_minibatches(self) -> Self:
        rollout = self.env.n_envs * self.env.n_steps
        if rollout % self.algo.minibatch_size:
            raise ValueError(
                f"algo.minibatch_size={self.algo.minibatch_size} must divide env.n_envs={self.env.n_envs} times the steps of a rollout"
            )
        if len(set(self.memory.forms)) < len(self.memory.forms):
            raise ValueError(f"memory.forms={list(self.memory.forms)} names a form twice")
        return self

    @property
    def policy_options(self) -> dict[str, Any]:
        """The keyword arguments of `policies.selector.SelectorPolicy`."""
        return {
            "hidden_sizes": self.policy.hidden_sizes,
            "activation": self.policy.activation,
            "threshold": self.policy.threshold,
            "input_scale": self.algo.input_scale,
            "entropy_reduction": self.algo.entropy,
        }


CONFIGS = Path(__file__).resolve().parents[1] / "configs"


def default_settings(**changes: Any) -> Settings:
    """The defaults of ``configs/`` without Hydra, for use from Python.

    Args:
        changes: A setting's new value; for a group, the name of another of its options, or a dict of its settings that change.
    """
    root = _read_yaml(CONFIGS / "train.yaml")
    chosen = {group: option for entry in root.pop("defaults") if isinstance(entry, dict) for group, option in entry.items() if option}
    named = {name: change for name, change in changes.items() if name in chosen and isinstance(change, str)}
    environment = changes.get("env", {})
    env = environment if isinstance(environment, str) else environment.get("name", chosen["env"])
    chosen |= {"env": env} | _choices_of("env", env) | {name: option for name, option in named.items() if name != "env"}
    del root["hydra"]
    settings = root | {group: _option(group, option) for group, option in chosen.items()}
    for name, change in changes.items():
        if name not in chosen or not isinstance(change, str):
            settings[name] = settings[name] | change if isinstance(change, dict) else change
    return Settings.model_validate(settings)


def _choices_of(group: str, name: str) -> dict[str, str]:
    """The options of other groups that one option of a group chooses."""
    entries = _read_yaml(CONFIGS / group / f"{name}.yaml").get("defaults", [])
    overrides = {target: option for entry in entries if isinstance(entry, dict) for target, option in entry.items()}
    return {target.rpartition(".")[2]: option for target, option in overrides.items()}


def _option(group: str, name: str) -> dict[str, Any]:
    """The values of one option of a group, in place of those of the option that it builds upon."""
    own = _read_yaml(CONFIGS / group / f"{name}.yaml")
    values: dict[str, Any] = {}
    for base in own.pop("defaults", ["_self_"]):
        if isinstance(base, dict):  # chooses an option of another group
            continue
        values |= own if base == "_self_" else _option(group, base)
    return values


def _read_yaml(path: Path) -> dict[str, Any]:
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(values, dict)
    return values

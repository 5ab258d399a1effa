"""Opens the answering model and the encoders that the settings name."""

from collections.abc import Iterable

from data.history import Dataset
from envs.settings import EfficientNetEncoder, EmbeddedVlm, MiniLMEncoder, OpenAIEncoder, OpenAIVlm, Settings, SigLIP2Encoder
from models.embedded.engine import EmbeddedEngine
from models.encoders.cached import CachedJointEncoder, CachedTextEncoder, CachedTextImageEncoder
from models.encoders.efficientnet import EfficientNetLite0
from models.encoders.minilm import MiniLM
from models.encoders.openai_embeddings import EmbeddingsSettings, OpenAIEmbeddings
from models.encoders.qwen3_vl_embedding import Qwen3VLEmbedding
from models.encoders.siglip2 import SigLIP2
from models.encoders.types import ImageEncoder, TextEncoder
from models.openai_compatible.backend import OpenAIBackend
from models.openai_compatible.settings import OpenAISettings
from models.qwen3_vl.backend import Qwen3VL, Qwen3VLSettings
from models.requests import Backend
from models.store import ContentStore
from models.weights import PretrainedSettings


def open_backend(settings: Settings, dataset: Dataset, *, store: ContentStore, minilm: MiniLM) -> Backend:
    """The answering model; a server is checked first, so that what is wrong with it is told before anything is built.

    Raises:
        models.errors.BackendError: the server cannot be used, or a setting of it.
        models.errors.WeightsError: weights that are missing or not what they should be.
        models.errors.DependencyMissing: a package that the model needs is not installed.
    """
    vlm = settings.vlm
    if isinstance(vlm, EmbeddedVlm):
        return EmbeddedEngine(store, image_encoder=EfficientNetLite0(store), counter=minilm.counter)
    plain = vlm.model_dump(exclude={"name"})
    if isinstance(vlm, OpenAIVlm):
        server = OpenAIBackend(OpenAISettings(**plain))
        server.check(n_images=_most_images(dataset, settings))
        return server
    return Qwen3VL(Qwen3VLSettings(**plain))


def open_encoder(settings: Settings, *, store: ContentStore, minilm: MiniLM) -> TextEncoder:
    """The text encoder of queries, summaries and anchors, with its vectors kept in ``store``; raises as `open_backend`."""
    encoder = settings.encoder
    if isinstance(encoder, MiniLMEncoder):
        return CachedTextEncoder(minilm, store=store)
    plain = encoder.model_dump(exclude={"name"})
    if isinstance(encoder, OpenAIEncoder):
        return CachedTextEncoder(OpenAIEmbeddings(EmbeddingsSettings(**plain)), store=store)
    if isinstance(encoder, SigLIP2Encoder):
        return CachedTextEncoder(SigLIP2(PretrainedSettings(**plain)), store=store)
    return CachedJointEncoder(Qwen3VLEmbedding(PretrainedSettings(**plain)), store=store)


def open_image_encoder(settings: Settings, *, store: ContentStore) -> ImageEncoder:
    """The image encoder of AdaMM's memory, with its vectors kept in ``store``; raises as `open_backend`."""
    encoder = settings.image_encoder
    if isinstance(encoder, EfficientNetEncoder):
        return EfficientNetLite0(store)
    return CachedTextImageEncoder(SigLIP2(PretrainedSettings(**encoder.model_dump(exclude={"name"}))), store=store)


def _most_images(dataset: Dataset, settings: Settings) -> int:
    """The most images that one answer request can carry: whole images and views of every memory, and the question's own."""

    def most(counts: Iterable[int]) -> int:
        return max(counts, default=0)

    # An episode is at most a session; counting a session's images errs on the safe side only for long sessions.
    in_session = most(sum(len(round_.images) for round_ in session.rounds) for history in dataset.histories for session in history.sessions)
    in_history = most(sum(1 for _ in history.images) for history in dataset.histories)
    in_question = most(len(question.images) for question in dataset.questions)
    return 2 * min(in_history, settings.memory.retrieval.k_total * in_session) + in_question

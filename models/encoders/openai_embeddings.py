"""Text embeddings from any OpenAI-compatible server (``/embeddings``): vLLM, OpenAI, llama.cpp, TEI."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from openai import APIError, omit

from models.errors import BackendError
from models.openai_compatible.connection import Connection, UnusableBody
from models.openai_compatible.failures import explain
from models.openai_compatible.settings import ServerSettings

logger = logging.getLogger(__name__)

_NORM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class EmbeddingsSettings(ServerSettings):
    """What `OpenAIEmbeddings` needs.

    Attributes:
        revision: Free text that becomes part of the encoder's id; change it when other weights are served under one name.
        batch_size: Texts in one request.
        dimensions: Length of vector to ask for, where the model offers a choice; None for the model's own.
    """

    revision: str
    batch_size: int
    dimensions: int | None

    def __post_init__(self) -> None:
        super().__post_init__()
        wrong = [
            f"{name}={value} must be at least 1"
            for name, value in (("batch_size", self.batch_size), ("dimensions", self.dimensions))
            if value is not None and value < 1
        ]
        if wrong:
            raise BackendError("; ".join(wrong))


class OpenAIEmbeddings:
    """A `TextEncoder` over ``/embeddings``; vectors are brought to unit norm."""

    def __init__(self, settings: EmbeddingsSettings) -> None:
        """Open nothing yet: the first text connects.

        Raises:
            AccessRefused: the key's environment variable is not set.
        """
        self.settings = settings
        self.connection = Connection(settings)
        self._said_norm = False

    def __repr__(self) -> str:
        """Name server and model."""
        return f"OpenAIEmbeddings({self.settings.base_url!r}, id={self.id!r})"

    @property
    def id(self) -> str:
        """The model's name, with the dimensions asked for and the revision where they are set."""
        settings = self.settings
        marks = [*([f"{settings.dimensions}d"] if settings.dimensions else []), *([settings.revision] if settings.revision else [])]
        return "@".join([settings.model, *([",".join(marks)] if marks else [])])

    @cached_property
    def dimension(self) -> int:
        """Length d of a vector, as the server's first reply has it."""
        (found,) = self.connection.stream([partial(self._embed, ["dimension"])])
        return int(found[1].shape[1])

    def close(self) -> None:
        """Stop the event loop; called by itself when the encoder is let go."""
        self.connection.close()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode to (len(texts), d) float32, unit norm.

        Raises:
            BackendUnavailable: the server is gone, keeps failing, or sends no usable vectors.
            ContextLengthError: a text is longer than the model reads.
            RequestRefused: the server refuses a batch.
        """
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        starts = range(0, len(texts), self.settings.batch_size)
        jobs = [partial(self._embed, texts[start : start + self.settings.batch_size]) for start in starts]
        for position, found in self.connection.stream(jobs):
            if found.shape[1] != self.dimension:
                raise BackendError(
                    f"{self.settings.base_url} (model {self.settings.model}) sent vectors of {found.shape[1]} and {self.dimension} "
                    "numbers, so two models share one name; name one of them"
                )
            vectors[starts[position] : starts[position] + len(found)] = found
        return vectors

    async def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        asked = f"embedding of {len(texts)} texts from {texts[0][:40]!r} on"
        try:
            return self._unit(await self.connection.retry_body(partial(self._once, texts), asked=asked))
        except APIError as error:
            length = f"the longest text has {max(map(len, texts))} characters"
            raise explain(error, asked=asked, length=length, server=self.settings, secret=self.connection.secret) from error

    async def _once(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Ask once; (len(texts), d) float32 as sent. Base64, the SDK's own choice, is not spoken by every server."""
        dimensions = omit if self.settings.dimensions is None else self.settings.dimensions
        create = self.connection.client.embeddings.create
        try:
            answer = await create(input=list(texts), model=self.settings.model, encoding_format="float", dimensions=dimensions)
            items = sorted(answer.data, key=lambda item: item.index)
            vectors = np.asarray([item.embedding for item in items], np.float32)
        except APIError:
            raise
        except (ValueError, TypeError, AttributeError) as error:  # HTTP 200 with something else than vectors
            raise UnusableBody(f"a body without vectors ({error})") from error
        if [item.index for item in items] != list(range(len(texts))) or vectors.ndim != 2:
            raise UnusableBody(f"{len(items)} vectors for {len(texts)} texts")
        if not np.isfinite(vectors).all() or not np.linalg.norm(vectors, axis=1).all():
            raise UnusableBody("a vector that is zero or not finite")
        return vectors

    def _unit(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not self._said_norm and np.abs(norms - 1).max() > _NORM_TOLERANCE:
            self._said_norm = True
            logger.warning("%s sends vectors of norm %.3g; they are brought to 1", self.settings.model, norms[0, 0])
        unit: NDArray[np.float32] = (vectors / norms).astype(np.float32)
        return unit

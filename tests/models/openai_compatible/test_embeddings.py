from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.encoders.cached import CachedTextEncoder
from models.encoders.openai_embeddings import EmbeddingsSettings, OpenAIEmbeddings
from models.errors import BackendUnavailable, ContextLengthError
from models.store import ContentStore
from tests.servers.fault_server import DIMENSION, embeddings
from tests.servers.processes import FaultServerProcess


def embeddings_settings(base_url: str, **changes: Any) -> EmbeddingsSettings:
    settings = EmbeddingsSettings(
        base_url=base_url,
        model="fault-embedder",
        api_key_env=None,
        concurrency=2,
        timeout_seconds=5.0,
        connect_timeout_seconds=2.0,
        max_retries=2,
        max_failures=3,
        revision="",
        batch_size=3,
        dimensions=None,
    )
    return replace(settings, **changes)


def expected(text: str) -> np.ndarray:
    """The fault server's vector of a text, brought from norm 3 to norm 1."""
    return np.asarray(embeddings({"model": "m", "input": [text]})["data"][0]["embedding"]) / 3


def test_vectors_come_in_order_at_unit_norm_and_in_batches(server: FaultServerProcess) -> None:
    texts = [f"text {number}" for number in range(8)]
    encoder = OpenAIEmbeddings(embeddings_settings(server.base_url))
    vectors = encoder.encode(texts)
    assert vectors.dtype == np.float32 and vectors.shape == (8, DIMENSION) and encoder.dimension == DIMENSION
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(vectors, np.stack([expected(text) for text in texts]), atol=1e-6)
    assert len(server.events("received")) == 1 + 3  # one for the dimension, three batches


def test_no_texts_are_no_vectors(server: FaultServerProcess) -> None:
    assert OpenAIEmbeddings(embeddings_settings(server.base_url)).encode([]).shape == (0, DIMENSION)


def test_failures_are_retried_and_then_told(server: FaultServerProcess) -> None:
    encoder = OpenAIEmbeddings(embeddings_settings(server.base_url, max_retries=1))
    assert encoder.dimension == DIMENSION
    server.script({"fault": "status", "status": 503, "times": 1, "headers": {"retry-after": "0.05"}})
    encoder.encode(["a"])
    server.script({"fault": "drop"})
    with pytest.raises(BackendUnavailable, match=r"embedding of 1 texts from 'b'"):
        encoder.encode(["b"])
    server.script({"fault": "status", "status": 400, "message": "This model's maximum context length is 512 tokens"})
    with pytest.raises(ContextLengthError, match="longest text has 5 characters"):
        encoder.encode(["c", "ccccc"])


def test_a_body_without_vectors_is_an_error(server: FaultServerProcess) -> None:
    encoder = OpenAIEmbeddings(embeddings_settings(server.base_url, max_retries=0))
    for body in (
        {"data": []},
        {"data": [{"index": 0, "embedding": [0.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": "none"}]},
        {"data": 3},
    ):
        server.script({"fault": "body", "body": body})
        with pytest.raises(BackendUnavailable, match="sent"):
            encoder.encode(["a"])


def test_vectors_are_cached_under_the_encoders_id(server: FaultServerProcess, tmp_path: Path) -> None:
    encoder = OpenAIEmbeddings(embeddings_settings(server.base_url, revision="r2", dimensions=DIMENSION))
    assert encoder.id == "fault-embedder@8d,r2"
    store = ContentStore(tmp_path / "vectors.sqlite")
    CachedTextEncoder(encoder, store=store).encode(["a", "b"])
    n_before = len(server.events("received"))
    CachedTextEncoder(encoder, store=store).encode(["a", "b"])
    assert len(server.events("received")) == n_before

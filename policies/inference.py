"""Selects evidence with an exported selector, using onnxruntime and NumPy alone (HiVe-Mem Eq. 5 and the inference threshold)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as runtime_errors

from policies.artefact import ONNX_NAME, SelectorDocument, read_document, read_recorded
from policies.errors import ArtefactError

_LOAD_ERRORS = (
    runtime_errors.Fail,
    runtime_errors.InvalidArgument,
    runtime_errors.InvalidGraph,
    runtime_errors.InvalidProtobuf,
    runtime_errors.NoSuchFile,
    runtime_errors.NotImplemented,
    runtime_errors.RuntimeException,
    RuntimeError,
    ValueError,
)
_NORM_TOLERANCE = 1e-2


class Selector:
    """An exported evidence selector.

    Embeddings must come from the encoder named in `document` and have unit norm; the input scale is inside the model.
    """

    def __init__(self, document: SelectorDocument, *, session: onnxruntime.InferenceSession) -> None:
        """Use an open session; `load` is the usual way.

        Args:
            document: What the model is.
            session: The model, with inputs ``query`` and ``summaries`` and output ``logits``.
        """
        self.document = document
        self._session = session
        self._threshold_logit = math.log(document.threshold) - math.log1p(-document.threshold)

    @classmethod
    def load(cls, folder: Path | str, *, encoder_id: str | None = None) -> Selector:
        """Open an exported selector.

        Args:
            folder: The exported folder.
            encoder_id: Id of the encoder whose vectors will be given; checked against the export unless ``None``.

        Raises:
            ArtefactError: If a file is missing, damaged or inconsistent, or the encoder is another one.
        """
        folder = Path(folder)
        document = read_document(folder)
        if encoder_id is not None and encoder_id != document.encoder.id:
            raise ArtefactError(
                f"{folder}: the selector reads vectors of encoder {document.encoder.id!r}, not of {encoder_id!r}; "
                "use that encoder or train a selector on yours"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # Failures are raised; nothing else belongs on the user's terminal.
        model = read_recorded(folder, ONNX_NAME, document.files[ONNX_NAME])
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except _LOAD_ERRORS as error:
            raise ArtefactError(f"{folder / ONNX_NAME} is not a model that onnxruntime can run ({error}); export it again") from error
        selector = cls(document, session=session)
        selector._check_model(folder / ONNX_NAME)
        return selector

    @property
    def forms(self) -> tuple[str, ...]:
        """Names of the evidence forms in the order of the last axis."""
        return self.document.forms

    def select(
        self, query: NDArray[np.floating[Any]], summaries: NDArray[np.floating[Any]], available: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Choose the evidence of one question.

        Args:
            query: Unit-norm query embedding, (d,).
            summaries: Unit-norm summary embeddings of N >= 0 memories, (N, d).
            available: Which forms each memory has, bool (N, F).

        Returns:
            Which forms to show, bool (N, F); never an unavailable one.

        Raises:
            ValueError: If shapes, types or norms do not fit.
        """
        query, summaries, available = np.asarray(query), np.asarray(summaries), np.asarray(available)
        chosen: NDArray[np.bool_] = self.select_batch(query[None], summaries[None], available[None])[0]
        return chosen

    def select_batch(
        self, query: NDArray[np.floating[Any]], summaries: NDArray[np.floating[Any]], available: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Choose the evidence of B questions with N memories each (rows without an available form may be zero).

        Args:
            query: Unit-norm query embeddings, (B, d).
            summaries: Unit-norm summary embeddings, (B, N, d).
            available: Which forms each memory has, bool (B, N, F).

        Returns:
            Which forms to show, bool (B, N, F); never an unavailable one.

        Raises:
            ValueError: If shapes, types or norms do not fit.
        """
        query, summaries, available = np.asarray(query), np.asarray(summaries), np.asarray(available)
        self._check_inputs(query, summaries, available)
        if available.size == 0:
            return np.zeros(available.shape, bool)
        chosen: NDArray[np.bool_] = (self._logits(query, summaries) > self._threshold_logit) & available
        return chosen

    def probabilities(self, query: NDArray[np.floating[Any]], summaries: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Return the selection probabilities of Eq. 5 before masking, float32 (B, N, F).

        Args:
            query: Unit-norm query embeddings, (B, d).
            summaries: Unit-norm summary embeddings, (B, N, d); zero rows for absent memories.

        Raises:
            ValueError: If shapes or norms do not fit.
        """
        query, summaries = np.asarray(query), np.asarray(summaries)
        present = summaries.any(axis=-1, keepdims=True)
        self._check_inputs(query, summaries, present.repeat(len(self.forms), axis=-1))
        logits = self._logits(query, summaries)
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logits)), np.float32)  # The logistic function without overflow.

    def _logits(self, query: NDArray[Any], summaries: NDArray[Any]) -> NDArray[np.float32]:
        inputs = {"query": query.astype(np.float32, copy=False), "summaries": summaries.astype(np.float32, copy=False)}
        return np.asarray(self._session.run(["logits"], inputs)[0], np.float32)

    def _check_inputs(self, query: NDArray[Any], summaries: NDArray[Any], available: NDArray[Any]) -> None:
        dimension, forms = self.document.encoder.dimension, len(self.forms)
        problems = []
        if query.ndim != 2 or query.shape[1] != dimension:
            problems.append(f"query vectors must have length {dimension} (encoder {self.document.encoder.id}), got shape {query.shape}")
        if summaries.ndim != 3 or summaries.shape[2] != dimension or summaries.shape[:1] != query.shape[:1]:
            problems.append(f"summaries must be one (memories, {dimension}) array per query, got shape {summaries.shape}")
        if available.dtype != np.bool_ or available.shape != (*summaries.shape[:2], forms):
            expected = (*summaries.shape[:2], forms)
            problems.append(f"available must be bool {expected} for {', '.join(self.forms)}, got {available.dtype} {available.shape}")
        if not problems:
            used = summaries[available.any(axis=-1)]
            for name, vectors in (("query", query), ("summary", used)):
                norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
                wrong = ~(np.abs(norms - 1.0) <= _NORM_TOLERANCE)  # Written so that a nan is wrong.
                if wrong.any():
                    problems.append(f"{name} vectors must have unit norm, found {norms[wrong][0]:.4g}; normalise them")
        if problems:
            raise ValueError("; ".join(problems))

    def _check_model(self, path: Path) -> None:
        """Compare the model's inputs and outputs with the document, then run it once."""
        dimension, forms = self.document.encoder.dimension, len(self.forms)
        found = {value.name: (value.type, len(value.shape), value.shape[-1]) for value in self._session.get_inputs()}
        expected = {"query": ("tensor(float)", 2, dimension), "summaries": ("tensor(float)", 3, dimension)}
        outputs = [value.name for value in self._session.get_outputs()]
        if found != expected or outputs != ["logits"]:
            raise ArtefactError(f"{path} has inputs {found} and outputs {outputs}, expected {expected} and ['logits']; export it again")
        try:
            logits = self._logits(np.zeros((2, dimension), np.float32), np.zeros((2, 3, dimension), np.float32))
        except _LOAD_ERRORS as error:
            raise ArtefactError(f"{path} fails on two questions with three memories ({error}); export it again") from error
        if logits.shape != (2, 3, forms) or not np.isfinite(logits).all():
            raise ArtefactError(f"{path} gives logits of shape {logits.shape}, expected finite (2, 3, {forms}); export it again")

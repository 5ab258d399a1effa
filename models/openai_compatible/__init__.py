"""Any OpenAI-compatible server as a backend: vLLM, OpenAI, llama.cpp, TGI, ``transformers serve``.

Reading order: `settings`, `backend` (the `Backend`), `rendering` and `images` (what is sent), `dialect` (what a server
does not take), `completion` (one reply), `structured` (JSON replies), `connection` (concurrency, retries, circuit
breaker), `failures` (what went wrong, in words), `counting` (token rules), `check` (before a run).
"""

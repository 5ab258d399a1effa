"""Models behind one door.

Reading order: `requests`, `tasks`, `door`, `cache`, `ledger`, `prices`, `store`, `tokens`, `encoders`, then the backends: `embedded`,
`openai_compatible`, `qwen3_vl`.
"""

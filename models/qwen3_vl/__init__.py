"""Qwen3-VL through transformers.

`backend` (the model), `chat` (messages to model inputs, token rules), `grammar` and `decoding` (replies of a given form).
"""

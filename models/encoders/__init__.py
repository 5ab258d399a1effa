"""Encoders of text and pictures, and their vectors on disk.

`minilm` (text), `efficientnet` (image to image), `siglip2` (text and image), `qwen3_vl_embedding` (text, image, both),
`openai_embeddings` (text, by a server), `cached` (vectors on disk by content).
"""

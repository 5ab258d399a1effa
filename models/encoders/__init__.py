"""Encoders: `minilm` (text), `efficientnet` (image to image), `cached` (vectors on disk by content)."""

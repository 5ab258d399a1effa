"""Loaders of benchmark files: reading (checked JSON), mem_gallery."""

"""Histories and questions. Reading order: `history`, `images`, `values`, `loaders`, `splits`, `sample`."""

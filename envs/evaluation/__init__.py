"""Evaluation. Reading order: `comparison`, `records`, `table`, `report`, `manifest`, `acceptance`."""

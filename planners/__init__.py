"""Deciding what a question is shown. Reading order: `composers`."""

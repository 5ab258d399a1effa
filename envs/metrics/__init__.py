"""Scores of answers: text (F1, BLEU-1 and exact match under each benchmark's profile)."""

"""Answers made of retrieved passages, every sentence cited."""

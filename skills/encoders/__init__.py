"""Encoders of texts into vectors."""

"""Stores of passages."""

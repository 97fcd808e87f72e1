"""Alembic's environment and versions of the experience schema."""

"""The `tactician` command."""

from serve_app.cli.main import main

__all__ = ["main"]

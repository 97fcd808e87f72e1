"""The debug console: one page on the same API that everybody uses."""

from pathlib import Path

PAGE = Path(__file__).parent / "index.html"

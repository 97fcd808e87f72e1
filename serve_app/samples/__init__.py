"""The sample corpus that `tactician demo` reads: two invented makers of home batteries.

All texts are ours and fictional. `documents` is the corpus; `sources` holds the text of its Word
and PDF file, which `python -m serve_app.samples.binaries` writes.
"""

from pathlib import Path

DOCUMENTS = Path(__file__).parent / "documents"

QUESTIONS = (
    "澜星储能2024年第二季度的营业收入是多少？",
    "How do I restart the Halden H5 after a power cut?",
    "What is the difference between the Halden H5 and the Halden H10?",
)
"""A fact with a number, an open how, a comparison; the first is Chinese."""

"""One run of ingestion as a process of its own, for a test to kill.

    python -m tests.unit.ingest.kill_driver HOME DOCS EXECUTION

Prints `at N` after every batch and `done {…}` with the counts at the end.
"""

import json
import sys
from pathlib import Path

from ingest.chunkers.registry import ChunkerManifest, load_chunkers
from ingest.documents import DocumentSettings
from ingest.request import IngestRequest
from ingest.run import run
from skills.resources import Component, ResourceSettings

HERE = "tests.unit.ingest.gate"


def settings(home):
    """The real embedded store, and an encoder with a gate."""
    encoder = Component(class_path=f"{HERE}.GatedEncoder")
    return ResourceSettings(home=home, cache=home, encoders={"default": encoder})


def request_of(home, docs, execution):
    chunker = ChunkerManifest(
        chunker_id="gated",
        class_path=f"{HERE}.GatedChunker",
        description="Waits at a gate.",
        source_types=("*",),
    )
    documents = DocumentSettings(chunkers=(*load_chunkers(), chunker))
    return IngestRequest(
        (str(docs),), "c", settings(home), documents=documents, execution=execution
    )


def main():
    home, docs, execution = sys.argv[1:]
    request = request_of(Path(home), docs, execution)
    summary = run(request, lambda p: print("at", p.passages, flush=True))
    shown = {name: getattr(summary, name) for name in ("added", "failed", "passages")}
    print("done", json.dumps(shown), flush=True)


if __name__ == "__main__":
    main()

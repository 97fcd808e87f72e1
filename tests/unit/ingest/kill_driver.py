"""One run of ingestion as a process of its own, for a test to kill.

    python -m tests.unit.ingest.kill_driver HOME DOCS EXECUTION PAUSE_S

Prints `at N` after every batch and `done {…}` with the counts at the end.
"""

import json
import sys
from pathlib import Path

from ingest.request import IngestRequest
from ingest.run import run
from skills.resources import Component, ResourceSettings

HERE = "tests.unit.ingest.fakes"


def settings(home, pause_s=0.0):
    """The real embedded store, and an encoder that takes its time."""
    encoder = Component(class_path=f"{HERE}.FakeEncoder", init_params={"pause_s": pause_s})
    return ResourceSettings(home=home, cache=home, encoders={"default": encoder})


def main():
    home, docs, execution, pause_s = sys.argv[1:]
    request = IngestRequest((docs,), "c", settings(Path(home), float(pause_s)), execution=execution)
    summary = run(request, lambda p: print("at", p.passages, flush=True))
    shown = {name: getattr(summary, name) for name in ("added", "failed", "passages")}
    print("done", json.dumps(shown), flush=True)


if __name__ == "__main__":
    main()

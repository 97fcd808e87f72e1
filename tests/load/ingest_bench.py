"""How much of the bare encoder's speed ingestion keeps, where its time goes, what memory it takes.

    python -m tests.load.ingest_bench speed ../shared/data/cmrc2018-zh [--sample 1000]
    python -m tests.load.ingest_bench memory ../shared/data/cmrc2018-zh [--execution ray]

`speed` runs in one process, so that its ratio holds on a machine that others use too: the bare
encoder takes every second batch of the passages with a thread a core, then the corpus is ingested
end to end into the default store, then the bare encoder takes the other batches. CPU seconds are
compared as well as elapsed ones. At last one passage in a hundred is changed and the corpus
ingested again. `memory` ingests the corpus once and ten times as long, with an encoder that costs
nothing, each in a process of its own. Both fail when a bar is not met.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from platformdirs import user_cache_dir

from ingest.passages import parse_passage
from ingest.request import IngestRequest
from ingest.run import run
from skills.encoders.passage_text import embedded_text
from skills.resources import Component, Resources, ResourceSettings

SPEED_BAR, MEMORY_BAR, AGAIN_BAR = 0.85, 1.2, 0.05
BATCH = 256
LIGHT = Component(class_path="skills.encoders.hashing.HashingEncoder", init_params={"dim": 384})


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as home:
        {"speed": _speed, "memory": _memory, "once": _once}[options.what](options, Path(home))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["speed", "memory", "once"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=0, help="so many passages; 0 takes all")
    parser.add_argument("--execution", default="inline")
    parser.add_argument("--cache", type=Path, default=Path(user_cache_dir("tactician")))
    return parser.parse_args()


def _speed(options: argparse.Namespace, home: Path) -> None:
    resources = Resources(ResourceSettings(home=home / "home", cache=options.cache))
    records = _records(options)
    corpus = home / "corpus"
    _write(corpus, records)
    texts = [embedded_text(parse_passage(json.dumps(r).encode(), "")) for r in records]
    batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
    encoder = resources.encoder()
    encoder.encode(texts[:8], "passage")
    request = IngestRequest((str(corpus),), "bench", resources.settings, execution="inline")

    first = _timed(lambda: _encode(encoder, batches[::2]))
    summary, *whole = _timed(lambda: run(request, resources=resources))
    second = _timed(lambda: _encode(encoder, batches[1::2]))
    changed = _change(records)
    _write(corpus, records)
    again, again_s, _ = _timed(lambda: run(request, resources=resources))

    bare_s, bare_cpu_s = first[1] + second[1], first[2] + second[2]
    ratio, cpu_ratio = bare_s / whole[0], bare_cpu_s / whole[1]
    shown = {
        "passages": len(records),
        "bare_per_s": round(len(records) / bare_s, 1),
        "ingest_per_s": round(len(records) / whole[0], 1),
        "ratio": round(ratio, 3),
        "ratio_of_cpu_time": round(cpu_ratio, 3),
        "bar": SPEED_BAR,
        "shares": {k: round(v, 3) for k, v in summary.stage_shares.items()},
        "again": {
            "share_of_time": round(again_s / whole[0], 3),
            "bar": AGAIN_BAR,
            "elapsed_s": round(again_s, 1),
            "changed": [changed, again.changed],
            "passages": again.passages,
        },
    }
    print(json.dumps(shown, indent=1))
    exact = (again.changed, again.passages, again.added, again.deleted) == (changed, changed, 0, 0)
    if not (max(ratio, cpu_ratio) >= SPEED_BAR and again_s <= AGAIN_BAR * whole[0] and exact):
        sys.exit("a bar was not met")


def _encode(encoder, batches: list[list[str]]) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(lambda batch: encoder.encode(batch, "passage"), batches):
            pass


def _timed(work) -> tuple:
    """What `work` returns, its elapsed seconds, and the CPU seconds of it and its children."""
    cpu, started = _cpu_s(), time.perf_counter()
    result = work()
    return result, time.perf_counter() - started, _cpu_s() - cpu


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _records(options: argparse.Namespace) -> list[dict]:
    with (options.folder / "corpus.jsonl").open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    if options.sample:
        records = random.Random(0).sample(records, options.sample)
    return records


def _write(corpus: Path, records: list[dict], times: int = 1) -> None:
    """The records, `times` over, with other ids and words each time."""
    corpus.mkdir(exist_ok=True)
    with (corpus / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for copy in range(times):
            for record in records:
                other = {"_id": f"{record['_id']}-{copy}", "text": f"{copy} {record['text']}"}
                file.write(json.dumps(record | other, ensure_ascii=False) + "\n")


def _change(records: list[dict]) -> int:
    chosen = random.Random(1).sample(records, max(1, len(records) // 100))
    for record in chosen:
        record["text"] += " 2026"
    return len(chosen)


def _memory(options: argparse.Namespace, home: Path) -> None:
    records = _records(options)
    peaks = {}
    for times in (1, 10):
        corpus = home / f"corpus-{times}"
        _write(corpus, records, times)
        peaks[times] = _peaks(options, corpus)
    growth = {kind: round(peaks[10][kind] / peaks[1][kind], 2) for kind in sorted(peaks[1])}
    shown = {"passages": len(records), "peak_mb": peaks, "growth": growth, "bar": MEMORY_BAR}
    print(json.dumps(shown, indent=1))
    if max(growth.values()) > MEMORY_BAR:
        sys.exit("a bar was not met")


def _peaks(options: argparse.Namespace, corpus: Path) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.load.ingest_bench", "once", str(corpus)]
    command += ["--execution", options.execution, "--cache", str(options.cache)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peaks: dict[str, int] = {}
    watching = threading.Thread(target=_watch, args=(process, peaks))
    watching.start()
    process.wait()
    watching.join()
    return peaks


def _once(options: argparse.Namespace, home: Path) -> None:
    settings = ResourceSettings(home=home, cache=options.cache, encoders={"default": LIGHT})
    run(IngestRequest((str(options.folder),), "bench", settings, execution=options.execution))


def _watch(process: subprocess.Popen, peaks: dict[str, int]) -> None:
    """Peak memory in MB, by kind of process, of a process and all below it.

    Of its own: pages of files, which the system takes back when it needs them, and the object
    store of Ray, which has a size of its own, do not count.
    """
    while process.poll() is None:
        try:
            root = psutil.Process(process.pid)
            for each in [root, *root.children(recursive=True)]:
                kind = _kind(each, root)
                if kind:
                    memory = each.memory_info()
                    size = round((memory.rss - memory.shared) / 2**20)
                    peaks[kind] = max(peaks.get(kind, 1), size)
        except psutil.Error:
            pass
        time.sleep(0.05)


def _kind(process: psutil.Process, root: psutil.Process) -> str:
    if process == root:
        return "driver"
    command = " ".join(process.cmdline())
    for mark in ("parser_process", "ParseActor", "EmbedActor"):
        if mark in command:
            return mark
    return ""


if __name__ == "__main__":
    main()

"""How much of the bare encoder's speed ingestion keeps, where its time goes, what memory it takes.

    python -m tests.load.ingest_bench ../shared/data/cmrc2018-zh [--times 1] [--execution auto]

Encodes the corpus with the bare encoder in as many processes as there are cores, then ingests it
into the default store, each in processes of their own, and prints the ratio. `--times 10` makes
the input ten times as long with other words, for the memory figures.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

BAR = 0.85


def main() -> None:
    options = _options()
    if options.worker:
        _WORKERS[options.worker](options)
        return
    with tempfile.TemporaryDirectory() as home:
        corpus = Path(home) / "corpus"
        corpus.mkdir()
        count = _write_corpus(options.folder, corpus / "corpus.jsonl", options.times)
        bare_s = 0.0 if options.skip_bare else _bare(options, corpus / "corpus.jsonl")
        result, peaks = _measured("ingest", options, corpus, Path(home) / "home")
    rate = count / result["elapsed_s"]
    shown = {
        "passages": count,
        "execution": result["execution"],
        "ingest_per_s": round(rate, 1),
        "bare_per_s": round(count / bare_s, 1) if bare_s else None,
        "ratio": round(rate * bare_s / count, 3) if bare_s else None,
        "bar": BAR,
        "shares": {k: round(v, 3) for k, v in result["shares"].items()},
        "peak_rss_mb": peaks,
    }
    print(json.dumps(shown, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--execution", default="auto")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "tactician-bench")
    parser.add_argument("--skip-bare", action="store_true")
    parser.add_argument("--worker", default="")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--part", type=int, default=0)
    return parser.parse_args()


def _write_corpus(folder: Path, target: Path, times: int) -> int:
    count = 0
    with target.open("w", encoding="utf-8") as file:
        for copy in range(times):
            for line in (folder / "corpus.jsonl").open(encoding="utf-8"):
                record = json.loads(line)
                if copy:
                    record["_id"] = f"{record['_id']}-{copy}"
                    record["text"] = f"{copy} {record['text']}"
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                count += 1
    return count


def _bare(options: argparse.Namespace, corpus: Path) -> float:
    """Seconds that one process a core needs for its share of the passages, the slowest counted."""
    cores = os.cpu_count() or 1
    running = [
        _start("bare", options, corpus, Path("unused"), part, cores) for part in range(cores)
    ]
    return max(json.loads(p.communicate()[0].splitlines()[-1])["elapsed_s"] for p in running)


def _measured(
    worker: str, options: argparse.Namespace, source: Path, home: Path
) -> tuple[dict, dict]:
    process = _start(worker, options, source, home, 0, 1)
    peaks: dict[str, float] = {}
    watching = threading.Thread(target=_watch, args=(process, peaks))
    watching.start()
    output, _ = process.communicate()
    watching.join()
    return json.loads(output.splitlines()[-1]), peaks


def _start(
    worker: str, options: argparse.Namespace, source: Path, home: Path, part: int, parts: int
) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.load.ingest_bench", str(source), "--worker", worker]
    command += ["--execution", options.execution, "--cache", str(options.cache)]
    command += ["--home", str(home), "--part", str(part), "--times", str(parts)]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def _watch(process: subprocess.Popen, peaks: dict[str, float]) -> None:
    """Peak resident size, by kind of process, of a process and all below it."""
    while process.poll() is None:
        try:
            root = psutil.Process(process.pid)
            for each in [root, *root.children(recursive=True)]:
                kind = _kind(each, root)
                if kind:
                    size = round(each.memory_info().rss / 2**20)
                    peaks[kind] = max(peaks.get(kind, 0), size)
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.1)


def _kind(process: psutil.Process, root: psutil.Process) -> str:
    if process == root:
        return "driver"
    command = " ".join(process.cmdline())
    for mark, kind in (
        ("parser_process", "parser"),
        ("ParseActor", "parse actor"),
        ("EmbedActor", "embed actor"),
        ("MapWorker", "embed actor"),
    ):
        if mark in command:
            return kind
    return ""


def _work_bare(options: argparse.Namespace) -> None:
    from ingest.passages import parse_passage
    from ingest.rows import embedded_text

    encoder = _resources(options).encoder()
    lines = options.folder.read_bytes().splitlines()[options.part :: options.times]
    texts = [embedded_text(parse_passage(line, "")) for line in lines]
    encoder.encode(texts[:8], "passage")
    started = time.perf_counter()
    for at in range(0, len(texts), 256):
        encoder.encode(texts[at : at + 256], "passage")
    print(json.dumps({"elapsed_s": time.perf_counter() - started}))


def _work_ingest(options: argparse.Namespace) -> None:
    from ingest.request import IngestRequest
    from ingest.run import run

    resources = _resources(options)
    request = IngestRequest(
        (str(options.folder),), "bench", resources.settings, execution=options.execution
    )
    summary = run(request, resources=resources)
    shares = dict(summary.stage_shares)
    shown = {
        "elapsed_s": summary.elapsed_s,
        "execution": summary.execution,
        "shares": shares,
        "passages": summary.passages,
    }
    print(json.dumps(shown))


def _resources(options: argparse.Namespace):
    from skills.resources import Resources, ResourceSettings

    return Resources(ResourceSettings(home=options.home, cache=options.cache))


_WORKERS = {"bare": _work_bare, "ingest": _work_ingest}

if __name__ == "__main__":
    main()

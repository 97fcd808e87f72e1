"""Real `/v1/retrieve` with a hybrid plan on some 5,000 passages: requests/s, latency, and where
the time goes.

    python -m tests.load.retrieve_bench CORPUS.jsonl ... --queries QUERIES.jsonl [--clients 8]

Where the time goes is read off the responses: on the slowest arm of a request, what the skill says
it spent in the
encoder and in the store; everything else of the client's latency is Serve, the graph and waiting
for a core.
"""

import argparse
import asyncio
import itertools
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import orjson

from ingest.request import IngestRequest
from ingest.run import run as run_ingest
from serve_app.config import load_config
from serve_app.service import Service, free_port


def main() -> None:
    """Ingest, start, measure, stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--plan", default="hybrid_convex")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    lines = arguments.queries.read_bytes().splitlines()
    queries = [orjson.loads(line)["text"] for line in lines if line]
    with tempfile.TemporaryDirectory() as home:
        config = load_config(home=Path(home), http={"port": free_port()})
        request = IngestRequest(tuple(arguments.corpora), "bench", config.resources)
        summary = run_ingest(request)
        shares = ", ".join(f"{name} {share:.0%}" for name, share in summary.stage_shares.items())
        print(f"ingested {summary.passages} passages, {summary.passages_per_s:.1f}/s ({shares})")
        service = Service(config)
        try:
            service.start()
            asyncio.run(measure(service.url, queries, arguments))
        finally:
            service.stop()


async def measure(url: str, queries: list[str], arguments: argparse.Namespace) -> None:
    """Keep the clients busy, each request with another query."""
    seen: list[tuple[float, dict[str, Any]]] = []
    ring = itertools.cycle(queries)
    async with aiohttp.ClientSession() as session:

        async def client(until: float) -> None:
            while time.perf_counter() < until:
                body = {"query": next(ring), "collection": "bench", "plan": arguments.plan}
                sent = time.perf_counter()
                async with session.post(f"{url}/v1/retrieve", json=body) as answer:
                    content = await answer.read()
                    assert answer.status == 200, content
                seen.append(((time.perf_counter() - sent) * 1000, orjson.loads(content)))

        for seconds in (3.0, arguments.seconds):  # the first round warms up
            seen.clear()
            until = time.perf_counter() + seconds
            await asyncio.gather(*(client(until) for _ in range(arguments.clients)))
    latencies = [ms for ms, _ in seen]
    per_s = len(seen) / arguments.seconds
    p50, p95 = np.percentile(latencies, [50, 95])
    incomplete = sum(bool(body["missing"]) for _, body in seen)
    print(
        f"{arguments.clients} clients, {arguments.plan}: {per_s:.0f} requests/s, "
        f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, {incomplete} of {len(seen)} with something missing"
    )
    shares = np.mean([shares_of(ms, body) for ms, body in seen], axis=0)
    for name, share in zip(("encoder", "store", "Serve, graph, waiting"), shares, strict=True):
        print(f"  {share:5.1%} {name}")


def shares_of(latency_ms: float, body: dict[str, Any]) -> tuple[float, float, float]:
    """Shares of one request's latency: encoder, store, the rest."""
    encoder = store = 0.0
    for stage in body["stages"]:
        slowest = max(stage["calls"], key=lambda call: sum(call["spent_ms"].values()))
        encoder += slowest["spent_ms"].get("encode", 0.0)
        store += slowest["spent_ms"].get("store", 0.0)
    encoder, store = encoder / latency_ms, store / latency_ms
    return encoder, store, 1 - encoder - store


if __name__ == "__main__":
    main()

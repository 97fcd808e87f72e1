"""What the graph itself costs: stub skills behind the real analyzer and orchestrator, beside a
bare no-op ingress.

    python -m tests.load.graph_bench [--seconds 8] [--rounds 3] [--inline analyzer orchestrator]

`--inline` puts parts into the gateway's process, as `parts.NAME.placement: inline` does.
Both applications live in one Serve instance and are measured in turn, so the ratios hold on a
noisy machine.
Bars (DESIGN.md section 8): 1 client p50 <= 5x and p95 <= 25 ms; 8 clients p50 <= 3x; 32 clients
>= 70 % of the no-op's requests/s.
"""

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

import orjson

from serve_app.config import load_config
from serve_app.service import free_port, prepare_environment
from tests.load.clients import Load, closed_loop

HERE = Path(__file__).parent
CLIENTS = (1, 8, 32)


def stub_config(home: Path, port: int, **more):
    """A configuration with stub skills, a stub store and nothing that computes."""
    return load_config(
        environment={},
        home=home,
        cache=home,
        http={"port": port},
        skill_dirs=(HERE / "stubs" / "skills",),
        plan_dirs=(HERE / "stubs" / "plans",),
        rules_file=HERE / "stubs" / "rules.yaml",
        skills=("left", "right", "fusion"),
        stores={"default": {"class_path": "tests.load.stubs.skill.StubStore"}},
        **more,
    )


def start(config):
    """One Serve instance with the graph at / and a no-op ingress at /noop."""
    prepare_environment(config)
    import ray
    from fastapi import FastAPI, Request, Response
    from ray import serve

    from serve_app.deployments.app import build

    app = FastAPI(telemetry={"tracing": False})

    @serve.deployment(max_ongoing_requests=256)
    @serve.ingress(app)
    class Noop:
        @app.post("/")
        async def noop(self, request: Request) -> Response:
            await request.body()
            return Response(b"{}", media_type="application/json")

    ray.init(
        num_cpus=16, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000
    )
    serve.start(
        http_options={"host": "127.0.0.1", "port": config.http.port}, proxy_location="HeadOnly"
    )
    serve.run(build(config), name="tactician", route_prefix="/")
    serve.run(Noop.bind(), name="noop", route_prefix="/noop")


def main() -> None:
    """Run the benchmark and print the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inline", nargs="*", default=[], metavar="PART")
    arguments = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    with tempfile.TemporaryDirectory() as home:
        parts = {name: {"placement": "inline"} for name in arguments.inline}
        config = stub_config(Path(home), free_port(), parts=parts)
        start(config)
        try:
            asyncio.run(measure(f"http://127.0.0.1:{config.http.port}", arguments))
        finally:
            import ray

            ray.shutdown()


async def measure(url: str, arguments: argparse.Namespace) -> None:
    """Alternate between the two applications."""
    body = orjson.dumps({"query": "what does the thing cost", "collection": "stub", "top_k": 10})
    targets = {"noop": f"{url}/noop/", "graph": f"{url}/v1/retrieve"}
    for target in targets.values():
        warm = await closed_loop(target, body, clients=8, seconds=2, keep_bodies=True)
        print(target, warm.statuses, len(warm.bodies[-1]), "bytes")
    print("clients   noop/s  graph/s  share  noop p50  graph p50  ratio  graph p95")
    for clients in CLIENTS:
        seen: dict[str, list[Load]] = {name: [] for name in targets}
        for _ in range(arguments.rounds):
            for name, target in targets.items():
                seen[name].append(
                    await closed_loop(target, body, clients=clients, seconds=arguments.seconds)
                )
        noop, graph = joined(seen["noop"]), joined(seen["graph"])
        assert set(graph.statuses) == {200}, graph.statuses
        print(
            f"{clients:>7} {noop.per_s:>8.0f} {graph.per_s:>8.0f} {graph.per_s / noop.per_s:>6.2f} "
            f"{noop.percentile_ms(50):>9.2f} {graph.percentile_ms(50):>10.2f} "
            f"{graph.percentile_ms(50) / noop.percentile_ms(50):>6.2f} "
            f"{graph.percentile_ms(95):>10.2f}"
        )


def joined(loads: list[Load]) -> Load:
    """Several runs as one."""
    whole = Load()
    for load in loads:
        whole.seconds += load.seconds
        whole.latencies_ms += load.latencies_ms
        for status, count in load.statuses.items():
            whole.statuses[status] = whole.statuses.get(status, 0) + count
    return whole


if __name__ == "__main__":
    main()

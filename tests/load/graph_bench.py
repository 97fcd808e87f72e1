"""What the graph itself costs: stub skills behind the real analyzer and orchestrator, beside a
bare no-op ingress, and beside the hops alone.

    python -m tests.load.graph_bench [--seconds 8] [--rounds 3] [--inline analyzer orchestrator]

`--inline` puts parts into the gateway's process, as `parts.NAME.placement: inline` does.
`hops` is an ingress that makes the graph's calls (analyzer, orchestrator, two skills side by
side), joined in the same way, to deployments that do nothing, and does nothing itself: no graph of
these deployments can be faster. With parts inline it makes only the calls that are left.
All applications live in one Serve instance and are measured in turn, so the ratios hold on a
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
    """One Serve instance with the graph at /, a no-op ingress at /noop and the hops at /hops."""
    prepare_environment(config)
    import ray
    from ray import serve

    from serve_app.deployments.app import build

    ray.init(
        num_cpus=16, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000
    )
    serve.start(
        http_options={"host": "127.0.0.1", "port": config.http.port}, proxy_location="HeadOnly"
    )
    serve.run(build(config), name="tactician", route_prefix="/")
    serve.run(noop(), name="noop", route_prefix="/noop")
    serve.run(hops(config), name="hops", route_prefix="/hops")


def noop():
    """An ingress that answers at once."""
    from fastapi import FastAPI, Request, Response
    from ray import serve

    app = FastAPI(telemetry={"tracing": False})

    @serve.deployment(max_ongoing_requests=256)
    @serve.ingress(app)
    class Noop:
        @app.post("/")
        async def noop(self, request: Request) -> Response:
            await request.body()
            return Response(b"{}", media_type="application/json")

    return Noop.bind()


def hops(config):
    """The graph's calls and nothing else. The body that it sends is as long as the graph's."""
    from fastapi import FastAPI, Request, Response
    from ray import serve

    from serve_app.calls import CoalescedTarget, serve_batch
    from serve_app.deadline import Deadline
    from serve_app.deployments.handles import handle_send
    from tests.load.stubs.skill import StubSkill

    app = FastAPI(telemetry={"tracing": False})

    @serve.deployment(max_ongoing_requests=16, logging_config={"enable_access_log": False})
    class Leaf:
        def __init__(self, answers: bool) -> None:
            self._skill = StubSkill(StubSkill.Config(name="leaf"), None) if answers else None

        async def run(self, envelopes, budget_ms):
            return await serve_batch("leaf", self._run, envelopes, budget_ms)

        async def _run(self, requests):
            return await self._skill.run(requests) if self._skill else requests

    @serve.deployment(max_ongoing_requests=256)
    @serve.ingress(app)
    class Hops:
        def __init__(self, before, skills) -> None:
            self._before = [CoalescedTarget(n, handle_send(n, h)) for n, h in before.items()]
            self._skills = [CoalescedTarget(n, handle_send(n, h)) for n, h in skills.items()]
            self._answer = b"{" + b" " * 9_700 + b"}"

        @app.post("/")
        async def hop(self, request: Request) -> Response:
            asked = (await request.body()).decode()
            deadline = Deadline.after(2_000)
            for target in self._before:
                await target.call(asked, deadline)
            await asyncio.gather(*(target.call(asked, deadline) for target in self._skills))
            return Response(self._answer, media_type="application/json")

    before = [
        n for n in ("analyzer", "orchestrator") if getattr(config.parts, n).placement != "inline"
    ]
    return Hops.bind(
        {name: Leaf.options(name=f"no_{name}").bind(False) for name in before},
        {name: Leaf.options(name=f"no_{name}").bind(True) for name in ("left", "right")},
    )


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
    """Alternate between the applications."""
    body = orjson.dumps({"query": "what does the thing cost", "collection": "stub", "top_k": 10})
    targets = {
        "noop": f"{url}/noop/",
        "hops": f"{url}/hops/",
        "graph": f"{url}/v1/retrieve",
    }
    for target in targets.values():
        warm = await closed_loop(target, body, clients=8, seconds=2, keep_bodies=True)
        print(target, warm.statuses, len(warm.bodies[-1]), "bytes")
    print("                requests/s, share of noop      p50 ms, times noop           p95 ms")
    print("clients   noop   hops       graph        noop   hops        graph         hops  graph")
    for clients in CLIENTS:
        seen: dict[str, list[Load]] = {name: [] for name in targets}
        for _ in range(arguments.rounds):
            for name, target in targets.items():
                seen[name].append(
                    await closed_loop(target, body, clients=clients, seconds=arguments.seconds)
                )
        noop, hops, graph = (joined(seen[name]) for name in targets)
        assert set(graph.statuses) == {200}, graph.statuses
        base = noop.percentile_ms(50)
        print(
            f"{clients:>7} {noop.per_s:>6.0f} "
            + " ".join(f"{x.per_s:>5.0f} {x.per_s / noop.per_s:>4.2f}" for x in (hops, graph))
            + f"  {base:>6.2f} "
            + " ".join(
                f"{x.percentile_ms(50):>6.1f} {x.percentile_ms(50) / base:>4.1f}x"
                for x in (hops, graph)
            )
            + "  "
            + " ".join(f"{x.percentile_ms(95):>6.1f}" for x in (hops, graph)),
            flush=True,
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

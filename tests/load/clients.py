"""A closed-loop HTTP load: a number of clients, each with one request under way."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
import numpy as np

Check = Callable[[int, bytes], None]


@dataclass(slots=True)
class Load:
    """What a run of load has seen."""

    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def per_s(self) -> float:
        """Requests a second."""
        return len(self.latencies_ms) / self.seconds

    def percentile_ms(self, share: float) -> float:
        """Latency below which this share (0 to 100) of the requests was answered."""
        return float(np.percentile(self.latencies_ms, share))


async def closed_loop(
    url: str, body: bytes, *, clients: int, seconds: float, keep_bodies: bool = False
) -> Load:
    """Keep `clients` requests under way for so long."""
    load = Load()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        started = time.perf_counter()
        until = started + seconds

        async def client() -> None:
            headers = {"content-type": "application/json"}
            while time.perf_counter() < until:
                sent = time.perf_counter()
                async with session.post(url, data=body, headers=headers) as answer:
                    content = await answer.read()
                load.latencies_ms.append((time.perf_counter() - sent) * 1000)
                load.statuses[answer.status] = load.statuses.get(answer.status, 0) + 1
                if keep_bodies:
                    load.bodies.append(content)

        await asyncio.gather(*(client() for _ in range(clients)))
        load.seconds = time.perf_counter() - started
    return load

"""Run by tests as a process of its own: opens a store and writes into it.

`opener.py URL NAME COUNT` writes COUNT records and ends. Without COUNT it writes for ever through
the writer and prints each id when it was acknowledged, until it is killed.
"""

import asyncio
import itertools
import sys

from policies.experience.store import ExperienceStore
from policies.experience.writer import ExperienceWriter, WriterSettings
from tests.unit.policies.experience.records import record, thumb


async def write_for_ever(store, name):
    writer = ExperienceWriter(store, WriterSettings(max_batch=7, window_ms=1))
    numbers = itertools.count()

    async def client():
        for n in numbers:
            await asyncio.gather(
                writer.submit(record(f"{name}-{n}")),
                writer.submit(thumb(f"{name}-{n}", f"{name}-{n}")),
            )
            print(f"{name}-{n}", flush=True)

    await asyncio.gather(*(client() for _ in range(20)))


if __name__ == "__main__":
    url, name, *count = sys.argv[1:]
    opened = ExperienceStore(url)
    if count:
        opened.write_batch(
            [record(f"{name}-{n}") for n in range(int(count[0]))], [thumb(f"thumb-{name}")]
        )
    else:
        asyncio.run(write_for_ever(opened, name))

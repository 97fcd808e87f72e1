"""The work of one run as executors take it, and the in-process executor."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from ingest.documents import DocumentSettings
from ingest.embedding import EmbedStage
from ingest.isolation import IsolatedStage, ParserLimits
from ingest.known import KnownDocuments
from ingest.rows import table_of
from ingest.types import Unit
from skills.resources import Resources, ResourceSettings

GROUP_BYTES = 256 * 1024
GROUP_UNITS = 32
_ROWS = 256
"""Rows that one thread embeds at a time: enough to sort by length, few enough to share out."""
_WAITING = 4


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that the workers of a run need; small, and picklable."""

    groups: tuple[tuple[Unit, ...], ...]
    """Units that are handled by one task each."""
    documents: DocumentSettings
    limits: ParserLimits
    known: KnownDocuments
    resources: ResourceSettings
    encoders: Mapping[str, str]
    """Vector name to encoder name; empty for a dry run."""
    token_encoders: Mapping[str, str]
    """The same for vectors of every token."""

    @property
    def num_bytes(self) -> int:
        """Size of all units."""
        return sum(unit.size_bytes for group in self.groups for unit in group)


def grouped(units: Iterable[Unit]) -> tuple[tuple[Unit, ...], ...]:
    """Group units so that a task is worth its overhead and its rows are few megabytes at most."""
    groups: list[list[Unit]] = []
    size = GROUP_BYTES
    for unit in units:
        if size + unit.size_bytes > GROUP_BYTES or len(groups[-1]) >= GROUP_UNITS:
            groups.append([])
            size = 0
        groups[-1].append(unit)
        size += unit.size_bytes
    return tuple(tuple(group) for group in groups)


def run_inline(job: Job, resources: Resources) -> Iterator[pa.Table]:
    """Do a job in this process: the stages of the Ray pipeline, with threads for actors.

    The child that parses, the threads that embed (encoders release the interpreter lock) and the
    caller that writes work at the same time; at most `_WAITING` tables wait between them.
    """
    parse = IsolatedStage(job.documents, job.known, job.limits)
    embed = EmbedStage.build(resources, job.encoders, job.token_encoders)
    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads, "embed") as pool, closing(parse):
        waiting: deque[Future[pa.Table]] = deque()
        for table in _parsed(job, parse):
            waiting.append(pool.submit(embed.process, table))
            if len(waiting) > threads + _WAITING:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _parsed(job: Job, parse: IsolatedStage) -> Iterator[pa.Table]:
    for group in job.groups:
        timed = [t for unit in group for t in parse.process(unit)]
        table = table_of((t.outcome, t.spent_s) for t in timed)
        for start in range(0, table.num_rows, _ROWS):
            yield table.slice(start, _ROWS)

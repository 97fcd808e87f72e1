"""The work of one run as executors take it, and the in-process executor."""

from collections.abc import Iterable, Iterator, Mapping
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
    """Do a job in this process: the stages of the Ray pipeline, one after the other."""
    parse = IsolatedStage(job.documents, job.known, job.limits)
    embed = EmbedStage({name: resources.encoder(e) for name, e in job.encoders.items()})
    try:
        for group in job.groups:
            timed = [t for unit in group for t in parse.process(unit)]
            yield embed.process(table_of((t.outcome, t.spent_s) for t in timed))
    finally:
        parse.close()

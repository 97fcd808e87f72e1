"""The job on Ray Data: an actor pool that parses, one that embeds, rows streamed to the driver.

The only module of `ingest` that knows Ray. What it must get right: actors may not hold every CPU
(reads would wait for ever), a failing document is a row and never an errored block, and nothing is
gathered: the driver takes one small block after the other, which holds back the stages before it.
"""

import logging
import os
import pickle  # between our own processes
from collections.abc import Iterator

import pyarrow as pa
import ray
import ray.data

from ingest.documents import DocumentSettings
from ingest.embedding import EmbedStage
from ingest.isolation import IsolatedStage, ParserLimits
from ingest.job import Job
from ingest.known import KnownDocuments
from ingest.rows import table_of
from skills.resources import Resources, ResourceSettings

_EMBED_CPUS = 0.75
_PARSE_CPUS = 0.25
_EMBED_ROWS = 512
"""Rows a call of the embedder: long enough to sort by length, short enough to stream."""
_CORES_PER_PARSER = 8


class ParseActor:
    """Adapter of `IsolatedStage`."""

    def __init__(
        self, documents: DocumentSettings, limits: ParserLimits, known: "ray.ObjectRef[object]"
    ) -> None:
        self._stage = IsolatedStage(documents, KnownDocuments(ray.get(known)), limits)

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        """One table of rows for each unit."""
        for group in batch.column("units").to_pylist():
            for unit in pickle.loads(group):  # noqa: S301
                timed = self._stage.process(unit)
                yield table_of((t.outcome, t.spent_s) for t in timed)


class EmbedActor:
    """Adapter of `EmbedStage`."""

    def __init__(
        self, resources: ResourceSettings, encoders: dict[str, str], token_encoders: dict[str, str]
    ) -> None:
        self._stage = EmbedStage.build(Resources(resources), encoders, token_encoders)

    def __call__(self, batch: pa.Table) -> pa.Table:
        """The rows with vectors."""
        return self._stage.process(batch)


def run_on_ray(job: Job) -> Iterator[pa.Table]:
    """Do a job on Ray; starts a cluster of this machine when there is none, and stops it again."""
    started = not ray.is_initialized()
    if started:
        _start()
    try:
        yield from _stream(job)
    finally:
        if started:
            ray.shutdown()


def _start() -> None:
    ray.init(
        address=os.environ.get("RAY_ADDRESS", "local"),
        include_dashboard=False,
        log_to_driver=False,
        logging_level="warning",
        configure_logging=False,
    )
    # Progress is told by `OnProgress`; Ray Data's own lines would run through it.
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)


def _stream(job: Job) -> Iterator[pa.Table]:
    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    groups = [pa.table({"units": [pickle.dumps(list(group))]}) for group in job.groups]
    known = ray.put(job.known.keys)
    rows = ray.data.from_arrow(groups).map_batches(
        ParseActor,
        batch_size=1,
        batch_format="pyarrow",
        fn_constructor_args=(job.documents, job.limits, known),
        num_cpus=_PARSE_CPUS,
        compute=ray.data.ActorPoolStrategy(size=max(1, cores // _CORES_PER_PARSER)),
    )
    if job.encoders or job.token_encoders:
        rows = rows.map_batches(
            EmbedActor,
            batch_size=_EMBED_ROWS,
            batch_format="pyarrow",
            fn_constructor_args=(job.resources, dict(job.encoders), dict(job.token_encoders)),
            num_cpus=_EMBED_CPUS,
            compute=ray.data.ActorPoolStrategy(size=cores),
        )
    yield from rows.iter_batches(batch_size=None, batch_format="pyarrow")

"""One run of ingestion from request to summary."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Literal

import pyarrow as pa

from ingest.collector import Collector, Tally
from ingest.dead_letters import FILE_NAME, write_dead_letters
from ingest.errors import IngestRejected
from ingest.identity import digest
from ingest.job import Job, grouped, run_inline
from ingest.known import KnownDocuments
from ingest.ledger import Ledger, Readers
from ingest.plan import Plan, is_settled, plan
from ingest.request import IngestRequest, IngestSummary, OnProgress, Progress
from ingest.rows import TOKENS_PREFIX
from ingest.sinks import open_writer
from ingest.sources.opening import check_source, open_source
from ingest.spool import Spool
from ingest.status import recorded
from skills.resources import Resources
from skills.stores.store import IndexWriter

_RAY_PAYS_ABOVE_BYTES = 4 * 1024 * 1024
"""Ray costs about nine seconds to start on two cores, in which the same stages embed a megabyte of
text with the threads of this process. Below this size of input they do."""
Executed = Literal["inline", "ray", "none"]


def run(
    request: IngestRequest, progress: OnProgress | None = None, resources: Resources | None = None
) -> IngestSummary:
    """Bring a collection up to what its sources hold now.

    Unchanged documents are skipped, changed ones replaced, those that vanished from the sources
    deleted. Nothing is visible before everything is written.

    Args:
        request: what to do.
        progress: called after every batch, in this thread.
        resources: stores and encoders that exist already; built from the request when absent.

    Raises:
        IngestRejected: a source does not exist, or the request cannot be served.
        SourceUnavailable: a source cannot be listed.
        SinkFailed: one of several stores did not take the passages.
        SkillError: a store or an encoder is misconfigured, down, or busy with another writer.
    """
    built = resources if resources is not None else Resources(request.resources)
    if not request.sources:
        raise IngestRejected("sources", "name at least one file, directory or address")
    for source in request.sources:
        check_source(source)
    writer = _writer(request, built)
    try:
        if request.dry_run:
            return _once(request, built, writer, progress)
        with recorded(request.state_dir, request.sources) as record:
            summary = _once(request, built, writer, record.telling(progress))
            record.done(summary)
        return summary
    finally:
        writer.abort()


def _once(
    request: IngestRequest,
    resources: Resources,
    writer: IndexWriter,
    progress: OnProgress | None,
) -> IngestSummary:
    said = request.documents.enrichment
    readers = Readers(said.tenant, said.allowed_roles)
    path = request.state_dir / "ledger.sqlite"
    with closing(Ledger(path, _settings(request), readers)) as ledger:
        return _Run(request, resources, ledger, writer, progress).summary()


def _writer(request: IngestRequest, resources: Resources) -> IndexWriter:
    vectors = {
        name: (resources.encoder(e).id, resources.encoder(e).dim)
        for name, e in request.encoders.items()
    }
    tokens = {name: resources.token_encoder(e) for name, e in request.token_encoders.items()}
    if both := vectors.keys() & tokens.keys():
        raise IngestRejected("token_encoders", f"{sorted(both)} are vector names of `encoders` too")
    vectors |= {name: (encoder.token_id, encoder.token_dim) for name, encoder in tokens.items()}
    return open_writer(resources, request.stores, request.collection, vectors, tuple(tokens))


def _settings(request: IngestRequest) -> str:
    tokens = [TOKENS_PREFIX + name for name in request.token_encoders]
    names = sorted([*request.encoders, *tokens])
    return digest(request.documents.fingerprint, *names, size=8)


def _space(request: IngestRequest, resources: Resources) -> str:
    """What embedded rows depend on."""
    encoders = [f"{name}={resources.encoder(e).id}" for name, e in request.encoders.items()]
    encoders += [
        f"{name}={resources.token_encoder(e).token_id}"
        for name, e in request.token_encoders.items()
    ]
    return digest(_settings(request), *sorted(encoders), size=8)


class _Run:
    """The state of one run."""

    def __init__(
        self,
        request: IngestRequest,
        resources: Resources,
        ledger: Ledger,
        writer: IndexWriter,
        progress: OnProgress | None,
    ) -> None:
        self._started = time.perf_counter()
        self._request = request
        self._resources = resources
        self._ledger = ledger
        self._writer = writer
        self._progress = progress
        self._stored = dict(writer.documents())
        sources = [
            open_source(
                source, request.state_dir, ledger, self._is_whole, request.roots.get(source, "")
            )
            for source in request.sources
        ]
        self._scopes = tuple(source.scope for source in sources)
        self._plan = plan(sources, ledger, self._stored, request.retry_failed)
        self._spool = (
            None
            if request.dry_run
            else Spool(request.state_dir / "spool", _space(request, resources))
        )
        self._spooled = frozenset(self._spool.complete() if self._spool else ())
        self._collector = Collector(
            ledger,
            None if request.dry_run else writer,
            self._stored,
            self._scopes,
            self._spooled,
        )

    def summary(self) -> IngestSummary:
        executed = self._work()
        tally = self._collector.tally
        started = time.perf_counter()
        deleted, version = self._finish()
        tally.busy_s["write"] += time.perf_counter() - started
        return self._summary(self._plan, tally, executed, deleted, version)

    def _work(self) -> Executed:
        if not self._plan.units:
            return "none"
        known = KnownDocuments.of(self._known())
        request = self._request
        job = Job(
            groups=grouped(self._plan.units),
            documents=request.documents,
            limits=request.limits,
            known=known,
            resources=self._resources.settings,
            encoders={} if request.dry_run else request.encoders,
            token_encoders={} if request.dry_run else request.token_encoders,
        )
        executed, tables = self._execute(job)
        for table in tables:
            if self._spool is not None:
                self._spool.add(table)
            self._collector.take(table)
            self._report(job.num_bytes)
        if self._spool is not None and self._collector.resumed:
            for table in self._spool.tables(self._collector.resumed):
                self._collector.restore(table)
                self._report(job.num_bytes)
        return executed

    def _execute(self, job: Job) -> tuple[Executed, Iterator[pa.Table]]:
        execution = self._request.execution
        if execution == "auto":
            execution = "ray" if job.num_bytes > _RAY_PAYS_ABOVE_BYTES else "inline"
        if execution == "inline":
            return "inline", run_inline(job, self._resources)
        from ingest.pipeline import run_on_ray  # importing Ray takes seconds

        return "ray", run_on_ray(job)

    def _known(self) -> Iterator[tuple[str, str]]:
        yield from self._stored.items()
        yield from self._spooled
        if not self._request.retry_failed:
            yield from ((e.document_id, e.content_hash) for e in self._ledger.failures())

    def _is_whole(self, uri: str) -> bool:
        if self._request.retry_failed:
            return False
        return all(is_settled(entry, self._stored) for entry in self._ledger.of_file(uri))

    def _report(self, total_bytes: int) -> None:
        if self._progress is None:
            return
        tally = self._collector.tally
        states = tally.states
        documents = sum(states[s] for s in ("added", "changed", "unchanged", "failed"))
        self._progress(
            Progress(
                documents,
                states["failed"] + states["rejected"],
                tally.passages,
                tally.done_bytes,
                total_bytes,
                time.perf_counter() - self._started,
            )
        )

    def _finish(self) -> tuple[int, str]:
        """Delete what vanished, commit, and only then forget it."""
        vanished = [e.document_id for e in self._ledger.vanished(self._scopes)]
        indexed = [d for d in vanished if d in self._stored]
        if self._request.dry_run:
            return len(indexed), ""
        self._writer.delete_documents(indexed)
        self._ledger.save()
        version = self._writer.commit().version
        self._ledger.forget(vanished)
        self._ledger.note_files(self._plan.fingerprints)
        self._ledger.note_sources(self._plan.watermarks)
        self._ledger.save()
        if self._spool is not None:
            self._spool.clear()
        write_dead_letters(self._dead_letters, self._ledger, self._plan.roots)
        return len(indexed), version

    @property
    def _dead_letters(self) -> Path:
        return self._request.state_dir / FILE_NAME

    def _summary(
        self, found: Plan, tally: Tally, executed: Executed, deleted: int, version: str
    ) -> IngestSummary:
        states = tally.states
        unchanged = found.unchanged + states["unchanged"]
        failed = found.failed + states["failed"] + states["rejected"]
        return IngestSummary(
            collection=self._request.collection,
            version=version,
            documents=states["added"] + states["changed"] + unchanged + failed,
            added=states["added"],
            changed=states["changed"],
            unchanged=unchanged,
            deleted=deleted,
            failed=failed,
            passages=tally.passages,
            elapsed_s=time.perf_counter() - self._started,
            execution=executed,
            stage_shares=_shares(tally.busy_s),
            dead_letters=self._dead_letters,
            dry_run=self._request.dry_run,
        )


def _shares(busy_s: Mapping[str, float]) -> dict[str, float]:
    total = sum(busy_s.values())
    return {stage: spent / total for stage, spent in busy_s.items()} if total else {}

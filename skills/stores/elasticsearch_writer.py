"""Writing a new version into Elasticsearch: an index of its own, current when an alias says so."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skills.domain_dictionary import DomainDictionary
from skills.errors import SkillFailed, SkillTimeout
from skills.stores.elasticsearch_api import ElasticsearchApi
from skills.stores.elasticsearch_index import (
    NAME,
    RECORD,
    RECORD_ID,
    document_of,
    index_template,
)
from skills.stores.elasticsearch_lock import ElasticsearchLock
from skills.stores.index_version import VERSION_NAME, VersionRecord, new_version
from skills.stores.passage_json import decode_passage
from skills.stores.passage_payload import CONTENT_HASH, DOCUMENT, PASSAGE, point_id
from skills.stores.remote_versions import physical
from skills.stores.store import CollectionInfo, IndexedPassage
from skills.stores.version_summary import VersionSummary
from skills.types import Passage

_BATCH = 500
_PAGE = 1000
_COPY_DEADLINE_S = 3600.0
_COPY_ASKED_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class WriterPlan:
    """What is to be written."""

    collection: str
    version: str = ""
    """Empty makes a name."""
    base: str | None = None
    """The version to start from, empty for none; None starts from the current one."""


class ElasticsearchIndexWriter:
    """One new version. The current one is copied when the first change comes, not before."""

    def __init__(
        self,
        api: ElasticsearchApi,
        plan: WriterPlan,
        dictionary: DomainDictionary,
        published: Callable[[], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the collection's lock.

        Args:
            api: of the cluster.
            plan: what is to be written.
            dictionary: whose concepts passages are searched for.
            published: called when the current version has changed.
            clock: seconds, for the lock.

        Raises:
            SkillRejected: another process is writing.
        """
        self._api = api
        self._collection = plan.collection
        self._dictionary = dictionary
        self._published = published
        self._prefix = api.connection.prefix
        self._is_made = False
        self._client = api.writing()
        self._lock = ElasticsearchLock(api, self._client, plan.collection, clock)
        try:
            with api.translated():
                self._put_template()
            self._lock.take()
            with api.translated():
                self._base = self._read_base(plan.base)
            before = self._base.info.version if self._base else ""
            self._version = plan.version or new_version(before)
            self._sweep({self._base.info.version, self._base.previous} if self._base else set())
        except BaseException:
            self.abort()
            raise

    def documents(self) -> Mapping[str, str]:
        """Document id to content hash, of the version it started from. All passages of a document
        carry the same hash.
        """
        pages = self._pages([DOCUMENT, CONTENT_HASH])
        return {source[DOCUMENT]: source[CONTENT_HASH] for page in pages for _, source in page}

    def upsert(self, passages: Sequence[IndexedPassage]) -> None:
        """Add or replace passages by id; those with the stored content hash are left alone.

        Raises:
            RequestInvalid: a passage cannot be stored.
            SkillRejected: the cluster stayed too busy.
        """
        for start in range(0, len(passages), _BATCH):
            self._lock.beat()
            self._upsert({point_id(p.passage.id): p for p in passages[start : start + _BATCH]})

    def _upsert(self, batch: Mapping[str, IndexedPassage]) -> None:
        stored = self._stored_hashes([*batch])
        changed = {i: p for i, p in batch.items() if stored.get(i) != p.content_hash}
        if not changed:
            return
        documents = {
            i: document_of(p.passage, p.content_hash, self._dictionary) for i, p in changed.items()
        }
        index = self._made()
        with self._api.translated():
            self._api.bulk(
                self._client,
                [{"_index": index, "_id": i, "_source": d} for i, d in documents.items()],
            )

    def _stored_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        if self._there is None:
            return {}
        with self._api.translated():
            found = self._client.mget(
                index=self._there, ids=list(ids), source_includes=[CONTENT_HASH]
            )
        return {d["_id"]: d["_source"][CONTENT_HASH] for d in found["docs"] if d.get("found")}

    def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove every passage of these documents; unknown ids are ignored."""
        for start in range(0, len(document_ids), _BATCH):
            self._lock.beat()
            self._delete(list(document_ids[start : start + _BATCH]))

    def _delete(self, document_ids: list[str]) -> None:
        of_these = {"terms": {DOCUMENT: document_ids}}
        with self._api.translated():
            if self._there is None:
                return
            self._client.indices.refresh(index=self._there)
            if self._client.count(index=self._there, query=of_these)["count"]:
                self._client.delete_by_query(
                    index=self._made(), query=of_these, conflicts="proceed", refresh=True
                )

    def commit(self, *, anyway: bool = False) -> CollectionInfo:
        """Make the version current. Without changes, in passages or in the domain dictionary, the
        old version stays, unless the version is wanted `anyway`.
        """
        if self._base is not None and not (self.is_changed or anyway):
            self.abort()
            return self._base.info
        self._made()
        if self._has_new_words:
            self._find_concepts_again()
        record = self._record()
        with self._api.translated():
            self._publish(record)
        self._is_made = False
        self._published()
        self._sweep({self._version, record.previous})
        self.abort()
        return record.info

    def abort(self) -> None:
        """Throw the version away; after `commit` nothing is left to throw away."""
        try:
            with self._api.translated():
                if self._is_made:
                    self._client.indices.delete(index=self._index, ignore_unavailable=True)
                    self._is_made = False
                self._lock.release()
        finally:
            self._client.close()

    @property
    def version(self) -> str:
        """The name of the version in the making."""
        return self._version

    @property
    def base_version(self) -> str:
        """The version it started from, empty for none."""
        return self._base.info.version if self._base else ""

    @property
    def is_changed(self) -> bool:
        """Whether `commit` would make a new version."""
        return self._base is None or self._is_made or self._has_new_words

    @property
    def _has_new_words(self) -> bool:
        return self._base is not None and self._base.concepts != self._dictionary.ids

    @property
    def _index(self) -> str:
        return self._prefix + physical(self._collection, self._version)

    @property
    def _there(self) -> str | None:
        """The index that holds what has been written so far."""
        if self._is_made:
            return self._index
        if self._base is None:
            return None
        return self._prefix + physical(self._collection, self._base.info.version)

    def _put_template(self) -> None:
        given = self._api.connection
        template = index_template(self._prefix, given.shards, given.replicas)
        self._client.indices.put_index_template(name=f"{self._prefix}versions", **template)

    def _read_base(self, base: str | None) -> VersionRecord | None:
        index = self._prefix + self._collection
        if base is not None:
            index = self._prefix + physical(self._collection, base)
        if base == "" or not self._client.indices.exists(index=index):
            return None
        found = self._client.get(index=index, id=RECORD_ID)
        return VersionRecord.read(found["_source"][RECORD], self._collection)

    def _made(self) -> str:
        """The index of the new version, made when first asked for."""
        if not self._is_made:
            source = self._there
            with self._api.translated():
                self._client.indices.create(index=self._index)
                self._is_made = True
                if source is not None:
                    self._copy(source)
        return self._index

    def _copy(self, source: str) -> None:
        task = self._client.reindex(
            source={"index": source, "query": {"exists": {"field": DOCUMENT}}},
            dest={"index": self._index},
            wait_for_completion=False,
            refresh=True,
        )["task"]
        deadline = time.monotonic() + _COPY_DEADLINE_S
        while not (answer := self._task(task))["completed"]:
            if time.monotonic() > deadline:
                raise SkillTimeout(self._collection, f"copying {source} took over an hour")
            self._lock.beat()
            time.sleep(_COPY_ASKED_EVERY_S)
        failures = [*answer.get("response", {}).get("failures", ()), answer.get("error")]
        if problem := next(filter(None, failures), None):
            raise SkillFailed(self._collection, f"copying {source} failed: {problem}")

    def _task(self, task: str) -> Any:
        # `client.tasks.get` does the same and warns that it is a technical preview.
        accepted = {"accept": "application/json"}
        return self._client.perform_request("GET", f"/_tasks/{task}", headers=accepted)

    def _pages(self, keys: list[str]) -> Iterator[list[tuple[str, dict[str, Any]]]]:
        """All passages, id and these keys, page by page."""
        index = self._there
        if index is None:
            return
        with self._api.translated():
            self._client.indices.refresh(index=index)
        after: list[Any] | None = None
        while True:
            self._lock.beat()
            with self._api.translated():
                found = self._client.search(
                    index=index,
                    query={"exists": {"field": DOCUMENT}},
                    sort=[{NAME: "asc"}],
                    search_after=after,
                    size=_PAGE,
                    source_includes=keys,
                )
            hits = found["hits"]["hits"]
            yield [(hit["_id"], hit["_source"]) for hit in hits]
            if len(hits) < _PAGE:
                return
            after = hits[-1]["sort"]

    def _record(self) -> VersionRecord:
        summary = VersionSummary()
        for page in self._pages([PASSAGE]):
            for _, source in page:
                summary.add(source[PASSAGE], 0)
        record = summary.record(self._collection, self._version, {}, self._base)
        return record.model_copy(update={"concepts": self._dictionary.ids})

    def _find_concepts_again(self) -> None:
        for page in self._pages([PASSAGE]):
            actions = [
                {
                    "_op_type": "update",
                    "_index": self._index,
                    "_id": name,
                    "doc": {"concepts": self._concepts(decode_passage(source[PASSAGE]))},
                }
                for name, source in page
            ]
            with self._api.translated():
                self._api.bulk(self._client, actions)

    def _concepts(self, passage: Passage) -> str:
        document = document_of(passage, "", self._dictionary)
        return str(document["concepts"])

    def _publish(self, record: VersionRecord) -> None:
        self._client.index(
            index=self._index, id=RECORD_ID, document={RECORD: record.write()}, refresh=True
        )
        alias = self._prefix + self._collection
        versions = self._prefix + physical(self._collection, "v*")
        self._client.indices.update_aliases(
            actions=[
                {"remove": {"index": versions, "alias": alias, "must_exist": False}},
                {"add": {"index": self._index, "alias": alias}},
            ]
        )

    def _sweep(self, keep: set[str]) -> None:
        """Remove versions that are not kept, and what dead writers left."""
        begin = self._prefix + physical(self._collection, "")
        with self._api.translated():
            names = self._client.indices.get(
                index=f"{begin}v*", features="aliases", ignore_unavailable=True
            )
            for name in names:
                version = name.removeprefix(begin)
                if VERSION_NAME.fullmatch(version) and version not in keep:
                    self._client.indices.delete(index=name, ignore_unavailable=True)

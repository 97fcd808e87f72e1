"""How passages lie in an Elasticsearch index, and how a query reads there. Nothing here speaks to a
server.

Prose goes through one analyser for Chinese (pairs of characters) and English (stems, no stop
words); program text also through one that knows parts of identifiers. Numbers and concepts of the
domain dictionary are taken out of the text by our own code, so that they are the same in every
store.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from skills.domain_dictionary import DomainDictionary
from skills.stores.bm25 import number_words
from skills.stores.conditions import Span
from skills.stores.passage_payload import payload_of
from skills.types import Passage

TEMPLATE_VERSION = 1
"""Raised with every change of what follows, so that a server's template is replaced."""
RECORD_ID = "version-record"
RECORD = "record"
NAME = "id"

_TABLES = frozenset({"table", "csv", "xlsx", "xls", "db", "rows"})
"""Source types whose text is values in rows."""
_PROSE = ["title", "headings", "text", "table"]
_WORDS = {"type": "text", "analyzer": "whole_words", "norms": False}
_KEPT = {"type": "keyword", "index": False, "doc_values": False}

_ANALYSIS = {
    "filter": {
        "no_numbers": {"type": "keep_types", "types": ["<NUM>"], "mode": "exclude"},
        "english_possessive": {"type": "stemmer", "language": "possessive_english"},
        "english_stop": {"type": "stop", "stopwords": "_english_"},
        "english_stem": {"type": "stemmer", "language": "english"},
        "parts": {"type": "word_delimiter_graph", "preserve_original": True},
    },
    "tokenizer": {"identifiers": {"type": "pattern", "pattern": "[^A-Za-z0-9_]+"}},
    "analyzer": {
        "prose": {
            "type": "custom",
            "tokenizer": "standard",
            "filter": ["cjk_width", "english_possessive", "lowercase", "no_numbers", "cjk_bigram",
                       "english_stop", "english_stem"],
        },
        "identifiers": {
            "type": "custom",
            "tokenizer": "identifiers",
            "filter": ["parts", "flatten_graph", "lowercase", "english_stop", "english_stem"],
        },
        "whole_words": {"type": "custom", "tokenizer": "whitespace"},
    },
}  # fmt: skip


def _by_prefix(prefix: str, kind: str) -> dict[str, Any]:
    return {prefix: {"match": f"{prefix}*", "mapping": {"type": kind}}}


_MAPPINGS = {
    "dynamic_templates": [
        _by_prefix("k_", "keyword"),
        _by_prefix("n_", "double"),
        _by_prefix("t_", "date"),
    ],
    "properties": {
        **{name: {"type": "text", "analyzer": "prose"} for name in _PROSE},
        "code": {"type": "text", "analyzer": "identifiers"},
        "numbers": _WORDS,
        "concepts": _WORDS,
        **{name: {"type": "keyword"} for name in (NAME, "d", "h", "tenant", "readers", "secrecy")},
        "w": {"type": "integer"},
        "p": _KEPT,
        RECORD: _KEPT,
    },
}


def index_template(prefix: str, shards: int, replicas: int) -> dict[str, Any]:
    """The template that every version's index is made by."""
    return {
        "index_patterns": [f"{prefix}*--v*"],
        "version": TEMPLATE_VERSION,
        "priority": 200,
        "template": {
            "settings": {
                "index": {
                    "number_of_shards": shards,
                    "number_of_replicas": replicas,
                    "mapping": {"total_fields": {"limit": 5000}},
                    "max_result_window": 10_000,
                },
                "analysis": _ANALYSIS,
            },
            "mappings": _MAPPINGS,
        },
    }


def document_of(
    passage: Passage, content_hash: str, dictionary: DomainDictionary
) -> dict[str, Any]:
    """A passage as Elasticsearch gets it.

    Raises:
        RequestInvalid: text that is no Unicode, or a number that JSON cannot hold.
    """
    about = passage.metadata
    headings = "\n".join(about.heading_path)
    everything = "\n".join((passage.title, headings, passage.text))
    is_table = bool(about.db_table) or about.source_type in _TABLES
    found: dict[str, Any] = {
        **payload_of(passage, content_hash, 0),
        NAME: passage.id,
        "title": passage.title,
        "headings": headings,
        "table" if is_table else "text": passage.text,
        "numbers": " ".join(number_words(everything)),
        "concepts": concepts_of(everything, dictionary),
    }
    if about.language == "code" or about.source_type == "code":
        found["code"] = everything
    return found


def concepts_of(text: str, dictionary: DomainDictionary) -> str:
    """The ids of the concepts that a text names, as one text."""
    return " ".join(mention.concept.id for mention in dictionary.mentions(text))


def query_of(
    text: str,
    dictionary: DomainDictionary,
    indexed: Collection[str],
    kept: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """The query for a text; None when it holds nothing that could be found.

    Args:
        text: what the user wrote.
        dictionary: as it is now.
        indexed: ids of the concepts that the index was made with; one that it does not know is
            searched by all its words.
        kept: the filter, None when everything passes.
    """
    sound = text.encode("utf-8", "replace").decode()
    mentions = dictionary.mentions(sound)
    known = [m.concept.id for m in mentions if m.concept.id in indexed]
    unknown = [m.concept for m in mentions if m.concept.id not in indexed]
    words = " ".join([sound, *(form for concept in unknown for form in concept.forms)])
    if not words.strip():
        return None
    prose = {"combined_fields": {"query": words, "fields": _PROSE, "operator": "or"}}
    parts = {"match": {"code": {"query": words, "operator": "or"}}}
    should: list[dict[str, Any]] = [{"dis_max": {"queries": [prose, parts]}}]
    for field, found in (("numbers", number_words(words)), ("concepts", known)):
        if found:
            should.append({"match": {field: {"query": " ".join(dict.fromkeys(found))}}})
    query: dict[str, Any] = {"should": should, "minimum_should_match": 1}
    if kept is not None:
        query["filter"] = [kept]
    return {"bool": query}


class ElasticsearchVocabulary:
    """Conditions as Elasticsearch writes them."""

    def any_of(self, key: str, values: Sequence[str]) -> dict[str, Any]:
        """The key holds one of these keywords."""
        return {"terms": {key: list(values)}}

    def numbers(self, key: str, span: Span) -> dict[str, Any]:
        """The key holds a number in the span."""
        bounds = {"gte": span.gte, "gt": span.gt, "lte": span.lte, "lt": span.lt}
        return {"range": {key: {n: value for n, value in bounds.items() if value is not None}}}

    def times(self, key: str, bounds: dict[str, str]) -> dict[str, Any]:
        """The key holds a time within the bounds."""
        return {"range": {key: bounds}}

    def points(self, ids: Sequence[str]) -> dict[str, Any]:
        """The passage is one of these."""
        return {"ids": {"values": list(ids)}}

    def either(self, conditions: list[dict[str, Any]]) -> dict[str, Any]:
        """One of the conditions holds."""
        return {"bool": {"should": conditions, "minimum_should_match": 1}}

    def every(self, must: list[dict[str, Any]], must_not: list[dict[str, Any]]) -> dict[str, Any]:
        """The whole filter."""
        return {"bool": {"filter": must, "must_not": must_not}}

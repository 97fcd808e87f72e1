"""One index of Elasticsearch in memory: its documents, and how queries score them."""

import fnmatch
import itertools
import math
from collections import Counter

from tests.unit.skills.stores.elasticsearch_analysis import Analysis
from tests.unit.skills.stores.elasticsearch_refusals import Refused, known


class Index:
    def __init__(self, name, template):
        self.name = name
        self.aliases = set()
        self.properties = template.get("mappings", {}).get("properties", {})
        self.templates = template.get("mappings", {}).get("dynamic_templates", [])
        settings = template.get("settings", {})
        self.analysis = Analysis(settings.get("analysis", {}))
        self.docs = {}
        self.searchable = {}
        self.known = {}
        self.seq = itertools.count()
        self.written = {}

    def put(self, doc_id, source):
        for field in source:
            self.kind(field)
        self.docs[doc_id] = source
        self.written[doc_id] = next(self.seq)

    def refresh(self):
        self.searchable = dict(self.docs)
        self.known = {}

    def kind(self, field):
        if field in self.properties:
            return self.properties[field]
        for template in self.templates:
            ((_, how),) = template.items()
            if fnmatch.fnmatchcase(field, how["match"]):
                return how["mapping"]
        return {"type": "text", "analyzer": "standard"}

    def terms(self, field, text):
        how = self.kind(field)
        if how["type"] != "text":
            raise Refused(400, "illegal_argument_exception", f"{field} is no text field")
        return self.analysis.tokens(how["analyzer"], text)

    def search(self, body):
        known(body, {"query", "size", "sort", "search_after", "_source", "track_scores",
                     "track_total_hits", "timeout"}, "search")  # fmt: skip
        scores = {
            doc_id: score
            for doc_id in self.searchable
            if (score := self.score(body["query"], doc_id)) is not None
        }
        keys = [next(iter(s.items())) if isinstance(s, dict) else (s, "desc") for s in body["sort"]]
        ranked = [(self.sort_key(keys, doc_id, scores), doc_id) for doc_id in scores]
        ranked.sort(key=lambda each: [-v if isinstance(v, float) else v for v in each[0]])
        if after := body.get("search_after"):
            ranked = [each for each in ranked if list(each[0]) > after]
        return [
            {
                "_index": self.name, "_id": doc_id, "sort": list(key),
                "_score": scores[doc_id] if body.get("track_scores") else None,
                "_source": only(self.searchable[doc_id], body.get("_source")),
            }
            for key, doc_id in ranked[: body.get("size", 10)]
        ]  # fmt: skip

    def sort_key(self, keys, doc_id, scores):
        found = []
        for name, _ in keys:
            if name == "_score":
                found.append(scores[doc_id])
            elif self.kind(name)["type"] != "keyword":
                raise Refused(400, "illegal_argument_exception", f"cannot sort by {name}")
            else:
                found.append(self.searchable[doc_id].get(name, ""))
        return found

    def score(self, query, doc_id):
        """The score of a document, None when it does not match."""
        if len(query) != 1:
            raise Refused(400, "parsing_exception", "a query has one key")
        ((name, how),) = query.items()
        verb = getattr(self, f"score_{name}", None)
        if verb is None:
            raise Refused(400, "parsing_exception", f"unknown query [{name}]")
        return verb(how, doc_id)

    def score_bool(self, how, doc_id):
        known(how, {"should", "filter", "must_not", "minimum_should_match"}, "bool")
        if any(self.score(each, doc_id) is None for each in how.get("filter", ())):
            return None
        if any(self.score(each, doc_id) is not None for each in how.get("must_not", ())):
            return None
        found = [self.score(each, doc_id) for each in how.get("should", ())]
        matched = [score for score in found if score is not None]
        return None if len(matched) < how.get("minimum_should_match", 0) else sum(matched)

    def score_dis_max(self, how, doc_id):
        known(how, {"queries"}, "dis_max")
        found = [self.score(each, doc_id) for each in how["queries"]]
        return max((score for score in found if score is not None), default=None)

    def score_combined_fields(self, how, doc_id):
        known(how, {"query", "fields", "operator"}, "combined_fields")
        analyzers = {self.kind(field)["analyzer"] for field in how["fields"]}
        if len(analyzers) != 1:
            raise Refused(400, "illegal_argument_exception", "all fields must share an analyzer")
        return self.bm25(how["fields"], how["query"], doc_id)

    def score_match(self, how, doc_id):
        ((field, given),) = how.items()
        known(given, {"query", "operator"}, "match")
        return self.bm25([field], given["query"], doc_id)

    def bm25(self, fields, text, doc_id):
        bags, containing, mean = self.statistics(tuple(fields))
        bag = bags[doc_id]
        norm = 1.2
        if self.kind(fields[0]).get("norms", True):
            norm = 1.2 * (0.25 + 0.75 * bag.total() / mean)
        score = None
        for term in dict.fromkeys(self.terms(fields[0], text)):
            if term in bag:
                df = containing[term]
                idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
                score = (score or 0.0) + idf * bag[term] / (bag[term] + norm)
        return score

    def statistics(self, fields):
        """Terms of every document, documents of every term, mean length."""
        if fields not in self.known:
            bags = {
                doc_id: Counter(t for f in fields for t in self.terms(f, source.get(f, "")))
                for doc_id, source in self.searchable.items()
            }
            containing = Counter(term for bag in bags.values() for term in bag)
            mean = sum(bag.total() for bag in bags.values()) / len(bags) or 1.0
            self.known[fields] = bags, containing, mean
        return self.known[fields]

    def values(self, field, doc_id):
        found = self.searchable[doc_id].get(field, [])
        return found if isinstance(found, list) else [found]

    def score_terms(self, how, doc_id):
        ((field, wanted),) = how.items()
        if self.kind(field)["type"] != "keyword":
            raise Refused(400, "illegal_argument_exception", f"{field} is no keyword field")
        return 1.0 if set(wanted) & set(self.values(field, doc_id)) else None

    def score_ids(self, how, doc_id):
        known(how, {"values"}, "ids")
        return 1.0 if doc_id in how["values"] else None

    def score_exists(self, how, doc_id):
        known(how, {"field"}, "exists")
        return 1.0 if self.values(how["field"], doc_id) else None

    def score_range(self, how, doc_id):
        ((field, bounds),) = how.items()
        known(bounds, {"gte", "gt", "lte", "lt"}, "range")
        if self.kind(field)["type"] not in ("double", "date"):
            raise Refused(400, "illegal_argument_exception", f"{field} has no order")
        tests = {
            "gte": lambda v, b: v >= b, "gt": lambda v, b: v > b,
            "lte": lambda v, b: v <= b, "lt": lambda v, b: v < b,
        }  # fmt: skip
        for value in self.values(field, doc_id):
            if all(tests[name](value, bound) for name, bound in bounds.items()):
                return 1.0
        return None


def only(source, keys):
    if keys is None:
        return source
    return {key: source[key] for key in keys if key in source}

"""The part of Elasticsearch's HTTP interface that the store uses, in memory.

It does what the reference of version 9 says, and answers 400 to whatever it does not know: an
analyser, a query, a parameter of a body. Searches see what was refreshed, reads by id see
everything. It does not score like Lucene to the last digit.
"""

import contextlib
import fnmatch
import http.server
import itertools
import json
import math
import re
import threading
import unicodedata
import urllib.parse
from collections import Counter

from qdrant_edge import Bm25, Bm25Config, TokenizerType

HAN = "\u4e00-\u9fff"
TOKENS = re.compile(rf"(?P<ideographic>[{HAN}])|(?P<num>\d+(?:[.,]\d+)*(?![^\W{HAN}]))"
                    rf"|(?P<alphanum>(?:(?![{HAN}])[\w'])+)")  # fmt: skip
STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
"""
STOP = frozenset(STOP_WORDS.split())
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
STEMS = Bm25(Bm25Config(tokenizer=TokenizerType.Whitespace, language="english"))


class Refused(Exception):
    def __init__(self, status, kind, reason):
        super().__init__(reason)
        self.status = status
        self.body = {"error": {"type": kind, "reason": reason}, "status": status}


def known(given, allowed, what):
    unknown = set(given) - set(allowed)
    if unknown:
        raise Refused(400, "parsing_exception", f"[{what}] unknown field {sorted(unknown)}")


class Analysis:
    """Analysers as the index settings describe them."""

    def __init__(self, settings):
        known(settings, {"filter", "tokenizer", "analyzer"}, "analysis")
        self.settings = settings

    def tokens(self, analyzer, text):
        how = self.settings["analyzer"][analyzer]
        known(how, {"type", "tokenizer", "filter"}, analyzer)
        found = self.tokenize(how["tokenizer"], text)
        for name in how.get("filter", ()):
            found = self.filtered(name, found)
        return [token for token, _, _ in found]

    def tokenize(self, name, text):
        if name == "standard":
            found = TOKENS.finditer(text)
            return [(m[0], m.lastgroup, m.start()) for m in found]
        if name == "whitespace":
            return [(m[0], "word", m.start()) for m in re.finditer(r"\S+", text)]
        how = self.settings["tokenizer"][name]
        if how["type"] != "pattern":
            raise Refused(400, "illegal_argument_exception", f"tokenizer {how}")
        return [(part, "word", 0) for part in re.split(how["pattern"], text) if part]

    def filtered(self, name, tokens):
        how = self.settings["filter"].get(name, {"type": name})
        key = json.dumps(how, sort_keys=True)
        if key not in FILTERS:
            raise Refused(400, "illegal_argument_exception", f"unknown filter {how}")
        return list(FILTERS[key](tokens))


def bigrams(tokens):
    run = []
    for token, kind, position in [*tokens, ("", "end", -9)]:
        if kind == "ideographic" and (not run or position == run[-1][2] + 1):
            run.append((token, kind, position))
            continue
        if len(run) == 1:
            yield run[0]
        yield from ((a[0] + b[0], a[1], a[2]) for a, b in itertools.pairwise(run))
        run = [(token, kind, position)] if kind == "ideographic" else []
        if kind not in ("ideographic", "end"):
            yield token, kind, position


def parts(tokens):
    for token, kind, position in tokens:
        for part in dict.fromkeys([token, *PARTS.findall(token)]):
            yield part, kind, position


def each_token(change):
    return lambda tokens: [(change(token), kind, position) for token, kind, position in tokens]


def stem(word):
    found = STEMS.embed_query(word).indices
    return f"stem{found[0]}" if found and word.isascii() and word.isalpha() else word


FILTERS = {
    json.dumps(how, sort_keys=True): verb
    for how, verb in (
        ({"type": "cjk_width"}, each_token(lambda t: unicodedata.normalize("NFKC", t))),
        ({"type": "lowercase"}, each_token(str.lower)),
        ({"type": "keep_types", "types": ["<NUM>"], "mode": "exclude"},
         lambda tokens: [each for each in tokens if each[1] != "num"]),
        ({"type": "cjk_bigram"}, bigrams),
        ({"type": "stop", "stopwords": "_english_"},
         lambda tokens: [each for each in tokens if each[0] not in STOP]),
        ({"type": "stemmer", "language": "possessive_english"},
         each_token(lambda t: t.removesuffix("'s"))),
        ({"type": "stemmer", "language": "english"}, each_token(stem)),
        ({"type": "word_delimiter_graph", "preserve_original": True}, parts),
        ({"type": "flatten_graph"}, list),
    )
}  # fmt: skip


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


class Cluster:
    """All indices, and the verbs of the interface by method and path."""

    def __init__(self):
        self.indices = {}
        self.templates = {}
        self.lock = threading.RLock()
        self.busy = {}
        """Path ending to how often it answers 429 before it works."""
        self.refuses_bulk = 0
        """How many actions of the next bulk calls are answered 429."""
        self.seen = []

    ROUTES = (
        ("PUT", r"/_index_template/(?P<name>[^/]+)", "put_template"),
        ("POST", r"/_aliases", "update_aliases"),
        ("PUT", r"/_bulk", "bulk"),
        ("POST", r"/_msearch", "msearch"),
        ("POST", r"/_reindex", "reindex"),
        ("GET", r"/_tasks/(?P<task>[^/]+)", "task"),
        ("HEAD", r"/(?P<index>[^/_][^/]*)", "exists"),
        ("GET", r"/(?P<index>[^/_][^/]*)", "get_index"),
        ("PUT", r"/(?P<index>[^/_][^/]*)", "create_index"),
        ("DELETE", r"/(?P<index>[^/_][^/]*)", "delete_index"),
        ("GET", r"/(?P<index>[^/]+)/_alias", "get_alias"),
        ("POST", r"/(?P<index>[^/]+)/_refresh", "refresh"),
        ("POST", r"/(?P<index>[^/]+)/_mget", "mget"),
        ("POST", r"/(?P<index>[^/]+)/_search", "search"),
        ("POST", r"/(?P<index>[^/]+)/_count", "count"),
        ("POST", r"/(?P<index>[^/]+)/_delete_by_query", "delete_by_query"),
        ("GET", r"/(?P<index>[^/]+)/_doc/(?P<doc_id>[^/]+)", "get_doc"),
        ("PUT", r"/(?P<index>[^/]+)/_doc/(?P<doc_id>[^/]+)", "put_doc"),
        ("PUT", r"/(?P<index>[^/]+)/_create/(?P<doc_id>[^/]+)", "create_doc"),
        ("DELETE", r"/(?P<index>[^/]+)/_doc/(?P<doc_id>[^/]+)", "delete_doc"),
    )  # fmt: skip

    def answer(self, method, path, parameters, lines):
        with self.lock:
            self.seen.append(f"{method} {path}")
            for ending, left in self.busy.items():
                if path.endswith(ending) and left:
                    self.busy[ending] -= 1
                    raise Refused(429, "es_rejected_execution_exception", "queue is full")
            for verb, pattern, name in self.ROUTES:
                if verb == method and (match := re.fullmatch(pattern, path)):
                    return getattr(self, name)(lines, parameters, **match.groupdict())
        raise Refused(400, "illegal_argument_exception", f"no handler for {method} {path}")

    def named(self, pattern, *, needed=True):
        found = [i for n, i in self.indices.items() if fnmatch.fnmatchcase(n, pattern)]
        found += [i for i in self.indices.values() if pattern in i.aliases]
        if not found and needed and "*" not in pattern:
            raise Refused(404, "index_not_found_exception", f"no such index [{pattern}]")
        return found

    def one(self, name):
        (index,) = self.named(name)
        return index

    def made(self, name):
        """The index of a write: Elasticsearch makes one that is missing."""
        if not self.named(name, needed=False):
            self.create_index([], {}, index=name)
        return self.one(name)

    def put_template(self, lines, _, name):
        known(lines[0], {"index_patterns", "version", "priority", "template"}, "template")
        self.templates[name] = lines[0]
        return {"acknowledged": True}

    def create_index(self, _, __, index):
        if index in self.indices:
            raise Refused(400, "resource_already_exists_exception", f"{index} exists")
        fitting = [
            t["template"] for t in self.templates.values()
            if any(fnmatch.fnmatchcase(index, p) for p in t["index_patterns"])
        ]  # fmt: skip
        self.indices[index] = Index(index, fitting[0] if fitting else {})
        return {"acknowledged": True, "index": index}

    def exists(self, _, __, index):
        self.named(index)
        return {}

    def get_index(self, _, parameters, index):
        assert parameters.get("features") == "aliases"
        return {i.name: {"aliases": {a: {} for a in i.aliases}} for i in self.named(index)}

    def delete_index(self, _, parameters, index):
        needed = parameters.get("ignore_unavailable") != "true"
        for found in self.named(index, needed=needed):
            del self.indices[found.name]
        return {"acknowledged": True}

    def get_alias(self, _, __, index):
        return {i.name: {"aliases": {a: {} for a in i.aliases}} for i in self.named(index)}

    def update_aliases(self, lines, _):
        for action in lines[0]["actions"]:
            ((verb, how),) = action.items()
            found = self.named(how["index"])
            if verb == "add":
                known(how, {"index", "alias"}, verb)
                found[0].aliases.add(how["alias"])
            else:
                known(how, {"index", "alias", "must_exist"}, verb)
                for index in found:
                    index.aliases.discard(how["alias"])
        return {"acknowledged": True}

    def refresh(self, _, __, index):
        for found in self.named(index):
            found.refresh()
        return {"_shards": {"failed": 0}}

    def bulk(self, lines, _):
        items, rest = [], iter(lines)
        for action in rest:
            ((verb, how),) = action.items()
            source = next(rest)
            outcome = {"_index": how["_index"], "_id": how["_id"], "status": 200}
            if self.refuses_bulk:
                self.refuses_bulk -= 1
                outcome |= {"status": 429, "error": {"type": "es_rejected_execution_exception"}}
            elif verb == "index":
                self.made(how["_index"]).put(how["_id"], source)
            elif verb == "update":
                index = self.one(how["_index"])
                index.put(how["_id"], index.docs[how["_id"]] | source["doc"])
            else:
                raise Refused(400, "illegal_argument_exception", f"bulk verb {verb}")
            items.append({verb: outcome})
        failed = any("error" in outcome for item in items for outcome in item.values())
        return {"took": 1, "errors": failed, "items": items}

    def mget(self, lines, parameters, index):
        found = self.one(index)
        keys = parameters["_source_includes"].split(",")
        return {
            "docs": [
                {"_id": i, "found": True, "_source": only(found.docs[i], keys)}
                if i in found.docs else {"_id": i, "found": False}
                for i in lines[0]["ids"]
            ]
        }  # fmt: skip

    def search(self, lines, parameters, index):
        body = dict(lines[0])
        if "_source_includes" in parameters:
            body["_source"] = parameters["_source_includes"].split(",")
        hits = self.one(index).search(body)
        return {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": hits}}

    def msearch(self, lines, _):
        responses = []
        for header, body in zip(lines[::2], lines[1::2], strict=True):
            known(header, {"index", "allow_partial_search_results"}, "msearch")
            try:
                responses.append(self.search([body], {}, header["index"]) | {"status": 200})
            except Refused as refused:
                responses.append(refused.body)
        return {"took": 1, "responses": responses}

    def count(self, lines, _, index):
        found = self.one(index)
        query = lines[0]["query"]
        return {"count": sum(found.score(query, i) is not None for i in found.searchable)}

    def delete_by_query(self, lines, parameters, index):
        found = self.one(index)
        gone = [i for i in found.searchable if found.score(lines[0]["query"], i) is not None]
        for doc_id in gone:
            found.docs.pop(doc_id, None)
        if parameters.get("refresh") == "true":
            found.refresh()
        return {"deleted": len(gone), "failures": []}

    def reindex(self, lines, parameters):
        assert parameters["wait_for_completion"] == "false"
        source = self.one(lines[0]["source"]["index"])
        target = self.made(lines[0]["dest"]["index"])
        for doc_id, doc in source.searchable.items():
            if source.score(lines[0]["source"]["query"], doc_id) is not None:
                target.put(doc_id, doc)
        if parameters.get("refresh") == "true":
            target.refresh()
        return {"task": "node:1"}

    def task(self, _, __, task):
        return {"completed": True, "response": {"failures": []}}

    def get_doc(self, _, __, index, doc_id):
        found = self.one(index)
        if doc_id not in found.docs:
            raise Refused(404, "not_found", doc_id)
        return {"_id": doc_id, "found": True, "_source": found.docs[doc_id]} | self.sequence(
            found, doc_id
        )

    def put_doc(self, lines, parameters, index, doc_id):
        found = self.made(index)
        self.check_sequence(found, parameters, doc_id)
        found.put(doc_id, lines[0])
        if parameters.get("refresh") == "true":
            found.refresh()
        return {"_id": doc_id, "result": "created"} | self.sequence(found, doc_id)

    def create_doc(self, lines, parameters, index, doc_id):
        found = self.made(index)
        if doc_id in found.docs:
            raise Refused(409, "version_conflict_engine_exception", doc_id)
        return self.put_doc(lines, parameters, index, doc_id)

    def delete_doc(self, _, parameters, index, doc_id):
        found = self.one(index)
        self.check_sequence(found, parameters, doc_id)
        if doc_id not in found.docs:
            raise Refused(404, "not_found", doc_id)
        del found.docs[doc_id]
        return {"_id": doc_id, "result": "deleted"}

    @staticmethod
    def sequence(index, doc_id):
        return {"_seq_no": index.written[doc_id], "_primary_term": 1}

    @staticmethod
    def check_sequence(index, parameters, doc_id):
        wanted = parameters.get("if_seq_no")
        if wanted is not None and int(wanted) != index.written.get(doc_id, -1):
            raise Refused(409, "version_conflict_engine_exception", doc_id)


@contextlib.contextmanager
def elasticsearch_server():
    """A cluster on this machine: its address and its state."""
    cluster = Cluster()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self):
            address = urllib.parse.urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parameters = dict(urllib.parse.parse_qsl(address.query))
            status = 200
            try:
                lines = [json.loads(line) for line in raw.split(b"\n") if line]
                path = urllib.parse.unquote(address.path)
                body = cluster.answer(self.command, path, parameters, lines)
            except Refused as refused:
                status, body = refused.status, refused.body
            written = b"" if self.command == "HEAD" else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("X-Elastic-Product", "Elasticsearch")
            kind = "application/vnd.elasticsearch+json;compatible-with=9"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_one  # noqa: N815

        def log_message(self, *_):
            pass

    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving.daemon_threads = True
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{serving.server_port}", cluster
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()

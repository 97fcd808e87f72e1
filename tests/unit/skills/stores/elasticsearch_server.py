"""The part of Elasticsearch's HTTP interface that the store uses, in memory.

It does what the reference of version 9 says, and answers 400 to whatever it does not know: an
analyser, a query, a parameter of a body. Searches see what was refreshed, reads by id see
everything. It does not score like Lucene to the last digit.
"""

import contextlib
import fnmatch
import http.server
import json
import re
import threading
import urllib.parse

from tests.unit.skills.stores.elasticsearch_indices import Index, only
from tests.unit.skills.stores.elasticsearch_refusals import Refused, known


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

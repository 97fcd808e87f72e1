"""Databases, the web and object storage, each against a real server of its own."""

import http.server
import threading
from typing import ClassVar

import pytest
import sqlalchemy as sa

from ingest.dead_letters import read_dead_letters
from ingest.errors import IngestRejected, SourceUnavailable
from tests.unit.ingest.test_run import counts


@pytest.fixture
def goods(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/shop.db")

    def execute(*statements):
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))

    execute(
        "create table goods (sku text primary key, name text, note text, price real, at text)",
        "insert into goods values ('a', 'Blue pen', 'writes', 1.5, '2024-01-01T00:00:00'),"
        " ('b', 'Red pen', null, 2, '2024-01-02T00:00:00')",
    )
    execute.source = (
        f"sqlite:///{tmp_path}/shop.db#table=goods&key=sku&updated_at=at&weights=name:3,price:0"
    )
    yield execute
    engine.dispose()


def test_a_row_is_a_passage_with_weighted_columns(bench, goods):
    assert (2, 0, 0, 0, 0) == counts(bench.run(goods.source))
    pen = bench.store.passages("c")["goods/a"]
    assert ("Blue pen", ("Blue pen",), "name: Blue pen\nnote: writes") == (
        pen.title, pen.metadata.heading_path, pen.text,
    )  # fmt: skip
    assert ("goods", "rows", "2024-01-01T00:00:00+00:00", 1.5) == (
        pen.metadata.db_table, pen.metadata.source_type, pen.metadata.last_updated,
        pen.metadata.attributes["price"],
    )  # fmt: skip
    assert "sqlite:shop.db/goods" == pen.metadata.source_url


def test_only_rows_after_the_watermark_are_fetched_and_missing_ones_deleted(bench, goods):
    bench.run(goods.source)
    goods(
        "update goods set name = 'Green pen', at = '2024-02-01T00:00:00' where sku = 'b'",
        "insert into goods values ('d', 'Ink', '', 3, '2024-02-02T00:00:00')",
        "delete from goods where sku = 'a'",
    )
    assert (1, 1, 0, 1, 0) == counts(bench.run(goods.source))
    assert {"goods/b", "goods/d"} == set(bench.store.passages("c"))
    again = bench.run(goods.source)
    assert (0, 0, 2, 0, 0) == counts(again)


def test_a_killed_run_does_not_move_the_watermark(bench, goods, monkeypatch):
    class Killed(BaseException):
        pass

    def die(self):
        raise Killed

    writer = "tests.unit.ingest.fakes.InMemoryWriter.commit"
    with monkeypatch.context() as patched:
        patched.setattr(writer, die)
        with pytest.raises(Killed):
            bench.run(goods.source)
    assert (2, 0, 0, 0, 0) == counts(bench.run(goods.source))


def test_a_password_is_in_no_message(bench):
    source = "postgresql+psycopg://user:secret@127.0.0.1:1/db#table=t"
    with pytest.raises((IngestRejected, SourceUnavailable)) as raised:
        bench.run(source)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("source", ["sqlite:///x.db", "ftp://host/x", "sqlite:///x#tabel=a"])
def test_a_source_of_no_known_kind_is_rejected(bench, source):
    with pytest.raises(IngestRejected):
        bench.run(source)


PAGE = (
    "<html><head><title>{0}</title></head><body><nav>Home About Contact</nav><article><h1>{0}</h1>"
    "<p>The {0} stands on a hill above the old town and was built by hand over many years.</p>"
    "<p>Therefore it leans a little to the left, as every visitor of the town can see.</p>"
    "</article><footer>Copyright</footer></body></html>"
)


class Site(http.server.BaseHTTPRequestHandler):
    pages: ClassVar = {}
    asked: ClassVar = []

    def do_GET(self):
        self.asked.append(self.path)
        body = self.pages.get(self.path)
        if body is None:
            self.send_error(404)
            return
        etag = f'"{hash(body)}"'
        if self.headers.get("If-None-Match") == etag:
            self.send_response(304)
            self.end_headers()
            return
        self.send_response(200)
        kind = "application/xml" if self.path.endswith(".xml") else "text/html; charset=utf-8"
        self.send_header("Content-Type", kind)
        self.send_header("ETag", etag)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    Site.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    locations = "".join(f"<url><loc>{base}/{p}</loc></url>" for p in ("tower", "bridge", "secret"))
    Site.pages = {
        "/robots.txt": "User-agent: *\nDisallow: /secret\n",
        "/sitemap.xml": f'<urlset xmlns="http://www.sitemaps.org/s">{locations}</urlset>',
        "/tower": PAGE.format("Tower"),
        "/bridge": PAGE.format("Bridge"),
        "/secret": PAGE.format("Secret"),
    }
    yield base
    server.shutdown()
    server.server_close()


def test_a_sitemap_is_followed_as_robots_allow(bench, site):
    summary = bench.run(f"{site}/sitemap.xml")
    assert (2, 0, 0, 0, 1) == counts(summary)
    assert "/secret" not in Site.asked
    assert "robots.txt" in read_dead_letters(summary.dead_letters)[0].reason


def test_a_page_is_its_main_text_with_linked_paragraphs_together(bench, site):
    bench.run(f"{site}/tower")
    [passage] = bench.passages()
    assert ("web", "Tower", f"{site}/tower") == (
        passage.metadata.source_type, passage.title, passage.metadata.source_url,
    )  # fmt: skip
    assert "by hand over many years.\n\nTherefore it leans" in passage.text
    assert "Contact" not in passage.text
    assert "Copyright" not in passage.text


def test_pages_that_changed_or_are_gone_are_noticed(bench, site):
    bench.run(f"{site}/sitemap.xml")
    Site.pages["/tower"] = PAGE.format("New tower")
    del Site.pages["/bridge"]
    assert (0, 1, 0, 1, 1) == counts(bench.run(f"{site}/sitemap.xml"))


def test_a_page_that_is_named_alone_speaks_for_no_other_page(bench, site):
    Site.pages["/tower/top"] = PAGE.format("Top")
    bench.run(f"{site}/tower/top")
    assert (1, 0, 0, 0, 0) == counts(bench.run(f"{site}/tower"))
    assert 2 == len(bench.passages())


def test_a_sitemap_that_cannot_be_fetched_deletes_nothing(bench, site):
    bench.run(f"{site}/sitemap.xml")
    del Site.pages["/sitemap.xml"]
    with pytest.raises(SourceUnavailable):
        bench.run(f"{site}/sitemap.xml")
    assert 2 == len({p.document_id for p in bench.passages()})

"""Formats and refusals, on small inputs that are made here."""

import io
import zipfile

import openpyxl
import pytest

from ingest.documents import DocumentSettings, DocumentStage
from ingest.known import KnownDocuments
from ingest.sources.files import FileSource
from ingest.types import DocumentState


@pytest.fixture
def read(tmp_path):
    stage = DocumentStage(DocumentSettings(), KnownDocuments.of([]))

    def outcome_of(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        [listed] = FileSource(path).list()
        [outcome] = stage.process(listed.unit)
        return outcome

    return outcome_of


def texts(outcome):
    assert DocumentState.PARSED == outcome.state, outcome.reason
    return [p.text for p in outcome.passages]


@pytest.mark.parametrize("encoding", ["gb18030", "shift_jis", "utf-16", "utf-16-le", "utf-8-sig"])
def test_text_is_decoded_whatever_its_encoding(read, encoding):
    text = {
        "gb18030": "自然人从事工商业经营，经依法登记，为个体工商户。个体工商户可以起字号。" * 5,
        "shift_jis": "これは日本語の文章です。東京は日本の首都であり、人口が最も多い都市です。" * 5,
    }.get(encoding, "Plain words in a row.")
    [found] = texts(read("a.txt", text.encode(encoding)))
    assert text == found


def test_hard_wrapped_lines_are_joined_and_hyphens_dropped(read):
    wrapped = (
        "The committee which met on the first day of the month exam-\n"
        "ined every page of the report and found that nothing was\nmissing.\n"
    )
    [found] = texts(read("a.txt", wrapped))
    assert "the month examined every page" in found
    assert "\n" not in found


def test_json_records_are_passages_with_their_schema_path(read):
    outcome = read(
        "a.json", '{"shop": {"items": [{"name": "Pen", "price": 2}, {"name": "Ink", "price": 5}]}}'
    )
    assert ["name: Pen\nprice: 2", "name: Ink\nprice: 5"] == texts(outcome)
    assert {"$.shop.items[]"} == {p.metadata.attributes["schema_path"] for p in outcome.passages}


def test_json_leaves_keep_their_siblings_and_path(read):
    outcome = read("a.json", '{"server": {"host": "a.example", "port": 80, "tls": {"on": true}}}')
    [text] = texts(outcome)
    assert "server.host: a.example\nserver.port: 80\nserver.tls.on: true" == text


def test_lines_of_json_that_are_no_passages_are_records(read):
    assert ["a: 1", "a: 2"] == texts(read("a.jsonl", '{"a": 1}\n{"a": 2}\n'))


def test_a_sheet_keeps_its_caption_and_header(read):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Stock"
    for row in [["Stock of 2024"], ["Good", "Pieces"], *[[f"good {i}", i] for i in range(100)]]:
        sheet.append(row)
    data = io.BytesIO()
    book.save(data)
    found = texts(read("a.xlsx", data.getvalue()))
    assert found[0].startswith("Stock\n\nStock of 2024\n\nGood | Pieces\ngood 0 | 0")
    assert all("Good | Pieces" in text for text in found)


def test_a_table_without_header_repeats_no_row(read):
    rows = "".join(f"name {i},{i}\n" for i in range(200))
    joined = "\n".join(texts(read("a.csv", rows)))
    assert 1 == joined.count("name 0 |")


def test_a_mail_has_its_text_once_and_its_attachments(read):
    mail = (
        "Subject: Report\nFrom: Ann <ann@example.org>\nDate: Fri, 16 Dec 2022 17:04:16 -0500\n"
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
        "--b\nContent-Type: text/plain\n\nSee attached.\n"
        '--b\nContent-Type: text/markdown\nContent-Disposition: attachment; filename="r.md"\n\n'
        "# Result\n\nIt works.\n--b--\n"
    )
    outcome = read("no-suffix", mail)
    [text] = texts(outcome)
    assert 1 == text.count("See attached.")
    assert "It works." in text
    metadata = outcome.passages[0].metadata
    assert ("mail", "Ann <ann@example.org>", "2022-12-16T17:04:16-05:00") == (
        metadata.source_type, metadata.author, metadata.last_updated,
    )  # fmt: skip


def test_content_decides_over_the_name(read):
    outcome = read(
        "report.txt", "<!DOCTYPE html><html><body><h1>Title</h1><p>Text.</p></body></html>"
    )
    assert "html" == outcome.passages[0].metadata.source_type


def test_front_matter_gives_title_author_and_date(read):
    text = "---\ntitle: Guide\nauthor: Ann\ndate: 2024-05-01\n---\n\n# One\n\nText.\n"
    [passage] = read("a.md", text).passages
    assert ("Guide", "Ann", "2024-05-01T00:00:00+00:00") == (
        passage.title, passage.metadata.author, passage.metadata.last_updated,
    )  # fmt: skip


def bomb():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * 50_000_000)
    return data.getvalue()


ENTITIES = """<?xml version="1.0"?>
<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>
<a>&c;</a>"""
OUTSIDE = """<?xml version="1.0"?>
<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>"""


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("bomb.docx", bomb(), "unpacks to"),
        ("entities.xml", ENTITIES, "declares XML entities"),
        ("outside.xml", OUTSIDE, "declares XML entities"),
        ("brackets.json", "[" * 100_000, "nested deeper than"),
        ("objects.json", '{"a":' * 100_000, "nested deeper than"),
        ("deep.html", "<html>" + "<div>" * 100_000, "nested deeper than"),
        ("brackets.md", "[" * 100_000, "a thousand brackets"),
        ("deep.xml", "<?xml version='1.0'?>" + "<a>" * 100_000, "nested too deeply"),
        ("broken.docx", b"PK\x03\x04 nothing", "damaged archive"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600, "old binary Office file"),
        ("noise.bin", bytes(range(256)) * 50, "no known format"),
        ("empty.txt", b"", "no extractable text"),
        ("not.json", "{", "is no JSON"),
        ("rows.jsonl", '{"id": 1, "text": "x", "metadata": {"tenant": "a"}}', "without `_id`"),
    ],
)  # fmt: skip
def test_what_cannot_or_must_not_be_read_is_refused_with_a_reason(read, name, content, reason):
    outcome = read(name, content)
    assert DocumentState.FAILED == outcome.state
    assert reason in outcome.reason


@pytest.mark.parametrize("name", ["list.md", "deep.txt", "deep.csv", "deep.py"])
def test_a_hundred_thousand_brackets_do_no_harm(read, name):
    text = {"list.md": "- " * 100_000}
    outcome = read(name, text.get(name, "[({" * 33_000))
    assert outcome.state in (DocumentState.PARSED, DocumentState.FAILED)

import subprocess

import pytest

from ingest.documents import DocumentSettings
from ingest.enrichment.dates import iso_time
from ingest.enrichment.enricher import EnrichmentSettings
from ingest.enrichment.fact_anchors import fact_anchors
from ingest.enrichment.git_history import last_commit
from ingest.enrichment.sensitivity import is_sensitive
from ingest.enrichment.tagger import load_tagger, train_tagger
from ingest.errors import IngestRejected
from skills.types import FactAnchor


@pytest.mark.parametrize(
    "text",
    [
        "身份证号 11010519491231002X，请核对。",
        "Paid with card 4111 1111 1111 1111 today.",
        "Her SSN is 123-45-6789.",
        "Transfer to DE89 3704 0044 0532 0130 00.",
        "护照号码：E12345678",
        "Patient John was diagnosed in 2020.",
        "张伟先生被确诊，需要休息。",
        "员工李明本月工资 8000 元。",
        "Home phone: +1 212-555-0143",
        "手机号：13812345678",
    ],
)
def test_what_belongs_to_one_person_is_sensitive(text):
    assert is_sensitive(text)


@pytest.mark.parametrize(
    "text",
    [
        "身份证号 110105194912310021 的校验位不对。",
        "Order 4111 1111 1111 1112 was shipped.",
        "Call our help desk: 1-800-555-0199.",
        "Write to support@example.com.",
        "患者有权查阅、复制其病历资料。",
        "Ada Lovelace was born in London in 1815.",
        "The patient signs the form before the blood test.",
        "ISBN 978-3-16-148410-0",
        "Net sales were 123456789012345 in total.",
        "The mobile number of visitors rose to 4000000.",
    ],
)
def test_what_belongs_to_nobody_is_not(text):
    assert not is_sensitive(text)


def test_anchors_hold_entity_attribute_value_unit_and_date():
    [anchor] = fact_anchors("In 2023 the sales of Halden reached 12.5 million USD.", "Report")
    assert FactAnchor("Halden", "sales", 12.5e6, "USD", "2023") == anchor


def test_an_anchor_without_a_name_is_about_the_title():
    [anchor] = fact_anchors("铁路全长364.6公里。", "广茂铁路")
    assert ("广茂铁路", 364.6, "km") == (anchor.entity, anchor.value, anchor.unit)


def test_a_text_without_values_has_no_anchors():
    assert () == fact_anchors("Nothing here is counted.", "T")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2024-05-01", "2024-05-01T00:00:00+00:00"),
        ("2024-05-01T10:00:00+08:00", "2024-05-01T10:00:00+08:00"),
        ("2024/05/01", "2024-05-01T00:00:00+00:00"),
        ("Fri, 16 Dec 2022 17:04:16 -0500", "2022-12-16T17:04:16-05:00"),
        ("last week", ""),
        ("", ""),
    ],
)
def test_dates_get_one_form(given, expected):
    assert expected == iso_time(given)


@pytest.fixture
def checkout(bench):
    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=Ann", "-c", "user.email=a@example.org", *words],
            cwd=bench.docs,
            check=True,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "GIT_COMMITTER_DATE": "2020-02-03T04:05:06+00:00"},
        )

    bench.write("a.py", "def half(x):\n    return x / 2\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    return bench


def test_author_and_date_come_from_git_before_the_file_system(checkout):
    checkout.write("untracked.txt", "Text.")
    assert last_commit(checkout.docs / "untracked.txt") is None
    checkout.run()
    code = next(p for p in checkout.passages() if p.metadata.source_type == "code").metadata
    assert ("2020-02-03T04:05:06+00:00", "Ann", "docs", "a.py") == (
        code.last_updated, code.author, code.attributes["repo"], code.attributes["path"],
    )  # fmt: skip


def test_a_classifier_trained_from_folders_tags_documents(bench, tmp_path):
    law = ["The court heard the appeal of the tenant against the landlord."] * 5
    cooking = ["Stir the butter into the flour and bake the dough in the oven."] * 5
    path = tmp_path / "tagger.json"
    train_tagger([("law", law), ("cooking", cooking)], path)
    bench.write("a.txt", "The tenant asked the court whether the landlord may appeal.")
    bench.write("b.txt", "Nothing in here was ever seen before by anyone.")
    settings = DocumentSettings(enrichment=EnrichmentSettings(tagger=path))
    bench.run(documents=settings)
    assert {("law",), ()} == {p.metadata.domain_tags for p in bench.passages()}


def test_a_classifier_needs_two_folders(tmp_path):
    with pytest.raises(IngestRejected, match="two folders"):
        train_tagger([("one", ["text"])], tmp_path / "t.json")
    with pytest.raises(IngestRejected, match="no classifier"):
        load_tagger(tmp_path / "t.json")

import json
import os

import pytest

from ingest.dead_letters import read_dead_letters
from ingest.errors import IngestRejected
from ingest.identity import source_url
from ingest.ledger import Entry
from ingest.plan import is_settled
from ingest.types import DocumentState
from skills.encoders.passage_text import embedded_text
from skills.errors import SkillMisconfigured


def line(identity, text="Some text.", **metadata):
    return json.dumps({"_id": identity, "title": "", "text": text, "metadata": metadata}) + "\n"


def counts(summary):
    return (
        summary.added, summary.changed, summary.unchanged, summary.deleted, summary.failed,
    )  # fmt: skip


def test_running_twice_changes_nothing(bench):
    bench.write("a.md", "# A\n\nOne.")
    bench.write("b.txt", "Two.")
    first = bench.run()
    before = bench.store.indexed("c").copy()
    second = bench.run()
    assert (2, 0, 0, 0, 0) == counts(first)
    assert (0, 0, 2, 0, 0) == counts(second)
    assert (first.version, before) == (second.version, bench.store.indexed("c"))


def test_a_file_that_is_only_touched_is_unchanged(bench):
    path = bench.write("a.md", "# A\n\nOne.")
    bench.run()
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert (0, 0, 1, 0, 0) == counts(bench.run())


def test_a_file_that_looks_as_before_is_not_read_again(bench):
    path = bench.write("a.md", "# A\n\nOne.")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    bench.run()
    assert "none" == bench.run().execution


def test_a_changed_document_replaces_all_of_its_passages(bench):
    bench.write("a.txt", "Old.")
    bench.write("b.txt", "Kept.")
    bench.run()
    bench.write("a.txt", "New.")
    assert (0, 1, 1, 0, 0) == counts(bench.run())
    assert ["Kept.", "New."] == bench.texts()


def test_a_vanished_document_is_deleted(bench):
    path = bench.write("sub/a.txt", "Old.")
    bench.write("b.txt", "Kept.")
    bench.run()
    path.unlink()
    assert (0, 0, 1, 1, 0) == counts(bench.run())
    assert ["Kept."] == bench.texts()


def test_documents_of_another_source_are_never_deleted(bench):
    bench.write("one/a.txt", "First.")
    bench.write("one-more/b.txt", "Second.")
    bench.run(bench.docs / "one")
    assert (1, 0, 0, 0, 0) == counts(bench.run(bench.docs / "one-more"))
    assert ["First.", "Second."] == bench.texts()


def test_a_file_that_is_named_alone_is_the_same_document_as_in_its_directory(bench):
    path = bench.write("a.txt", "Once.")
    bench.run(path)
    assert (0, 0, 1, 0, 0) == counts(bench.run(bench.docs))


def test_a_broken_document_becomes_a_dead_letter_and_stops_nothing(bench):
    bench.write("a.pdf", b"%PDF-1.4 nothing that follows makes sense")
    bench.write("b.txt", "Fine.")
    summary = bench.run()
    assert (1, 0, 0, 0, 1) == counts(summary)
    [letter] = read_dead_letters(summary.dead_letters)
    assert letter.uri.endswith("/a.pdf")
    assert "is damaged or no PDF" in letter.reason
    assert ["Fine."] == bench.texts()


def test_formats_and_broken_documents_go_through_the_parser_of_its_own_process(isolated_bench):
    bench = isolated_bench
    bench.write("a.md", "# A\n\nMarked.")
    bench.write("b.txt", "Plain.")
    bench.write("c.html", "<html><body><p>Tagged.</p></body></html>")
    bench.write("d.jsonl", line("x", "Lined.") + '{"_id": "y", "text": 5}\n')
    bench.write("e.py", "def coded():\n    return 1\n")
    bench.write("broken.pdf", b"%PDF-1.4 nothing that follows makes sense")
    bench.write("broken.docx", b"PK\x03\x04 nothing")
    first = bench.run()
    assert (5, 0, 0, 0, 3) == counts(first)
    letters = {letter.uri.rpartition("/")[2] for letter in read_dead_letters(first.dead_letters)}
    assert {"d.jsonl", "broken.pdf", "broken.docx"} == letters
    told = " ".join(bench.texts())
    assert all(w in told for w in ("Marked.", "Plain.", "Tagged.", "Lined.", "def coded"))
    assert (0, 0, 5, 0, 3) == counts(bench.run())


def test_a_document_that_breaks_keeps_its_last_good_version(bench):
    bench.write("a.html", "<html><body><p>Good.</p></body></html>")
    bench.run()
    bench.write("a.html", b"\x00\x01\x02\x03" * 100)
    assert (0, 0, 0, 0, 1) == counts(bench.run())
    assert ["Good."] == bench.texts()


def test_a_failure_is_remembered_until_the_document_changes(bench):
    bench.write("a.txt", "  \n")
    bench.run()
    again = bench.run()
    assert (0, 0, 0, 0, 1) == counts(again)
    assert 1 == len(read_dead_letters(again.dead_letters))
    bench.write("a.txt", "Text.")
    fixed = bench.run()
    assert (1, 0, 0, 0, 0) == counts(fixed)
    assert [] == read_dead_letters(fixed.dead_letters)


def test_lines_of_passages_are_documents_of_their_own(bench):
    bench.write("p.jsonl", line("x", "One.", lang="en", author="Ann") + line("y", "Two."))
    assert (2, 0, 0, 0, 0) == counts(bench.run())
    x = bench.store.passages("c")["x"]
    assert ("x", "One.", "Ann", {"lang": "en"}) == (
        x.document_id, x.text, x.metadata.author, x.metadata.attributes,
    )  # fmt: skip


def test_only_the_line_that_changed_is_written_again(bench):
    bench.write("p.jsonl", line("x", "One.") + line("y", "Two.") + line("z", "Three."))
    bench.run()
    bench.write("p.jsonl", line("x", "One.") + line("y", "Two!"))
    summary = bench.run()
    assert (0, 1, 1, 1, 0) == counts(summary)
    assert 1 == summary.passages
    assert ["One.", "Two!"] == bench.texts()


def test_a_bad_line_is_a_dead_letter_that_names_its_place_and_field(bench):
    good = line("x")
    bench.write("p.jsonl", good + '{"_id": "y", "text": 5}\n' + line("z", confidence_level=3))
    summary = bench.run()
    assert (1, 0, 0, 0, 2) == counts(summary)
    letters = read_dead_letters(summary.dead_letters)
    assert [len(good), len(good) + 24] == [letter.offset for letter in letters]
    assert "`text`" in letters[0].reason
    assert "metadata.confidence_level" in letters[1].reason


def test_an_id_that_is_used_twice_is_reported_and_the_first_one_kept(bench):
    bench.write("a.jsonl", line("x", "First."))
    bench.write("b.jsonl", line("x", "Second."))
    summary = bench.run()
    assert (1, 0, 0, 0, 1) == counts(summary)
    assert "is taken by a document of file:" in read_dead_letters(summary.dead_letters)[0].reason
    assert ["First."] == bench.texts()


def test_an_id_of_another_source_is_never_overwritten(bench):
    bench.write("one/p.jsonl", line("x", "First."))
    bench.write("two/p.jsonl", line("x", "Second."))
    bench.run(bench.docs / "one")
    assert 1 == bench.run(bench.docs / "two").failed
    assert ["First."] == bench.texts()


def test_a_large_file_of_lines_is_split_without_loss(bench):
    lines = [line(f"id-{i}", f"{i} " + "x" * (i % 700)) for i in range(1200)]
    bench.write("p.jsonl", "".join(lines))
    assert 1200 == bench.run().added


def test_links_inside_a_source_are_refused(bench, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("Secret.")
    bench.write("a.txt", "Open.")
    (bench.docs / "link.txt").symlink_to(secret)
    summary = bench.run()
    assert (1, 0, 0, 0, 1) == counts(summary)
    assert "symbolic link" in read_dead_letters(summary.dead_letters)[0].reason
    assert ["Open."] == bench.texts()


def test_a_dry_run_counts_and_writes_nothing(bench):
    bench.write("a.txt", "Text.")
    summary = bench.run(dry_run=True)
    assert (1, 0, 0, 0, 0) == counts(summary)
    assert 1 == summary.passages
    assert [] == bench.passages()
    assert (1, 0, 0, 0, 0) == counts(bench.run())


def test_a_source_that_does_not_exist_is_an_error_and_deletes_nothing(bench):
    bench.write("a.txt", "Text.")
    bench.run()
    with pytest.raises(IngestRejected, match="no such file"):
        bench.run(bench.docs / "nowhere")
    assert ["Text."] == bench.texts()


def test_vectors_belong_to_their_passages(bench):
    texts = [f"{'x' * (i * 7 % 50)} {i}" for i in range(100)]
    bench.write("p.jsonl", "".join(line(str(i), text) for i, text in enumerate(texts)))
    bench.run()
    encoder = bench.resources.encoder()
    for indexed in bench.store.indexed("c").values():
        [expected] = encoder.encode([indexed.passage.text], "passage")
        assert indexed.vectors["dense"] == pytest.approx(expected, abs=1e-6)


def test_two_encoders_embed_in_one_pass(bench):
    bench.write("a.txt", "Text.")
    bench.run(encoders={"dense": "default", "second": "other"})
    [indexed] = bench.store.indexed("c").values()
    for name, encoder in (("dense", "default"), ("second", "other")):
        [expected] = bench.resources.encoder(encoder).encode(
            [embedded_text(indexed.passage)], "passage"
        )
        assert indexed.vectors[name] == pytest.approx(expected, abs=1e-6)


def test_vectors_of_tokens_belong_to_their_passages(bench):
    texts = ["one", "two of them", "...", "four words there are"]
    bench.write("p.jsonl", "".join(line(str(i), text) for i, text in enumerate(texts)))
    bench.run(token_encoders={"late": "tokens"})
    encoder = bench.resources.token_encoder("tokens")
    assert len(texts) == len(bench.store.indexed("c"))
    for indexed in bench.store.indexed("c").values():
        [expected] = encoder.encode_tokens([embedded_text(indexed.passage)], "passage")
        assert indexed.vectors["late"] == pytest.approx(expected, abs=1e-3)
        assert (8,) == indexed.vectors["dense"].shape


def test_files_are_read_again_when_a_name_turns_to_vectors_of_tokens(bench):
    path = bench.write("a.txt", "two words")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    bench.run(encoders={"late": "tokens"})
    assert "none" == bench.run(encoders={"late": "tokens"}).execution
    late = {"encoders": {}, "token_encoders": {"late": "tokens"}}
    assert "inline" == bench.run(**late).execution
    assert "none" == bench.run(**late).execution


def test_an_encoder_without_vectors_of_tokens_and_a_name_taken_twice_are_refused(bench):
    bench.write("a.txt", "Text.")
    with pytest.raises(SkillMisconfigured, match="other"):
        bench.run(token_encoders={"late": "other"})
    with pytest.raises(IngestRejected, match="dense"):
        bench.run(token_encoders={"dense": "tokens"})


def test_progress_ends_with_everything_done(bench):
    bench.write("a.txt", "Text.")
    bench.write("b.jsonl", line("x") + line("y"))
    heard = []
    bench.run(progress=heard.append)
    last = heard[-1]
    assert (3, 3, 0) == (last.documents, last.passages, last.failed)
    assert 0.9 < last.done_bytes / last.total_bytes <= 1


def test_what_the_request_says_is_on_every_passage(bench):
    from ingest.documents import DocumentSettings
    from ingest.enrichment.enricher import EnrichmentSettings

    bench.write("a.txt", "Text.")
    bench.write("b.jsonl", line("x", allowed_roles=["hr"]))
    settings = EnrichmentSettings(tenant="acme", allowed_roles=("staff",))
    bench.run(documents=DocumentSettings(enrichment=settings))
    roles = {p.metadata.allowed_roles for p in bench.passages()}
    assert {("staff",), ("hr",)} == roles
    assert {"acme"} == {p.metadata.tenant for p in bench.passages()}


class Killed(BaseException):
    pass


def stop_after(tables):
    heard = []

    def hear(progress):
        heard.append(progress)
        if len(heard) == tables:
            raise Killed

    return hear


def test_a_killed_run_is_resumed_without_embedding_again(bench):
    bench.write("p.jsonl", "".join(line(str(i), f"Text {i}. " + "x" * 60) for i in range(1500)))
    with pytest.raises(Killed):
        bench.run(progress=stop_after(3))
    assert [] == bench.passages()
    encoder = bench.resources.encoder()
    before = encoder.num_texts
    assert 1500 == bench.run().added
    assert 0 < encoder.num_texts - before < 1500
    assert 1500 == len(bench.passages())
    assert 0 == bench.run().passages


def test_what_changed_since_the_killed_run_is_taken_as_it_is_now(bench):
    lines = [line(str(i), f"Text {i}. " + "x" * 60) for i in range(1500)]
    bench.write("p.jsonl", "".join(lines))
    with pytest.raises(Killed):
        bench.run(progress=stop_after(3))
    bench.write("p.jsonl", "".join([line("0", "New."), *lines[2:]]))
    assert 1499 == bench.run().added
    assert ["New."] == [p.text for p in bench.passages() if p.id == "0"]
    assert "1" not in bench.store.passages("c")


@pytest.mark.parametrize(
    ("content_hash", "stage", "settled"),
    [
        ("", "read", False),  # the disk or the network was away: it may be back
        ("h", "read", True),  # what it holds is refused
        ("h", "parse", True),
    ],
)
def test_what_could_not_be_read_is_tried_again_though_it_looks_the_same(
    content_hash, stage, settled
):
    entry = Entry("d", "file:///a", 0, content_hash, DocumentState.FAILED, "why", stage)
    assert settled is is_settled(entry, {})


def test_passages_name_their_file_from_the_source_on_and_not_where_the_source_is(bench, tmp_path):
    one = bench.write("guide/a b.md", "# A\n\nOne.")
    bench.write("ready.jsonl", line("p1"))
    bench.run()
    named = {p.metadata.source_url for p in bench.passages()}
    assert {"file:docs/guide/a%20b.md", "file:docs/ready.jsonl"} == named
    bench.run(one.parent)
    bench.run(one)
    assert not any(str(tmp_path) in repr(p) for p in bench.passages())


@pytest.mark.parametrize("root", ["file:///", "file:///srv", "file:///srv/a.md"])
def test_a_source_may_be_the_whole_disk_or_a_file(root):
    wanted = "file:a.md" if root.endswith(".md") else "file:srv/a.md"
    assert wanted == source_url("file:///srv/a.md", root)

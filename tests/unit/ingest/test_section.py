import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.chunkers.section import SectionChunker
from ingest.types import Block, BlockKind, ParsedDocument


def heading(text, level):
    return Block(BlockKind.HEADING, text, level)


def paragraph(text):
    return Block(BlockKind.PARAGRAPH, text)


def cut(*blocks, **sizes):
    return SectionChunker(SectionChunker.Config(**sizes)).cut(ParsedDocument("text", blocks))


def prose(chars, word="word"):
    return (f"{word} " * chars)[: chars - 1] + "."


def test_the_second_level_is_the_unit_and_its_path_is_kept():
    cuts = cut(
        heading("Manual", 1),
        paragraph(prose(400)),
        heading("Install", 2),
        paragraph(prose(350)),
        heading("On Linux", 3),
        paragraph(prose(350)),
        heading("Use", 2),
        paragraph(prose(400)),
    )
    assert [("Manual",), ("Manual", "Install"), ("Manual", "Use")] == [c.heading_path for c in cuts]
    assert "On Linux" in cuts[1].text


def test_levels_are_counted_over_those_in_use():
    cuts = cut(
        heading("Manual", 2),
        heading("Install", 4),
        paragraph(prose(400)),
        heading("Use", 4),
        paragraph(prose(400)),
    )
    assert [("Manual", "Install"), ("Manual", "Use")] == [c.heading_path for c in cuts]


def test_a_short_unit_merges_into_the_one_before_it():
    cuts = cut(
        heading("Manual", 1),
        heading("Install", 2),
        paragraph(prose(400)),
        heading("Remove", 2),
        paragraph("Delete the directory."),
    )
    assert [("Manual", "Install")] == [c.heading_path for c in cuts]
    assert cuts[0].text.endswith("Remove\n\nDelete the directory.")


def test_a_short_opening_of_a_chapter_goes_with_what_follows():
    cuts = cut(
        heading("One", 1),
        heading("A", 2),
        paragraph(prose(400)),
        heading("Two", 1),
        paragraph("Two is about B."),
        heading("B", 2),
        paragraph(prose(400)),
    )
    assert ["One", "Two"] == [c.heading_path[0] for c in cuts]
    assert cuts[1].text.startswith("Two\n\nTwo is about B.")


def test_a_long_unit_is_cut_before_a_marker_rather_than_at_the_last_paragraph():
    cuts = cut(
        paragraph(prose(500)),
        paragraph("注意事项：" + "请先断开电源。" * 30),
        paragraph(prose(200)),
        paragraph(prose(400)),
    )
    assert cuts[1].text.startswith("注意事项")


def test_a_long_unit_is_cut_before_a_heading_below_the_unit():
    cuts = cut(
        heading("Unit", 1),
        paragraph(prose(400)),
        paragraph(prose(200)),
        heading("Below", 3),
        paragraph(prose(300)),
        paragraph(prose(500)),
    )
    assert cuts[1].text.startswith("Below\n\n")


def test_a_long_table_repeats_its_header():
    rows = (("Name", "Value"), *((f"row {i}", "x" * 40) for i in range(60)))
    cuts = cut(Block(BlockKind.TABLE, "", rows=rows, header_rows=1))
    assert len(cuts) > 1
    assert {"Name | Value"} == {c.text.split("\n")[0] for c in cuts}
    assert all(sum(f"row {i} |" in c.text for c in cuts) == 1 for i in range(60))


def test_a_table_stays_with_the_sentence_that_introduces_it():
    rows = tuple((f"row {i}", "x" * 30) for i in range(20))
    cuts = cut(paragraph(prose(700)), paragraph("The rows:"), Block(BlockKind.TABLE, "", rows=rows))
    assert cuts[1].text.startswith("The rows:\n\nrow 0")


@given(
    st.lists(st.tuples(st.sampled_from(["h1", "h2", "h3", "p"]), st.integers(1, 3000)), max_size=20)
)
def test_nothing_is_lost_and_nothing_comes_twice(shape):
    blocks = [
        heading(f"H{i}", int(kind[1])) if kind != "p" else paragraph(f"{i}" + "x" * size)
        for i, (kind, size) in enumerate(shape)
    ]
    joined = "".join("".join(c.text.split()) for c in cut(*blocks))
    assert "".join(b.text for b in blocks) == joined


@given(st.lists(st.integers(1, 4000), max_size=12))
def test_no_passage_is_longer_than_allowed(sizes):
    blocks = [paragraph(prose(size)) for size in sizes]
    assert all(len(c.text) <= 1200 for c in cut(*blocks))


def test_sizes_out_of_range_are_refused():
    with pytest.raises(ValueError, match="max_chars"):
        SectionChunker.Config(max_chars=10)


def test_a_piece_of_a_block_that_goes_on_over_pages_has_the_page_where_it_begins():
    text = prose(1000, "first") + " " + prose(1000, "second")
    block = Block(BlockKind.PARAGRAPH, text, page=3, page_turns=((1001, 4),))
    assert [3, 4] == [c.page for c in cut(block)]
    rows = tuple((f"{'x' * 90}{i}",) for i in range(20))
    table = Block(BlockKind.TABLE, "", page=1, rows=rows, page_turns=((10, 2),))
    assert [1, 2] == sorted({c.page for c in cut(table)})

import itertools
import time
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.types import Intent
from serve_app.answers.candidates import candidates
from serve_app.answers.extractive import ExtractiveReader
from serve_app.answers.types import AnswerRequest
from skills.errors import SkillError, SkillUnavailable
from skills.language import content_words
from skills.types import Hit, MissingReason, Passage, PassageMetadata, Provenance


class WordEncoder:
    """Embeds texts as hashed bags of words: texts that share words are near."""

    id = "words"
    dim = 512

    def __init__(self, sentence_s=0.0):
        self.sentence_s = sentence_s
        self.encoded = 0

    def encode(self, texts, role):
        time.sleep(self.sentence_s * len(texts))
        self.encoded += len(texts)
        vectors = np.full((len(texts), self.dim), 0.001, np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in content_words(text):
                row[zlib.crc32(word.normalised.encode()) % self.dim] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class FakeResources:
    def __init__(self, encoder):
        self._encoder = encoder

    def encoder(self, name="default"):
        return self._encoder


def reader(encoder=None, **config):
    config = {"threshold": 0.0} | config
    encoder = encoder or WordEncoder()
    return ExtractiveReader(ExtractiveReader.Config(**config), FakeResources(encoder))


def passage(name, text, **more):
    return Passage(name, f"doc-{name}", text, **more)


def hits(*passages, groups=()):
    groups = groups or ("",) * len(passages)
    return tuple(
        Hit(p, 1 / (i + 1), (Provenance(1, "dense", i + 1, 1.0, group),))
        for i, (p, group) in enumerate(zip(passages, groups, strict=True))
    )


async def answered(query, found, *, intent=Intent.FACT, budget_ms=5000, by=None):
    (result,) = await (by or reader()).generate([AnswerRequest(query, found, budget_ms, intent)])
    assert result.error is None
    by_id = {hit.passage.id: hit.passage for hit in found}
    for sentence in result.answer.sentences:
        for cited in sentence.citations:
            assert sentence.text == by_id[cited.passage_id].text[cited.start : cited.end]
            assert cited.document_id == by_id[cited.passage_id].document_id
    return result.answer


LUMEN = passage(
    "lumen", "Lumen was founded in Oslo. Its revenue in 2024 was 41 million euros. It rained."
)
OTHER = passage("other", "Oslo is a city. Trams run there every ten minutes.")


async def test_a_fact_is_answered_with_its_sentence_and_place():
    answer = await answered("What was the revenue of Lumen in 2024?", hits(OTHER, LUMEN))
    assert answer.text.startswith("Its revenue in 2024 was 41 million euros.")
    assert (answer.kind, answer.missing) == ("extractive", ())


async def test_a_fact_of_another_year_ranks_below_the_one_asked_for():
    old = passage("old", "The revenue of Lumen was 30 million euros.", title="Lumen report 2023")
    new = passage("new", "The revenue of Lumen was 41 million euros.", title="Lumen report 2024")
    answer = await answered("What was the revenue of Lumen in 2024?", hits(old, new))
    assert answer.sentences[0].citations[0].passage_id == "new"


async def test_a_number_that_no_passage_has_is_said_to_be_missing():
    answer = await answered("What was the revenue of Lumen in 2031?", hits(LUMEN))
    (missing,) = answer.missing
    assert (missing.reason, missing.subject) == (MissingReason.NO_EVIDENCE, "2031")


async def test_chinese_sentences_are_joined_without_spaces():
    text = "澜星成立于2015年。澜星的营业收入是三亿元。今天下雨。"
    answer = await answered("澜星的营业收入是多少？", hits(passage("zh", text)))
    assert answer.sentences[0].text in {"澜星的营业收入是三亿元。", "澜星成立于2015年。"}
    assert "澜星的营业收入是三亿元。" in answer.text
    assert " " not in answer.text


async def test_repetitions_are_told_once():
    twice = passage("twice", "The revenue of Lumen was 41 million euros in 2024.")
    again = passage("again", "In 2024 the revenue of Lumen was 41 million euros.")
    answer = await answered("revenue of Lumen 2024", hits(twice, again), intent=Intent.SUMMARY)
    assert len(answer.sentences) == 1


HOW = passage(
    "how",
    "To restart the battery:\n1. Switch off the breaker.\n2. Press the button for 8 s.\n"
    "3. Switch on again.\nCall us if the battery fails to restart.",
)


async def test_a_how_to_keeps_its_steps_in_order():
    answer = await answered("how to restart the battery", hits(OTHER, HOW), intent=Intent.HOW_TO)
    told = ["1. Switch off the breaker.", "2. Press the button for 8 s.", "3. Switch on again."]
    assert told == [step.text for step in answer.steps]
    assert "\n".join(told) == answer.text


async def test_a_step_goes_on_to_the_end_of_its_line():
    text = "To restart:\n1. Press the button. The ring blinks.\n2. Wait. It restarts.\n\nGood luck."
    answer = await answered("how to restart", hits(passage("how", text)), intent=Intent.HOW_TO)
    told = ["1. Press the button. The ring blinks.", "2. Wait. It restarts."]
    assert told == [step.text for step in answer.steps]


SECTIONS = passage(
    "sections",
    "Battery handbook\n\nWarranty\n\nTen years from the day of sale.\n\n"
    "What does it weigh?\n\nWith its base some 104 kg.",
    title="Battery handbook",
)


async def test_headings_and_questions_are_no_answers_but_say_what_follows_is_about():
    answer = await answered("how long is the warranty", hits(SECTIONS))
    assert answer.text == "Ten years from the day of sale."
    answer = await answered("what does the battery weigh", hits(SECTIONS))
    assert answer.text == "With its base some 104 kg."


async def test_a_comparison_has_a_row_for_each_side():
    left = passage("left", "The Alpha battery weighs 52 kg.")
    right = passage("right", "The Beta battery weighs 104 kg.")
    found = hits(left, right, groups=("Alpha", "Beta"))
    found = found[::-1]
    answer = await answered("weight of Alpha vs Beta battery", found, intent=Intent.COMPARISON)
    rows = [(row.side, [s.text for s in row.sentences]) for row in answer.comparison]
    assert rows == [("Alpha", [left.text]), ("Beta", [right.text])]
    assert answer.text == f"Alpha: {left.text}\nBeta: {right.text}"


async def test_sides_are_read_off_the_wording_when_the_plan_made_none():
    text = "The Alpha battery is for flats. The Beta battery is for houses. Both are blue."
    found = hits(passage("both", text))
    query = "What is the difference between the Alpha battery and the Beta battery?"
    answer = await answered(query, found, intent=Intent.COMPARISON)
    rows = [(row.side, [s.text for s in row.sentences]) for row in answer.comparison]
    assert rows == [
        ("Alpha battery", ["The Alpha battery is for flats."]),
        ("Beta battery", ["The Beta battery is for houses."]),
    ]


async def test_a_row_holds_what_is_said_of_its_side():
    text = "The Alpha battery is for flats. The Beta battery is for houses. Both are blue."
    both = passage("both", text)
    found = (
        Hit(both, 1.0, tuple(Provenance(1, "dense", 1, 1.0, side) for side in ("Alpha", "Beta"))),
    )
    answer = await answered("Alpha vs Beta battery", found, intent=Intent.COMPARISON)
    rows = {row.side: [s.text for s in row.sentences] for row in answer.comparison}
    assert rows["Alpha"] == ["The Alpha battery is for flats."]
    assert rows["Beta"] == ["The Beta battery is for houses."]


async def test_a_side_without_evidence_is_missing():
    found = hits(
        passage("l", "The Alpha battery weighs 52 kg."), passage("r", ""), groups=("A", "B")
    )
    answer = await answered("weight of A vs B", found, intent=Intent.COMPARISON)
    assert ["B"] == [missing.subject for missing in answer.missing]
    assert answer.comparison[1].sentences == ()


async def test_below_the_threshold_it_abstains_and_says_what_is_not_there():
    by = reader(threshold=0.99)
    answer = await answered("Who painted the Sistine ceiling?", hits(LUMEN, OTHER), by=by)
    assert ("", ()) == (answer.text, answer.sentences)
    (missing,) = answer.missing
    assert missing.reason is MissingReason.NO_EVIDENCE
    assert "sistine" in missing.detail


@pytest.mark.parametrize("found", [(), hits(passage("empty", " \n")), hits(passage("dots", "…"))])
async def test_without_text_it_abstains(found):
    answer = await answered("anything", found)
    assert answer.missing[0].reason is MissingReason.NO_EVIDENCE
    assert answer.confidence == 0


async def test_without_time_it_says_so_and_encodes_nothing():
    encoder = WordEncoder()
    answer = await answered("revenue", hits(LUMEN), budget_ms=2, by=reader(encoder))
    assert answer.missing[0].reason is MissingReason.OVER_BUDGET
    assert encoder.encoded == 0


async def test_it_reads_no_more_than_fits_the_budget():
    long = passage("long", " ".join(f"Sentence {i} about revenue." for i in range(300)))
    encoder = WordEncoder(sentence_s=0.002)
    by = reader(encoder, max_sentences=300, sentence_ms=4)
    await answered("revenue", hits(long), budget_ms=200, by=by)
    assert encoder.encoded <= 40


async def test_it_stops_reading_when_sentences_take_longer_than_they_did():
    long = passage("long", " ".join(f"Sentence {i} about revenue." for i in range(300)))
    encoder = WordEncoder(sentence_s=0.02)
    by = reader(encoder, max_sentences=300, sentence_ms=0.1)
    answer = await answered("revenue", hits(long), intent=Intent.SUMMARY, budget_ms=300, by=by)
    assert answer.sentences
    assert encoder.encoded <= 20


async def test_a_passage_that_comes_again_is_not_encoded_again():
    encoder = WordEncoder()
    by = reader(encoder)
    first = await answered("When was Lumen founded?", hits(LUMEN, OTHER), by=by)
    known = encoder.encoded
    assert first == await answered("When was Lumen founded?", hits(LUMEN, OTHER), by=by)
    assert known + 1 == encoder.encoded  # the query


class StallingEncoder(WordEncoder):
    """Takes `stall_s` for its next sentences, once."""

    stall_s = 0.0

    def encode(self, texts, role):
        if role == "passage":
            self.stall_s, now = 0.0, self.stall_s
            time.sleep(now)
        return super().encode(texts, role)


async def test_one_stall_of_the_encoder_does_not_silence_the_reader():
    encoder = StallingEncoder()
    by = reader(encoder)
    known = await answered("When was Lumen founded?", hits(LUMEN), budget_ms=400, by=by)
    encoder.stall_s = 0.6
    await answered("red", hits(passage("one", "The red button resets.")), budget_ms=400, by=by)
    assert known == await answered("When was Lumen founded?", hits(LUMEN), budget_ms=400, by=by)
    assert (await answered("Who is it?", hits(OTHER), budget_ms=400, by=by)).sentences


async def test_a_reader_that_was_slow_for_long_is_measured_again():
    encoder = WordEncoder(sentence_s=0.02)
    by = reader(encoder, sentence_ms=1)
    for number in range(10):
        long = " ".join(f"Sentence {number}.{i} about revenue." for i in range(6))
        await answered("revenue", hits(passage("long", long)), by=by)
    encoder.sentence_s = 0.0
    answer = await answered("When was Lumen founded?", hits(LUMEN), budget_ms=40, by=by)
    assert answer.sentences


async def test_sentences_that_are_known_need_no_time():
    encoder = WordEncoder()
    by = reader(encoder, sentence_ms=30)
    known = await answered("When was Lumen founded?", hits(LUMEN, OTHER), by=by)
    assert known == await answered(
        "When was Lumen founded?", hits(LUMEN, OTHER), budget_ms=50, by=by
    )


@pytest.mark.parametrize(("intent", "most"), [(Intent.FACT, 6), (Intent.SUMMARY, 12)])
async def test_a_short_answer_is_found_among_fewer_sentences(intent, most):
    long = passage("long", " ".join(f"Sentence {i} about revenue." for i in range(40)))
    encoder = WordEncoder()
    await answered("revenue", hits(long), intent=intent, by=reader(encoder))
    assert most + 1 == encoder.encoded


async def test_a_request_that_fails_spares_its_neighbours():
    class Broken(WordEncoder):
        def encode(self, texts, role):
            if "boom" in texts[0]:
                raise SkillUnavailable("encoder", "gone")
            return super().encode(texts, role)

    wrong = AnswerRequest("boom", hits(LUMEN), 5000)
    right = AnswerRequest("revenue of Lumen", hits(LUMEN), 5000)
    failed, served = await reader(Broken()).generate([wrong, right])
    assert isinstance(failed.error, SkillError)
    assert served.answer.sentences


async def test_code_is_quoted_as_one_piece_up_to_a_line_end():
    code = "def restart(battery):\n" + "".join(f"    battery.step({i})\n" for i in range(60))
    source = passage("code", code, metadata=PassageMetadata(language="code"))
    answer = await answered("restart battery", hits(source))
    (sentence,) = answer.sentences
    assert sentence.text.startswith("def restart(battery):\n")
    assert sentence.text.endswith(")")


async def test_a_row_of_a_table_can_be_the_answer():
    table = "| property | value |\n| --- | --- |\n| weight | 52 kg |\n| price | 3,490 EUR |"
    answer = await answered("weight", hits(passage("table", table)))
    assert answer.sentences[0].text == "| weight | 52 kg |"
    plain = "property | value\nweight | 52 kg\nprice | 3,490 EUR"
    answer = await answered("weight", hits(passage("plain", plain)))
    assert answer.sentences[0].text == "weight | 52 kg"


TEXTS = st.text(st.sampled_from("ab 1.。!?\n|-#中文的\u3000{};"), max_size=120)


@given(st.lists(TEXTS, max_size=3))
def test_candidates_stand_in_their_passage_in_order_without_overlap(texts):
    found = candidates(hits(*(passage(f"p{i}", text) for i, text in enumerate(texts))))
    places = [(c.hit, c.start, c.end) for c in found]
    assert places == sorted(places)
    for one, other in itertools.pairwise(places):
        assert one[0] < other[0] or one[2] <= other[1]
    for candidate in found:
        assert candidate.text == texts[candidate.hit][candidate.start : candidate.end]
